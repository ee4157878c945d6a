// @a2a-js/sdk 1.x as a server: JSON-RPC, HTTP+JSON and gRPC, each in 1.0 and, by the SDK's own compatibility, in 0.3.
// It is started with the port of HTTP and the port of gRPC. tests/servers/README.md says what its agent does.

import { randomUUID } from 'node:crypto'
import { Server, ServerCredentials } from '@grpc/grpc-js'
import express from 'express'
import { AGENT_CARD_PATH, AgentCard, Role, TaskState } from '@a2a-js/sdk'
import { legacyGrpcService, LegacyA2AService } from '@a2a-js/sdk/compat/v0_3/server/grpc'
import { createLegacyAwarePushNotificationSender } from '@a2a-js/sdk/compat/v0_3/server'
import {
  AgentEvent,
  DefaultExecutionEventBusManager,
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

const STATES = {
  working: TaskState.TASK_STATE_WORKING,
  completed: TaskState.TASK_STATE_COMPLETED,
  failed: TaskState.TASK_STATE_FAILED,
  canceled: TaskState.TASK_STATE_CANCELED,
  'input-required': TaskState.TASK_STATE_INPUT_REQUIRED,
}
const part = (text) => ({ content: { $case: 'text', value: text }, metadata: undefined, filename: '', mediaType: '' })
const message = (taskId, contextId, text) => ({
  messageId: randomUUID(), taskId, contextId, role: Role.ROLE_AGENT, parts: [part(text)],
  metadata: undefined, extensions: [], referenceTaskIds: [],
})
const statusOf = (state, said) => ({ state, message: said, timestamp: new Date().toISOString() })

const artifactOf = (taskId, contextId, written, append = false, lastChunk = true) =>
  AgentEvent.artifactUpdate({
    taskId, contextId, append, lastChunk, metadata: undefined,
    artifact: {
      artifactId: 'written', name: '', description: '', parts: [written], metadata: undefined, extensions: [],
    },
  })

const events = {
  task: (id, contextId, task, userMessage) =>
    AgentEvent.task(
      task ?? {
        id, contextId, status: statusOf(TaskState.TASK_STATE_SUBMITTED), artifacts: [], history: [userMessage],
        metadata: undefined,
      },
    ),
  status: (taskId, contextId, state, text) =>
    AgentEvent.statusUpdate({
      taskId, contextId, metadata: undefined,
      status: statusOf(STATES[state], text === undefined ? undefined : message(taskId, contextId, text)),
    }),
  artifact: (taskId, contextId, text, append, lastChunk) => artifactOf(taskId, contextId, part(text), append, lastChunk),
  file: (taskId, contextId, bytes, filename) =>
    artifactOf(taskId, contextId, { ...part(''), content: { $case: 'raw', value: bytes }, filename, mediaType: 'text/plain' }),
  data: (taskId, contextId, value) =>
    artifactOf(taskId, contextId, { ...part(''), content: { $case: 'data', value } }),
}
const textOf = (said) => said.parts.map((part) => part.content?.value ?? '').join('')
const agent = new Agent(events, textOf)

const urls = {
  JSONRPC: `http://127.0.0.1:${HTTP}${RPC_PATH}`,
  'HTTP+JSON': `http://127.0.0.1:${HTTP}${REST_PATH}`,
  GRPC: `127.0.0.1:${GRPC}`,
}
const card = AgentCard.fromJSON({
  name: 'Demo',
  description: 'An agent of the JavaScript SDK',
  version: '1.0.0',
  capabilities: { streaming: true, pushNotifications: true },
  defaultInputModes: ['text/plain'],
  defaultOutputModes: ['text/plain'],
  skills: [{ id: 'echo', name: 'Echo', description: 'Says what it is told', tags: ['test'] }],
  supportedInterfaces: ['1.0', '0.3'].flatMap((protocolVersion) =>
    Object.entries(urls).map(([protocolBinding, url]) => ({ protocolBinding, protocolVersion, url })),
  ),
})

const store = new InMemoryPushNotificationStore()
const handler = new DefaultRequestHandler(
  card, new InMemoryTaskStore(), agent, new DefaultExecutionEventBusManager(), store,
  createLegacyAwarePushNotificationSender(store),
)
const options = { requestHandler: handler, userBuilder: UserBuilder.noAuthentication, legacyCompat: { enabled: true } }
const app = express()
app.use(`/${AGENT_CARD_PATH}`, agentCardHandler({ agentCardProvider: handler }))
app.use(RPC_PATH, jsonRpcHandler(options))
app.use(REST_PATH, restHandler(options))

const grpc = new Server()
grpc.addService(A2AService, grpcService(options))
grpc.addService(LegacyA2AService, legacyGrpcService(options))
grpc.bindAsync(`127.0.0.1:${GRPC}`, ServerCredentials.createInsecure(), () => app.listen(HTTP, '127.0.0.1'))
