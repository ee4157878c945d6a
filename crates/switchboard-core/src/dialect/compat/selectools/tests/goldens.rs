//! The golden files: requests of the original's client, replies of its server.

use std::fs;
use std::sync::Arc;

use serde_json::{Value, json};

use crate::dialect::json::DecodeLimits;
use crate::error::ProtocolError;
use crate::model::{
    AgentCard, AgentSkill, Artifact, Dialect, FAILED_UNTOLD, Json, Message, Part, Role, Task, TaskState, TaskStatus,
    TaskView, Timestamp,
};

use super::super::{Call, encode_card, encode_rpc_error, encode_task};
use super::{answer, decode_call, encoded, folder, golden, golden_value, sent};

#[test]
fn every_golden_file_has_a_known_origin() {
    let origins = fs::read_to_string(folder().join("ORIGINS.md")).unwrap();
    let mut listed: Vec<_> =
        origins.lines().filter_map(|line| line.strip_prefix("| `")?.split('`').next()).map(str::to_owned).collect();
    let names = fs::read_dir(folder()).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut present: Vec<_> = names.filter(|name| name.ends_with(".json")).collect();
    listed.sort();
    present.sort();
    assert_eq!(listed, present);
}

fn message_with_parts() -> Message {
    let parts = vec![
        Part::text("boom"),
        Part::json(Json::from_trusted(r#"{"a":[1,"ü"]}"#)),
        Part::raw("hi").with_filename("a.txt").with_media_type("text/plain"),
    ];
    let mut message = Message::new(Role::User, "72e9043e626c4bfbb1612c75e7da0b37", parts);
    message.context_id = Some("c-1".into());
    // What the history shows again, since it was sent.
    message.metadata = Some(Json::from_trusted(r#"{"selectoolsMessage":{"more":{"contextId":"c-1"}}}"#));
    message
}

#[test]
fn requests_of_the_original_client_are_understood() {
    let hello = Message::new(Role::User, "6641f75ff92547f2ac5ce5cc0370124f", vec![Part::text("hello")]);
    for (name, expected) in [("request-send", hello), ("request-send-parts", message_with_parts())] {
        let request = golden_value(name);
        let send = sent(&request["params"].to_string()).unwrap();
        assert_eq!(send.message, expected, "{name}");
        assert!(!send.return_immediately && send.push_config.is_none() && send.history_length.is_none());
        let alias = decode_call("tasks/send", Some(&request["params"].to_string()), &DecodeLimits::default());
        assert_eq!(alias.unwrap(), Call::Send(send.into()));
    }
    let get = golden_value("request-get");
    let decoded = decode_call("tasks/get", Some(&get["params"].to_string()), &DecodeLimits::default()).unwrap();
    assert_eq!(decoded, Call::Get("693b76b1eeca4a6f9d86838c21b78820".into()));
}

/// The original counts microseconds, the model milliseconds.
fn in_milliseconds(mut reply: Value) -> Value {
    let timestamp = &mut reply["result"]["status"]["timestamp"];
    let text = timestamp.as_str().unwrap();
    *timestamp = json!(format!("{}000+00:00", &text[..23]));
    reply
}

fn task(reply: &Value, message: Message, status: TaskStatus) -> Task {
    let text = |name: &str| reply["result"][name].as_str().unwrap().to_owned();
    Task {
        id: text("id").into(),
        context_id: text("contextId").into(),
        status,
        artifacts: Vec::new(),
        history: vec![Arc::new(message)],
        metadata: None,
        created_at: Timestamp::default(),
        dialect: Dialect::Selectools,
    }
}

fn written(task: Task) -> Value {
    serde_json::from_str(&encoded(|out| encode_task(&TaskView::whole(Arc::new(task)), out))).unwrap()
}

#[test]
fn a_completed_task_is_written_as_the_original_writes_it() {
    let reply = in_milliseconds(golden_value("reply-done"));
    let timestamp = Timestamp::parse_rfc3339(reply["result"]["status"]["timestamp"].as_str().unwrap()).unwrap();
    let hello = Message::new(Role::User, "6641f75ff92547f2ac5ce5cc0370124f", vec![Part::text("hello")]);
    // What an agent says on completion is not for this dialect.
    let said = Some(Arc::new(Message::new(Role::Agent, "m", vec![Part::text("done")])));
    let status = TaskStatus { state: TaskState::Completed, message: said, timestamp };
    let mut task = task(&reply, hello, status);
    task.artifacts =
        vec![Artifact::new("b2753712fc4e437fa0c8de6727fcd3bc", vec![Part::text("You said: hello")]).into()];
    assert_eq!(written(task), reply["result"]);
}

#[test]
fn a_failed_task_is_written_as_the_original_writes_it() {
    let reply = in_milliseconds(golden_value("reply-failed"));
    let timestamp = Timestamp::parse_rfc3339(reply["result"]["status"]["timestamp"].as_str().unwrap()).unwrap();
    let id = "d8d7eecb-f6d8-43e9-abcf-5c15e5fb4507";
    let said = Some(Arc::new(Message::new(Role::Agent, id, vec![Part::text(FAILED_UNTOLD)])));
    let status = TaskStatus { state: TaskState::Failed, message: said, timestamp };
    let mut task = task(&reply, message_with_parts(), status);
    task.artifacts = vec![Artifact::new("a", vec![Part::text("half of an answer")]).into()];
    assert_eq!(written(task), reply["result"]);
}

#[test]
fn the_card_is_the_original_s_to_the_byte() {
    let skill = AgentSkill {
        id: "summarize".to_owned(),
        name: "Summarize".to_owned(),
        description: "Summarize a text".to_owned(),
        tags: vec!["text".to_owned()],
        ..AgentSkill::default()
    };
    let card = AgentCard {
        name: "researcher".to_owned(),
        description: "Research agent that summarizes topics".to_owned(),
        version: "0.21.0".to_owned(),
        skills: vec![skill],
        ..AgentCard::default()
    };
    assert_eq!(encoded(|out| encode_card(&card, "", out)), golden("card").trim_end());
}

#[test]
fn refusals_are_the_original_s_to_the_letter() {
    for case in golden_value("errors").as_array().unwrap() {
        let name = case["case"].as_str().unwrap();
        let request = case["request"].as_str().unwrap();
        let body: Vec<u8> = match name {
            "not-utf8" => request.chars().map(|letter| u8::try_from(u32::from(letter)).unwrap()).collect(),
            _ => request.as_bytes().to_vec(),
        };
        let written = match name {
            "too-large" => {
                let error = ProtocolError::TooLarge { what: "request body".into(), bytes_max: 4096 };
                encoded(|out| encode_rpc_error(&error, "null", out))
            }
            "no-token" | "small-bearer" => {
                let error = ProtocolError::Unauthenticated { reason: "whatever".to_owned() };
                encoded(|out| encode_rpc_error(&error, "null", out))
            }
            "cancel-stored" => {
                let error = ProtocolError::TaskNotCancelable { id: "ID".into(), state: TaskState::Working };
                encoded(|out| encode_rpc_error(&error, "1", out))
            }
            _ => answer(&body),
        };
        assert_eq!(serde_json::from_str::<Value>(&written).unwrap(), case["reply"], "{name}");
    }
}
