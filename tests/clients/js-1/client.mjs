// @a2a-js/sdk 1.x: its client, made from the card, over each of its transports.

import { randomUUID } from 'node:crypto';
import { Role, TaskState } from '@a2a-js/sdk';
import { ClientFactory, JsonRpcTransportFactory, RestTransportFactory } from '@a2a-js/sdk/client';
import { GrpcTransportFactory } from '@a2a-js/sdk/client/grpc';
import { chunks, hooks, refused, run, same } from './steps.mjs';

const TRANSPORTS = { jsonrpc: JsonRpcTransportFactory, http_json: RestTransportFactory, grpc: GrpcTransportFactory };

const { TASK_STATE_SUBMITTED, TASK_STATE_WORKING, TASK_STATE_COMPLETED } = TaskState;
const { TASK_STATE_CANCELED, TASK_STATE_INPUT_REQUIRED, TASK_STATE_UNSPECIFIED } = TaskState;

const text = (holder) => holder.parts.map((part) => part.content.value).join('');

const request = (words, { returnImmediately = false, ...more } = {}) => ({
  tenant: '',
  message: {
    messageId: randomUUID(),
    role: Role.ROLE_USER,
    contextId: '',
    taskId: '',
    parts: [{ content: { $case: 'text', value: words }, filename: '', mediaType: '' }],
    extensions: [],
    referenceTaskIds: [],
    ...more,
  },
  configuration: { acceptedOutputModes: [], returnImmediately },
});

/** The last state and the whole text of the artifact that a stream tells of. */
async function follow(events) {
  let state, written = '';
  for await (const { payload } of events) {
    const { $case, value } = payload;
    if ($case === 'task') written = value.artifacts.map(text).join('');
    if ($case === 'artifactUpdate') written = (value.append ? written : '') + text(value.artifact);
    else state = value.status.state;
  }
  return [state, written];
}

await run(async (url, transport) => {
  const factory = new ClientFactory({ transports: [new TRANSPORTS[transport]()] });
  const client = await factory.createFromUrl(url);
  const ask = (words, more) => client.sendMessage(request(words, more));

  return {
    async card() {
      const card = await client.getAgentCard();
      same([card.name, card.capabilities.streaming], ['Demo', true]);
      same(card.skills.some((skill) => skill.id === 'echo'), true);
      same(card.supportedInterfaces.some((it) => it.protocolVersion === '1.0'), true);
    },
    async send() {
      const task = await ask('hello');
      same([task.status.state, task.artifacts.map(text)], [TASK_STATE_COMPLETED, ['hello']]);
    },
    async question() {
      const asked = await ask('ask which colour?');
      same([asked.status.state, text(asked.status.message)], [TASK_STATE_INPUT_REQUIRED, 'which colour?']);
      const done = await ask('green', { taskId: asked.id });
      same([done.id, done.contextId, done.status.state], [asked.id, asked.contextId, TASK_STATE_COMPLETED]);
      same(text(done.artifacts[0]), 'I asked: which colour?\nYou said: green');
      const roles = done.history.slice(0, 3).map((message) => message.role);
      same(roles, [Role.ROLE_USER, Role.ROLE_AGENT, Role.ROLE_USER]);
    },
    async file() {
      const [part] = (await ask('file over there')).artifacts[0].parts;
      same([part.content.$case, part.content.value.toString()], ['raw', 'over there']);
      same([part.filename, part.mediaType], ['switchboard.txt', 'text/plain']);
    },
    async data() {
      const [part] = (await ask('data two words')).artifacts[0].parts;
      const value = { text: 'two words', characters: 9, words: ['two', 'words'] };
      same([part.content.$case, part.content.value], ['data', value]);
    },
    async stream() {
      same(await follow(client.sendMessageStream(request('stream 5'))), [TASK_STATE_COMPLETED, chunks(5)]);
    },
    async get() {
      const sent = await ask('remember me');
      const task = await client.getTask({ tenant: '', id: sent.id, historyLength: 1 });
      same([task.id, task.contextId, task.status.state], [sent.id, sent.contextId, TASK_STATE_COMPLETED]);
      same([task.artifacts.map(text), task.history.length], [['remember me'], 1]);
      const query = { tenant: '', contextId: sent.contextId, status: TASK_STATE_UNSPECIFIED, pageToken: '' };
      const listed = await client.listTasks(query);
      same([listed.tasks.map((task) => task.id), listed.totalSize], [[sent.id], 1]);
      await refused(client.getTask({ tenant: '', id: 'nobody' }), 'TaskNotFoundError');
    },
    async cancel() {
      const begun = await ask('slow 60 dig', { returnImmediately: true });
      same([TASK_STATE_SUBMITTED, TASK_STATE_WORKING].includes(begun.status.state), true);
      const canceled = await client.cancelTask({ tenant: '', id: begun.id });
      same([canceled.id, canceled.status.state], [begun.id, TASK_STATE_CANCELED]);
      const done = await ask('too late');
      await refused(client.cancelTask({ tenant: '', id: done.id }), 'TaskNotCancelableError');
    },
    async resubscribe() {
      let id;
      for await (const { payload } of client.sendMessageStream(request('stream 20'))) {
        id = payload.value.taskId;
        if (payload.$case === 'artifactUpdate') break;
      }
      same(await follow(client.resubscribeTask({ tenant: '', id })), [TASK_STATE_COMPLETED, chunks(20)]);
    },
    async push() {
      const receiver = await hooks();
      const begun = await ask('slow 3 knock', { returnImmediately: true });
      const which = { tenant: '', taskId: begun.id, id: 'mine' };
      const authentication = { scheme: 'Bearer', credentials: 'a-secret' };
      const wanted = { ...which, url: receiver.url, token: 'a-token', authentication };
      const config = await client.createTaskPushNotificationConfig(wanted);
      same([config.taskId, config.id, config.url], [begun.id, 'mine', receiver.url]);
      const read = await client.getTaskPushNotificationConfig(which);
      same([read.id, read.url], ['mine', receiver.url]);
      const ended = (body) => body.statusUpdate?.status.state === 'TASK_STATE_COMPLETED';
      const { headers, body } = await receiver.until(ended);
      same([headers['x-a2a-notification-token'], headers.authorization], ['a-token', 'Bearer a-secret']);
      same(body.statusUpdate.taskId, begun.id);
      await client.deleteTaskPushNotificationConfig(which);
      const all = { tenant: '', taskId: begun.id, pageSize: 0, pageToken: '' };
      const left = await client.listTaskPushNotificationConfig(all);
      same(left.configs, []);
    },
  };
});
