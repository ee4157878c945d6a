// @a2a-js/sdk 0.2: its JSON-RPC client, which looks for the card where 0.2 has it.

import { randomUUID } from 'node:crypto';
import { A2AClient } from '@a2a-js/sdk/client';
import { chunks, hooks, run, same } from './steps.mjs';

const text = (holder) => holder.parts.map((part) => part.text).join('');

const params = (words, { blocking = true, ...more } = {}) => ({
  message: { kind: 'message', role: 'user', messageId: randomUUID(), parts: [{ kind: 'text', text: words }], ...more },
  configuration: { acceptedOutputModes: ['text/plain'], blocking },
});

// This SDK throws nothing for an error.
function result(response) {
  if (response.error) throw new Error(`refused: ${JSON.stringify(response.error)}`);
  return response.result;
}

await run(async (url, transport) => {
  same(transport, 'jsonrpc');
  const client = new A2AClient(url);
  const ask = async (words, more) => result(await client.sendMessage(params(words, more)));

  return {
    async card() {
      const card = await client.getAgentCard();
      same([card.name, card.capabilities.streaming], ['Demo', true]);
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
      const { bytes, name, mimeType } = part.file;
      same([part.kind, bytes, name, mimeType], ['file', 'b3ZlciB0aGVyZQ==', 'switchboard.txt', 'text/plain']);
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
      const task = result(await client.getTask({ id: sent.id, historyLength: 1 }));
      same([task.id, task.contextId, task.status.state], [sent.id, sent.contextId, 'completed']);
      same([task.artifacts.map(text), task.history.length], [['remember me'], 1]);
      same((await client.getTask({ id: 'nobody' })).error?.code, -32001);
    },
    async cancel() {
      const begun = await ask('slow 60 dig', { blocking: false });
      same(['submitted', 'working'].includes(begun.status.state), true);
      const canceled = result(await client.cancelTask({ id: begun.id }));
      same([canceled.id, canceled.status.state], [begun.id, 'canceled']);
      const done = await ask('too late');
      same((await client.cancelTask({ id: done.id })).error?.code, -32002);
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
        if (event.kind === 'artifact-update') written = (event.append ? written : '') + text(event.artifact);
      }
      same([last.final, last.status.state, written], [true, 'completed', chunks(20)]);
    },
    async push() {
      const receiver = await hooks();
      const begun = await ask('slow 3 knock', { blocking: false });
      const wanted = { id: 'mine', url: receiver.url, token: 'a-token' };
      const config = result(
        await client.setTaskPushNotificationConfig({ taskId: begun.id, pushNotificationConfig: wanted }),
      );
      same([config.taskId, config.pushNotificationConfig.url], [begun.id, receiver.url]);
      const read = result(await client.getTaskPushNotificationConfig({ id: begun.id }));
      same([read.pushNotificationConfig.id, read.pushNotificationConfig.token], ['mine', undefined]);
      const { headers, body } = await receiver.until((body) => body.status.state === 'completed');
      same(headers['x-a2a-notification-token'], 'a-token');
      same([body.kind, body.id, text(body.artifacts[0])], ['task', begun.id, 'knock: done in 3 s']);
    },
  };
});
