"""google-adk: `RemoteA2aAgent` with its default settings, run as an agent by ADK's own runner. No model takes part.

ADK accepts a card only if every URL on it has the origin that it fetched the card from, so each step is taken under both
names of this machine. A "transport" is the name that the card is asked for under.
"""

import warnings

from google.adk.agents.remote_a2a_agent import RemoteA2aAgent
from google.adk.runners import InMemoryRunner
from google.genai.types import Content, Part
from steps import chunks, run, same, under

# ADK says at each call that its A2A client is experimental.
warnings.filterwarnings("ignore", category=UserWarning)

WHO = {"app_name": "steps", "user_id": "somebody"}


class Client:
    def __init__(self, url):
        self.agent = RemoteA2aAgent(name="demo", agent_card=f"{url}/.well-known/agent-card.json", timeout=15)
        self.runner = InMemoryRunner(agent=self.agent, app_name=WHO["app_name"])
        self.session = None

    async def say(self, text):
        """The events of one turn of the conversation. ADK tells of a refused card or request in an event."""
        self.session = self.session or await self.runner.session_service.create_session(**WHO)
        message = Content(role="user", parts=[Part(text=text)])
        turn = self.runner.run_async(user_id=WHO["user_id"], session_id=self.session.id, new_message=message)
        events = [event async for event in turn]
        same([event.error_message for event in events if event.error_message], [])
        return events

    async def check_card(self):
        same(self.agent.description, "")
        await self.say("hello")
        same("echoes" in self.agent.description, True)

    async def send(self):
        same(written(await self.say("hello")), "hello")

    async def stream(self):
        events = await self.say("stream 5")
        pieces = [text(event) for event in events if text(event)]
        same((len(pieces), "".join(pieces)), (5, chunks(5)))

    async def question(self):
        asked = await self.say("ask which colour?")
        calls = [call for event in asked for call in event.get_function_calls()]
        same([call.args for call in calls], [{"input_required": "which colour?"}])
        answered = await self.say("green")
        same(written(answered), "I asked: which colour?\nYou said: green")
        same(task_id(answered), task_id(asked))

    async def failure(self):
        events = await self.say("fail out of tea")
        same((written(events), state(events)), ("out of tea", "TASK_STATE_FAILED"))


def text(event):
    """What an event says. What the remote agent said while at work is marked as a thought."""
    parts = event.content.parts or [] if event.content else []
    return "".join(part.text for part in parts if part.text and not part.thought)


def written(events):
    return "".join(text(event) for event in events)


def task_id(events):
    return events[-1].custom_metadata["a2a:task_id"]


def state(events):
    return events[-1].custom_metadata["a2a:response"]["status"]["state"]


async def steps(url, name):
    client = Client(under(name, url))
    yield "card", client.check_card()
    yield "send", client.send()
    yield "stream", client.stream()
    yield "question", client.question()
    yield "failure", client.failure()


run(steps)
