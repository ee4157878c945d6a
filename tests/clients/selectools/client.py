"""selectools: discovery, send and get, which is all its A2A client does, at the agent itself and at the mount where the
server speaks selectools to the letter.
"""

from selectools.a2a import A2AClient, A2AError, TaskState
from steps import run, same


MOUNT = "/dialects/selectools"


class Client:
    def __init__(self, url, mounted):
        self.client = A2AClient(url + MOUNT if mounted else url, timeout=15)
        self.mounted = mounted

    async def check_card(self):
        card = await self.client.discover()
        # The original's own cards offer no streams.
        same((card.name, card.capabilities["streaming"]), ("Demo", not self.mounted))
        same("echo" in [skill.id for skill in card.skills], True)

    async def send(self):
        task = await self.client.send_task("hello", context_id="a-context")
        same((task.state, task.text, task.context_id, task.error), (TaskState.COMPLETED, "hello", "a-context", ""))

    async def failure(self):
        task = await self.client.send_task("fail out of tea")
        # The original tells what broke and not why.
        reason = "Agent execution failed (AgentError)" if self.mounted else "out of tea"
        same((task.state, task.text, task.error), (TaskState.FAILED, "", reason))

    async def data(self):
        task = await self.client.send_task("data two words")
        same(task.raw["artifacts"][0]["parts"][0]["data"]["words"], ["two", "words"])

    async def get(self):
        sent = await self.client.send_task("remember me")
        task = await self.client.get_task(sent.id)
        same((task.id, task.state, task.text), (sent.id, TaskState.COMPLETED, "remember me"))
        try:
            task = await self.client.get_task("nobody")
        except A2AError as error:
            same(error.code, -32001)
        else:
            raise AssertionError(f"not refused: {task!r}")


async def steps(url, transport):
    client = Client(url, mounted=transport == "mount")
    yield "card", client.check_card()
    yield "send", client.send()
    yield "failure", client.failure()
    yield "data", client.data()
    yield "get", client.get()


run(steps)
