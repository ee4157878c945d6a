"""strands-agents: `A2AAgent` with its default settings. No model takes part.

It sends every message without a task or a context, so an answer to a question opens a task of its own; the step `question`
holds it to just that. A "transport" is the name that the card is asked for under.
"""

from steps import chunks, run, same, under
from strands.agent.a2a_agent import A2AAgent


class Client:
    def __init__(self, url):
        self.url = url
        self.agent = A2AAgent(url, timeout=15)

    async def check_card(self):
        card = await self.agent.get_agent_card()
        same((card.name, card.url, self.agent.name), ("Demo", f"{self.url}/rpc", "Demo"))

    async def send(self):
        same(told(await self.agent.invoke_async("hello")), ("end_turn", "completed", "hello"))

    async def stream(self):
        events = [event async for event in self.agent.stream_async("stream 5")]
        updates = [event["event"] for event in events if event.get("type") == "a2a_stream"]
        pieces = [update.artifact for _, update in updates if getattr(update, "kind", "") == "artifact-update"]
        same(len(pieces), 5)
        same(told(events[-1]["result"]), ("end_turn", "completed", chunks(5)))

    async def question(self):
        asked = await self.agent.invoke_async("ask which colour?")
        same(told(asked), ("interrupt", "input-required", "which colour?"))
        same(told(await self.agent.invoke_async("green")), ("end_turn", "completed", "green"))

    async def failure(self):
        same(told(await self.agent.invoke_async("fail out of tea")), ("end_turn", "failed", "out of tea"))


def told(result):
    text = "".join(block["text"] for block in result.message["content"])
    return result.stop_reason, result.state["a2a_task_state"], text


async def steps(url, name):
    client = Client(under(name, url))
    yield "card", client.check_card()
    yield "send", client.send()
    yield "stream", client.stream()
    yield "question", client.question()
    yield "failure", client.failure()


run(steps)
