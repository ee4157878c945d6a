//! Replies, updates and refusals, and the model each is written from.

use std::sync::Arc;

use crate::call::{PushConfigPage, Reply, TaskPage};
use crate::dialect::codes;
use crate::error::{ProtocolError, Violation};
use crate::model::{
    Artifact, ArtifactDetails, ArtifactUpdate, ArtifactView, Dialect, Message, Part, Role, StatusUpdate, Task,
    TaskState, TaskStatus, TaskView, Timestamp, Update,
};

use super::super::{encode_http_error, encode_reply, encode_rpc_error, encode_update};
use super::encoded;
use super::goldens::{check_written, hook, json};

fn check_reply(name: &str, reply: Reply) {
    check_written(name, &encoded(|out| encode_reply(&reply, out)));
    #[cfg(feature = "protobuf")]
    super::proto::check_reply(name, &reply);
}

fn check_update(name: &str, update: Update) {
    check_written(name, &encoded(|out| encode_update(&update, out)));
    #[cfg(feature = "protobuf")]
    super::proto::check_update(name, &update);
}

fn at(text: &str) -> Timestamp {
    Timestamp::parse_rfc3339(text).unwrap()
}

fn status(state: TaskState, message: Option<Message>, time: &str) -> TaskStatus {
    TaskStatus { state, message: message.map(Arc::new), timestamp: at(time) }
}

fn task(id: &str, context_id: &str, status: TaskStatus) -> Task {
    let (id, context_id) = (id.into(), context_id.into());
    let created_at = Timestamp::default();
    let (artifacts, history) = (Vec::new(), Vec::new());
    Task { id, context_id, status, artifacts, history, metadata: None, created_at, dialect: Dialect::V1_0 }
}

fn whole(task: Task) -> TaskView {
    TaskView::whole(Arc::new(task))
}

fn said(role: Role, id: &str, (task_id, context_id): (&str, &str), text: &str) -> Message {
    let mut message = Message::new(role, id, vec![Part::text(text)]);
    message.context_id = Some(context_id.into());
    message.task_id = (!task_id.is_empty()).then(|| task_id.into());
    message
}

#[test]
fn replies_to_sends_are_written() {
    let mut done = task("task-1", "ctx-1", status(TaskState::Completed, None, "2026-03-04T08:00:05.120Z"));
    let report = Artifact::new("report", vec![Part::text("Three rows, all green.")]);
    done.artifacts.push(report.with_name("Report").into());
    done.history.push(Arc::new(said(Role::User, "msg-1", ("task-1", "ctx-1"), "Check the sheet")));
    let mut view = whole(done);
    view.history_length = Some(0);
    check_reply("reply-send-task", Reply::SentTask(view));

    let hello = said(Role::Agent, "msg-2", ("", "ctx-2"), "Good morning!");
    check_reply("reply-send-message", Reply::SentMessage(Arc::new(hello)));

    let accepted = task("task-3", "ctx-1", status(TaskState::Submitted, None, "2026-03-04T08:01:00Z"));
    check_reply("reply-send-accepted", Reply::SentTask(whole(accepted)));

    let ids = ("task-4", "ctx-4");
    let question = said(Role::Agent, "msg-q", ids, "For how many people?");
    let mut asking = task(ids.0, ids.1, status(TaskState::InputRequired, Some(question), "2026-03-04T08:02:00Z"));
    asking.history.push(Arc::new(said(Role::User, "msg-4", ids, "Reserve a table")));
    check_reply("reply-send-question", Reply::SentTask(whole(asking)));

    let mut located = Message::new(Role::Agent, "msg-5", vec![Part::json(json(r#"{"metres":310,"stop":"Harbour"}"#))]);
    located.context_id = Some("ctx-5".into());
    located.extensions.push("https://ext.example/geo/v1".to_owned());
    located.metadata = Some(json(r#"{"https://ext.example/geo/v1":{"lat":54.3}}"#));
    check_reply("reply-send-data", Reply::SentMessage(Arc::new(located)));
}

#[test]
fn replies_about_tasks_are_written() {
    let ids = ("task-4", "ctx-4");
    let mut running = task(ids.0, ids.1, status(TaskState::Working, None, "2026-03-04T08:03:00Z"));
    running.metadata = Some(json(r#"{"trace":"abc"}"#));
    for (id, text) in [("msg-4", "Reserve a table"), ("msg-6", "Four")] {
        running.history.push(Arc::new(said(Role::User, id, ids, text)));
    }
    let running = Arc::new(running);
    let limited = TaskView { task: running, history_length: Some(1), artifacts: ArtifactView::Shown };
    check_reply("reply-get-task", Reply::Task(limited));

    let canceled = task(ids.0, ids.1, status(TaskState::Canceled, None, "2026-03-04T08:04:00Z"));
    check_reply("reply-cancel-task", Reply::Task(whole(canceled)));

    let listed = |id: &str, artifacts| {
        let task = task(id, "ctx-1", status(TaskState::Completed, None, "2026-03-04T08:05:00Z"));
        TaskView { task: Arc::new(task), history_length: Some(0), artifacts }
    };
    let page = |view, token: &str| {
        let next_page_token = token.to_owned();
        Reply::Tasks(TaskPage { tasks: vec![view], next_page_token, page_size: 1, total_size: 2 })
    };
    check_reply("reply-list-first-page", page(listed("task-3", ArtifactView::AlwaysListed), "bmV4dA=="));
    check_reply("reply-list-last-page", page(listed("task-1", ArtifactView::Omitted), ""));
}

#[test]
fn replies_about_push_configs_are_written() {
    check_reply("reply-push-config", Reply::PushConfig(hook()));
    let mut plain = hook();
    (plain.id, plain.authentication) = ("hook-2".into(), None);
    let page = |next_page_token: &str| PushConfigPage {
        configs: vec![hook(), plain.clone()],
        next_page_token: next_page_token.to_owned(),
    };
    check_reply("reply-push-configs", Reply::PushConfigs(page("")));
    check_reply("reply-push-configs-more", Reply::PushConfigs(page("more")));
    assert_eq!(encoded(|out| encode_reply(&Reply::Deleted, out)), "");
}

#[test]
fn updates_of_a_stream_are_written() {
    let ids = ("task-8", "ctx-8");
    let status_update = |status, metadata| {
        Update::Status(StatusUpdate { task_id: ids.0.into(), context_id: ids.1.into(), status, metadata })
    };
    let artifact_update = |artifact, append, last_chunk| {
        let (task_id, context_id, artifact) = (ids.0.into(), ids.1.into(), Arc::new(artifact));
        Update::Artifact(ArtifactUpdate { task_id, context_id, artifact, append, last_chunk, metadata: None })
    };
    let opened = task(ids.0, ids.1, status(TaskState::Submitted, None, "2026-03-04T09:00:00Z"));
    check_update("update-task", Update::Task(whole(opened)));
    let note = said(Role::Agent, "msg-n", ids, "reading");
    let working = status(TaskState::Working, Some(note), "2026-03-04T09:00:00.500Z");
    check_update("update-working", status_update(working, Some(json(r#"{"n":1,"ok":true,"z":null}"#))));
    let chunk = |text: &str| Artifact::new("story", vec![Part::text(text)]);
    check_update("update-artifact", artifact_update(chunk("Once "), false, false));
    check_update("update-artifact-chunk", artifact_update(chunk("upon a time."), true, true));
    let image = Part::raw(&b"\x89PNG\r\n\x1a\n"[..]).with_media_type("image/png").with_filename("map.png");
    check_update("update-artifact-image", artifact_update(Artifact::new("map", vec![image]), false, true));
    let text = Part::text("3, 5, 8").with_metadata(json(r#"{"tone":"calm"}"#));
    let full = Artifact::new("chart", vec![text]).with_details(ArtifactDetails {
        name: Some("Chart".to_owned()),
        description: Some("Rows per day".to_owned()),
        metadata: Some(json(r#"{"by":{"tool":"counter"},"rows":3}"#)),
        extensions: vec!["https://ext.example/geo/v1".to_owned(), "https://ext.example/cite/v2".to_owned()],
    });
    let Update::Artifact(full) = artifact_update(full, false, true) else { unreachable!() };
    let full = ArtifactUpdate { metadata: Some(json(r#"{"page":1}"#)), ..full };
    check_update("update-artifact-full", Update::Artifact(full));
    let approve = said(Role::Agent, "msg-a", ids, "Approve it at https://id.example/x");
    let waiting = status(TaskState::AuthRequired, Some(approve), "2026-03-04T09:01:00Z");
    check_update("update-auth-required", status_update(waiting, None));
    let completed = status(TaskState::Completed, None, "2026-03-04T09:02:00Z");
    check_update("update-completed", status_update(completed, None));
    check_update("update-message", Update::Message(Arc::new(said(Role::Agent, "msg-d", ("", "ctx-8"), "Hi"))));
}

#[test]
fn refusals_are_written() {
    let rpc = |name: &str, id: &str, error: ProtocolError| {
        check_written(name, &encoded(|out| encode_rpc_error(&error, id, out)));
    };
    let http = |name: &str, error: ProtocolError| {
        check_written(name, &encoded(|out| encode_http_error(&error, codes::of(&error).http, out)));
    };
    let violation =
        |field: &str, description: &str| Violation { field: field.to_owned(), description: description.to_owned() };
    rpc(
        "error-rpc-not-cancelable",
        "11",
        ProtocolError::TaskNotCancelable { id: "task-1".into(), state: TaskState::Completed },
    );
    rpc("error-rpc-unsupported", "\"r-12\"", ProtocolError::unsupported("Task task-1 is completed"));
    rpc(
        "error-rpc-invalid-params",
        "18",
        ProtocolError::InvalidParams {
            violations: vec![
                violation("message.messageId", "is required and must not be empty"),
                violation("message.parts", "needs at least one part"),
            ],
        },
    );
    rpc(
        "error-rpc-version",
        "19",
        ProtocolError::VersionNotSupported { requested: "0.3".to_owned(), supported: vec!["1.0".into()], fix: None },
    );
    rpc(
        "error-rpc-parse",
        "null",
        ProtocolError::ParseError { reason: "expected value at line 1 column 1".to_owned() },
    );
    rpc("error-rpc-internal", "\"r-4\"", ProtocolError::Internal { incident: "i-77".to_owned() });
    http("error-http-not-found", ProtocolError::TaskNotFound { id: "task-404".into() });
    http("error-http-push", ProtocolError::PushNotificationNotSupported);
    http("error-http-extended-card", ProtocolError::ExtendedAgentCardNotConfigured);
    http("error-http-too-large", ProtocolError::TooLarge { what: "body".into(), bytes_max: 10_485_760 });
    http("error-http-unavailable", ProtocolError::Unavailable { reason: "shutting down".to_owned(), retry_after_s: 5 });
}
