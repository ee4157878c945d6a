//! Replies and updates beside those an SDK writes for the same objects.

use std::sync::Arc;

use crate::call::{PushConfigPage, Reply};
use crate::error::ProtocolError;
use crate::model::{
    Artifact, ArtifactDetails, ArtifactUpdate, AuthenticationInfo, Dialect, Message, Part, PushConfig, Role,
    StatusUpdate, Task, TaskState, TaskStatus, TaskView, Timestamp, Update,
};

use super::super::{encode_http_error, encode_rpc_error, is_final, rest, rpc};
use super::{assert_covers, encoded, golden_value, json};

/// Parts say their kind twice; see `rpc/encode.rs`.
const MORE: [&str; 1] = ["type"];
/// What the SDK drops on its way through protobuf.
const MORE_OVER_HTTP: [&str; 1] = ["timestamp"];

fn check_reply(name: &str, reply: &Reply) {
    let ours = serde_json::from_str(&encoded(|out| rpc::encode_reply(reply, out))).unwrap();
    assert_covers(&ours, &golden_value(&format!("reply-{name}")), &MORE);
}

fn check_rest_reply(name: &str, reply: &Reply) {
    let ours = serde_json::from_str(&encoded(|out| rest::encode_reply(reply, out))).unwrap();
    assert_covers(&ours, &golden_value(&format!("rest-reply-{name}")), &MORE_OVER_HTTP);
    #[cfg(feature = "protobuf")]
    super::proto::check_reply(name, reply);
}

fn check_update(name: &str, update: &Update) {
    let ours = serde_json::from_str(&encoded(|out| rpc::encode_update(update, out))).unwrap();
    assert_covers(&ours, &golden_value(&format!("update-{name}")), &MORE);
    let ours = serde_json::from_str(&encoded(|out| rest::encode_update(update, out))).unwrap();
    assert_covers(&ours, &golden_value(&format!("rest-update-{name}")), &MORE_OVER_HTTP);
    #[cfg(feature = "protobuf")]
    super::proto::check_update(name, update);
}

fn status(state: TaskState, message: Option<Message>, time: &str) -> TaskStatus {
    let timestamp = Timestamp::parse_rfc3339(&format!("2026-03-04T{time}Z")).unwrap();
    TaskStatus { state, message: message.map(Arc::new), timestamp }
}

fn task(id: &str, context_id: &str, status: TaskStatus) -> Task {
    let (id, context_id) = (id.into(), context_id.into());
    let created_at = Timestamp::default();
    let (artifacts, history) = (Vec::new(), Vec::new());
    Task { id, context_id, status, artifacts, history, metadata: None, created_at, dialect: Dialect::V1_0 }
}

fn said(role: Role, id: &str, (task_id, context_id): (&str, &str), text: &str) -> Message {
    let mut message = Message::new(role, id, vec![Part::text(text)]);
    message.context_id = Some(context_id.into());
    message.task_id = (!task_id.is_empty()).then(|| task_id.into());
    message
}

#[test]
fn tasks_are_written_as_the_sdk_does() {
    let mut done = task("task-1", "ctx-1", status(TaskState::Completed, None, "08:00:05.120"));
    let report = Artifact::new("report", vec![Part::text("Three rows, all green.")]);
    done.artifacts.push(report.with_name("Report").into());
    done.history.push(Arc::new(said(Role::User, "msg-1", ("task-1", "ctx-1"), "Check the sheet")));
    done.metadata = Some(json(r#"{"trace":"abc"}"#));
    let ids = ("task-4", "ctx-4");
    let question = said(Role::Agent, "msg-q", ids, "For how many people?");
    let mut asking = task(ids.0, ids.1, status(TaskState::InputRequired, Some(question), "08:02:00.250"));
    asking.history.push(Arc::new(said(Role::User, "msg-4", ids, "Reserve a table")));
    let canceled = task(ids.0, ids.1, status(TaskState::Canceled, None, "08:04:00.250"));
    for (name, task) in [("done", done), ("question", asking), ("canceled", canceled)] {
        let view = TaskView::whole(Arc::new(task));
        check_reply(name, &Reply::Task(view.clone()));
        check_reply(name, &Reply::SentTask(view.clone()));
        check_rest_reply(name, &Reply::Task(view.clone()));
        if name == "done" {
            check_rest_reply("sent", &Reply::SentTask(view));
        }
    }
}

#[test]
fn a_message_with_every_kind_of_part_is_written_as_the_sdk_does() {
    let parts = vec![
        Part::text("Look").with_metadata(json(r#"{"tone":"calm"}"#)),
        Part::url("https://files.example/large.csv").with_media_type("text/csv").with_filename("large.csv"),
        Part::json(json(r#"{"metres":310.5,"stop":"Harbour"}"#)),
    ];
    let mut message = Message::new(Role::Agent, "msg-5", parts);
    message.context_id = Some("ctx-5".into());
    message.extensions.push("https://ext.example/geo/v1".to_owned());
    message.metadata = Some(json(r#"{"https://ext.example/geo/v1":{"lat":54.3}}"#));
    let reply = Reply::SentMessage(Arc::new(message));
    check_reply("message", &reply);
    check_rest_reply("message", &reply);
}

/// An artifact that says everything an artifact can say.
fn full_artifact() -> Artifact {
    let text = Part::text("3, 5, 8").with_metadata(json(r#"{"tone":"calm"}"#));
    Artifact::new("chart", vec![text]).with_details(ArtifactDetails {
        name: Some("Chart".to_owned()),
        description: Some("Rows per day".to_owned()),
        metadata: Some(json(r#"{"by":{"tool":"counter"},"rows":3.5}"#)),
        extensions: vec!["https://ext.example/geo/v1".to_owned(), "https://ext.example/cite/v2".to_owned()],
    })
}

#[test]
fn updates_are_written_as_the_sdk_does() {
    let ids = ("task-8", "ctx-8");
    let status_update = |status, metadata| {
        Update::Status(StatusUpdate { task_id: ids.0.into(), context_id: ids.1.into(), status, metadata })
    };
    let artifact_update = |artifact, append, last_chunk| {
        let (task_id, context_id, artifact) = (ids.0.into(), ids.1.into(), Arc::new(artifact));
        Update::Artifact(ArtifactUpdate { task_id, context_id, artifact, append, last_chunk, metadata: None })
    };
    let opened = task(ids.0, ids.1, status(TaskState::Submitted, None, "09:00:00.125"));
    check_update("task", &Update::Task(TaskView::whole(Arc::new(opened))));
    let note = said(Role::Agent, "msg-n", ids, "reading");
    let working = status(TaskState::Working, Some(note), "09:00:00.500");
    check_update("working", &status_update(working, Some(json(r#"{"n":1.5,"ok":true,"z":null}"#))));
    let chunk = |text: &str| Artifact::new("story", vec![Part::text(text)]);
    check_update("artifact", &artifact_update(chunk("Once "), false, false));
    check_update("artifact-chunk", &artifact_update(chunk("upon a time."), true, true));
    let image = Part::raw(&b"\x89PNG\r\n\x1a\n"[..]).with_media_type("image/png").with_filename("map.png");
    check_update("artifact-image", &artifact_update(Artifact::new("map", vec![image]), false, true));
    let Update::Artifact(full) = artifact_update(full_artifact(), false, true) else { unreachable!() };
    check_update(
        "artifact-full",
        &Update::Artifact(ArtifactUpdate { metadata: Some(json(r#"{"page":1.5}"#)), ..full }),
    );
    for (name, state, time) in [
        ("auth-required", TaskState::AuthRequired, "09:01:00.125"),
        ("input-required", TaskState::InputRequired, "09:01:30.125"),
        ("completed", TaskState::Completed, "09:02:00.125"),
    ] {
        let update = status_update(status(state, None, time), None);
        check_update(name, &update);
        assert_eq!(is_final(&update), state != TaskState::AuthRequired, "{name}");
    }
    check_update("message", &Update::Message(Arc::new(said(Role::Agent, "msg-d", ("", "ctx-8"), "Hi"))));
}

#[test]
fn push_configs_are_written_as_the_sdk_does() {
    let config = PushConfig {
        id: "hook-1".into(),
        task_id: "task-7".into(),
        url: "https://hooks.example/tasks".to_owned(),
        token: Some("echo-me".to_owned()),
        authentication: Some(AuthenticationInfo { scheme: "Basic".to_owned(), credentials: Some("dTpw".to_owned()) }),
    };
    let page = || PushConfigPage { configs: vec![config.clone()], next_page_token: String::new() };
    for (name, reply) in
        [("push-config", Reply::PushConfig(config.clone())), ("push-configs", Reply::PushConfigs(page()))]
    {
        check_reply(name, &reply);
        check_rest_reply(name, &reply);
    }
    assert_eq!(encoded(|out| rpc::encode_reply(&Reply::Deleted, out)), "");
}

#[test]
fn refusals_have_one_flat_object_of_data() {
    let not_found = ProtocolError::TaskNotFound { id: "t-9".into() };
    let data = r#"{"code":-32001,"message":"Task not found","data":{"reason":"TASK_NOT_FOUND","taskId":"t-9"}}"#;
    let rpc = encoded(|out| encode_rpc_error(&not_found, "\"r\"", out));
    assert_eq!(rpc, format!(r#"{{"jsonrpc":"2.0","id":"r","error":{data}}}"#));
    assert_eq!(encoded(|out| encode_http_error(&not_found, 400, out)), data);
    let invalid = ProtocolError::invalid("message.parts", "needs at least one part");
    assert_eq!(
        encoded(|out| encode_http_error(&invalid, 400, out)),
        r#"{"code":-32602,"message":"Invalid parameters: message.parts: needs at least one part","data":{"reason":"INVALID_PARAMS","violations":[{"field":"message.parts","description":"needs at least one part"}]}}"#
    );
    let busy = ProtocolError::Unavailable { reason: "full".to_owned(), retry_after_s: 5 };
    assert!(
        encoded(|out| encode_http_error(&busy, 400, out))
            .ends_with(r#""data":{"reason":"UNAVAILABLE","retryAfterS":5}}"#)
    );
    let done = ProtocolError::TaskNotCancelable { id: "t".into(), state: TaskState::InputRequired };
    assert!(encoded(|out| encode_http_error(&done, 400, out)).contains(r#""state":"input-required""#));
}
