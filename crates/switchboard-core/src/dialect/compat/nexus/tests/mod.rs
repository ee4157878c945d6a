//! What agents and the gateway of NEXUS rely on: the golden files, what is refused, and what holds for all input.

mod client;

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;

use proptest::prelude::{ProptestConfig, prop_assert_eq, proptest};
use serde_json::{Value, json};

use crate::dialect::json::DecodeLimits;
use crate::dialect::testing::{Dice, message, mutate};
use crate::error::ProtocolError;
use crate::model::{
    AgentCard, AgentSkill, Artifact, Dialect, Json, Message, Part, PartContent, Role, SecurityScheme, Task, TaskId,
    TaskState, TaskStatus, TaskView, Timestamp,
};

use super::{Call, decode_call, encode_card, encode_message, encode_rpc_error, encode_task};

fn folder() -> PathBuf {
    [env!("CARGO_MANIFEST_DIR"), "..", "..", "tests", "golden", "nexus"].iter().collect()
}

fn golden(name: &str) -> String {
    let path = folder().join(format!("{name}.json"));
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn encoded(encode: impl FnOnce(&mut Vec<u8>)) -> String {
    let mut out = Vec::new();
    encode(&mut out);
    String::from_utf8(out).expect("what is encoded is UTF-8")
}

fn decode(method: &str, params: &str) -> Result<Call, ProtocolError> {
    decode_call(method, Some(params), &DecodeLimits::default())
}

fn sent(params: &str) -> Result<(Option<TaskId>, Message), ProtocolError> {
    match decode("message/send", params)? {
        Call::Send { send, id, .. } => Ok((id, send.message)),
        other => panic!("{other:?}"),
    }
}

fn parts(parts: &str) -> Result<Vec<Part>, ProtocolError> {
    sent(&format!(r#"{{"message":{{"role":"user","parts":{parts}}}}}"#)).map(|(_, message)| message.parts)
}

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

#[test]
fn requests_are_understood() {
    for (name, id, text) in [
        ("request-send", Some("task-uuid-here"), "Summarize this article..."),
        ("request-endpoint", None, "Hello agent"),
        ("request-forward", Some("3f0f9f6e-6a63-4c53-9a0c-3f5a8d7f1003"), r#"{"topic":"ü"}"#),
    ] {
        let request: Value = serde_json::from_str(&golden(name)).unwrap();
        let expected = Message::new(Role::User, "", vec![Part::text(text)]);
        assert_eq!(sent(&request["params"].to_string()), Ok((id.map(TaskId::from), expected)), "{name}");
    }
    assert_eq!(decode("tasks/get", r#"{"id":"t"}"#), Ok(Call::Get("t".into())));
    assert_eq!(decode("tasks/cancel", r#"{"id":"t"}"#), Ok(Call::Cancel("t".into())));
}

#[test]
fn a_part_is_what_its_type_says() {
    let named = |kind: &str, data: &str| {
        Part::json(Json::from_trusted(data)).with_metadata(Json::from_trusted(format!(r#"{{"nexusType":"{kind}"}}"#)))
    };
    for (part, expected) in [
        (r#"{"type":"text","data":"x"}"#, Part::text("x")),
        (r#"{"type":"text","data":""}"#, Part::text("")),
        (r#"{"type":"data","data":{"a":[1]}}"#, Part::json(Json::from_trusted(r#"{"a":[1]}"#))),
        (r#"{"type":"data","data":"x"}"#, Part::json(Json::from_trusted(r#""x""#))),
        (r#"{"type":"data","data":null}"#, Part::json(Json::from_trusted("null"))),
        (
            r#"{"type":"file","data":{"name":"a.txt","mimeType":"text/plain","bytes":"aGk="}}"#,
            Part::raw("hi").with_filename("a.txt").with_media_type("text/plain"),
        ),
        (r#"{"type":"file","data":{"uri":"https://x.example/a"}}"#, Part::url("https://x.example/a")),
        // Anything may be in `data`: what is not spelled as a file is kept as it stands.
        (r#"{"type":"file","data":"https://x.example/a"}"#, named("file", r#""https://x.example/a""#)),
        (r#"{"type":"file","data":{"path":"/a"}}"#, named("file", r#"{"path":"/a"}"#)),
        (r#"{"type":"file","data":{"bytes":"?"}}"#, named("file", r#"{"bytes":"?"}"#)),
        (r#"{"type":"image","data":"iVBOR"}"#, named("image", r#""iVBOR""#)),
        (r#"{"type":"text","data":{"a":1}}"#, named("text", r#"{"a":1}"#)),
    ] {
        let read = parts(&format!("[{part}]")).unwrap();
        assert_eq!(read, [expected], "{part}");
        // And back.
        let written = encoded(|out| encode_message(&Message::new(Role::User, "", read), out));
        let written: Value = serde_json::from_str(&written).unwrap();
        assert_eq!(written["parts"][0], serde_json::from_str::<Value>(part).unwrap());
    }
}

fn task(state: TaskState) -> Task {
    let status = TaskStatus { state, message: None, timestamp: Timestamp::default() };
    let asked = Message::new(Role::User, "m", vec![Part::text("Summarize this article...")]);
    Task {
        id: "task-uuid-here".into(),
        context_id: "c".into(),
        status,
        artifacts: Vec::new(),
        history: vec![Arc::new(asked)],
        metadata: Some(Json::from_trusted(r#"{"a":1}"#)),
        created_at: Timestamp::default(),
        dialect: Dialect::Nexus,
    }
}

fn read(task: Task) -> Value {
    serde_json::from_str(&encoded(|out| encode_task(&TaskView::whole(Arc::new(task)), out))).unwrap()
}

#[test]
fn a_completed_task_is_written_as_the_specification_has_it() {
    let mut task = task(TaskState::Completed);
    let summary = Artifact::new("a", vec![Part::text("Here is the summary...")]);
    task.artifacts = vec![summary.with_name("summary").with_description("Article summary").into()];
    let reply: Value = serde_json::from_str(&golden("reply-done")).unwrap();
    assert_eq!(read(task), reply["result"]);
}

#[test]
fn there_are_six_states() {
    for (state, expected) in [
        (TaskState::Submitted, "submitted"),
        (TaskState::Working, "working"),
        (TaskState::Completed, "completed"),
        (TaskState::Failed, "failed"),
        (TaskState::Canceled, "canceled"),
        (TaskState::Rejected, "failed"),
        (TaskState::InputRequired, "input-required"),
        (TaskState::AuthRequired, "input-required"),
    ] {
        let written = read(task(state));
        assert_eq!(written["status"], expected, "{state:?}");
        assert_eq!(written["artifacts"], json!([]));
    }
}

#[test]
fn the_card_is_the_one_of_the_specification() {
    let skill = AgentSkill {
        id: "echo".to_owned(),
        name: "Echo".to_owned(),
        description: "Echoes back the input message".to_owned(),
        tags: vec!["utility".to_owned(), "testing".to_owned()],
        examples: vec!["Echo this message back to me".to_owned()],
        ..AgentSkill::default()
    };
    let bearer = SecurityScheme::Http { description: None, scheme: "Bearer".to_owned(), bearer_format: None };
    let card = AgentCard {
        name: "Echo Agent".to_owned(),
        description: "A simple agent that echoes back messages.".to_owned(),
        version: "1.0.0".to_owned(),
        skills: vec![skill],
        security_schemes: vec![("bearer".to_owned(), bearer)],
        ..AgentCard::default()
    };
    let written = |card: &AgentCard| encoded(|out| encode_card(card, "https://echo.example.com", out));
    assert_eq!(written(&card), golden("card").trim_end());
    let open = AgentCard { security_schemes: Vec::new(), ..card };
    assert!(!written(&open).contains("authentication"));
}

#[test]
fn refusals_have_the_codes_of_json_rpc() {
    let refused = |error: &ProtocolError, id: &str| encoded(|out| encode_rpc_error(error, id, out));
    let unknown = decode("unknown/method", "{}").unwrap_err();
    assert_eq!(refused(&unknown, r#""task-uuid""#), golden("error-method").trim_end());
    let missing = ProtocolError::task_not_found(&"nobody".into());
    assert_eq!(refused(&missing, "7"), golden("error-task").trim_end());
    let text = |error: ProtocolError| {
        let answer: Value = serde_json::from_str(&refused(&error, "1")).unwrap();
        format!("{} {}", answer["error"]["code"], answer["error"]["message"].as_str().unwrap())
    };
    assert_eq!(text(ProtocolError::ParseError { reason: "at line 3".to_owned() }), "-32700 Parse error");
    assert_eq!(text(ProtocolError::InvalidRequest { reason: String::new() }), "-32600 Invalid Request");
    let finished = ProtocolError::UnsupportedOperation { reason: "it is over".to_owned() };
    assert!(text(finished).starts_with("-32602 "));
    for (method, params, expected) in [
        ("message/send", "{}", "message: is required"),
        (
            "message/send",
            r#"{"message":{}}"#,
            "message.role: is required: user or agent; message.parts: needs at least one part",
        ),
        (
            "message/send",
            r#"{"message":{"role":"system","parts":[{"type":"text","data":"x"}]}}"#,
            "message.role: system is neither user nor agent",
        ),
        (
            "message/send",
            r#"{"message":{"role":"user","parts":[{"type":"text","text":"x"}]}}"#,
            "message.parts[0].data: is required",
        ),
        (
            "message/send",
            r#"{"message":{"role":"user","parts":[{"data":"x"}]}}"#,
            "message.parts[0].type: is required and must not be empty",
        ),
        (
            "message/send",
            r#"{"message":{"role":"user","parts":[{"type":"file","data":{"bytes":"aGk=","uri":"x"}}]}}"#,
            "message.parts[0].data: needs either bytes or uri, not both",
        ),
        (
            "message/send",
            "{\"id\":\"a\\nb\",\"message\":{\"role\":\"user\",\"parts\":[{\"type\":\"text\",\"data\":\"x\"}]}}",
            "id: must not contain control characters",
        ),
        ("tasks/get", "{}", "id: is required and must not be empty"),
        ("tasks/get", r#"{"id":""}"#, "id: is required and must not be empty"),
    ] {
        assert_eq!(text(decode(method, params).unwrap_err()), format!("-32602 Invalid params: {expected}"), "{params}");
    }
}

/// The message without what this dialect loses.
fn without_losses(mut message: Message) -> Message {
    message.message_id = "".into();
    (message.context_id, message.task_id, message.metadata) = (None, None, None);
    message.extensions.clear();
    message.reference_task_ids.clear();
    for part in &mut message.parts {
        part.change_details(|details| details.metadata = None);
        if matches!(part.content, PartContent::Text(_) | PartContent::Data(_)) {
            part.change_details(|details| (details.filename, details.media_type) = (None, None));
        }
    }
    message
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..Default::default() })]

    #[test]
    fn a_message_survives_up_to_the_losses(message in message()) {
        let written = encoded(|out| encode_message(&message, out));
        let (_, read) = sent(&format!(r#"{{"message":{written}}}"#)).unwrap();
        prop_assert_eq!(read, without_losses(message));
    }
}

#[test]
fn no_bytes_make_the_door_panic() {
    let samples = ["request-send", "request-forward", "request-endpoint"].map(|name| {
        let request: Value = serde_json::from_str(&golden(name)).unwrap();
        request["params"].to_string()
    });
    let mut dice = Dice::new(0x0e_c5a5_15ee_d001);
    for _ in 0..10_000 {
        let sample = &samples[dice.roll(samples.len())];
        let bytes = mutate(&mut dice, sample);
        let Ok(params) = String::from_utf8(bytes) else { continue };
        // The envelope is read first, so what comes here is JSON.
        if serde_json::from_str::<Value>(&params).is_err() {
            continue;
        }
        for method in ["message/send", "tasks/get"] {
            if let Err(error) = decode(method, &params) {
                let text = encoded(|out| encode_rpc_error(&error, "1", out));
                assert_eq!(serde_json::from_str::<Value>(&text).unwrap()["error"]["code"], -32602, "{text}");
            }
        }
    }
}
