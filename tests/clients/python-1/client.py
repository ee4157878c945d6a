"""a2a-sdk 1.x: its client, made from the card, over each of its transports."""

from uuid import uuid4

import httpx
from a2a.client import A2ACardResolver, ClientConfig, ClientFactory
from a2a.types import (
    AuthenticationInfo,
    CancelTaskRequest,
    DeleteTaskPushNotificationConfigRequest,
    GetTaskPushNotificationConfigRequest,
    GetTaskRequest,
    ListTaskPushNotificationConfigsRequest,
    ListTasksRequest,
    Message,
    Part,
    Role,
    SendMessageRequest,
    StreamResponse,
    SubscribeToTaskRequest,
    TaskPushNotificationConfig,
    TaskState,
)
from google.protobuf.json_format import MessageToDict, ParseDict
from steps import Hooks, chunks, refused, run, same

TRANSPORTS = {"jsonrpc": "JSONRPC", "http_json": "HTTP+JSON", "grpc": "GRPC"}


def request(text, **more):
    message = Message(role=Role.ROLE_USER, message_id=str(uuid4()), parts=[Part(text=text)], **more)
    return SendMessageRequest(message=message)


def text(holder):
    return "".join(part.text for part in holder.parts)


class Client:
    def __init__(self, http, card, transport):
        self.card = card
        # Without streaming the SDK sends with returnImmediately = polling.
        self.streaming, self.blocking, self.polling = (
            ClientFactory(
                ClientConfig(
                    httpx_client=http,
                    supported_protocol_bindings=[TRANSPORTS[transport]],
                    grpc_channel_factory=channel,
                    streaming=streaming,
                    polling=polling,
                )
            ).create(card)
            for streaming, polling in [(True, False), (False, False), (False, True)]
        )

    async def ask(self, text, client=None, **more):
        events = [event async for event in (client or self.blocking).send_message(request(text, **more))]
        same([event.WhichOneof("payload") for event in events], ["task"])
        return events[0].task

    async def follow(self, events):
        """The states and the text of an artifact that a stream tells of, in order."""
        states, written = [], ""
        async for event in events:
            match event.WhichOneof("payload"):
                case "task":
                    states.append(event.task.status.state)
                    written = "".join(text(artifact) for artifact in event.task.artifacts)
                case "status_update":
                    states.append(event.status_update.status.state)
                case "artifact_update":
                    update = event.artifact_update
                    written = written * update.append + text(update.artifact)
        return states, written

    async def check_card(self):
        same((self.card.name, self.card.capabilities.streaming), ("Demo", True))
        same("echo" in [skill.id for skill in self.card.skills], True)
        same("1.0" in [interface.protocol_version for interface in self.card.supported_interfaces], True)

    async def send(self):
        task = await self.ask("hello")
        same(task.status.state, TaskState.TASK_STATE_COMPLETED)
        same([text(artifact) for artifact in task.artifacts], ["hello"])

    async def question(self):
        asked = await self.ask("ask which colour?")
        same((asked.status.state, text(asked.status.message)), (TaskState.TASK_STATE_INPUT_REQUIRED, "which colour?"))
        done = await self.ask("green", task_id=asked.id)
        same((done.id, done.context_id), (asked.id, asked.context_id))
        same(done.status.state, TaskState.TASK_STATE_COMPLETED)
        same(text(done.artifacts[0]), "I asked: which colour?\nYou said: green")
        same([message.role for message in done.history][:3], [Role.ROLE_USER, Role.ROLE_AGENT, Role.ROLE_USER])

    async def files(self):
        part = (await self.ask("file over there")).artifacts[0].parts[0]
        same((part.raw, part.filename, part.media_type), (b"over there", "switchboard.txt", "text/plain"))

    async def data(self):
        part = (await self.ask("data two words")).artifacts[0].parts[0]
        same(MessageToDict(part.data), {"text": "two words", "characters": 9, "words": ["two", "words"]})

    async def stream(self):
        states, written = await self.follow(self.streaming.send_message(request("stream 5")))
        same((states[-1], written), (TaskState.TASK_STATE_COMPLETED, chunks(5)))

    async def get(self):
        sent = await self.ask("remember me")
        task = await self.blocking.get_task(GetTaskRequest(id=sent.id, history_length=1))
        same((task.id, task.context_id), (sent.id, sent.context_id))
        same((task.status.state, text(task.artifacts[0])), (TaskState.TASK_STATE_COMPLETED, "remember me"))
        same(len(task.history), 1)
        listed = await self.blocking.list_tasks(ListTasksRequest(context_id=sent.context_id))
        same(([task.id for task in listed.tasks], listed.total_size), ([sent.id], 1))
        await refused(self.blocking.get_task(GetTaskRequest(id="nobody")), "TaskNotFoundError")

    async def cancel(self):
        begun = await self.ask("slow 60 dig", self.polling)
        same(begun.status.state in (TaskState.TASK_STATE_SUBMITTED, TaskState.TASK_STATE_WORKING), True)
        canceled = await self.blocking.cancel_task(CancelTaskRequest(id=begun.id))
        same((canceled.id, canceled.status.state), (begun.id, TaskState.TASK_STATE_CANCELED))
        done = await self.ask("too late")
        await refused(self.blocking.cancel_task(CancelTaskRequest(id=done.id)), "TaskNotCancelableError")

    async def resubscribe(self):
        stream = self.streaming.send_message(request("stream 20"))
        async for event in stream:
            if event.HasField("artifact_update"):
                task_id = event.artifact_update.task_id
                break
        await stream.aclose()
        states, written = await self.follow(self.streaming.subscribe(SubscribeToTaskRequest(id=task_id)))
        same((states[-1], written), (TaskState.TASK_STATE_COMPLETED, chunks(20)))

    async def push(self):
        hooks = Hooks()
        begun = await self.ask("slow 3 knock", self.polling)
        wanted = TaskPushNotificationConfig(
            task_id=begun.id,
            id="mine",
            url=hooks.url,
            token="a-token",
            authentication=AuthenticationInfo(scheme="Bearer", credentials="a-secret"),
        )
        config = await self.blocking.create_task_push_notification_config(wanted)
        same((config.task_id, config.id, config.url), (begun.id, "mine", hooks.url))
        read = await self.blocking.get_task_push_notification_config(
            GetTaskPushNotificationConfigRequest(task_id=begun.id, id="mine")
        )
        same((read.id, read.url), ("mine", hooks.url))
        headers, body = await hooks.until(
            lambda body: body.get("statusUpdate", {}).get("status", {}).get("state") == "TASK_STATE_COMPLETED"
        )
        same(headers["x-a2a-notification-token"], "a-token")
        same(headers["authorization"], "Bearer a-secret")
        same(ParseDict(body, StreamResponse()).status_update.task_id, begun.id)
        await self.blocking.delete_task_push_notification_config(
            DeleteTaskPushNotificationConfigRequest(task_id=begun.id, id="mine")
        )
        left = await self.blocking.list_task_push_notification_configs(
            ListTaskPushNotificationConfigsRequest(task_id=begun.id)
        )
        same(list(left.configs), [])


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
