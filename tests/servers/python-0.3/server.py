"""a2a-sdk 0.3.x as a server: JSON-RPC, HTTP+JSON and gRPC.

It is started with the port of HTTP and the port of gRPC. tests/servers/README.md says what its agent does.
"""

import asyncio
import sys
from base64 import b64encode

import grpc
import httpx
import uvicorn
from a2a.grpc import a2a_pb2_grpc
from a2a.server.apps import A2ARESTFastAPIApplication, A2AStarletteApplication
from a2a.server.request_handlers import DefaultRequestHandler
from a2a.server.request_handlers.grpc_handler import GrpcHandler
from a2a.server.tasks import (
    BasePushNotificationSender,
    InMemoryPushNotificationConfigStore,
    InMemoryTaskStore,
)
from a2a.types import (
    AgentCapabilities,
    AgentCard,
    AgentInterface,
    AgentSkill,
    DataPart,
    FilePart,
    FileWithBytes,
    Part,
    TextPart,
)
from a2a.utils import new_task
from agent import Agent

HTTP, GRPC = (int(port) for port in sys.argv[1:])
RPC_PATH, REST_PATH = "/a2a/jsonrpc", "/a2a/rest"


class Spelling:
    new_task = staticmethod(new_task)

    def text(self, text):
        return Part(root=TextPart(text=text))

    def file(self, content, name, media_type):
        file = FileWithBytes(bytes=b64encode(content).decode(), name=name, mime_type=media_type)
        return Part(root=FilePart(file=file))

    def data(self, value):
        return Part(root=DataPart(data=value))

    async def ask(self, updater, question):
        await updater.requires_input(question, final=True)


def card():
    rpc = f"http://127.0.0.1:{HTTP}{RPC_PATH}"
    return AgentCard(
        name="Demo",
        description="An agent of the Python SDK",
        version="1.0.0",
        url=rpc,
        preferred_transport="JSONRPC",
        additional_interfaces=[
            AgentInterface(transport="JSONRPC", url=rpc),
            AgentInterface(transport="HTTP+JSON", url=f"http://127.0.0.1:{HTTP}{REST_PATH}"),
            AgentInterface(transport="GRPC", url=f"127.0.0.1:{GRPC}"),
        ],
        capabilities=AgentCapabilities(streaming=True, push_notifications=True),
        default_input_modes=["text/plain"],
        default_output_modes=["text/plain"],
        skills=[AgentSkill(id="echo", name="Echo", description="Says what it is told", tags=["test"])],
    )


async def main():
    configs = InMemoryPushNotificationConfigStore()
    handler = DefaultRequestHandler(
        agent_executor=Agent(Spelling()),
        task_store=InMemoryTaskStore(),
        push_config_store=configs,
        push_sender=BasePushNotificationSender(httpx.AsyncClient(), configs),
    )
    grpc_server = grpc.aio.server()
    a2a_pb2_grpc.add_A2AServiceServicer_to_server(GrpcHandler(card(), handler), grpc_server)
    grpc_server.add_insecure_port(f"127.0.0.1:{GRPC}")
    await grpc_server.start()
    app = A2ARESTFastAPIApplication(agent_card=card(), http_handler=handler).build(rpc_url=REST_PATH)
    A2AStarletteApplication(agent_card=card(), http_handler=handler).add_routes_to_app(app, rpc_url=RPC_PATH)
    await uvicorn.Server(uvicorn.Config(app, host="127.0.0.1", port=HTTP, log_level="warning")).serve()


asyncio.run(main())
