"""a2a-sdk 1.x as a server: JSON-RPC, HTTP+JSON and gRPC, each in 1.0 and, by the SDK's own compatibility, in 0.3.

It is started with the port of HTTP and the port of gRPC. tests/servers/README.md says what its agent does.
"""

import asyncio
import sys

import grpc
import httpx
import uvicorn
from a2a.compat.v0_3 import a2a_v0_3_pb2_grpc
from a2a.compat.v0_3.grpc_handler import CompatGrpcHandler
from a2a.helpers import new_raw_part, new_task_from_user_message, new_text_part
from a2a.server.request_handlers import DefaultRequestHandler, GrpcHandler
from a2a.server.routes import create_agent_card_routes, create_jsonrpc_routes, create_rest_routes
from a2a.server.tasks import (
    BasePushNotificationSender,
    InMemoryPushNotificationConfigStore,
    InMemoryTaskStore,
)
from a2a.types import AgentCapabilities, AgentCard, AgentInterface, AgentSkill, Part, a2a_pb2_grpc
from agent import Agent
from google.protobuf.json_format import ParseDict
from starlette.applications import Starlette

HTTP, GRPC = (int(port) for port in sys.argv[1:])
RPC_PATH, REST_PATH = "/a2a/jsonrpc", "/a2a/rest"


class Spelling:
    new_task = staticmethod(new_task_from_user_message)
    text = staticmethod(new_text_part)

    def file(self, content, name, media_type):
        return new_raw_part(content, filename=name, media_type=media_type)

    def data(self, value):
        return ParseDict({"data": value}, Part())

    async def ask(self, updater, question):
        await updater.requires_input(question)


def card():
    urls = {
        "JSONRPC": f"http://127.0.0.1:{HTTP}{RPC_PATH}",
        "HTTP+JSON": f"http://127.0.0.1:{HTTP}{REST_PATH}",
        "GRPC": f"127.0.0.1:{GRPC}",
    }
    return AgentCard(
        name="Demo",
        description="An agent of the Python SDK",
        version="1.0.0",
        capabilities=AgentCapabilities(streaming=True, push_notifications=True),
        default_input_modes=["text/plain"],
        default_output_modes=["text/plain"],
        skills=[AgentSkill(id="echo", name="Echo", description="Says what it is told", tags=["test"])],
        supported_interfaces=[
            AgentInterface(protocol_binding=binding, protocol_version=version, url=url)
            for version in ["1.0", "0.3"]
            for binding, url in urls.items()
        ],
    )


async def main():
    configs = InMemoryPushNotificationConfigStore()
    handler = DefaultRequestHandler(
        agent_executor=Agent(Spelling()),
        task_store=InMemoryTaskStore(),
        agent_card=card(),
        push_config_store=configs,
        push_sender=BasePushNotificationSender(httpx.AsyncClient(), configs),
    )
    grpc_server = grpc.aio.server()
    a2a_pb2_grpc.add_A2AServiceServicer_to_server(GrpcHandler(handler), grpc_server)
    a2a_v0_3_pb2_grpc.add_A2AServiceServicer_to_server(CompatGrpcHandler(handler), grpc_server)
    grpc_server.add_insecure_port(f"127.0.0.1:{GRPC}")
    await grpc_server.start()
    routes = [
        *create_agent_card_routes(card()),
        *create_jsonrpc_routes(handler, RPC_PATH, enable_v0_3_compat=True),
        *create_rest_routes(handler, path_prefix=REST_PATH, enable_v0_3_compat=True),
    ]
    app = Starlette(routes=routes)
    await uvicorn.Server(uvicorn.Config(app, host="127.0.0.1", port=HTTP, log_level="warning")).serve()


asyncio.run(main())
