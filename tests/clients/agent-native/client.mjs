// @agent-native/core: its own client with its own tokens. The server and this program have the same A2A_SECRET.
//
// The package is unpacked without its dependencies (tests/clients/README.md says why). `@agent-native/core/a2a` also loads its
// server, which needs them; the client is taken from the file which that entry has it from.

import { A2AClient, callAgent, signA2AToken } from './node_modules/@agent-native/core/dist/a2a/client.js';
import { chunks, refused, run, same } from './steps.mjs';

const [ALICE, BOB] = ['alice@example.com', 'bob@example.com'];
const message = (text) => ({ role: 'user', parts: [{ type: 'text', text }] });
const text = (task) => task.status.message.parts.map((part) => part.text ?? '').join('');
const UNAUTHENTICATED = 'A2A request failed (401): {"jsonrpc":"2.0","id":null,"error":{"code":-32001,"message":"Authentication required"}}';

await run(async (url) => {
  // Its guard against private addresses lets an app call those that it was told of.
  process.env.AGENT_NATIVE_A2A_ALLOWED_ORIGINS = url;
  const with_token = (token) => new A2AClient(url, token, { requestTimeoutMs: 15_000 });
  const signed = async (email, orgDomain, secret, more) => with_token(await signA2AToken(email, orgDomain, secret, more));
  const alice = await signed(ALICE);
  const bob = await signed(BOB);

  /** A call that must be refused, in each of the three ways in which the client sends a message, and a read. */
  const refused_everywhere = async (client) => {
    const told = { message: UNAUTHENTICATED };
    const said = async (call) => call.then((answer) => answer, (error) => ({ message: error.message }));
    same(await said(client.send(message('hello'))), told);
    same(await said(client.send(message('hello'), { async: true, idempotencyKey: 'k' })), told);
    same(await said(client.getTask('any')), told);
    await refused(client.stream(message('hello')).next(), 'A2A stream failed (401)');
  };

  return {
    async card() {
      const card = await with_token().getAgentCard();
      same([card.name, card.capabilities.streaming], ['Demo', true]);
      same([card.securitySchemes.jwtBearer.scheme, card.securitySchemes.jwtBearer.bearerFormat], ['Bearer', 'JWT']);
    },
    async send() {
      const task = await alice.send(message('hello'));
      same([task.status.state, text(task)], ['completed', 'hello']);
      // One call of its simplest function: it signs the token itself, sends, and polls until there is an answer.
      same(await callAgent(url, 'over here', { userEmail: ALICE, pollIntervalMs: 100 }), 'over here');
      same(await callAgent(url, 'in one go', { userEmail: ALICE, async: false }), 'in one go');
    },
    async async() {
      const seen = [];
      const more = { idempotencyKey: 'once', pollIntervalMs: 100, onUpdate: (task) => seen.push(task.id) };
      const task = await alice.sendAndWait(message('slow 1 dig'), more);
      same([task.status.state, [...new Set(seen)]], ['completed', [task.id]]);
      const again = await alice.send(message('slow 1 dig'), { async: true, idempotencyKey: 'once' });
      same(again.id, task.id);
    },
    async stream() {
      const seen = [];
      for await (const task of alice.stream(message('stream 5'))) seen.push(task.status.state);
      same([seen.at(-1), seen.slice(0, -1).every((state) => state === 'working')], ['completed', true]);
      let last;
      for await (const task of alice.stream(message('stream 5'))) last = task;
      same(text(last), chunks(5));
    },
    async question() {
      const asked = await alice.send(message('ask which colour?'));
      same([asked.status.state, text(asked)], ['input-required', 'which colour?']);
      await refused(callAgent(url, 'ask which colour?', { userEmail: ALICE, pollIntervalMs: 100 }), 'ended input-required');
    },
    async failure() {
      await refused(alice.send(message('fail out of tea')), 'A2A error (-32000): out of tea');
      const task = await alice.sendAndWait(message('fail out of tea'), { pollIntervalMs: 100 });
      same([task.status.state, text(task)], ['failed', 'out of tea']);
    },
    async get() {
      const sent = await alice.send(message('remember me'), { contextId: 'a-context' });
      const task = await alice.getTask(sent.id);
      same([task.id, task.contextId, task.status.state, text(task)], [sent.id, 'a-context', 'completed', 'remember me']);
      await refused(alice.getTask('nobody'), 'A2A error (-32001): Task not found');
    },
    async missing_token() {
      await refused_everywhere(with_token());
      await refused(callAgent(url, 'hello', {}), UNAUTHENTICATED);
    },
    async wrong_secret() {
      await refused_everywhere(await signed(ALICE, undefined, 'another secret of the same length'));
      await refused_everywhere(with_token('not a token'));
    },
    async expired_token() {
      await refused_everywhere(await signed(ALICE, undefined, undefined, { expiresIn: '-1 minute' }));
      // The token is good until then.
      same((await (await signed(ALICE, undefined, undefined, { expiresIn: '1 minute' })).send(message('hi'))).status.state, 'completed');
    },
    async audience() {
      same((await (await signed(ALICE, undefined, undefined, { audience: url })).send(message('hi'))).status.state, 'completed');
      await refused_everywhere(await signed(ALICE, undefined, undefined, { audience: 'https://other.example' }));
    },
    async second_token() {
      // After a 401 the client tries the token that it signs itself.
      const stale = await signA2AToken(ALICE, undefined, undefined, { expiresIn: '-1 minute' });
      same(await callAgent(url, 'twice', { apiKey: stale, userEmail: ALICE, async: false }), 'twice');
    },
    async ownership() {
      const task = await alice.send(message('slow 60 dig'), { async: true, idempotencyKey: 'mine' });
      const elsewhere = await signed(ALICE, 'elsewhere.example');
      for (const other of [bob, elsewhere]) {
        await refused(other.getTask(task.id), 'A2A error (-32001): Task not found');
        const canceled = await other.rpc('tasks/cancel', { id: task.id });
        same([canceled.result, canceled.error.code, canceled.error.message], [undefined, -32001, 'Task not found']);
        // The same key is another task for another owner.
        const own = await other.send(message('slow 60 dig'), { async: true, idempotencyKey: 'mine' });
        same(own.id === task.id, false);
        await refused(alice.getTask(own.id), 'A2A error (-32001): Task not found');
        same((await other.rpc('tasks/cancel', { id: own.id })).result.status.state, 'canceled');
      }
      same(['submitted', 'working'].includes((await alice.getTask(task.id)).status.state), true);
      // A new token of the same user is the same owner.
      const renewed = await signed(ALICE, undefined, undefined, { expiresIn: '5m' });
      same((await renewed.rpc('tasks/cancel', { id: task.id })).result.status.state, 'canceled');
    },
  };
});
