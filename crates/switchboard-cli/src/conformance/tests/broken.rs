//! Servers with one fault each, planted into our own, and the check that must notice it.

use http::StatusCode;
use serde_json::{Value, json};
use switchboard::ServerBuilder;

use super::served::{Answered, Asked, NOTHING, Plant, Served, usual};
use super::{args, faults, planted, report};

/// The fault, the check that finds it, the interface on which it does, how it is planted, and into which server.
pub(super) struct Broken {
    fault: &'static str,
    check: &'static str,
    on: &'static str,
    plant: Plant,
    server: fn() -> ServerBuilder,
}

impl Broken {
    pub(super) const fn of(self, server: fn() -> ServerBuilder) -> Self {
        Self { server, ..self }
    }
}

pub(super) const RPC: &str = "JSONRPC 1.0";
const OLD_RPC: &str = "JSONRPC 0.3";
pub(super) const HTTP: &str = "HTTP+JSON 1.0";
pub(super) const GRPC: &str = "GRPC 1.0";

pub(super) const fn answers(
    fault: &'static str,
    check: &'static str,
    on: &'static str,
    answer: fn(&Asked, &mut Answered),
) -> Broken {
    Broken { fault, check, on, plant: Plant { answer, ..NOTHING }, server: usual }
}

pub(super) const fn asks(fault: &'static str, check: &'static str, on: &'static str, ask: fn(&mut Asked)) -> Broken {
    Broken { fault, check, on, plant: Plant { ask, ..NOTHING }, server: usual }
}

pub(super) const fn streams(
    fault: &'static str,
    check: &'static str,
    on: &'static str,
    answer: fn(&Asked, &mut Answered),
) -> Broken {
    Broken { fault, check, on, plant: Plant { answer, holds_streams: true, ..NOTHING }, server: usual }
}

/// The task that a send or a question was answered with.
fn task(json: &mut Value) -> Option<&mut Value> {
    ["/result/task", "/result", "/task"]
        .into_iter()
        .find(|at| json.pointer(at).is_some_and(|it| it.get("status").is_some()))
        .and_then(|at| json.pointer_mut(at))
}

const CARDS: &[Broken] = &[
    answers("a card without skills", "card-members", "card", |asked, answered| {
        if asked.is_card() {
            answered.edit(|card| drop(card.as_object_mut().unwrap().remove("skills")));
        }
    }),
    answers("a skill without tags", "card-skills", "card", |asked, answered| {
        if asked.is_card() {
            answered.edit(|card| card["skills"] = json!([{ "id": "a", "name": "A", "description": "does a" }]));
        }
    }),
    answers("an interface without a version", "card-interface-members", "card", |asked, answered| {
        if asked.is_card() {
            answered.edit(|card| {
                drop(card["supportedInterfaces"][0].as_object_mut().unwrap().remove("protocolVersion"));
            });
        }
    }),
    answers("a requirement of a scheme that is not declared", "card-security-names", "card", |asked, answered| {
        if asked.is_card() {
            answered.edit(|card| card["securityRequirements"] = json!([{ "schemes": { "oauth": { "list": [] } } }]));
        }
    }),
    answers("a signature without a key id", "card-signatures", "card", |asked, answered| {
        if asked.is_card() {
            // {"alg":"ES256"}
            let signature = json!({ "protected": "eyJhbGciOiJFUzI1NiJ9", "signature": "AA" });
            answered.edit(|card| card["signatures"] = json!([signature]));
        }
    }),
    answers("a card without a time to keep it", "card-cache-control", "card", |asked, answered| {
        if asked.is_card() {
            answered.headers.remove("cache-control");
        }
    }),
    answers("an interface at a path that does not exist", "interface-answers", RPC, |asked, answered| {
        if asked.is("GetTask") {
            answered.status = StatusCode::NOT_FOUND;
            answered.body = "<html>no such page</html>".into();
        }
    }),
];

const SENDS: &[Broken] = &[
    answers("a send without its wrapper", "send-answers", RPC, |asked, answered| {
        if asked.is("SendMessage") {
            answered.edit(|json| json["result"] = json["result"]["task"].take());
        }
    }),
    asks("a blocking send that does not wait", "send-blocks", RPC, |asked| {
        if asked.is("SendMessage") {
            asked.edit(|json| json["params"]["configuration"] = json!({ "returnImmediately": true }));
        }
    }),
    asks("returnImmediately is ignored", "send-returns-immediately", HTTP, |asked| {
        if asked.is("/message:send") {
            asked.edit(|json| drop(json.as_object_mut().unwrap().remove("configuration")));
        }
    }),
    asks("blocking is ignored", "send-returns-immediately", OLD_RPC, |asked| {
        if asked.is("message/send") {
            asked.edit(|json| json["params"]["configuration"]["blocking"] = json!(true));
        }
    }),
    answers("every task has the same id", "send-new-task-id", RPC, |asked, answered| {
        if asked.is("SendMessage") {
            answered.edit(|json| json["result"]["task"]["id"] = json!("task-1"));
        }
    }),
    answers("no context is told", "send-context-made", RPC, |asked, answered| {
        if asked.is("SendMessage") {
            answered.edit(|json| drop(json["result"]["task"].as_object_mut().unwrap().remove("contextId")));
        }
    }),
    asks("the context of the client is replaced", "send-context-kept", RPC, |asked| {
        if asked.is("SendMessage") {
            asked.edit(|json| drop(json["params"]["message"].as_object_mut().unwrap().remove("contextId")));
        }
    }),
    asks("a context that does not fit is ignored", "send-context-mismatch", RPC, |asked| {
        if asked.is("SendMessage") {
            asked.edit(|json| drop(json["params"]["message"].as_object_mut().unwrap().remove("contextId")));
        }
    }),
    asks("a message to an unknown task makes a new one", "send-unknown-task", RPC, |asked| {
        if asked.is("SendMessage") {
            asked.edit(|json| drop(json["params"]["message"].as_object_mut().unwrap().remove("taskId")));
        }
    }),
    asks("a message to a finished task makes a new one", "send-terminal-task", HTTP, |asked| {
        if asked.is("/message:send") {
            asked.edit(|json| drop(json["message"].as_object_mut().unwrap().remove("taskId")));
        }
    }),
    asks("any media type is taken", "send-media-type", RPC, |asked| {
        if asked.is("SendMessage") {
            asked.edit(|json| json["params"]["message"]["parts"] = json!([{ "text": "hello" }]));
        }
    }),
    asks("a message without parts is taken", "send-no-parts", RPC, |asked| {
        if asked.is("SendMessage") {
            asked.edit(|json| json["params"]["message"]["parts"] = json!([{ "text": "hello" }]));
        }
    }),
    asks("a message without a list of parts is taken", "send-parts-absent", OLD_RPC, |asked| {
        if asked.is("message/send") {
            let parts = json!([{ "kind": "text", "text": "hello" }]);
            asked.edit(|json| json["params"]["message"]["parts"] = parts);
        }
    }),
    answers("a request without a message is an internal error", "send-no-message", RPC, |asked, answered| {
        if asked.is("SendMessage") {
            answered.edit(|json| {
                if json.get("error").is_some() {
                    json["error"]["code"] = json!(-32603);
                }
            });
        }
    }),
    answers("unknown members are refused", "send-unknown-fields", RPC, |asked, answered| {
        if asked.json()["params"]["message"].get("xSwitchboardUnknown").is_some() {
            answered.body = json!({ "jsonrpc": "2.0", "id": asked.json()["id"], "error": { "code": -32602, "message": "unknown field" } }).to_string().into();
        }
    }),
];

const SHAPES: &[Broken] = &[
    answers("a task without a status", "task-members", RPC, |asked, answered| {
        if asked.is("SendMessage") {
            answered.edit(|json| drop(json["result"]["task"].as_object_mut().unwrap().remove("status")));
        }
    }),
    answers("a state in small letters", "task-state", RPC, |_, answered| {
        answered.edit(|json| {
            if let Some(task) = task(json) {
                task["status"]["state"] = json!("completed");
            }
        });
    }),
    answers("a state in capitals in 0.3", "task-state", OLD_RPC, |_, answered| {
        answered.edit(|json| {
            if let Some(task) = task(json) {
                task["status"]["state"] = json!("TASK_STATE_COMPLETED");
            }
        });
    }),
    answers("a time without its zone", "task-timestamp", HTTP, |_, answered| {
        answered.edit(|json| {
            if let Some(task) = task(json) {
                task["status"]["timestamp"] = json!("2025-10-28T10:30:00");
            }
        });
    }),
    answers("a message without an id", "task-messages", RPC, |_, answered| {
        answered.edit(|json| {
            if let Some(task) = task(json) {
                task["history"] = json!([{ "role": "ROLE_USER", "parts": [{ "text": "x" }] }]);
            }
        });
    }),
    answers("a role in small letters", "task-roles", RPC, |_, answered| {
        answered.edit(|json| {
            if let Some(task) = task(json) {
                task["history"] = json!([{ "messageId": "m", "role": "user", "parts": [{ "text": "x" }] }]);
            }
        });
    }),
    answers("a part with two contents", "task-parts", RPC, |_, answered| {
        answered.edit(|json| {
            if let Some(task) = task(json) {
                task["artifacts"] =
                    json!([{ "artifactId": "a", "parts": [{ "text": "x", "url": "https://a.example" }] }]);
            }
        });
    }),
    answers("an artifact without parts", "task-artifacts", HTTP, |_, answered| {
        answered.edit(|json| {
            if let Some(task) = task(json) {
                task["artifacts"] = json!([{ "artifactId": "a", "parts": [] }]);
            }
        });
    }),
    answers("names with underscores", "task-camel-case", RPC, |_, answered| {
        answered.edit(|json| {
            if let Some(task) = task(json) {
                task["context_id"] = task["contextId"].clone();
            }
        });
    }),
];

const TASKS: &[Broken] = &[
    answers("another code for an unknown task", "get-unknown", RPC, |asked, answered| {
        if asked.is("GetTask") {
            answered.edit(|json| json["error"]["code"] = json!(-32602));
        }
    }),
    answers("another code for an unknown task in 0.3", "get-unknown", OLD_RPC, |asked, answered| {
        if asked.is("tasks/get") {
            answered.edit(|json| json["error"]["code"] = json!(-32603));
        }
    }),
    answers("an internal error for an unknown task", "get-unknown", HTTP, |_, answered| {
        if answered.status == StatusCode::NOT_FOUND {
            answered.status = StatusCode::INTERNAL_SERVER_ERROR;
        }
    }),
    answers("another status of gRPC for an unknown task", "get-unknown", GRPC, |asked, answered| {
        if asked.path.ends_with("/GetTask") {
            for headers in [&mut answered.headers, &mut answered.trailers] {
                if headers.contains_key("grpc-status") {
                    headers.insert("grpc-status", "2".parse().unwrap());
                }
            }
        }
    }),
    answers("a task that is told as it was before", "get-task", RPC, |asked, answered| {
        if asked.is("GetTask") {
            answered.edit(|json| json["result"]["status"]["state"] = json!("TASK_STATE_WORKING"));
        }
    }),
    asks("historyLength is ignored", "get-history-limit", RPC, |asked| {
        if asked.is("GetTask") {
            asked.edit(|json| drop(json["params"].as_object_mut().unwrap().remove("historyLength")));
        }
    }),
    answers("a finished task is canceled", "cancel-terminal", RPC, |asked, answered| {
        if asked.is("CancelTask") {
            let id = asked.json()["params"]["id"].clone();
            answered.edit(|json| {
                *json = json!({ "jsonrpc": "2.0", "id": json["id"], "result": { "id": id, "status": { "state": "TASK_STATE_CANCELED" } } });
            });
        }
    }),
    answers("a canceled task goes on", "cancel-running", HTTP, |asked, answered| {
        if asked.is(":cancel") {
            answered.edit(|json| json["status"]["state"] = json!("TASK_STATE_WORKING"));
        }
    }),
    answers("an unknown task is not cancelable", "cancel-unknown", RPC, |asked, answered| {
        if asked.is("CancelTask") {
            answered.edit(|json| json["error"]["code"] = json!(-32002));
        }
    }),
];

const LISTS: &[Broken] = &[
    answers("the oldest first", "list-order", RPC, |asked, answered| {
        if asked.is("ListTasks") {
            answered.edit(|json| json["result"]["tasks"].as_array_mut().unwrap().reverse());
        }
    }),
    answers("no token on the last page", "list-members", HTTP, |asked, answered| {
        if asked.is("/tasks?") {
            answered.edit(|json| drop(json.as_object_mut().unwrap().remove("nextPageToken")));
        }
    }),
    asks("the token is ignored", "list-pages", RPC, |asked| {
        if asked.is("ListTasks") {
            asked.edit(|json| drop(json["params"].as_object_mut().unwrap().remove("pageToken")));
        }
    }),
    asks("the size of a page is ignored", "list-pages", RPC, |asked| {
        if asked.is("ListTasks") {
            asked.edit(|json| drop(json["params"].as_object_mut().unwrap().remove("pageSize")));
        }
    }),
    asks("artifacts unasked", "list-no-artifacts", RPC, |asked| {
        if asked.is("ListTasks") {
            asked.edit(|json| json["params"]["includeArtifacts"] = json!(true));
        }
    }),
    asks("the context is ignored", "list-context", RPC, |asked| {
        if asked.is("ListTasks") {
            asked.edit(|json| json["params"]["contextId"] = json!("another"));
        }
    }),
    asks("the state is ignored", "list-status", RPC, |asked| {
        if asked.is("ListTasks") {
            asked.edit(|json| drop(json["params"].as_object_mut().unwrap().remove("status")));
        }
    }),
];

const STREAMS: &[Broken] = &[
    streams("no snapshot at the beginning", "stream-first", RPC, |_, answered| {
        answered.edit_events(|events| drop(events.remove(0)));
        // A stream of one event keeps another one.
        if answered.is_stream() && answered.body.is_empty() {
            answered.body = "data: {\"result\":{\"artifactUpdate\":{}}}\n\n".into();
        }
    }),
    streams("another content type", "stream-content-type", RPC, |_, answered| {
        if answered.is_stream() {
            answered.set("content-type", "application/json");
        }
    }),
    streams("lines of JSON without framing", "stream-framing", HTTP, |_, answered| {
        if answered.is_stream() {
            answered.body = "data: {\"task\":\n\ndata: {}}\n\n".into();
        }
    }),
    streams("events without the id of the request", "stream-rpc-id", RPC, |_, answered| {
        answered.edit_events(|events| events.iter_mut().for_each(|event| event["id"] = json!(1)));
    }),
    streams("two payloads in one event", "stream-one-payload", HTTP, |_, answered| {
        answered.edit_events(|events| events[0]["message"] = json!({ "messageId": "m" }));
    }),
    streams("updates of another task", "stream-same-task", HTTP, |_, answered| {
        answered.edit_events(|events| {
            events.push(json!({ "statusUpdate": { "taskId": "another", "contextId": "c", "status": {} } }));
        });
    }),
    streams("an update after the end", "stream-order", HTTP, |_, answered| {
        answered.edit_events(|events| {
            let task = events[0]["task"].clone();
            let ids = json!({ "taskId": task["id"], "contextId": task["contextId"] });
            let mut update = json!({ "statusUpdate": ids });
            update["statusUpdate"]["status"] = json!({ "state": "TASK_STATE_WORKING" });
            events.push(update);
        });
    }),
    streams("a stream that is cut off", "stream-ends", HTTP, |_, answered| {
        answered.edit_events(|events| {
            events.truncate(1);
            events[0]["task"]["status"]["state"] = json!("TASK_STATE_WORKING");
        });
    }),
    streams("another end than the task has", "stream-equals-task", HTTP, |_, answered| {
        answered.edit_events(|events| {
            events.truncate(1);
            events[0]["task"]["status"]["state"] = json!("TASK_STATE_FAILED");
        });
    }),
    streams("a subscription without the task", "subscribe-first", RPC, |asked, answered| {
        if asked.is("SubscribeToTask") {
            answered.edit_events(|events| drop(events.remove(0)));
        }
    }),
    answers("a subscription to a finished task is not found", "subscribe-terminal", RPC, |asked, answered| {
        if asked.is("SubscribeToTask") {
            answered.edit(|json| json["error"]["code"] = json!(-32001));
        }
    }),
];

fn no_version_is_1_0(asked: &mut Asked) {
    asked.headers.entry("a2a-version").or_insert("1.0".parse().unwrap());
}

const OTHERS: &[Broken] = &[
    asks("the version is ignored", "version-unsupported", RPC, |asked| {
        asked.headers.insert("a2a-version", "1.0".parse().unwrap());
    }),
    asks("the version is ignored over gRPC", "version-unsupported", GRPC, |asked| {
        asked.headers.insert("a2a-version", "1.0".parse().unwrap());
    }),
    asks("patch numbers are considered", "version-patch", HTTP, |asked| {
        if asked.headers.get("a2a-version").is_some_and(|version| version == "1.0.1") {
            asked.headers.insert("a2a-version", "7.0".parse().unwrap());
        }
    }),
    asks("no version means 1.0", "version-absent", RPC, no_version_is_1_0),
    asks("no version means 1.0 over HTTP+JSON", "version-absent", HTTP, no_version_is_1_0),
    asks("no version means 1.0 over gRPC", "version-absent", GRPC, no_version_is_1_0),
    answers("no id in the answer", "jsonrpc-envelope", RPC, |_, answered| {
        answered.edit(|json| drop(json.as_object_mut().unwrap().remove("id")));
    }),
    answers("an id that was a number comes back as a text", "jsonrpc-envelope", OLD_RPC, |_, answered| {
        answered.edit(|json| json["id"] = json!(json["id"].to_string()));
    }),
    answers("text/plain over JSON-RPC", "jsonrpc-content-type", RPC, |asked, answered| {
        if asked.is("SendMessage") {
            answered.set("content-type", "text/plain");
        }
    }),
    answers("an error code that is a text", "jsonrpc-error-object", RPC, |asked, answered| {
        if asked.is("GetTask") {
            answered.edit(|json| json["error"]["code"] = json!("-32001"));
        }
    }),
    answers("another code for a body that is not JSON", "jsonrpc-malformed", RPC, |_, answered| {
        answered.edit(|json| {
            if json["error"]["code"] == -32700 {
                json["error"]["code"] = json!(-32600);
            }
        });
    }),
    answers("another code for an unknown method", "jsonrpc-unknown-method", RPC, |asked, answered| {
        if asked.is("SwitchboardNoSuchMethod") {
            answered.edit(|json| json["error"]["code"] = json!(-32600));
        }
    }),
    answers("an error without details", "http-error-info", HTTP, |_, answered| {
        if answered.status == StatusCode::NOT_FOUND {
            answered.edit(|json| drop(json["error"].as_object_mut().unwrap().remove("details")));
        }
    }),
    answers("an error as plain members", "http-error-body", HTTP, |_, answered| {
        if answered.status == StatusCode::NOT_FOUND {
            answered.edit(|json| *json = json["error"].take());
        }
    }),
    answers("an error without details over gRPC", "grpc-error-info", GRPC, |_, answered| {
        for headers in [&mut answered.headers, &mut answered.trailers] {
            headers.remove("grpc-status-details-bin");
        }
    }),
    answers("an error without a message", "error-message", RPC, |asked, answered| {
        if asked.is("GetTask") {
            answered.edit(|json| json["error"]["message"] = json!(""));
        }
    }),
    asks("a deletion that deletes nothing", "push-delete", RPC, |asked| {
        if asked.is("DeleteTaskPushNotificationConfig") {
            asked.edit(|json| json["method"] = json!("GetTaskPushNotificationConfig"));
        }
    }),
    answers("a list without what was created", "push-list", HTTP, |asked, answered| {
        if asked.path.ends_with("/pushNotificationConfigs") && asked.method == http::Method::GET {
            answered.edit(|json| json["configs"] = json!([]));
        }
    }),
    answers("a task that is in another state on another binding", "equal-task", RPC, |asked, answered| {
        if asked.path.starts_with("/tasks/") {
            answered.edit(|json| json["status"]["state"] = json!("TASK_STATE_FAILED"));
        }
    }),
];

const TABLES: [&[Broken]; 10] =
    [CARDS, SENDS, SHAPES, TASKS, LISTS, STREAMS, OTHERS, planted::STREAMS, planted::PUSH, planted::OTHERS];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_planted_fault_is_found() {
    let mut missed = Vec::new();
    for broken in TABLES.into_iter().flatten() {
        let served = Served::start((broken.server)(), broken.plant).await;
        let mut args = args(&served.url, &[broken.check]);
        args.agent.timeout = Some(std::time::Duration::from_secs(5));
        args.agent.bearer = Some(planted::TOKEN.to_owned());
        let report = report(&args).await;
        let found = faults(&report).into_iter().any(|(check, on, _)| check == broken.check && on == broken.on);
        if !found {
            missed.push(format!("{}: {} on {}\n{}", broken.fault, broken.check, broken.on, report.text()));
        }
    }
    assert!(missed.is_empty(), "{}", missed.join("\n\n"));
}

#[test]
fn each_check_has_a_planted_fault() {
    let planted: Vec<&str> = TABLES.into_iter().flatten().map(|broken| broken.check).collect();
    let without = super::super::checks::all().map(|check| check.id).filter(|id| !planted.contains(id));
    assert_eq!(without.collect::<Vec<_>>(), Vec::<&str>::new());
}
