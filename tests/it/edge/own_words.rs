//! A refusal names operations, fields and headers in the dialect of the caller, also if the engine made it.

use bytes::Bytes;
use http::Request;
use http_body_util::Full;
use serde_json::{Value, json};
use switchboard::{AgentBuilder, Server, Tokens};
use switchboard_core::dialect::v0_3::proto::generated as old_wire;
use switchboard_core::dialect::v1_0::proto::generated as wire;

use crate::support::edge::{Edge, echo, message, old_message, post, rpc_body, unversioned, with};
use crate::support::grpc::{V0_3, V1_0, grpc_request};

type Ask = Request<Full<Bytes>>;

/// The message of a refusal.
async fn refusal(edge: &Edge, request: Ask) -> String {
    let answer = edge.ask(request).await;
    if let Some(message) = answer.headers.get("grpc-message") {
        return message.to_str().unwrap().replace("%25", "%").replace("%20", " ");
    }
    let json = answer.json();
    let error = json.get("error").unwrap_or(&json);
    error["message"].as_str().unwrap_or_else(|| panic!("no refusal: {json}")).to_owned()
}

/// One version over one binding.
struct Speaker {
    name: &'static str,
    /// How it names the send, the get, and what follows a task.
    methods: [&'static str; 3],
    /// How it names the media type of the second part, the webhook of a send, that of a webhook's own call, and where
    /// extensions are told.
    fields: [&'static str; 4],
    stream: fn(&'static str) -> Ask,
    follow: fn(&str) -> Ask,
    /// A send of a text and an image.
    image: fn() -> Ask,
    /// A send with a webhook.
    hooked: fn(&'static str) -> Ask,
    /// A webhook for a task.
    hook: fn(&str, &'static str) -> Ask,
}

fn rpc(method: &str, params: Value) -> Ask {
    post("/rpc", rpc_body(method, params))
}

fn old_rpc(method: &str, params: Value) -> Ask {
    unversioned(rpc(method, params))
}

/// The params with one member more, which `path` leads to.
fn and(mut params: Value, path: &str, value: Value) -> Value {
    *path.split('.').fold(&mut params, |at, name| match name.parse::<usize>() {
        Ok(index) => {
            let list = at.as_array_mut().unwrap();
            list.resize(list.len().max(index + 1), Value::Null);
            &mut list[index]
        }
        Err(_) => &mut at[name],
    }) = value;
    params
}

/// The body of a send in the JSON form of 0.3's proto.
fn proto_message(text: &str) -> Value {
    json!({"message": {"messageId": "m-1", "role": "ROLE_USER", "content": [{"text": text}]}})
}

fn sent(text: &str) -> wire::SendMessageRequest {
    let part = wire::Part { content: Some(wire::part::Content::Text(text.to_owned())), ..Default::default() };
    let (message_id, role) = ("m-1".to_owned(), wire::Role::User.into());
    let message = wire::Message { message_id, role, parts: vec![part], ..Default::default() };
    wire::SendMessageRequest { message: Some(message), ..Default::default() }
}

fn old_sent(text: &str) -> old_wire::SendMessageRequest {
    let part = old_wire::Part { part: Some(old_wire::part::Part::Text(text.to_owned())), ..Default::default() };
    let (message_id, role) = ("m-1".to_owned(), old_wire::Role::User.into());
    let message = old_wire::Message { message_id, role, content: vec![part], ..Default::default() };
    old_wire::SendMessageRequest { request: Some(message), ..Default::default() }
}

fn grpc(method: &str, message: &impl prost::Message) -> Ask {
    grpc_request(&format!("{V1_0}/{method}"), message)
}

fn old_grpc(method: &str, message: &impl prost::Message) -> Ask {
    unversioned(grpc_request(&format!("{V0_3}/{method}"), message))
}

const NEW_METHODS: [&str; 3] = ["SendMessage", "GetTask", "SubscribeToTask"];
const NEW_FIELDS: [&str; 4] =
    ["message.parts[1].mediaType", "configuration.taskPushNotificationConfig.url", "url", "A2A-Extensions"];
const PROTO_METHODS: [&str; 3] = ["SendMessage", "GetTask", "TaskSubscription"];
const PROTO_FIELDS: [&str; 4] = [
    "message.content[1].file.mimeType",
    "configuration.pushNotification.url",
    "config.pushNotificationConfig.url",
    "X-A2A-Extensions",
];

const SPEAKERS: [Speaker; 6] = [
    Speaker {
        name: "1.0 JSON-RPC",
        methods: NEW_METHODS,
        fields: NEW_FIELDS,
        stream: |text| rpc("SendStreamingMessage", message(text)),
        follow: |id| rpc("SubscribeToTask", json!({"id": id})),
        image: || {
            let image = json!({"raw": "AA==", "mediaType": "image/png"});
            rpc("SendMessage", and(message("see"), "message.parts.1", image))
        },
        hooked: |url| {
            let config = json!({"url": url});
            rpc("SendMessage", and(message("hi"), "configuration.taskPushNotificationConfig", config))
        },
        hook: |id, url| rpc("CreateTaskPushNotificationConfig", json!({"taskId": id, "url": url})),
    },
    Speaker {
        name: "1.0 HTTP+JSON",
        methods: NEW_METHODS,
        fields: NEW_FIELDS,
        stream: |text| post("/message:stream", message(text).to_string()),
        follow: |id| post(&format!("/tasks/{id}:subscribe"), ""),
        image: || {
            let image = json!({"raw": "AA==", "mediaType": "image/png"});
            post("/message:send", and(message("see"), "message.parts.1", image).to_string())
        },
        hooked: |url| {
            let config = json!({"url": url});
            let params = and(message("hi"), "configuration.taskPushNotificationConfig", config);
            post("/message:send", params.to_string())
        },
        hook: |id, url| post(&format!("/tasks/{id}/pushNotificationConfigs"), json!({"url": url}).to_string()),
    },
    Speaker {
        name: "1.0 gRPC",
        methods: NEW_METHODS,
        fields: NEW_FIELDS,
        stream: |text| grpc("SendStreamingMessage", &sent(text)),
        follow: |id| {
            let id = id.to_owned();
            grpc("SubscribeToTask", &wire::SubscribeToTaskRequest { id, ..Default::default() })
        },
        image: || {
            let mut send = sent("see");
            let content = Some(wire::part::Content::Raw(vec![0].into()));
            let media_type = "image/png".to_owned();
            let image = wire::Part { content, media_type, ..Default::default() };
            send.message.as_mut().unwrap().parts.push(image);
            grpc("SendMessage", &send)
        },
        hooked: |url| {
            let config = wire::TaskPushNotificationConfig { url: url.to_owned(), ..Default::default() };
            let configuration =
                wire::SendMessageConfiguration { task_push_notification_config: Some(config), ..Default::default() };
            grpc("SendMessage", &wire::SendMessageRequest { configuration: Some(configuration), ..sent("hi") })
        },
        hook: |id, url| {
            let (task_id, url) = (id.to_owned(), url.to_owned());
            let config = wire::TaskPushNotificationConfig { task_id, url, ..Default::default() };
            grpc("CreateTaskPushNotificationConfig", &config)
        },
    },
    Speaker {
        name: "0.3 JSON-RPC",
        methods: ["message/send", "tasks/get", "tasks/resubscribe"],
        fields: [
            "message.parts[1].file.mimeType",
            "configuration.pushNotificationConfig.url",
            "pushNotificationConfig.url",
            "X-A2A-Extensions",
        ],
        stream: |text| old_rpc("message/stream", old_message(text)),
        follow: |id| old_rpc("tasks/resubscribe", json!({"id": id})),
        image: || {
            let image = json!({"kind": "file", "file": {"bytes": "AA==", "mimeType": "image/png"}});
            old_rpc("message/send", and(old_message("see"), "message.parts.1", image))
        },
        hooked: |url| {
            let config = json!({"url": url});
            old_rpc("message/send", and(old_message("hi"), "configuration.pushNotificationConfig", config))
        },
        hook: |id, url| {
            let params = json!({"taskId": id, "pushNotificationConfig": {"url": url}});
            old_rpc("tasks/pushNotificationConfig/set", params)
        },
    },
    Speaker {
        name: "0.3 HTTP+JSON",
        methods: PROTO_METHODS,
        fields: PROTO_FIELDS,
        stream: |text| unversioned(post("/v1/message:stream", proto_message(text).to_string())),
        follow: |id| unversioned(post(&format!("/v1/tasks/{id}:subscribe"), "{}")),
        image: || {
            let image = json!({"file": {"fileWithBytes": "AA==", "mimeType": "image/png"}});
            unversioned(post("/v1/message:send", and(proto_message("see"), "message.content.1", image).to_string()))
        },
        hooked: |url| {
            let params = and(proto_message("hi"), "configuration.pushNotification", json!({"url": url}));
            unversioned(post("/v1/message:send", params.to_string()))
        },
        hook: |id, url| {
            let body = json!({"config": {"pushNotificationConfig": {"url": url}}}).to_string();
            unversioned(post(&format!("/v1/tasks/{id}/pushNotificationConfigs"), body))
        },
    },
    Speaker {
        name: "0.3 gRPC",
        methods: PROTO_METHODS,
        fields: PROTO_FIELDS,
        stream: |text| old_grpc("SendStreamingMessage", &old_sent(text)),
        follow: |id| old_grpc("TaskSubscription", &old_wire::TaskSubscriptionRequest { name: format!("tasks/{id}") }),
        image: || {
            let mut send = old_sent("see");
            let file = Some(old_wire::file_part::File::FileWithBytes(vec![0].into()));
            let file = old_wire::FilePart { file, mime_type: "image/png".to_owned(), ..Default::default() };
            let image = old_wire::Part { part: Some(old_wire::part::Part::File(file)), ..Default::default() };
            send.request.as_mut().unwrap().content.push(image);
            old_grpc("SendMessage", &send)
        },
        hooked: |url| {
            let config = old_wire::PushNotificationConfig { url: url.to_owned(), ..Default::default() };
            let configuration =
                old_wire::SendMessageConfiguration { push_notification: Some(config), ..Default::default() };
            old_grpc(
                "SendMessage",
                &old_wire::SendMessageRequest { configuration: Some(configuration), ..old_sent("hi") },
            )
        },
        hook: |id, url| {
            let config = old_wire::PushNotificationConfig { url: url.to_owned(), ..Default::default() };
            let config =
                old_wire::TaskPushNotificationConfig { push_notification_config: Some(config), ..Default::default() };
            let (parent, config_id) = (format!("tasks/{id}"), "c".to_owned());
            let create = old_wire::CreateTaskPushNotificationConfigRequest { parent, config_id, config: Some(config) };
            old_grpc("CreateTaskPushNotificationConfig", &create)
        },
    },
];

/// An address that no webhook may have; only the outbound client knows that.
const UNFIT: &str = "https://hooks.example/#there";

fn edge(agent: AgentBuilder) -> Edge {
    Edge::new(Server::builder().agent(agent))
}

#[tokio::test(start_paused = true)]
async fn each_version_is_refused_in_its_own_words() {
    let (usual, mute) = (Edge::usual(), edge(echo().streaming(false)));
    let strict = edge(echo().extension("urn:must", "", true));
    let done = usual.task("hello").await;
    for Speaker { name, methods: [send, get, follow], fields: [media_type, of_send, url, extensions], .. } in &SPEAKERS
    {
        let speaker = SPEAKERS.iter().find(|speaker| speaker.name == *name).unwrap();
        let said = refusal(&mute, (speaker.stream)("hi")).await;
        assert_eq!(said, format!("This agent does not stream; use {send} and {get}"), "{name}");
        let said = refusal(&usual, (speaker.follow)(&done)).await;
        let over = format!("Task {done} is completed and has no more updates");
        assert_eq!(said, format!("{over}; read it with {get}, or resume with Last-Event-ID"), "{name}");
        let said = refusal(&usual, with((speaker.stream)("hi"), "last-event-id", "1")).await;
        let unknown = "Last-Event-ID: there is no earlier send of this message to resume";
        assert_eq!(said, format!("Invalid parameters: {unknown}; use {follow} with the task's id"), "{name}");
        let said = refusal(&usual, (speaker.image)()).await;
        assert_eq!(said, format!("{media_type}: this agent does not read image/png (it reads text/plain)"), "{name}");
        let said = refusal(&usual, (speaker.hooked)(UNFIT)).await;
        assert!(said.starts_with(&format!("Invalid parameters: {of_send}: ")), "{name}: {said}");
        let said = refusal(&usual, (speaker.hook)(&done, UNFIT)).await;
        assert!(said.starts_with(&format!("Invalid parameters: {url}: ")), "{name}: {said}");
        let said = refusal(&strict, (speaker.hooked)("https://hooks.example/")).await;
        let required = "This agent requires the extension urn:must";
        assert_eq!(said, format!("{required}: send header {extensions}: urn:must"), "{name}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_key_is_named_where_it_was_said() {
    let token = "a-token-of-ada-for-tests";
    let edge = Edge::new(Server::builder().agent(echo()).tokens(Tokens::parse(&format!("{token} ada")).unwrap()));
    let keyed = |text: &str| {
        let message = json!({"role": "user", "parts": [{"type": "text", "text": text}]});
        let params = json!({"message": message, "async": true, "idempotencyKey": "k"});
        let request = unversioned(post("/_agent-native/a2a", rpc_body("message/send", params)));
        with(request, "authorization", &format!("Bearer {token}"))
    };
    assert_eq!(edge.ask(keyed("one")).await.status, 200);
    let said = refusal(&edge, keyed("another")).await;
    let used = "was used before for another message; use a new key for a new message";
    assert_eq!(said, format!("Invalid params: idempotencyKey: {used}"));
}
