//! What corvid-agents rely on: the golden files, what is refused, and what holds for all input.

mod client;

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;

use proptest::prelude::{ProptestConfig, any, prop_assert_eq, prop_assume, proptest};
use serde_json::{Value, json};

use crate::dialect::json::DecodeLimits;
use crate::dialect::testing::{Dice, mutate};
use crate::error::ProtocolError;
use crate::model::{
    AgentCapabilities, AgentCard, AgentProvider, AgentSkill, Artifact, Dialect, Json, Message, Part, Role,
    SecurityScheme, TIMED_OUT, Task, TaskState, TaskStatus, TaskView, Timestamp,
};

use super::{Sent, decode_send, encode_card, encode_http_error, encode_task};

fn folder() -> PathBuf {
    [env!("CARGO_MANIFEST_DIR"), "..", "..", "tests", "golden", "corvid"].iter().collect()
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

fn decode(body: &str) -> Result<Sent, ProtocolError> {
    decode_send(body.as_bytes(), &DecodeLimits::default())
}

fn time(text: &str) -> Timestamp {
    Timestamp::parse_rfc3339(text).unwrap()
}

fn says(role: Role, text: &str) -> Arc<Message> {
    Arc::new(Message::new(role, "m", vec![Part::text(text)]))
}

fn task(state: TaskState, updated: &str) -> Task {
    Task {
        id: "0a52a1b4-3c1e-4b7e-9a55-52b0f6f1d001".into(),
        context_id: "5d0e5a0c-8d8c-4b6e-8d1e-0c6f3e1b2002".into(),
        status: TaskStatus { state, message: None, timestamp: time(updated) },
        artifacts: Vec::new(),
        history: vec![says(Role::User, "Hello")],
        metadata: None,
        created_at: time("2026-03-01T10:00:00.000Z"),
        dialect: Dialect::Corvid,
    }
}

fn written(task: Task) -> String {
    encoded(|out| encode_task(&TaskView::whole(Arc::new(task)), out))
}

fn read(task: Task) -> Value {
    serde_json::from_str(&written(task)).unwrap()
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
fn requests_of_the_original_are_understood() {
    let nested = Sent {
        message: "Summarize this".to_owned(),
        skill: Some("summarize".to_owned()),
        timeout_ms: Some(5500),
        depth: 1,
        source_agent: None,
    };
    assert_eq!(decode(&golden("request-send")), Ok(nested.clone()));
    let send = nested.into_send(300_000);
    assert_eq!(send.message, Message::new(Role::User, "", vec![Part::text("Summarize this")]));
    assert!(send.return_immediately);
    let metadata = r#"{"switchboard.runTimeoutSeconds":6,"skill":"summarize","depth":1}"#;
    assert_eq!(send.metadata, Some(Json::from_trusted(metadata)));
    let flat = Sent {
        message: "Hello".to_owned(),
        skill: None,
        timeout_ms: None,
        depth: 2,
        source_agent: Some("rook".to_owned()),
    };
    assert_eq!(decode(&golden("request-send-flat")), Ok(flat.clone()));
    let metadata = r#"{"switchboard.runTimeoutSeconds":300,"depth":2,"sourceAgent":"rook"}"#;
    assert_eq!(flat.into_send(300_000).metadata, Some(Json::from_trusted(metadata)));
}

#[test]
fn params_are_what_counts_if_there_are_any() {
    let sent = decode(r#"{"message":"top","timeoutMs":2000,"depth":3,"params":{"message":"inner"}}"#).unwrap();
    assert_eq!((sent.message.as_str(), sent.timeout_ms, sent.depth), ("inner", None, 3));
    let sent = decode(r#"{"depth":3,"params":{"message":"inner","depth":2}}"#).unwrap();
    assert_eq!(sent.depth, 2);
}

#[test]
fn what_is_wrong_is_named() {
    let whole = "must be a whole number from";
    for (body, expected) in [
        (r"{}", "message: is required and must not be empty".to_owned()),
        (r#"{"message":""}"#, "message: is required and must not be empty".to_owned()),
        (r#"{"message":"top","params":{}}"#, "message: is required and must not be empty".to_owned()),
        (r#"{"message":"x","timeoutMs":999}"#, format!("timeoutMs: {whole} 1000 to 600000")),
        (r#"{"message":"x","timeoutMs":600001}"#, format!("timeoutMs: {whole} 1000 to 600000")),
        (r#"{"message":"x","timeoutMs":1000.5}"#, format!("timeoutMs: {whole} 1000 to 600000")),
        (r#"{"message":"x","timeoutMs":"5000"}"#, format!("timeoutMs: {whole} 1000 to 600000")),
        (r#"{"message":"x","timeoutMs":1e999}"#, format!("timeoutMs: {whole} 1000 to 600000")),
        (r#"{"message":"x","depth":0}"#, format!("depth: {whole} 1 to 10")),
        (r#"{"message":"x","depth":11}"#, format!("depth: {whole} 1 to 10")),
        (
            r#"{"depth":-1,"timeoutMs":[]}"#,
            format!(
                "message: is required and must not be empty; depth: {whole} 1 to 10; timeoutMs: {whole} 1000 to 600000"
            ),
        ),
    ] {
        let error = decode(body).unwrap_err();
        let text = encoded(|out| encode_http_error(&error, out));
        assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), json!({"error": expected}), "{body}");
    }
    for body in [r#"{"message":{"role":"user"}}"#, r#"{"message":["x"]}"#, r#"{"params":5}"#, r#"["x"]"#, r#""x""#] {
        assert!(matches!(decode(body), Err(ProtocolError::InvalidParams { .. })), "{body}");
    }
    for body in ["", "{", r#"{"message":"x"} x"#] {
        assert!(matches!(decode(body), Err(ProtocolError::ParseError { .. })), "{body}");
    }
    // The bounds themselves are fine.
    for body in [r#"{"message":"x","timeoutMs":1000,"depth":1}"#, r#"{"message":"x","timeoutMs":600000,"depth":10}"#] {
        assert!(decode(body).is_ok(), "{body}");
    }
}

#[test]
fn tasks_are_written_as_the_original_writes_them() {
    assert_eq!(written(task(TaskState::Working, "2026-03-01T10:00:00.004Z")), golden("reply-working").trim_end());
    let mut done = task(TaskState::Completed, "2026-03-01T10:00:07.250Z");
    done.artifacts = vec![Artifact::new("a", vec![Part::text("Hi "), Part::text("there")]).into()];
    assert_eq!(written(done), golden("reply-done").trim_end());
    let mut late = task(TaskState::Failed, "2026-03-01T10:05:00.000Z");
    late.status.message = Some(says(Role::Agent, TIMED_OUT));
    assert_eq!(written(late), golden("reply-timed-out").trim_end());
}

#[test]
fn there_are_four_states() {
    let word = |state, dialect| {
        let task = Task { dialect, ..task(state, "2026-03-01T10:00:00.000Z") };
        read(task)["state"].as_str().unwrap().to_owned()
    };
    for (state, expected) in [
        (TaskState::Submitted, "submitted"),
        (TaskState::Working, "working"),
        (TaskState::Completed, "completed"),
        (TaskState::Failed, "failed"),
        (TaskState::Canceled, "failed"),
        (TaskState::Rejected, "failed"),
        (TaskState::InputRequired, "working"),
        (TaskState::AuthRequired, "working"),
    ] {
        assert_eq!(word(state, Dialect::V1_0), expected, "{state:?}");
    }
    // Its own tasks are at work from the first; a later look must not find them back where they were.
    assert_eq!(word(TaskState::Submitted, Dialect::Corvid), "working");
}

#[test]
fn the_last_message_of_the_agent_is_the_answer() {
    let told = |task: Task| -> Vec<String> {
        let task = read(task);
        let texts = task["messages"].as_array().unwrap().iter().map(|message| {
            let parts = message["parts"].as_array().unwrap();
            let texts: Vec<_> = parts.iter().map(|part| part["text"].as_str().unwrap()).collect();
            format!("{}: {}", message["role"].as_str().unwrap(), texts.join("|"))
        });
        texts.collect()
    };
    let with_all = |state| {
        let mut task = task(state, "2026-03-01T10:00:00.000Z");
        task.status.message = Some(says(Role::Agent, "status"));
        task.artifacts = vec![
            Artifact::new("a", vec![Part::text("one "), Part::text("two"), Part::json(Json::from_trusted("[3]"))])
                .into(),
            Artifact::new("b", vec![Part::raw("bytes")]).into(),
            Artifact::new("c", vec![Part::url("https://files.example/4"), Part::text("five")]).into(),
        ];
        task
    };
    let written = "agent: one two\n[3]\nhttps://files.example/4\nfive";
    assert_eq!(told(with_all(TaskState::Completed)), ["user: Hello", "agent: status", written]);
    assert_eq!(told(with_all(TaskState::Failed)), ["user: Hello", written, "agent: status"]);
    // What cannot be said in words is left out, and a message of which nothing is left, too.
    let mut task = task(TaskState::Working, "2026-03-01T10:00:00.000Z");
    let mixed = vec![Part::raw("bytes"), Part::json(Json::from_trusted("{}")), Part::text("x")];
    task.history = vec![
        Arc::new(Message::new(Role::User, "m", vec![Part::raw("bytes")])),
        Arc::new(Message::new(Role::User, "m", mixed)),
    ];
    assert_eq!(told(task), ["user: {}|x"]);
}

#[test]
fn the_card_is_the_original_s() {
    let skill = |id: &str, name: &str, description: &str, tags: &[&str]| AgentSkill {
        id: id.to_owned(),
        name: name.to_owned(),
        description: description.to_owned(),
        tags: tags.iter().map(|tag| (*tag).to_owned()).collect(),
        ..AgentSkill::default()
    };
    let bearer = SecurityScheme::Http { description: None, scheme: "Bearer".to_owned(), bearer_format: None };
    let card = AgentCard {
        name: "Corvid".to_owned(),
        description: "Writes code".to_owned(),
        version: "0.9.0".to_owned(),
        provider: Some(AgentProvider {
            organization: "Corvid Works".to_owned(),
            url: "https://works.example".to_owned(),
        }),
        documentation_url: Some("https://works.example/docs".to_owned()),
        capabilities: AgentCapabilities { streaming: Some(true), ..AgentCapabilities::default() },
        security_schemes: vec![("bearer".to_owned(), bearer)],
        skills: vec![
            skill("corvid_github_create_pr", "GitHub Create PR", "Opens a pull request", &["github", "pull-requests"]),
            skill("corvid_other", "Other", "", &[]),
        ],
        ..AgentCard::default()
    };
    let (url, endpoint) = ("https://corvid.example", "https://corvid.example/a2a/tasks/send");
    assert_eq!(encoded(|out| encode_card(&card, url, endpoint, out)), golden("card").trim_end());
    let open = AgentCard { security_schemes: Vec::new(), ..card };
    let open: Value = serde_json::from_str(&encoded(|out| encode_card(&open, url, endpoint, out))).unwrap();
    assert_eq!(open["authentication"], json!({"schemes": []}));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..Default::default() })]

    /// All that this dialect can say is a text, and that is not lost.
    #[test]
    fn a_text_survives(text in any::<String>(), is_nested in any::<bool>()) {
        prop_assume!(!text.is_empty());
        let inner = json!({"message": text});
        let body = if is_nested { json!({"params": inner}) } else { inner };
        let send = decode(&body.to_string()).unwrap().into_send(1000);
        let mut task = task(TaskState::Working, "2026-03-01T10:00:00.000Z");
        task.history = vec![Arc::new(send.message)];
        prop_assert_eq!(&read(task)["messages"][0]["parts"], &json!([{"type": "text", "text": text}]));
    }
}

#[test]
fn no_bytes_make_the_door_panic() {
    let samples = ["request-send", "request-send-flat"].map(golden);
    let mut dice = Dice::new(0xc0_41d0_15ee_d001);
    for _ in 0..10_000 {
        let sample = &samples[dice.roll(samples.len())];
        let body = mutate(&mut dice, sample);
        if let Err(error) = decode_send(&body, &DecodeLimits::default()) {
            let text = encoded(|out| encode_http_error(&error, out));
            assert!(serde_json::from_str::<Value>(&text).unwrap()["error"].is_string(), "{text}");
        }
    }
}
