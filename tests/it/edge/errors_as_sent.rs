//! `docs/errors-as-sent.md` is made here: one request for each kind of refusal, in each form it can be sent in, and what the
//! server answers, byte for byte but for ids. `UPDATE_EXPECT=1 cargo test -p switchboard-tests errors_as_sent` writes it again.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::sync::Arc;

use bytes::Bytes;
use expect_test::expect_file;
use http::{Method, Request};
use http_body_util::Full;
use prost::Message as _;
use serde_json::{Value, json};
use switchboard::{AgentBuilder, Artifact, Server, ServerBuilder, ServerLimits, Tokens, Turn};
use switchboard_core::dialect::json::decode_base64;
use switchboard_core::dialect::protobuf::generated as rpc;
use switchboard_core::dialect::v1_0::proto::generated as wire;
use switchboard_engine::system::SystemClock;

use super::grpc_calls::say;
use crate::support::edge::{Answer, Edge, echo, message, old_message, redacted, request, rpc_body, with};
use crate::support::gated_store::GatedStore;
use crate::support::grpc::{V1_0, grpc_request};

const HEAD: &str = "\
# Errors, as sent

[errors.md](errors.md) has the numbers of every refusal and says what to do. This page has the bytes: for each kind a request
that provokes it (lines with `>`) and the answer (lines with `<`), in each form that the request can be sent in. The lines with
`>` are the path, those headers that matter, and the body; a request is `POST` unless it says otherwise. Of a gRPC call the
message is shown as JSON and the details of the answer are decoded. Ids are replaced by `<id 1>`, `<id 2>` and so on.

<!-- Made by tests/it/edge/errors_as_sent.rs. Do not edit: UPDATE_EXPECT=1 cargo test -p switchboard-tests errors_as_sent -->
";

const TOKEN: &str = "a-token-of-alice-for-tests";

/// One request in one form.
struct SampleRequest {
    form: &'static str,
    /// As the page has it.
    shown: String,
    request: Request<Full<Bytes>>,
}

impl SampleRequest {
    fn new(form: &'static str, verb: Method, path: &str, version: &str, body: &str) -> Self {
        let mut shown = if verb == Method::POST { path.to_owned() } else { format!("{verb} {path}") };
        if !version.is_empty() {
            let _ = write!(shown, "\nA2A-Version: {version}");
        }
        if !body.is_empty() {
            let _ = write!(shown, "\n{body}");
        }
        let mut request = with(request(verb, path, body.to_owned()), "a2a-version", "");
        if !version.is_empty() {
            request = with(request, "a2a-version", version);
        }
        Self { form, shown, request: with(request, "content-type", "application/json") }
    }

    fn grpc(method: &str, shown: &Value, sent: &impl prost::Message) -> Self {
        let path = format!("{V1_0}/{method}");
        Self {
            form: "gRPC 1.0",
            shown: format!("{path}\na2a-version: 1.0\n{shown}"),
            request: grpc_request(&path, sent),
        }
    }

    /// The same with one more header.
    fn with(self, name: &str, value: &str) -> Self {
        let (path, rest) = self.shown.split_once('\n').unwrap_or((&self.shown, ""));
        let shown = format!("{path}\n{name}: {value}\n{rest}").trim_end().to_owned();
        Self { form: self.form, shown, request: with(self.request, name, value) }
    }
}

/// A call over JSON-RPC and over HTTP+JSON, in 1.0.
fn new(method: &str, params: &Value, verb: Method, path: &str, body: &str) -> Vec<SampleRequest> {
    vec![
        SampleRequest::new("JSON-RPC 1.0", Method::POST, "/", "1.0", &rpc_body(method, params.clone())),
        SampleRequest::new("HTTP+JSON 1.0", verb, path, "1.0", body),
    ]
}

/// The same in 0.3.
fn old(method: &str, params: &Value, verb: Method, path: &str, body: &str) -> Vec<SampleRequest> {
    vec![
        SampleRequest::new("JSON-RPC 0.3", Method::POST, "/", "", &rpc_body(method, params.clone())),
        SampleRequest::new("HTTP+JSON 0.3", verb, path, "", body),
    ]
}

/// A call of JSON-RPC on the mounts of single systems.
fn compat_dialects(method: &str, params: &Value) -> Vec<SampleRequest> {
    let mounts = [
        ("agent-native", "/dialects/agent-native/a2a"),
        ("selectools", "/dialects/selectools/a2a"),
        ("NEXUS", "/dialects/nexus/a2a"),
    ];
    let asked = |(form, path)| SampleRequest::new(form, Method::POST, path, "", &rpc_body(method, params.clone()));
    mounts.map(asked).into_iter().collect()
}

fn read(id: &str) -> Vec<SampleRequest> {
    let params = json!({"id": id});
    let mut all = new("GetTask", &params, Method::GET, &format!("/tasks/{id}"), "");
    all.extend(old("tasks/get", &params, Method::GET, &format!("/v1/tasks/{id}"), ""));
    all.push(SampleRequest::grpc(
        "GetTask",
        &params,
        &wire::GetTaskRequest { id: id.to_owned(), ..Default::default() },
    ));
    all.extend(compat_dialects("tasks/get", &params));
    all.push(SampleRequest::new("corvid", Method::GET, &format!("/a2a/tasks/{id}"), "", ""));
    all
}

fn send(text: &str) -> Vec<SampleRequest> {
    let (params, old_params) = (message(text), old_message(text));
    let rest = json!({"message": {"messageId": "m-1", "role": "ROLE_USER", "content": [{"text": text}]}});
    let mut all = new("SendMessage", &params, Method::POST, "/message:send", &params.to_string());
    all.extend(old("message/send", &old_params, Method::POST, "/v1/message:send", &rest.to_string()));
    all.push(SampleRequest::grpc("SendMessage", &params, &say(text)));
    all
}

/// One kind of refusal.
struct Case {
    reason: &'static str,
    when: &'static str,
    edge: Edge,
    asked: Vec<SampleRequest>,
}

fn usual() -> ServerBuilder {
    Server::builder().agent(echo().compat(|compat| compat.default_project = true))
}

fn with_agent(agent: AgentBuilder) -> Edge {
    Edge::new(Server::builder().agent(agent.compat(|compat| compat.default_project = true)))
}

/// An artifact without parts is not allowed.
fn careless() -> AgentBuilder {
    AgentBuilder::from_fn("Careless", |turn: Turn| async move {
        turn.artifact(Artifact::new("a", Vec::new())).await?;
        Ok(())
    })
}

async fn about_tasks() -> Vec<Case> {
    let edge = Edge::new(usual());
    let id = edge.task("hello").await;
    let params = json!({"id": id});
    let mut cancels = new("CancelTask", &params, Method::POST, &format!("/tasks/{id}:cancel"), "");
    cancels.extend(old("tasks/cancel", &params, Method::POST, &format!("/v1/tasks/{id}:cancel"), ""));
    let cancel = wire::CancelTaskRequest { id: id.clone(), ..Default::default() };
    cancels.push(SampleRequest::grpc("CancelTask", &params, &cancel));
    cancels.extend(compat_dialects("tasks/cancel", &params));
    let config = json!({"taskId": id, "id": "c"});
    let path = format!("/tasks/{id}/pushNotificationConfigs/c");
    let mut configs = new("GetTaskPushNotificationConfig", &config, Method::GET, &path, "");
    let old_config = json!({"id": id, "pushNotificationConfigId": "c"});
    configs.extend(old("tasks/pushNotificationConfig/get", &old_config, Method::GET, &format!("/v1{path}"), ""));
    let get = wire::GetTaskPushNotificationConfigRequest { task_id: id, id: "c".to_owned(), ..Default::default() };
    configs.push(SampleRequest::grpc("GetTaskPushNotificationConfig", &config, &get));
    vec![
        Case {
            reason: "TASK_NOT_FOUND",
            when: "A task that is not there is read.",
            edge: edge.clone(),
            asked: read("t-9"),
        },
        Case {
            reason: "TASK_NOT_FOUND",
            when: "A push config that is not there is read.",
            edge: edge.clone(),
            asked: configs,
        },
        Case { reason: "TASK_NOT_CANCELABLE", when: "A completed task is canceled.", edge, asked: cancels },
    ]
}

fn about_agents() -> Vec<Case> {
    let mut lists = new(
        "ListTaskPushNotificationConfigs",
        &json!({"taskId": "t"}),
        Method::GET,
        "/tasks/t/pushNotificationConfigs",
        "",
    );
    let path = "/v1/tasks/t/pushNotificationConfigs";
    lists.extend(old("tasks/pushNotificationConfig/list", &json!({"id": "t"}), Method::GET, path, ""));
    let list = wire::ListTaskPushNotificationConfigsRequest { task_id: "t".to_owned(), ..Default::default() };
    lists.push(SampleRequest::grpc("ListTaskPushNotificationConfigs", &json!({"taskId": "t"}), &list));
    let (params, old_params) = (message("hello"), old_message("hello"));
    let mut streams = new("SendStreamingMessage", &params, Method::POST, "/message:stream", &params.to_string());
    streams.extend(old("message/stream", &old_params, Method::POST, "/v1/message:stream", &old_rest().to_string()));
    streams.push(SampleRequest::grpc("SendStreamingMessage", &params, &say("hello")));
    let mut cards = new("GetExtendedAgentCard", &json!({}), Method::GET, "/extendedAgentCard", "");
    cards.extend(old("agent/getAuthenticatedExtendedCard", &json!({}), Method::GET, "/v1/card", ""));
    cards.push(SampleRequest::grpc("GetExtendedAgentCard", &json!({}), &wire::GetExtendedAgentCardRequest::default()));
    let promised = echo().extended_card_for_anyone().card(|card| card.capabilities.extended_agent_card = Some(true));
    vec![
        Case {
            reason: "PUSH_NOTIFICATION_NOT_SUPPORTED",
            when: "Push configs are listed at an agent with `push = false`.",
            edge: with_agent(echo().push_notifications(false)),
            asked: lists,
        },
        Case {
            reason: "UNSUPPORTED_OPERATION",
            when: "A stream is asked of an agent with `streaming = false`.",
            edge: with_agent(echo().streaming(false)),
            asked: streams,
        },
        Case {
            reason: "CONTENT_TYPE_NOT_SUPPORTED",
            when: "The agent reads text, and is sent a page.",
            edge: Edge::new(usual()),
            asked: page(),
        },
        Case {
            reason: "INVALID_AGENT_RESPONSE",
            when: "The agent writes an artifact without parts while its caller waits.",
            edge: with_agent(careless()),
            asked: send("hello"),
        },
        Case {
            reason: "EXTENDED_AGENT_CARD_NOT_CONFIGURED",
            when: "The card promises an extended card, and there is none.",
            edge: with_agent(promised),
            asked: cards,
        },
        Case {
            reason: "EXTENSION_SUPPORT_REQUIRED",
            when: "The agent has `extensions_required = [\"urn:must\"]`, and the request names no extension.",
            edge: with_agent(echo().extension("urn:must", "", true)),
            asked: send("hello"),
        },
    ]
}

fn old_rest() -> Value {
    json!({"message": {"messageId": "m-1", "role": "ROLE_USER", "content": [{"text": "hello"}]}})
}

/// A message whose part is of another type than the agent reads.
fn page() -> Vec<SampleRequest> {
    let mut params = message("<p>");
    params["message"]["parts"][0]["mediaType"] = "text/html".into();
    let file = json!({"kind": "file", "file": {"bytes": "PHA+", "mimeType": "text/html"}});
    let old_params = json!({"message": {"kind": "message", "messageId": "m-1", "role": "user", "parts": [file]}});
    let part = json!({"file": {"fileWithBytes": "PHA+", "mimeType": "text/html"}});
    let rest = json!({"message": {"messageId": "m-1", "role": "ROLE_USER", "content": [part]}});
    let mut sent = say("<p>");
    sent.message.as_mut().unwrap().parts[0].media_type = "text/html".to_owned();
    let mut all = new("SendMessage", &params, Method::POST, "/message:send", &params.to_string());
    all.extend(old("message/send", &old_params, Method::POST, "/v1/message:send", &rest.to_string()));
    all.push(SampleRequest::grpc("SendMessage", &params, &sent));
    all
}

/// The same body to the JSON-RPC endpoint and to the operation that sends, in each version and on each mount.
fn bodies(body: &str) -> Vec<SampleRequest> {
    let post = |form, path, version| SampleRequest::new(form, Method::POST, path, version, body);
    vec![
        post("JSON-RPC 1.0", "/", "1.0"),
        post("HTTP+JSON 1.0", "/message:send", "1.0"),
        post("JSON-RPC 0.3", "/", "0.3"),
        post("HTTP+JSON 0.3", "/v1/message:send", ""),
        post("agent-native", "/dialects/agent-native/a2a", ""),
        post("selectools", "/dialects/selectools/a2a", ""),
        post("NEXUS", "/dialects/nexus/a2a", ""),
        post("corvid", "/a2a/tasks/send", ""),
    ]
}

fn about_requests() -> Vec<Case> {
    let edge = Edge::new(usual());
    let mut versions = new("GetTask", &json!({"id": "t"}), Method::GET, "/tasks/t", "");
    versions.push(SampleRequest::grpc("GetTask", &json!({"id": "t"}), &wire::GetTaskRequest::default()));
    for asked in &mut versions {
        asked.shown = asked.shown.replace("ersion: 1.0", "ersion: 9.9");
        asked.request.headers_mut().insert("a2a-version", "9.9".parse().unwrap());
    }
    let mut methods = new("GetTsk", &json!({}), Method::POST, "/message:sent", "{}");
    methods.extend(old("tasks/gett", &json!({}), Method::POST, "/v1/message:sent", "{}"));
    methods.push(SampleRequest::grpc("GetTsk", &json!({}), &wire::GetTaskRequest::default()));
    methods.extend(compat_dialects("tasks/gett", &json!({})));
    methods.push(SampleRequest::new("corvid", Method::POST, "/a2a/tasks/sent", "", "{}"));
    let nothing = json!({"message": {"messageId": "m-1", "role": "ROLE_USER"}});
    let mut fields = new("SendMessage", &nothing, Method::POST, "/message:send", &nothing.to_string());
    let old_nothing = json!({"message": {"kind": "message", "messageId": "m-1", "role": "user"}});
    fields.extend(old("message/send", &old_nothing, Method::POST, "/v1/message:send", &nothing.to_string()));
    let mut empty = say("");
    empty.message.as_mut().unwrap().parts.clear();
    fields.push(SampleRequest::grpc("SendMessage", &nothing, &empty));
    fields.extend(compat_dialects("message/send", &json!({})));
    fields.push(SampleRequest::new("corvid", Method::POST, "/a2a/tasks/send", "", "{}"));
    // Over HTTP+JSON the body is the parameters, which are wrong then.
    let requests = bodies("[]").into_iter().filter(|asked| !asked.form.starts_with("HTTP") && asked.form != "corvid");
    let requests = requests.collect();
    let case = |reason, when, asked| Case { reason, when, edge: edge.clone(), asked };
    vec![
        case("VERSION_NOT_SUPPORTED", "The request names a version that is not served.", versions),
        case("PARSE_ERROR", "The body is not JSON.", bodies("{")),
        case("INVALID_REQUEST", "The body is JSON and no request of JSON-RPC.", requests),
        case("METHOD_NOT_FOUND", "There is no such method or path.", methods),
        case("INVALID_PARAMS", "A message without parts, or without anything, is sent.", fields),
    ]
}

fn about_callers() -> Vec<Case> {
    let guarded = || Edge::new(usual().tokens(Tokens::parse(&format!("{TOKEN} alice acme\n")).unwrap()));
    let params = json!({"id": "t", "tenant": "other"});
    let mut foreign = new("GetTask", &params, Method::GET, "/other/tasks/t", "");
    let get = wire::GetTaskRequest { id: "t".to_owned(), tenant: "other".to_owned(), ..Default::default() };
    foreign.push(SampleRequest::grpc("GetTask", &params, &get));
    let authorized = |asked: SampleRequest| asked.with("authorization", &format!("Bearer {TOKEN}"));
    vec![
        Case {
            reason: "UNAUTHENTICATED",
            when: "A server with tokens is asked without one.",
            edge: guarded(),
            asked: read("t"),
        },
        Case {
            reason: "PERMISSION_DENIED",
            when: "The token may act for the tenant `acme`, and the request names another.",
            edge: guarded(),
            asked: foreign.into_iter().map(authorized).collect(),
        },
    ]
}

async fn about_the_server() -> Vec<Case> {
    let store = || GatedStore::open(Arc::new(SystemClock));
    let (damaged, full) = (store(), store());
    let edge = Edge::new(usual().store(damaged.clone()));
    let id = edge.task("hello").await;
    damaged.damage();
    full.fail(true);
    let mut limits = ServerLimits::default();
    limits.body_bytes_max = 64;
    let mut hurried = ServerLimits::default();
    hurried.caller_requests_per_second_max = Some(1);
    let hurried = Edge::new(usual().limits(hurried));
    while hurried.get("/tasks").await.status == 200 {}
    vec![
        Case { reason: "INTERNAL_ERROR", when: "What is stored of a task is damaged.", edge, asked: read(&id) },
        Case {
            reason: "UNAVAILABLE",
            when: "The disk is full. The answers also have the header `Retry-After: 1`, except over gRPC.",
            edge: Edge::new(usual().store(full)),
            asked: send("hello"),
        },
        Case {
            reason: "RESOURCE_EXHAUSTED",
            when: "The caller sends more than `caller_requests_per_second_max`, here 1. The answers also have the header \
                   `Retry-After: 1`, except over gRPC.",
            edge: hurried,
            asked: read("t"),
        },
        Case {
            reason: "PAYLOAD_TOO_LARGE",
            when: "The body is larger than `body_bytes_max`, here 64.",
            edge: Edge::new(usual().limits(limits)),
            asked: [
                send(&"hello ".repeat(20)),
                bodies(&json!({"message": "hello ".repeat(20)}).to_string()).split_off(4),
            ]
            .into_iter()
            .flatten()
            .collect(),
        },
    ]
}

/// The answer as the page has it.
fn answered(answer: &Answer) -> String {
    let Some(code) = answer.headers.get("grpc-status") else {
        return format!("{}\n{}", answer.status.as_u16(), redacted(&String::from_utf8_lossy(&answer.body)));
    };
    let details = decode_base64(answer.header("grpc-status-details-bin")).unwrap();
    let mut shown = format!("grpc-status: {}\ngrpc-message: {}", code.to_str().unwrap(), answer.header("grpc-message"));
    for detail in rpc::Status::decode(details.as_slice()).unwrap().details {
        let bytes = detail.value.as_slice();
        let value = match detail.type_url.rsplit('.').next().unwrap() {
            "ErrorInfo" => {
                let info = rpc::ErrorInfo::decode(bytes).unwrap();
                json!({"reason": info.reason, "domain": info.domain, "metadata": info.metadata})
            }
            "BadRequest" => {
                let fields = rpc::BadRequest::decode(bytes).unwrap().field_violations.into_iter();
                let fields = fields.map(|field| json!({"field": field.field, "description": field.description}));
                json!({"fieldViolations": fields.collect::<Vec<_>>()})
            }
            "RetryInfo" => json!({"retryDelay": rpc::RetryInfo::decode(bytes).unwrap().retry_delay.unwrap().seconds}),
            other => panic!("{other} is not on this page"),
        };
        let _ = write!(shown, "\n{} {value}", detail.type_url.rsplit('/').next().unwrap());
    }
    redacted(&shown)
}

fn marked(mark: char, text: &str) -> String {
    text.lines().map(|line| format!("{mark} {line}\n")).collect()
}

#[tokio::test]
async fn the_page_of_errors_as_sent_is_what_is_sent() {
    let mut cases = about_tasks().await;
    cases.extend(about_agents());
    cases.extend(about_requests());
    cases.extend(about_callers());
    cases.extend(about_the_server().await);

    let mut page = HEAD.to_owned();
    let mut last = "";
    let mut otherwise = Vec::new();
    for Case { reason, when, edge, asked } in cases {
        if reason != last {
            let _ = write!(page, "\n## {reason}\n");
        }
        last = reason;
        let _ = write!(page, "\n{when}\n\n```text\n");
        for (number, SampleRequest { form, shown, request }) in asked.into_iter().enumerate() {
            let answer = edge.ask(request).await;
            let gap = if number == 0 { "" } else { "\n" };
            let (sent, got) = (marked('>', &redacted(&shown)), marked('<', &answered(&answer)));
            let _ = write!(page, "{gap}{form}\n{sent}{got}");
            let is_one_of_a2a = form.ends_with("1.0") || form.ends_with("0.3");
            if is_one_of_a2a && !got.contains(&format!("\"reason\":\"{reason}\"")) {
                otherwise.push(format!("{reason}, {form}: {got}"));
            }
        }
        page.push_str("```\n");
    }
    assert!(otherwise.is_empty(), "these are refused otherwise: {otherwise:#?}");
    expect_file!["../../../docs/errors-as-sent.md"].assert_eq(&page);
}

/// Each reason of `docs/errors.md` has its section.
#[test]
fn each_reason_is_on_the_page_of_errors_as_sent() {
    let reasons = |page: &'static str| -> BTreeSet<&str> {
        let rows = page.lines().filter(|line| line.starts_with("| -3"));
        rows.flat_map(|line| line.split('`').skip(1).take(1)).collect()
    };
    let sections = include_str!("../../../docs/errors-as-sent.md").lines().filter_map(|line| line.strip_prefix("## "));
    assert_eq!(sections.collect::<BTreeSet<_>>(), reasons(include_str!("../../../docs/errors.md")));
}
