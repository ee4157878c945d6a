// @a2a-js/sdk 0.3.x as a server: JSON-RPC, HTTP+JSON and gRPC.
// It is started with the port of HTTP and the port of gRPC. tests/servers/README.md says what its agent does.

import { randomUUID } from 'node:crypto'
import { Server, ServerCredentials } from '@grpc/grpc-js'
import express from 'express'
import { AGENT_CARD_PATH } from '@a2a-js/sdk'
import {
  DefaultExecutionEventBusManager,
  DefaultPushNotificationSender,
  DefaultRequestHandler,
  InMemoryPushNotificationStore,
  InMemoryTaskStore,
} from '@a2a-js/sdk/server'
import { agentCardHandler, jsonRpcHandler, restHandler, UserBuilder } from '@a2a-js/sdk/server/express'
import { A2AService, grpcService } from '@a2a-js/sdk/server/grpc'
import { Agent } from './agent.mjs'

const [HTTP, GRPC] = process.argv.slice(2).map(Number)
const RPC_PATH = '/a2a/jsonrpc'
const REST_PATH = '/a2a/rest'

const part = (text) => ({ kind: 'text', text })
const statusOf = (state, message) => ({ state, ...(message && { message }), timestamp: new Date().toISOString() })
const artifactOf = (taskId, contextId, written, append = false, lastChunk = true) => ({
  kind: 'artifact-update', taskId, contextId, append, lastChunk,
  artifact: { artifactId: 'written', parts: [written] },
})
const events = {
  task: (id, contextId, task, userMessage) =>
    task ?? { kind: 'task', id, contextId, status: statusOf('submitted'), artifacts: [], history: [userMessage] },
  status: (taskId, contextId, state, text, final) => ({
    kind: 'status-update', taskId, contextId, final,
    status: statusOf(
      state,
      text !== undefined && { kind: 'message', messageId: randomUUID(), role: 'agent', taskId, contextId, parts: [part(text)] },
    ),
  }),
  artifact: (taskId, contextId, text, append, lastChunk) => artifactOf(taskId, contextId, part(text), append, lastChunk),
  file: (taskId, contextId, bytes, name) =>
    artifactOf(taskId, contextId, { kind: 'file', file: { bytes: bytes.toString('base64'), name, mimeType: 'text/plain' } }),
  data: (taskId, contextId, data) => artifactOf(taskId, contextId, { kind: 'data', data }),
}
const textOf = (said) => said.parts.map((part) => part.text ?? '').join('')
const agent = new Agent(events, textOf)

const rpc = `http://127.0.0.1:${HTTP}${RPC_PATH}`
const card = {
  name: 'Demo',
  description: 'An agent of the JavaScript SDK',
  protocolVersion: '0.3.0',
  version: '1.0.0',
  url: rpc,
  preferredTransport: 'JSONRPC',
  additionalInterfaces: [
    { transport: 'JSONRPC', url: rpc },
    { transport: 'HTTP+JSON', url: `http://127.0.0.1:${HTTP}${REST_PATH}` },
    { transport: 'GRPC', url: `127.0.0.1:${GRPC}` },
  ],
  capabilities: { streaming: true, pushNotifications: true },
  defaultInputModes: ['text/plain'],
  defaultOutputModes: ['text/plain'],
  skills: [{ id: 'echo', name: 'Echo', description: 'Says what it is told', tags: ['test'] }],
}

const store = new InMemoryPushNotificationStore()
const handler = new DefaultRequestHandler(
  card, new InMemoryTaskStore(), agent, new DefaultExecutionEventBusManager(), store,
  new DefaultPushNotificationSender(store),
)
const options = { requestHandler: handler, userBuilder: UserBuilder.noAuthentication }
const app = express()
app.use(`/${AGENT_CARD_PATH}`, agentCardHandler({ agentCardProvider: handler }))
app.use(RPC_PATH, jsonRpcHandler(options))
app.use(REST_PATH, restHandler(options))

const grpc = new Server()
grpc.addService(A2AService, grpcService(options))
grpc.bindAsync(`127.0.0.1:${GRPC}`, ServerCredentials.createInsecure(), () => app.listen(HTTP, '127.0.0.1'))
