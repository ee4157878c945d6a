"""a2a-sdk 0.2: its gRPC client, which is a class of its own. It reads no card and cannot resubscribe; its push calls name no
task (`parent` is empty), which no server can serve."""

from uuid import uuid4

import grpc
from a2a.client.grpc_client import A2AGrpcClient
from a2a.grpc.a2a_pb2_grpc import A2AServiceStub
from a2a.types import (
    DataPart,
    FilePart,
    Message,
    MessageSendConfiguration,
    MessageSendParams,
    Part,
    Role,
    Task,
    TaskIdParams,
    TaskQueryParams,
    TaskState,
    TextPart,
)
from steps import chunks, refused, run, same


def params(text, blocking=True, **more):
    message = Message(role=Role.user, message_id=str(uuid4()), parts=[Part(root=TextPart(text=text))], **more)
    configuration = MessageSendConfiguration(accepted_output_modes=["text/plain"], blocking=blocking)
    return MessageSendParams(message=message, configuration=configuration)


def text(holder):
    return "".join(part.root.text for part in holder.parts)


class Client:
    def __init__(self, channel):
        self.client = A2AGrpcClient(A2AServiceStub(channel), None)

    async def ask(self, text, **more):
        task = await self.client.send_message(params(text, **more))
        same(type(task), Task)
        return task

    async def send(self):
        task = await self.ask("hello")
        same((task.status.state, [text(artifact) for artifact in task.artifacts]), (TaskState.completed, ["hello"]))

    async def question(self):
        asked = await self.ask("ask which colour?")
        same((asked.status.state, text(asked.status.message)), (TaskState.input_required, "which colour?"))
        done = await self.ask("green", task_id=asked.id, context_id=asked.context_id)
        same((done.id, done.status.state), (asked.id, TaskState.completed))
        same(text(done.artifacts[0]), "I asked: which colour?\nYou said: green")

    async def files(self):
        part = (await self.ask("file over there")).artifacts[0].parts[0].root
        # Over its proto this SDK hands out the bytes as they are, and forgets the name and the media type.
        same((type(part), part.file.bytes), (FilePart, "over there"))

    async def data(self):
        part = (await self.ask("data two words")).artifacts[0].parts[0].root
        same((type(part), part.data), (DataPart, {"text": "two words", "characters": 9, "words": ["two", "words"]}))

    async def stream(self):
        events = [event async for event in self.client.send_message_streaming(params("stream 5"))]
        same(events[0].kind, "task")
        same((events[-1].kind, events[-1].final, events[-1].status.state), ("status-update", True, TaskState.completed))
        same("".join(text(event.artifact) for event in events if event.kind == "artifact-update"), chunks(5))

    async def get(self):
        sent = await self.ask("remember me")
        task = await self.client.get_task(TaskQueryParams(id=sent.id))
        same((task.id, task.context_id, task.status.state), (sent.id, sent.context_id, TaskState.completed))
        same([text(artifact) for artifact in task.artifacts], ["remember me"])
        await refused(self.client.get_task(TaskQueryParams(id="nobody")), "NOT_FOUND")

    async def cancel(self):
        begun = await self.ask("slow 60 dig", blocking=False)
        same(begun.status.state in (TaskState.submitted, TaskState.working), True)
        canceled = await self.client.cancel_task(TaskIdParams(id=begun.id))
        same((canceled.id, canceled.status.state), (begun.id, TaskState.canceled))
        done = await self.ask("too late")
        await refused(self.client.cancel_task(TaskIdParams(id=done.id)), "FAILED_PRECONDITION")


async def steps(url, transport):
    same(transport, "grpc")
    async with grpc.aio.insecure_channel(url.removeprefix("http://").rstrip("/")) as channel:
        client = Client(channel)
        yield "send", client.send()
        yield "question", client.question()
        yield "file", client.files()
        yield "data", client.data()
        yield "stream", client.stream()
        yield "get", client.get()
        yield "cancel", client.cancel()


run(steps)
