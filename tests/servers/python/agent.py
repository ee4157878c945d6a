"""What the agents of both Python SDKs do; how their parts are spelled is up to `spelling`, which makes them.

tests/servers/README.md has the list. The words are those of the demo agent.
"""

import asyncio

from a2a.server.agent_execution import AgentExecutor
from a2a.server.tasks import TaskUpdater


class Agent(AgentExecutor):
    def __init__(self, spelling):
        self.spelling = spelling
        self.questions = {}

    async def execute(self, context, event_queue):
        spelling, task, text = self.spelling, context.current_task, context.get_user_input()
        if task is None:
            task = spelling.new_task(context.message)
            await event_queue.enqueue_event(task)
        updater = TaskUpdater(event_queue, task.id, task.context_id)

        def say(text):
            return updater.new_agent_message([spelling.text(text)])

        async def answer(part):
            await updater.add_artifact([part])
            await updater.complete()

        if question := self.questions.pop(task.id, None):
            return await answer(spelling.text(f"I asked: {question}\nYou said: {text}"))
        await updater.start_work()
        word, _, rest = text.partition(" ")
        match word:
            case "ask":
                self.questions[task.id] = rest
                await spelling.ask(updater, say(rest))
            case "stream":
                await self.stream(updater, int(rest))
            case "file":
                await answer(spelling.file(rest.encode(), "switchboard.txt", "text/plain"))
            case "data":
                await answer(spelling.data({"text": rest, "characters": len(rest), "words": rest.split()}))
            case "slow":
                seconds, _, what = rest.partition(" ")
                await asyncio.sleep(float(seconds))
                await answer(spelling.text(f"{what}: done in {seconds} s"))
            case "fail":
                await updater.failed(say(rest))
            case _:
                await answer(spelling.text(text))

    async def stream(self, updater, count):
        for number in range(1, count + 1):
            await updater.add_artifact(
                [self.spelling.text(f"chunk {number} of {count}\n")],
                artifact_id="chunks",
                append=number > 1,
                last_chunk=number == count,
            )
            await asyncio.sleep(0.02)
        await updater.complete()

    async def cancel(self, context, event_queue):
        await TaskUpdater(event_queue, context.task_id, context.context_id).cancel()
