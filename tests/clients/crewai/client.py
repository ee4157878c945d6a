"""crewAI: its card reader and its delegation to a remote agent, with the defaults of `A2AClientConfig`, under which it
accepts `application/json` alone. No model takes part.

A "transport" is the name that the card is asked for under. gRPC is left out: without metadata of its own, crewAI's gRPC
interceptor hands None to the library and fails before it sends anything.
"""

import os

# crewAI reports to its makers otherwise.
os.environ.update(CREWAI_DISABLE_TELEMETRY="true", OTEL_SDK_DISABLED="true")

from a2a.types import TaskState
from crewai.a2a import A2AClientConfig
from crewai.a2a.updates import PollingConfig
from crewai.a2a.utils.agent_card import afetch_agent_card
from crewai.a2a.utils.delegation import aexecute_a2a_delegation
from crewai.events.event_bus import crewai_event_bus
from crewai.events.types.a2a_events import A2AArtifactReceivedEvent
from steps import chunks, run, same, under


class Client:
    def __init__(self, url):
        self.url = url
        self.config = A2AClientConfig(endpoint=url)

    async def ask(self, text, **more):
        config = self.config
        return await aexecute_a2a_delegation(
            endpoint=str(config.endpoint),
            auth=config.auth,
            timeout=15,
            task_description=text,
            transport=config.transport,
            accepted_output_modes=config.accepted_output_modes,
            **more,
        )

    async def check_card(self):
        same(self.config.accepted_output_modes, ["application/json"])
        card = await afetch_agent_card(str(self.config.endpoint), use_cache=False)
        same((card.name, card.url), ("Demo", f"{self.url}/rpc"))

    async def send(self):
        sent = await self.ask("hello", updates=PollingConfig(interval=0.1, timeout=15))
        same((sent["status"], sent["result"]), (TaskState.completed, "hello"))

    async def stream(self):
        pieces = []
        with crewai_event_bus.scoped_handlers():

            @crewai_event_bus.on(A2AArtifactReceivedEvent)
            def received(_, event):
                pieces.append(event)

            sent = await self.ask("stream 5")
            crewai_event_bus.flush(10)
        # It puts a space between the pieces.
        same((sent["status"], sent["result"].replace("\n ", "\n")), (TaskState.completed, chunks(5)))
        same(len(pieces), 5)

    async def question(self):
        asked = await self.ask("ask which colour?")
        same((asked["status"], asked["error"]), (TaskState.input_required, "which colour?"))
        said = asked["history"][-1]
        done = await self.ask(
            "green", conversation_history=asked["history"], context_id=said.context_id, task_id=said.task_id
        )
        same((done["status"], done["result"]), (TaskState.completed, "I asked: which colour?\nYou said: green"))
        same(done["history"][-1].task_id, said.task_id)

    async def failure(self):
        failed = await self.ask("fail out of tea")
        same((failed["status"], failed["error"]), (TaskState.failed, "out of tea"))


async def steps(url, name):
    client = Client(under(name, url))
    yield "card", client.check_card()
    yield "send", client.send()
    yield "stream", client.stream()
    yield "question", client.question()
    yield "failure", client.failure()


run(steps)
