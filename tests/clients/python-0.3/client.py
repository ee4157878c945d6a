"""a2a-sdk 0.3: its client, made from the card, over each of its transports."""

from uuid import uuid4

import httpx
from a2a.client import A2ACardResolver, ClientConfig, ClientFactory
from a2a.types import (
    DataPart,
    FilePart,
    GetTaskPushNotificationConfigParams,
    Message,
    Part,
    PushNotificationAuthenticationInfo,
    PushNotificationConfig,
    Role,
    Task,
    TaskIdParams,
    TaskPushNotificationConfig,
    TaskQueryParams,
    TaskState,
    TextPart,
    TransportProtocol,
)
from steps import Hooks, chunks, refused, run, same

TRANSPORTS = {
    "jsonrpc": TransportProtocol.jsonrpc,
    "http_json": TransportProtocol.http_json,
    "grpc": TransportProtocol.grpc,
}


def message(text, **more):
    return Message(role=Role.user, message_id=str(uuid4()), parts=[Part(root=TextPart(text=text))], **more)


def text(artifact):
    return "".join(part.root.text for part in artifact.parts)


class Client:
    def __init__(self, http, card, transport):
        self.card = card
        self.transport = transport
        # Without streaming the SDK sends with blocking = not polling.
        self.streaming, self.blocking, self.polling = (
            ClientFactory(
                ClientConfig(
                    httpx_client=http,
                    supported_transports=[TRANSPORTS[transport]],
                    grpc_channel_factory=channel,
                    streaming=streaming,
                    polling=polling,
                )
            ).create(card)
            for streaming, polling in [(True, False), (False, False), (False, True)]
        )

    async def ask(self, text, client=None, **more):
        events = [event async for event in (client or self.blocking).send_message(message(text, **more))]
        same(len(events), 1)
        task, update = events[0]
        same(update, None)
        return task

    async def check_card(self):
        same((self.card.name, self.card.protocol_version, self.card.capabilities.streaming), ("Demo", "0.3.0", True))
        same("echo" in [skill.id for skill in self.card.skills], True)

    async def send(self):
        task = await self.ask("hello")
        same((task.status.state, [text(artifact) for artifact in task.artifacts]), (TaskState.completed, ["hello"]))

    async def question(self):
        asked = await self.ask("ask which colour?")
        same((asked.status.state, text(asked.status.message)), (TaskState.input_required, "which colour?"))
        done = await self.ask("green", task_id=asked.id, context_id=asked.context_id)
        same((done.id, done.status.state), (asked.id, TaskState.completed))
        same(text(done.artifacts[0]), "I asked: which colour?\nYou said: green")
        same([part.role for part in done.history][:3], [Role.user, Role.agent, Role.user])

    async def files(self):
        task = await self.ask("file over there")
        part = task.artifacts[0].parts[0].root
        same((type(part), part.file.name, part.file.mime_type), (FilePart, "switchboard.txt", "text/plain"))
        # Over its proto this SDK hands out the bytes as they are, though its type promises base64.
        same(part.file.bytes, "b3ZlciB0aGVyZQ==" if self.transport == "jsonrpc" else "over there")

    async def data(self):
        task = await self.ask("data two words")
        part = task.artifacts[0].parts[0].root
        same((type(part), part.data), (DataPart, {"text": "two words", "characters": 9, "words": ["two", "words"]}))

    async def stream(self):
        events = [event async for event in self.streaming.send_message(message("stream 5"))]
        same(type(events[0][0]), Task)
        task, last = events[-1]
        same((last.final, task.status.state), (True, TaskState.completed))
        same(text(task.artifacts[0]), chunks(5))

    async def get(self):
        sent = await self.ask("remember me")
        task = await self.blocking.get_task(TaskQueryParams(id=sent.id, history_length=1))
        same((task.id, task.context_id, task.status.state), (sent.id, sent.context_id, TaskState.completed))
        same([text(artifact) for artifact in task.artifacts], ["remember me"])
        same(len(task.history), 1)
        await refused(self.blocking.get_task(TaskQueryParams(id="nobody")), "not found", -32001, 404)

    async def cancel(self):
        begun = await self.ask("slow 60 dig", self.polling)
        same(begun.status.state in (TaskState.submitted, TaskState.working), True)
        canceled = await self.blocking.cancel_task(TaskIdParams(id=begun.id))
        same((canceled.id, canceled.status.state), (begun.id, TaskState.canceled))
        done = await self.ask("too late")
        await refused(self.blocking.cancel_task(TaskIdParams(id=done.id)), -32002, 409, "FAILED_PRECONDITION")

    async def resubscribe(self):
        stream = self.streaming.send_message(message("stream 20"))
        async for task, update in stream:
            if update is not None and update.kind == "artifact-update":
                break
        await stream.aclose()
        events = [event async for event in self.streaming.resubscribe(TaskIdParams(id=task.id))]
        whole, last = events[-1]
        same((last.final, whole.status.state), (True, TaskState.completed))
        same(text(whole.artifacts[0]), chunks(20))

    async def push(self):
        hooks = Hooks()
        begun = await self.ask("slow 3 knock", self.polling)
        wanted = PushNotificationConfig(
            id="mine",
            url=hooks.url,
            token="a-token",
            authentication=PushNotificationAuthenticationInfo(schemes=["Bearer"], credentials="a-secret"),
        )
        config = await self.blocking.set_task_callback(
            TaskPushNotificationConfig(task_id=begun.id, push_notification_config=wanted)
        )
        same((config.task_id, config.push_notification_config.url), (begun.id, hooks.url))
        read = await self.blocking.get_task_callback(
            GetTaskPushNotificationConfigParams(id=begun.id, push_notification_config_id="mine")
        )
        same((read.push_notification_config.id, read.push_notification_config.token or None), ("mine", None))
        headers, body = await hooks.until(lambda body: body["status"]["state"] == "completed")
        same(headers["x-a2a-notification-token"], "a-token")
        same(headers["authorization"], "Bearer a-secret")
        task = Task.model_validate(body)
        same((task.id, text(task.artifacts[0])), (begun.id, "knock: done in 3 s"))


def channel(url):
    import grpc

    return grpc.aio.insecure_channel(url)


async def steps(url, transport):
    async with httpx.AsyncClient(timeout=15) as http:
        client = Client(http, await A2ACardResolver(http, url).get_agent_card(), transport)
        yield "card", client.check_card()
        yield "send", client.send()
        yield "question", client.question()
        yield "file", client.files()
        yield "data", client.data()
        yield "stream", client.stream()
        yield "get", client.get()
        yield "cancel", client.cancel()
        yield "resubscribe", client.resubscribe()
        yield "push", client.push()


run(steps)
