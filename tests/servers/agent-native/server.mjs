// @agent-native/core as a server: JSON-RPC in its own dialect, with tasks in an embedded database.
// It is started with the port of HTTP, and with one that it does not use. tests/servers/README.md says what its agent does.
//
// The package is unpacked without its dependencies (package.json says why), so that what the framework would mount beside A2A
// cannot be loaded; it is told that the application has those parts itself.

process.env.DATABASE_URL = 'pglite:memory'

const { H3, serve } = await import('h3')
const { mountA2A } = await import('@agent-native/core/a2a')
const { DEFAULT_PLUGIN_REGISTRY } = await import('./node_modules/@agent-native/core/dist/deploy/route-discovery.js')
const { markDefaultPluginProvided } = await import(
  './node_modules/@agent-native/core/dist/server/framework-request-handler.js'
)

// Streams are written past h3, which then finds the response ended; without this the process would end with the first of them.
process.on('uncaughtException', (error) => {
  if (error.code !== 'ERR_STREAM_WRITE_AFTER_END') throw error
})

const HTTP = Number(process.argv[2])
const pause = (milliseconds) => new Promise((resolve) => setTimeout(resolve, milliseconds))
const message = (text, more) => ({ role: 'agent', parts: [{ type: 'text', text }], ...more })

// Its answers are messages of the status, each in place of the one before.
async function* handler(asked) {
  const text = asked.parts.map((part) => part.text ?? '').join('')
  const [command, argument, ...rest] = text.split(' ')
  if (command === 'ask') {
    yield message([argument, ...rest].join(' '), { metadata: { agentNativeTaskState: 'input-required' } })
  } else if (command === 'stream') {
    let written = ''
    for (let number = 1; number <= Number(argument); number++) {
      written += `chunk ${number} of ${argument}\n`
      yield message(written)
      await pause(20)
    }
  } else if (command === 'slow') {
    await pause(Number(argument) * 1000)
    yield message(`${rest.join(' ')}: done in ${argument} s`)
  } else {
    yield message(text)
  }
}

const h3 = new H3()
const nitroApp = { h3, hooks: { hook() {} } }
for (const stem of Object.keys(DEFAULT_PLUGIN_REGISTRY)) markDefaultPluginProvided(nitroApp, stem)
mountA2A(nitroApp, {
  name: 'Demo',
  description: 'An agent of agent-native',
  skills: [{ id: 'echo', name: 'Echo', description: 'Says what it is told', tags: ['test'] }],
  streaming: true,
  handler,
})
serve(h3, { port: HTTP, hostname: '127.0.0.1' })
