"""selectools as a server: JSON-RPC without streams, questions and push, and a card whose `url` is empty.

It is started with the port of HTTP, and with one that it does not use. Its agent says what it is told.
"""

import sys

from selectools import Agent, tool
from selectools.a2a import A2AServer
from selectools.providers.stubs import LocalProvider
from selectools.types import Message, Role

HTTP = int(sys.argv[1])


@tool(description="Says what it is told")
def echo(text: str) -> str:
    return text


class Echo(LocalProvider):
    def complete(self, **asked):
        _, usage = super().complete(**asked)
        said = next(message for message in reversed(asked["messages"]) if message.role == Role.USER)
        return Message(role=Role.ASSISTANT, content=said.content), usage


A2AServer(Agent(tools=[echo], provider=Echo()), name="Peer").serve(port=HTTP, host="127.0.0.1")
