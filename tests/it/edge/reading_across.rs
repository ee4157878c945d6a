//! One task, begun in one dialect and read in another: the same state and the same answer, each where its readers look.

use serde_json::{Value, json};

use crate::support::edge::{Answer, Edge, echo, get, message, old_message, post, rpc_body, unversioned, with};
use switchboard::Server;

/// One way to begin a task and to read it.
struct Way {
    name: &'static str,
    /// Sends a text and gives the id of the task.
    begin: fn(&'static str) -> Ask,
    read: fn(&str) -> Ask,
    /// The task in an answer.
    task: fn(Value) -> Value,
    /// The state, and the parts of the answer, of a task.
    gist: fn(&Value) -> (&Value, &Value),
    /// What a text is called in a part.
    text: &'static str,
    /// What is told of a failure.
    failure: &'static str,
}

type Ask = http::Request<http_body_util::Full<bytes::Bytes>>;

const WAYS: [Way; 8] = [
    Way {
        name: "1.0",
        begin: |text| post("/rpc", rpc_body("SendMessage", message(text))),
        read: |id| post("/rpc", rpc_body("GetTask", json!({"id": id}))),
        task: |answer| in_envelope(&answer["result"]),
        ..LIKE_0_3
    },
    Way {
        name: "1.0 HTTP+JSON",
        begin: |text| post("/message:send", message(text).to_string()),
        read: |id| get(&format!("/tasks/{id}")),
        task: |answer| in_envelope(&answer),
        ..LIKE_0_3
    },
    LIKE_0_3,
    Way {
        name: "0.3 HTTP+JSON",
        begin: |text| {
            let message = json!({"messageId": "m-1", "role": "ROLE_USER", "content": [{"text": text}]});
            unversioned(post("/v1/message:send", json!({"message": message}).to_string()))
        },
        read: |id| unversioned(get(&format!("/v1/tasks/{id}"))),
        task: |answer| in_envelope(&answer),
        gist: |task| (&task["status"]["state"], answer_of(task, &task["status"]["message"]["content"])),
        ..LIKE_0_3
    },
    Way {
        name: "agent-native",
        begin: |text| {
            let message = json!({"role": "user", "parts": [{"type": "text", "text": text}]});
            mounted("agent-native/a2a", "message/send", json!({"message": message, "async": true}))
        },
        read: |id| mounted("agent-native/a2a", "tasks/get", json!({"id": id})),
        gist: |task| (&task["status"]["state"], &task["status"]["message"]["parts"]),
        ..LIKE_0_3
    },
    Way {
        name: "selectools",
        begin: |text| mounted("selectools/a2a", "message/send", old_message(text)),
        read: |id| mounted("selectools/a2a", "tasks/get", json!({"id": id})),
        failure: "Agent execution failed (AgentError)",
        ..LIKE_0_3
    },
    Way {
        name: "corvid",
        begin: |text| {
            let body = json!({"params": {"message": text}}).to_string();
            unversioned(post("/dialects/corvid/a2a/tasks/send", body))
        },
        read: |id| unversioned(get(&format!("/dialects/corvid/a2a/tasks/{id}"))),
        task: |answer| answer,
        gist: |task| (&task["state"], last_of(&task["messages"])),
        ..LIKE_0_3
    },
    Way {
        name: "NEXUS",
        begin: |text| {
            let message = json!({"role": "user", "parts": [{"type": "text", "data": text}]});
            mounted("nexus/rpc", "message/send", json!({"message": message}))
        },
        read: |id| mounted("nexus/rpc", "tasks/get", json!({"id": id})),
        gist: |task| (&task["status"], last_of(&task["messages"])),
        text: "data",
        ..LIKE_0_3
    },
];

const LIKE_0_3: Way = Way {
    name: "0.3",
    begin: |text| unversioned(post("/rpc", rpc_body("message/send", old_message(text)))),
    // Who names no version would be shown a task of NEXUS as NEXUS has it.
    read: |id| with(unversioned(post("/rpc", rpc_body("tasks/get", json!({"id": id})))), "a2a-version", "0.3"),
    task: |answer| answer["result"].clone(),
    gist: |task| (&task["status"]["state"], answer_of(task, &task["status"]["message"]["parts"])),
    text: "text",
    failure: "no disk",
};

fn mounted(place: &str, method: &str, params: Value) -> Ask {
    unversioned(post(&format!("/dialects/{place}"), rpc_body(method, params)))
}

/// Some answers have an envelope, because they could also be a message.
fn in_envelope(reply: &Value) -> Value {
    reply.get("task").unwrap_or(reply).clone()
}

/// The first artifact, or else what the status says.
fn answer_of<'a>(task: &'a Value, said: &'a Value) -> &'a Value {
    task["artifacts"].get(0).map_or(said, |artifact| &artifact["parts"])
}

/// What was said last.
fn last_of(messages: &Value) -> &Value {
    let last = messages.as_array().and_then(|messages| messages.last());
    last.map_or(&Value::Null, |message| &message["parts"])
}

impl Way {
    fn task_in(&self, answer: &Answer) -> Value {
        assert!(answer.status.is_success(), "{}: {answer:?}", self.name);
        (self.task)(answer.json())
    }

    /// State and answer, from where the dialect has them.
    fn told(&self, task: &Value) -> String {
        let (state, parts) = (self.gist)(task);
        let state = state.as_str().unwrap_or_else(|| panic!("{}: {task}", self.name)).to_ascii_lowercase();
        format!("{} {}", state.replace("task_state_", ""), parts[0][self.text].as_str().unwrap_or("-"))
    }
}

#[tokio::test(start_paused = true)]
async fn a_task_begun_in_one_dialect_is_read_in_every_other() {
    for (text, state) in [("hello", "completed"), ("fail no disk", "failed")] {
        let edge = Edge::new(Server::builder().agent(echo().compat(|compat| compat.default_project = true)));
        for begun in &WAYS {
            let answer = edge.ask((begun.begin)(text)).await;
            let id = begun.task_in(&answer)["id"].as_str().unwrap_or_else(|| panic!("{answer:?}")).to_owned();
            for read in &WAYS {
                let mut task = Value::Null;
                for _ in 0..10_000 {
                    task = read.task_in(&edge.ask((read.read)(&id)).await);
                    if read.told(&task).starts_with(state) {
                        break;
                    }
                    tokio::task::yield_now().await;
                }
                let expected = if state == "failed" { read.failure } else { text };
                assert_eq!(
                    read.told(&task),
                    format!("{state} {expected}"),
                    "begun in {}, read in {}",
                    begun.name,
                    read.name
                );
                assert_eq!(task["id"], json!(id), "begun in {}, read in {}", begun.name, read.name);
            }
        }
    }
}
