//! One task, begun in one dialect and read in another: the same state and the same answer, each where its readers look.

use serde_json::{Value, json};

use crate::support::edge::{Edge, message, old_message, post, rpc_body, unversioned};

const DIALECTS: [&str; 4] = ["1.0", "0.3", "agent-native", "selectools"];

async fn ask(edge: &Edge, dialect: &str, methods: [&str; 2], params: Value) -> Value {
    let [new, old] = methods;
    let answer = match dialect {
        "1.0" => edge.rpc(new, params).await,
        "0.3" => edge.old_rpc(old, params).await,
        mount => edge.ask(unversioned(post(&format!("/dialects/{mount}/a2a"), rpc_body(old, params)))).await,
    };
    answer.json()["result"].clone()
}

async fn begin(edge: &Edge, dialect: &str, text: &str) -> Value {
    let params = match dialect {
        "1.0" => message(text),
        "0.3" | "selectools" => old_message(text),
        _ => json!({"message": {"role": "user", "parts": [{"type": "text", "text": text}]}, "async": true}),
    };
    let sent = ask(edge, dialect, ["SendMessage", "message/send"], params).await;
    if dialect == "1.0" { sent["task"]["id"].clone() } else { sent["id"].clone() }
}

/// State and answer, from where the dialect has them.
fn gist(dialect: &str, task: &Value) -> String {
    let state = task["status"]["state"].as_str().unwrap_or_else(|| panic!("{dialect}: {task}"));
    let state = state.to_ascii_lowercase().replace("task_state_", "");
    let parts = match dialect {
        "agent-native" => &task["status"]["message"]["parts"],
        _ if state == "failed" => &task["status"]["message"]["parts"],
        _ => &task["artifacts"][0]["parts"],
    };
    format!("{state} {}", parts[0]["text"].as_str().unwrap_or("-"))
}

#[tokio::test(start_paused = true)]
async fn a_task_begun_in_one_dialect_is_read_in_every_other() {
    for (text, expected, sanitised) in [
        ("hello", "completed hello", "completed hello"),
        ("fail no disk", "failed no disk", "failed Agent execution failed (AgentError)"),
    ] {
        let edge = Edge::usual();
        for begun in DIALECTS {
            let id = begin(&edge, begun, text).await;
            for read in DIALECTS {
                let methods = ["GetTask", "tasks/get"];
                let mut task = ask(&edge, read, methods, json!({"id": id})).await;
                while !gist(read, &task).starts_with(expected.split(' ').next().unwrap()) {
                    tokio::task::yield_now().await;
                    task = ask(&edge, read, methods, json!({"id": id})).await;
                }
                let expected = if read == "selectools" { sanitised } else { expected };
                assert_eq!(gist(read, &task), expected, "begun in {begun}, read in {read}");
                assert_eq!(task["id"], id);
            }
        }
    }
}
