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
from a2a.server.agent_execution import AgentExecutor
from a2a.server.apps import A2ARESTFastAPIApplication, A2AStarletteApplication
from a2a.server.request_handlers import DefaultRequestHandler
from a2a.server.request_handlers.grpc_handler import GrpcHandler
from a2a.server.tasks import (
    BasePushNotificationSender,
    InMemoryPushNotificationConfigStore,
    InMemoryTaskStore,
    TaskUpdater,
)
from a2a.types import (
    AgentCapabilities,
    AgentCard,
    AgentInterface,
    AgentSkill,
    FilePart,
    FileWithBytes,
    Part,
    TaskState,
    TextPart,
)
from a2a.utils import new_task

HTTP, GRPC = (int(port) for port in sys.argv[1:])
RPC_PATH, REST_PATH = "/a2a/jsonrpc", "/a2a/rest"


def text_part(text):
    return Part(root=TextPart(text=text))


class Agent(AgentExecutor):
    async def execute(self, context, event_queue):
        task, text = context.current_task, context.get_user_input()
        if task is None:
            task = new_task(context.message)
            await event_queue.enqueue_event(task)
        updater = TaskUpdater(event_queue, task.id, task.context_id)

        async def answer(text):
            await updater.add_artifact([text_part(text)])
            await updater.complete()

        if task.status.state == TaskState.input_required:
            return await answer(f"You said: {text}")
        await updater.start_work()
        match text.split(maxsplit=2):
            case ["ask", *question]:
                message = updater.new_agent_message([text_part(" ".join(question))])
                await updater.requires_input(message, final=True)
            case ["stream", count]:
                for number in range(1, int(count) + 1):
                    await updater.add_artifact(
                        [text_part(f"chunk {number} of {count}\n")],
                        artifact_id="chunks",
                        append=number > 1,
                        last_chunk=number == int(count),
                    )
                    await asyncio.sleep(0.02)
                await updater.complete()
            case ["file", content]:
                file = FileWithBytes(bytes=b64encode(content.encode()).decode(), name="peer.txt", mime_type="text/plain")
                await updater.add_artifact([Part(root=FilePart(file=file))])
                await updater.complete()
            case ["slow", seconds, rest]:
                await asyncio.sleep(float(seconds))
                await answer(rest)
            case _:
                await answer(text)

    async def cancel(self, context, event_queue):
        await TaskUpdater(event_queue, context.task_id, context.context_id).cancel()


def card():
    rpc = f"http://127.0.0.1:{HTTP}{RPC_PATH}"
    return AgentCard(
        name="Peer",
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
        agent_executor=Agent(),
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
