//! What the golden files do not show.

use std::sync::Arc;

use serde_json::{Value, json};

use crate::call::Reply;
use crate::dialect::json::DecodeLimits;
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
    assert_eq!(prompt(&message), "one\n{\"a\": 1}\ntwo\n[1, 2]");
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

fn shown(message: Value) -> Value {
    let params = json!({"message": message});
    let mut message = sent(&params.to_string()).unwrap().message;
    // As the engine does.
    if message.message_id.is_empty() {
        message.message_id = "made-up".into();
    }
    message.context_id = Some("made-up".into());
    message.task_id = Some("t".into());
    serde_json::from_str(&encoded(|out| super::super::encode_message(&message, out))).unwrap()
}

/// The original stores the object that came.
#[test]
fn a_message_is_shown_as_it_was_received() {
    let parts = json!([{"kind": "text", "text": "x"}]);
    for message in [
        json!({"parts": parts}),
        json!({"role": "user", "parts": parts, "messageId": "m", "kind": "message"}),
        json!({"role": "user", "parts": parts, "messageId": "m", "kind": "message", "contextId": "c", "taskId": "t-9"}),
        json!({"role": "system", "parts": parts, "messageId": 5, "kind": null, "contextId": ""}),
        json!({"role": "agent", "parts": parts, "extensions": ["u"], "referenceTaskIds": [], "x": {"y": [1, "\n"]}}),
        json!({"role": "user", "parts": parts, "metadata": {}}),
        json!({"role": "user", "parts": parts, "messageId": "m", "kind": "message", "metadata": {"a": 1}}),
        json!({"role": "user", "parts": parts, "metadata": {"a": 1}, "x": 1}),
        json!({"role": "user", "parts": parts, "metadata": "none"}),
        json!({"role": "user", "parts": [{"kind": "text", "text": "x", "lang": "en"}], "messageId": "m"}),
        json!({"role": "user", "parts": [{"kind": "text", "text": "x"}, {"kind": "file", "file": {"bytes": "aGk"}}]}),
    ] {
        assert_eq!(shown(message.clone()), message);
    }
}

#[test]
fn what_is_no_acceptable_json_is_not_kept() {
    let deep = format!("{}{}", "[".repeat(100), "]".repeat(100));
    let params = format!(r#"{{"message":{{"parts":[{{"kind":"text","text":"x"}}],"x":{deep},"y":{{"a":1,"a":2}}}}}}"#);
    let message = sent(&params).unwrap().message;
    assert_eq!(message.metadata.unwrap().as_str(), r#"{"selectoolsMessage":{"without":["role","messageId","kind"]}}"#);
}

/// `json.dumps(data, ensure_ascii=False)` of Python 3.12 gave the second text of each pair.
#[test]
fn data_is_read_as_python_writes_it() {
    for (data, expected) in [
        (r#"{"a":[1,"\u00fc"],"b":{}}"#, r#"{"a": [1, "ü"], "b": {}}"#),
        (r#"{ "a" : 1.5,  "b":[ ] }"#, r#"{"a": 1.5, "b": []}"#),
        (r#""\u0001\/\"\\ \ud83d\ude00:,""#, r#""\u0001/\"\\ 😀:,""#),
        (r#"[true,false,null]"#, r#"[true, false, null]"#),
    ] {
        assert_eq!(super::super::python::dumps(data), expected);
    }
}

/// `f"Task not found: {task_id!r}"` in the original, by Python 3.12.
#[test]
fn an_id_that_is_no_text_is_quoted_as_python_shows_it() {
    let long = format!("\"{}\"", "x".repeat(10_000));
    for (id, expected) in [
        ("5", "5"),
        ("null", "None"),
        ("true", "True"),
        ("1.0", "1.0"),
        ("1e3", "1000.0"),
        ("1e16", "1e+16"),
        ("1.5e-7", "1.5e-07"),
        (r#"["a",1]"#, "['a', 1]"),
        (r#"{"a":[null,"it's"]}"#, r#"{'a': [None, "it's"]}"#),
        (r#""""#, "''"),
        (r#""\u0000x""#, r"'\x00x'"),
    ] {
        let error = super::decode_call("tasks/get", Some(&format!(r#"{{"id":{id}}}"#)), &DecodeLimits::default());
        let error = error.unwrap_err();
        let text = encoded(|out| super::super::encode_rpc_error(&error, "1", out));
        let text: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(text["error"], json!({"code": -32001, "message": format!("Task not found: {expected}")}), "{id}");
    }
    let error = super::decode_call("tasks/get", Some(&format!(r#"{{"id":{long}}}"#)), &DecodeLimits::default());
    let text = encoded(|out| super::super::encode_rpc_error(&error.unwrap_err(), "1", out));
    assert!(text.len() < 512, "{}", text.len());
}

#[test]
fn every_artifact_is_the_response_and_no_output_is_an_empty_one() {
    let shown = |state, artifacts| {
        let task = Task {
            id: "t".into(),
            context_id: "c".into(),
            status: TaskStatus { state, message: None, timestamp: Timestamp::from_ms(1) },
            artifacts,
            history: Vec::new(),
            metadata: None,
            created_at: Timestamp::default(),
            dialect: Dialect::Selectools,
        };
        let view = TaskView::whole(Arc::new(task));
        let value: Value = serde_json::from_str(&encoded(|out| encode_task(&view, out))).unwrap();
        value["artifacts"].clone()
    };
    let named = crate::model::Artifact::new("a", vec![Part::text("x")]).with_name("report");
    let artifacts = shown(TaskState::Completed, vec![Arc::new(named)]);
    assert_eq!(artifacts, json!([{"artifactId": "a", "name": "response", "parts": [{"kind": "text", "text": "x"}]}]));
    let empty = json!([{"artifactId": "t-response", "name": "response", "parts": [{"kind": "text", "text": ""}]}]);
    assert_eq!(shown(TaskState::Completed, Vec::new()), empty);
    for state in [TaskState::Working, TaskState::Failed, TaskState::Canceled, TaskState::InputRequired] {
        assert_eq!(shown(state, Vec::new()), json!([]));
    }
}
