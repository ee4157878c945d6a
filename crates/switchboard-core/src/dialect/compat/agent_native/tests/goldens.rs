//! The golden files: requests of the original's client, its cards, and replies as its server has them.

use std::fs;

use serde_json::Value;

use crate::call::Request;
use crate::model::redact::{redact_card, redact_view};
use crate::model::{
    AgentCapabilities, AgentCard, AgentSkill, Artifact, Json, Message, Part, Role, SecurityScheme, Task, TaskState,
    TaskView, Timestamp,
};

use super::super::encode_card;
use super::{decode, encoded, folder, golden, golden_value, says, sent, task, written};

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

fn params(name: &str) -> String {
    golden_value(name)["params"].to_string()
}

#[test]
fn requests_of_the_original_client_are_understood() {
    let parts = vec![
        Part::text("Show signups by source"),
        Part::json(Json::from_trusted(r#"{"dateRange":"last-30d"}"#)),
        Part::raw("a,b\n1,2\n").with_filename("report.csv").with_media_type("text/csv"),
    ];
    let message = Message::new(Role::User, "", parts);
    let send = sent(&params("request-send"));
    assert_eq!((&send.message, send.return_immediately, &send.metadata), (&message, false, &None));

    let call = decode("message/send", &params("request-send-async")).unwrap();
    assert!(call.is_async && call.idempotency_key.is_none());
    let send = sent(&params("request-send-async"));
    assert_eq!(send.message, Message { context_id: Some("c-1".into()), ..message });
    assert!(send.return_immediately);
    assert_eq!(send.metadata, Some(Json::from_trusted(r#"{"userEmail":"alice@example.com"}"#)));

    let call = decode("message/send", &params("request-call")).unwrap();
    assert_eq!(call.idempotency_key.as_deref(), Some("auto:cbce1bc8-98ee-48e0-b010-b305cb5be8d1"));
    let stream = decode("message/stream", &params("request-stream")).unwrap().request;
    assert!(matches!(&stream, Request::SendStreamingMessage(send) if !send.return_immediately), "{stream:?}");
    let get = decode("tasks/get", &params("request-get")).unwrap().request;
    assert_eq!(get, Request::GetTask { id: "t-1".into(), history_length: None });
}

fn asked(state: TaskState) -> Task {
    let mut task = task(state);
    task.id = "0b9d3f52-6c3e-4f57-9a52-0f6a1c1f9b11".into();
    task.context_id = "c-1".into();
    task.status.timestamp = Timestamp::parse_rfc3339("2026-01-02T03:04:05.678Z").unwrap();
    task.history = vec![says(Role::User, "How many signups last week?")];
    task
}

/// The task as a caller gets it: without what must not leave the server.
fn sent_out(task: Task) -> Value {
    written(&redact_view(TaskView::whole(task.into())).task)
}

/// In the model the answer is an artifact in chunks; here it is one message, in the status and at the end of history.
#[test]
fn a_completed_task_has_its_answer_in_the_status() {
    let mut done = asked(TaskState::Completed);
    let rows = Part::raw("a,b\n1,2\n").with_filename("signups.csv").with_media_type("text/csv");
    let file = Artifact::new("a-2", vec![rows]).with_name("signups.csv");
    done.artifacts =
        vec![Artifact::new("a-1", vec![Part::text("There were "), Part::text("1,247 signups")]).into(), file.into()];
    done.metadata = Some(Json::from_trusted(
        r#"{"callerApp":"mail","userEmail":"a@b","googleToken":"g","apiKey":"k","Authorization":"x","__a2a_processor":{}}"#,
    ));
    assert_eq!(sent_out(done), golden_value("reply-done")["result"]);
}

#[test]
fn an_accepted_task_is_working_and_tells_no_secrets() {
    let mut working = asked(TaskState::Working);
    working.metadata = Some(Json::from_trusted(r#"{"userEmail":"alice@example.com","bearer":"b"}"#));
    assert_eq!(sent_out(working), golden_value("reply-working")["result"]);
}

fn skill(id: &str, name: &str, description: &str) -> AgentSkill {
    let (id, name, description) = (id.to_owned(), name.to_owned(), description.to_owned());
    AgentSkill { id, name, description, ..AgentSkill::default() }
}

fn analytics(streaming: bool, skills: Vec<AgentSkill>) -> AgentCard {
    AgentCard {
        name: "Analytics Agent".to_owned(),
        description: "Runs analytics queries and returns chart data".to_owned(),
        version: "1.0.0".to_owned(),
        capabilities: AgentCapabilities {
            streaming: Some(streaming),
            push_notifications: Some(true),
            ..AgentCapabilities::default()
        },
        default_input_modes: vec!["text/plain".to_owned()],
        skills,
        ..AgentCard::default()
    }
}

fn bearer(format: Option<&str>) -> SecurityScheme {
    SecurityScheme::Http { description: None, scheme: "Bearer".to_owned(), bearer_format: format.map(str::to_owned) }
}

#[test]
fn the_card_is_the_original_s_to_the_byte() {
    let query = AgentSkill {
        tags: vec!["analytics".to_owned(), "sql".to_owned()],
        examples: vec!["Show me signups by source this month".to_owned()],
        ..skill("run-query", "Run Query", "Execute a SQL query against the analytics database")
    };
    let mut card = analytics(true, vec![query]);
    card.security_schemes = vec![("bearer".to_owned(), bearer(None))];
    let url = "https://analytics.example.com/_agent-native/a2a";
    assert_eq!(encoded(|out| encode_card(&card, url, out)), golden("card").trim_end());

    let private = ["mcp__user_ab12_gmail", "mcp__org_7_slack"].map(|id| skill(id, "x", "y"));
    let mut skills = private.to_vec();
    skills.push(skill("mcp__stdio_fs", "Files", "Reads files"));
    let url = "https://analytics.example.com/apps/a/_agent-native/a2a";
    let shown = redact_card(analytics(false, skills).into());
    let open = encoded(|out| encode_card(&shown, url, out));
    assert_eq!(open, golden("card-open").trim_end());
}

#[test]
fn a_signed_token_comes_before_a_plain_one() {
    let mut card = analytics(true, Vec::new());
    card.security_schemes = vec![("a".to_owned(), bearer(None)), ("b".to_owned(), bearer(Some("JWT")))];
    let written = encoded(|out| encode_card(&card, "", out));
    let expected = concat!(
        r#""securitySchemes":{"jwtBearer":{"type":"http","scheme":"bearer","bearerFormat":"JWT"},"#,
        r#""apiKey":{"type":"http","scheme":"bearer"}},"security":[{"jwtBearer":[]},{"apiKey":[]}]}"#,
    );
    assert!(written.ends_with(expected), "{written}");
}
