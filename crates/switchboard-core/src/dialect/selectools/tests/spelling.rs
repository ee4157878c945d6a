//! What the golden files do not show.

use std::sync::Arc;

use serde_json::{Value, json};

use crate::call::Reply;
use crate::model::{
    Dialect, FAILED_UNTOLD, Message, Part, PartContent, Role, TIMED_OUT, Task, TaskState, TaskStatus, TaskView,
    Timestamp,
};

use super::super::{encode_reply, encode_task, failure_name, prompt};
use super::{encoded, sent};

fn parts(parts: Value) -> Vec<Part> {
    sent(&json!({"message": {"parts": parts}}).to_string()).unwrap().message.parts
}

#[test]
fn a_part_that_is_not_understood_is_kept_as_it_stands() {
    for odd in [
        json!({"kind": "video", "frames": [1, 2]}),
        json!({"kind": "file", "file": {"bytes": "aGk=", "uri": "https://x.example"}}),
        json!({"kind": "file", "file": {"bytes": "not base64!"}}),
        json!({"kind": "file"}),
        json!({"kind": "text", "text": 5}),
        json!({"kind": "data"}),
        json!({"kind": "data", "data": null}),
        json!({"text": "no kind"}),
        json!({"kind": 5}),
        json!({}),
    ] {
        let parts = parts(json!([{"kind": "text", "text": "x"}, odd]));
        let message = Message::new(Role::User, "m", parts);
        assert_eq!(prompt(&message), "x", "{odd}");
        let written: Value = serde_json::from_str(&encoded(|out| super::super::encode_message(&message, out))).unwrap();
        assert_eq!(written["parts"][1], odd);
    }
}

#[test]
fn the_agent_reads_texts_and_data_and_no_files() {
    let message = Message::new(
        Role::User,
        "m",
        parts(json!([
            {"kind": "text", "text": "one"},
            {"kind": "data", "data": {"a": 1}},
            {"kind": "file", "file": {"bytes": "c2VjcmV0", "name": "secret.txt"}},
            {"kind": "text", "text": "two"},
            {"kind": "data", "data": [1, 2]},
        ])),
    );
    assert!(matches!(&message.parts[2].content, PartContent::Raw(bytes) if &bytes[..] == b"secret"));
    assert_eq!(prompt(&message), "one\n{\"a\":1}\ntwo\n[1,2]");
}

#[test]
fn the_context_is_the_message_s_or_the_request_s() {
    let text = json!([{"kind": "text", "text": "x"}]);
    for (message, params, expected) in [
        (json!("a"), json!("b"), Some("a")),
        (json!(null), json!("b"), Some("b")),
        (json!(""), json!("b"), Some("b")),
        (json!(5), json!(null), None),
    ] {
        let params = json!({"message": {"parts": text, "contextId": message, "taskId": "t"}, "contextId": params});
        let send = sent(&params.to_string()).unwrap();
        assert_eq!(send.message.context_id.as_ref().map(|id| id.as_str()), expected, "{params}");
        assert_eq!(send.message.task_id, None, "every message begins a task");
    }
}

#[test]
fn a_failure_is_told_by_its_kind_alone() {
    let name = |text: &str| failure_name(Some(&Message::new(Role::Agent, "m", vec![Part::text(text)])));
    assert_eq!(name(FAILED_UNTOLD), "RuntimeError");
    assert_eq!(name(TIMED_OUT), "TimeoutError");
    assert_eq!(name(&format!("{TIMED_OUT}: it was not started within 180 s")), "TimeoutError");
    assert_eq!(name("the database at 10.0.0.5 is down"), "AgentError");
    assert_eq!(failure_name(None), "RuntimeError");
}

#[test]
fn states_and_messages_of_a_status_are_those_the_original_has() {
    let said = |state: TaskState| {
        let message = Some(Arc::new(Message::new(Role::Agent, "m", vec![Part::text("secret")])));
        let task = Task {
            id: "t".into(),
            context_id: "c".into(),
            status: TaskStatus { state, message, timestamp: Timestamp::from_ms(1) },
            artifacts: Vec::new(),
            history: Vec::new(),
            metadata: None,
            created_at: Timestamp::default(),
            dialect: Dialect::V1_0,
        };
        let view = TaskView::whole(Arc::new(task));
        let value: Value = serde_json::from_str(&encoded(|out| encode_task(&view, out))).unwrap();
        let text = value["status"]["message"]["parts"][0]["text"].as_str().unwrap_or("-").to_owned();
        format!("{} {text}", value["status"]["state"].as_str().unwrap())
    };
    let failed = "failed Agent execution failed (AgentError)";
    for (state, expected) in [
        (TaskState::Submitted, "submitted -"),
        (TaskState::Working, "working -"),
        (TaskState::Completed, "completed -"),
        (TaskState::Canceled, "canceled -"),
        (TaskState::Failed, failed),
        (TaskState::Rejected, failed),
        (TaskState::InputRequired, "input-required secret"),
        (TaskState::AuthRequired, "input-required secret"),
    ] {
        assert_eq!(said(state), expected);
    }
}

#[test]
fn a_direct_reply_is_the_result_of_a_task() {
    let mut message = Message::new(Role::Agent, "363422be-b0f9-4692-a24d-278670e7c7f1", vec![Part::text("hi")]);
    message.context_id = Some("c".into());
    let written: Value =
        serde_json::from_str(&encoded(|out| encode_reply(&Reply::SentMessage(Arc::new(message)), out))).unwrap();
    let id = "363422beb0f94692a24d278670e7c7f1";
    let artifacts = json!([{"artifactId": id, "name": "response", "parts": [{"kind": "text", "text": "hi"}]}]);
    let expected = json!({
        "id": id, "contextId": "c", "kind": "task", "status": {"state": "completed"},
        "artifacts": artifacts, "history": [],
    });
    assert_eq!(written, expected);
}
