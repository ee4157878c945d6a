// @a2a-js/sdk 0.3: its client, made from the card, over each of its transports.

import { randomUUID } from 'node:crypto';
import { ClientFactory, JsonRpcTransportFactory, RestTransportFactory } from '@a2a-js/sdk/client';
import { GrpcTransportFactory } from '@a2a-js/sdk/client/grpc';
import { chunks, hooks, refused, run, same } from './steps.mjs';

const TRANSPORTS = { jsonrpc: JsonRpcTransportFactory, http_json: RestTransportFactory, grpc: GrpcTransportFactory };

const text = (holder) => holder.parts.map((part) => part.text).join('');

const params = (words, { blocking = true, ...more } = {}) => ({
  message: { kind: 'message', role: 'user', messageId: randomUUID(), parts: [{ kind: 'text', text: words }], ...more },
  configuration: { acceptedOutputModes: [], blocking },
});

await run(async (url, transport) => {
  const factory = new ClientFactory({ transports: [new TRANSPORTS[transport]()] });
  const client = await factory.createFromUrl(url);
  const ask = (words, more) => client.sendMessage(params(words, more));

  return {
    async card() {
      const card = await client.getAgentCard();
      same([card.name, card.protocolVersion, card.capabilities.streaming], ['Demo', '0.3.0', true]);
      same(card.skills.some((skill) => skill.id === 'echo'), true);
    },
    async send() {
      const task = await ask('hello');
      same([task.kind, task.status.state, task.artifacts.map(text)], ['task', 'completed', ['hello']]);
    },
    async question() {
      const asked = await ask('ask which colour?');
      same([asked.status.state, text(asked.status.message)], ['input-required', 'which colour?']);
      const done = await ask('green', { taskId: asked.id, contextId: asked.contextId });
      same([done.id, done.status.state], [asked.id, 'completed']);
      same(text(done.artifacts[0]), 'I asked: which colour?\nYou said: green');
      same(done.history.slice(0, 3).map((message) => message.role), ['user', 'agent', 'user']);
    },
    async file() {
      const [part] = (await ask('file over there')).artifacts[0].parts;
      same([part.kind, part.file.bytes, part.file.mimeType], ['file', 'b3ZlciB0aGVyZQ==', 'text/plain']);
    },
    async data() {
      const [part] = (await ask('data two words')).artifacts[0].parts;
      same([part.kind, part.data], ['data', { text: 'two words', characters: 9, words: ['two', 'words'] }]);
    },
    async stream() {
      const events = [];
      for await (const event of client.sendMessageStream(params('stream 5'))) events.push(event);
      const last = events.at(-1);
      same(events[0].kind, 'task');
      same([last.kind, last.final, last.status.state], ['status-update', true, 'completed']);
      const pieces = events.filter((event) => event.kind === 'artifact-update');
      same(pieces.map((event) => text(event.artifact)).join(''), chunks(5));
    },
    async get() {
      const sent = await ask('remember me');
      const task = await client.getTask({ id: sent.id, historyLength: 1 });
      same([task.id, task.contextId, task.status.state], [sent.id, sent.contextId, 'completed']);
      same([task.artifacts.map(text), task.history.length], [['remember me'], 1]);
      await refused(client.getTask({ id: 'nobody' }), 'TaskNotFoundError');
    },
    async cancel() {
      const begun = await ask('slow 60 dig', { blocking: false });
      same(['submitted', 'working'].includes(begun.status.state), true);
      const canceled = await client.cancelTask({ id: begun.id });
      same([canceled.id, canceled.status.state], [begun.id, 'canceled']);
      const done = await ask('too late');
      await refused(client.cancelTask({ id: done.id }), 'TaskNotCancelableError');
    },
    async resubscribe() {
      let id;
      for await (const event of client.sendMessageStream(params('stream 20'))) {
        id = event.taskId;
        if (event.kind === 'artifact-update') break;
      }
      let written = '', last;
      for await (const event of client.resubscribeTask({ id })) {
        last = event;
        if (event.kind === 'task') written = (event.artifacts ?? []).map(text).join('');
        // Over HTTP+JSON this SDK forgets `append`; what comes after the task only adds to it.
        if (event.kind === 'artifact-update') written += text(event.artifact);
      }
      same([last.final, last.status.state, written], [true, 'completed', chunks(20)]);
    },
    async push() {
      const receiver = await hooks();
      const begun = await ask('slow 3 knock', { blocking: false });
      const authentication = { schemes: ['Bearer'], credentials: 'a-secret' };
      const wanted = { id: 'mine', url: receiver.url, token: 'a-token', authentication };
      const config = await client.setTaskPushNotificationConfig({ taskId: begun.id, pushNotificationConfig: wanted });
      same([config.taskId, config.pushNotificationConfig.url], [begun.id, receiver.url]);
      const which = { id: begun.id, pushNotificationConfigId: 'mine' };
      const read = await client.getTaskPushNotificationConfig(which);
      same([read.pushNotificationConfig.id, read.pushNotificationConfig.token || undefined], ['mine', undefined]);
      const { headers, body } = await receiver.until((body) => body.status.state === 'completed');
      same([headers['x-a2a-notification-token'], headers.authorization], ['a-token', 'Bearer a-secret']);
      same([body.kind, body.id, text(body.artifacts[0])], ['task', begun.id, 'knock: done in 3 s']);
      await client.deleteTaskPushNotificationConfig(which);
      same(await client.listTaskPushNotificationConfig({ id: begun.id }), []);
    },
  };
});
