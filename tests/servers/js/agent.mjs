// What the agents of both JavaScript SDKs do, in the words of the demo agent; how their events are spelled is up to `events`, which makes them.

const pause = (milliseconds) => new Promise((resolve) => setTimeout(resolve, milliseconds))

export class Agent {
  constructor(events, textOf) {
    Object.assign(this, { events, textOf, questions: new Map(), canceled: new Set() })
  }

  execute = async (context, bus) => {
    const { taskId, contextId, task, userMessage } = context
    const { events } = this
    const publish = (event) => bus.publish(event)
    const status = (state, text, final) => publish(events.status(taskId, contextId, state, text, final))
    const chunk = (text, number, count) => publish(events.artifact(taskId, contextId, text, number > 1, number === count))
    const answer = (text) => {
      chunk(text, 1, 1)
      status('completed', undefined, true)
    }
    const text = this.textOf(userMessage)
    // The SDK of 1.x wants the task first on every turn.
    publish(events.task(taskId, contextId, task, userMessage))
    const question = this.questions.get(taskId)
    if (question !== undefined) {
      this.questions.delete(taskId)
      answer(`I asked: ${question}\nYou said: ${text}`)
      return bus.finished()
    }
    status('working', undefined, false)
    const [command, argument, ...rest] = text.split(' ')
    const words = [argument, ...rest]
    const said = words.join(' ')
    if (command === 'ask') {
      this.questions.set(taskId, said)
      status('input-required', said, true)
    } else if (command === 'fail') {
      status('failed', said, true)
    } else if (command === 'stream') {
      for (let number = 1; number <= Number(argument); number++) {
        chunk(`chunk ${number} of ${argument}\n`, number, Number(argument))
        await pause(20)
      }
      status('completed', undefined, true)
    } else if (command === 'file') {
      publish(events.file(taskId, contextId, Buffer.from(said), 'switchboard.txt'))
      status('completed', undefined, true)
    } else if (command === 'data') {
      publish(events.data(taskId, contextId, { text: said, characters: said.length, words }))
      status('completed', undefined, true)
    } else if (command === 'slow') {
      for (let waited = 0; waited < Number(argument) * 1000; waited += 50) {
        if (this.canceled.has(taskId)) {
          status('canceled', undefined, true)
          return bus.finished()
        }
        await pause(50)
      }
      answer(`${rest.join(' ')}: done in ${argument} s`)
    } else {
      answer(text)
    }
    bus.finished()
  }

  cancelTask = async (taskId) => {
    this.canceled.add(taskId)
  }
}
