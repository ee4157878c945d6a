"""selectools as a server: JSON-RPC without streams, questions and push, and a card whose `url` is empty.

It is started with the port of HTTP, and with one that it does not use. tests/servers/README.md says what its agent does; it works inside
the request, so that what other agents stream is one text.
"""

import sys
import time

from selectools import Agent, tool
from selectools.a2a import A2AServer
from selectools.providers.stubs import LocalProvider
from selectools.types import Message, Role

HTTP = int(sys.argv[1])


@tool(description="Says what it is told")
def echo(text: str) -> str:
    return text


def answer(text):
    match text.split(" "):
        case ["stream", count]:
            return "".join(f"chunk {number} of {count}\n" for number in range(1, int(count) + 1))
        case ["slow", seconds, *what]:
            time.sleep(float(seconds))
            return f"{' '.join(what)}: done in {seconds} s"
        case _:
            return text


class Demo(LocalProvider):
    def complete(self, **asked):
        _, usage = super().complete(**asked)
        said = next(message for message in reversed(asked["messages"]) if message.role == Role.USER)
        return Message(role=Role.ASSISTANT, content=answer(said.content)), usage


A2AServer(Agent(tools=[echo], provider=Demo()), name="Demo").serve(port=HTTP, host="127.0.0.1")
