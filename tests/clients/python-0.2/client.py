"""a2a-sdk 0.2: its JSON-RPC client, with the card from where 0.2 looks for it. It cannot resubscribe."""

from uuid import uuid4

import httpx
from a2a.client import A2ACardResolver, A2AClient
from a2a.types import (
    CancelTaskRequest,
    DataPart,
    FilePart,
    GetTaskPushNotificationConfigParams,
    GetTaskPushNotificationConfigRequest,
    GetTaskRequest,
    Message,
    MessageSendConfiguration,
    MessageSendParams,
    Part,
    PushNotificationConfig,
    Role,
    SendMessageRequest,
    SendStreamingMessageRequest,
    SetTaskPushNotificationConfigRequest,
    Task,
    TaskIdParams,
    TaskPushNotificationConfig,
    TaskQueryParams,
    TaskState,
    TextPart,
)
from steps import Hooks, chunks, run, same


def params(text, blocking=True, **more):
    message = Message(role=Role.user, message_id=str(uuid4()), parts=[Part(root=TextPart(text=text))], **more)
    configuration = MessageSendConfiguration(accepted_output_modes=["text/plain"], blocking=blocking)
    return MessageSendParams(message=message, configuration=configuration)


def text(holder):
    return "".join(part.root.text for part in holder.parts)


def result(response):
    """What an answer holds; this SDK raises nothing for an error."""
    if hasattr(response.root, "error"):
        raise AssertionError(f"refused: {response.root.error!r}")
    return response.root.result


def error_code(response):
    return response.root.error.code if hasattr(response.root, "error") else response


class Client:
    def __init__(self, http, url):
        self.http = http
        self.resolver = A2ACardResolver(http, url)
        self.card = self.client = None

    async def check_card(self):
        same(self.resolver.agent_card_path, ".well-known/agent.json")
        self.card = await self.resolver.get_agent_card()
        same((self.card.name, self.card.capabilities.streaming), ("Demo", True))
        same("echo" in [skill.id for skill in self.card.skills], True)
        self.client = A2AClient(self.http, self.card)

    async def ask(self, text, **more):
        task = result(await self.client.send_message(SendMessageRequest(id=str(uuid4()), params=params(text, **more))))
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
        same([message.role for message in done.history][:3], [Role.user, Role.agent, Role.user])

    async def files(self):
        part = (await self.ask("file over there")).artifacts[0].parts[0].root
        same((type(part), part.file.name, part.file.mime_type), (FilePart, "switchboard.txt", "text/plain"))
        same(part.file.bytes, "b3ZlciB0aGVyZQ==")

    async def data(self):
        part = (await self.ask("data two words")).artifacts[0].parts[0].root
        same((type(part), part.data), (DataPart, {"text": "two words", "characters": 9, "words": ["two", "words"]}))

    async def stream(self):
        request = SendStreamingMessageRequest(id=str(uuid4()), params=params("stream 5"))
        events = [result(event) async for event in self.client.send_message_streaming(request)]
        same(events[0].kind, "task")
        same((events[-1].kind, events[-1].final, events[-1].status.state), ("status-update", True, TaskState.completed))
        same("".join(text(event.artifact) for event in events if event.kind == "artifact-update"), chunks(5))

    async def get(self):
        sent = await self.ask("remember me")
        query = TaskQueryParams(id=sent.id, history_length=1)
        task = result(await self.client.get_task(GetTaskRequest(id=str(uuid4()), params=query)))
        same((task.id, task.context_id, task.status.state), (sent.id, sent.context_id, TaskState.completed))
        same([text(artifact) for artifact in task.artifacts], ["remember me"])
        same(len(task.history), 1)
        nobody = GetTaskRequest(id=str(uuid4()), params=TaskQueryParams(id="nobody"))
        same(error_code(await self.client.get_task(nobody)), -32001)

    async def cancel(self):
        begun = await self.ask("slow 60 dig", blocking=False)
        same(begun.status.state in (TaskState.submitted, TaskState.working), True)
        request = CancelTaskRequest(id=str(uuid4()), params=TaskIdParams(id=begun.id))
        canceled = result(await self.client.cancel_task(request))
        same((canceled.id, canceled.status.state), (begun.id, TaskState.canceled))
        done = await self.ask("too late")
        request = CancelTaskRequest(id=str(uuid4()), params=TaskIdParams(id=done.id))
        same(error_code(await self.client.cancel_task(request)), -32002)

    async def push(self):
        hooks = Hooks()
        begun = await self.ask("slow 3 knock", blocking=False)
        wanted = TaskPushNotificationConfig(
            task_id=begun.id,
            push_notification_config=PushNotificationConfig(id="mine", url=hooks.url, token="a-token"),
        )
        request = SetTaskPushNotificationConfigRequest(id=str(uuid4()), params=wanted)
        config = result(await self.client.set_task_callback(request))
        same((config.task_id, config.push_notification_config.url), (begun.id, hooks.url))
        which = GetTaskPushNotificationConfigParams(id=begun.id)
        request = GetTaskPushNotificationConfigRequest(id=str(uuid4()), params=which)
        read = result(await self.client.get_task_callback(request))
        same((read.push_notification_config.id, read.push_notification_config.token), ("mine", None))
        headers, body = await hooks.until(lambda body: body["status"]["state"] == "completed")
        same(headers["x-a2a-notification-token"], "a-token")
        task = Task.model_validate(body)
        same((task.id, text(task.artifacts[0])), (begun.id, "knock: done in 3 s"))


async def steps(url, transport):
    same(transport, "jsonrpc")
    async with httpx.AsyncClient(timeout=15) as http:
        client = Client(http, url)
        yield "card", client.check_card()
        yield "send", client.send()
        yield "question", client.question()
        yield "file", client.files()
        yield "data", client.data()
        yield "stream", client.stream()
        yield "get", client.get()
        yield "cancel", client.cancel()
        yield "push", client.push()


run(steps)
