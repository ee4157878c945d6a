//! Requests, and what each is read as.

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::call::{ListTasks, Request, SendMessage};
use crate::model::{AuthenticationInfo, Message, Part, PushConfig, Role, TaskState, Timestamp};

use crate::dialect::json::{DecodeLimits, Decoded};

use super::super::{decode_call, decode_push_config_body, decode_send_body};
use super::goldens::{golden, hook, json};

#[derive(Deserialize)]
struct Call<'a> {
    method: &'a str,
    #[serde(borrow)]
    params: Option<&'a RawValue>,
}

fn decoded(name: &str) -> Decoded {
    let text = golden(name);
    let call: Call<'_> = serde_json::from_str(&text).unwrap();
    let decoded = decode_call(call.method, call.params.map(RawValue::get), &DecodeLimits::default()).unwrap();
    assert_eq!(decoded.request.operation(), call.method);
    #[cfg(feature = "protobuf")]
    super::proto::check_read(name, call.method, &decoded);
    decoded
}

fn check(name: &str, expected: Request) {
    assert_eq!(decoded(name), Decoded { tenant: None, request: expected }, "{name}");
}

fn send_of(message: Message) -> SendMessage {
    SendMessage {
        open_as: None,
        message,
        accepted_output_modes: Vec::new(),
        push_config: None,
        history_length: None,
        return_immediately: false,
        metadata: None,
    }
}

fn user(id: &str, text: &str) -> Message {
    Message::new(Role::User, id, vec![Part::text(text)])
}

#[test]
fn a_blocking_send_with_every_kind_of_part() {
    let parts = vec![
        Part::text("Check the sheet").with_media_type("text/plain"),
        Part::raw(&b"a,b\n1,2\n"[..]).with_filename("sheet.csv").with_media_type("text/csv"),
        Part::url("https://files.example/large.csv").with_media_type("text/csv"),
        Part::json(json(r#"[1,2,{"k":null}]"#)).with_media_type("application/json"),
    ];
    let send = SendMessage {
        accepted_output_modes: vec!["text/plain".to_owned()],
        history_length: Some(0),
        metadata: Some(json(r#"{"trace":"abc"}"#)),
        ..send_of(Message::new(Role::User, "msg-1", parts))
    };
    check("request-send", Request::SendMessage(send.into()));
}

#[test]
fn a_send_that_returns_at_once_and_registers_a_webhook() {
    let mut message = user("msg-3", "Now as a chart");
    message.context_id = Some("ctx-1".into());
    message.reference_task_ids.push("task-1".into());
    let authentication = AuthenticationInfo { scheme: "Bearer".to_owned(), credentials: Some("hush".to_owned()) };
    let config = PushConfig { id: "".into(), task_id: "".into(), authentication: Some(authentication), ..hook() };
    let send = SendMessage { push_config: Some(config), return_immediately: true, ..send_of(message) };
    check("request-send-in-context", Request::SendMessage(send.into()));
}

#[test]
fn a_send_to_a_task_and_a_streaming_send() {
    let mut answer = user("msg-6", "Four");
    answer.task_id = Some("task-4".into());
    check("request-send-to-task", Request::SendMessage(send_of(answer).into()));
    check("request-stream", Request::SendStreamingMessage(send_of(user("msg-2", "Tell me a story")).into()));
}

#[test]
fn calls_about_tasks() {
    check("request-get-task", Request::GetTask { id: "task-4".into(), history_length: Some(1) });
    check(
        "request-list-tasks",
        Request::ListTasks(ListTasks {
            context_id: Some("ctx-1".into()),
            state: Some(TaskState::Completed),
            page_size: Some(1),
            page_token: None,
            history_length: Some(0),
            status_since: Timestamp::parse_rfc3339("2026-03-04T00:00:00Z"),
            include_artifacts: true,
        }),
    );
    let metadata = Some(json(r#"{"reason":"changed my mind"}"#));
    check("request-cancel-task", Request::CancelTask { id: "task-4".into(), metadata });
    check("request-subscribe", Request::SubscribeToTask { id: "task-8".into() });
}

#[test]
fn a_call_for_a_tenant() {
    let expected = Decoded { tenant: Some("acme".to_owned()), request: Request::GetExtendedAgentCard };
    assert_eq!(decoded("request-extended-card"), expected);
}

#[test]
fn calls_about_push_configs() {
    check("request-push-create", Request::CreatePushConfig(PushConfig { id: "".into(), ..hook() }.into()));
    let (task_id, id) = (hook().task_id, hook().id);
    check("request-push-get", Request::GetPushConfig { task_id: task_id.clone(), id: id.clone() });
    let list = Request::ListPushConfigs { task_id: task_id.clone(), page_size: Some(10), page_token: None };
    check("request-push-list", list);
    check("request-push-delete", Request::DeletePushConfig { task_id, id });
}

#[test]
fn bodies_over_http() {
    let limits = DecodeLimits::default();
    let mut message = user("msg-10", "Where is the next stop?");
    message.extensions.push("https://ext.example/geo/v1".to_owned());
    message.metadata = Some(json(r#"{"https://ext.example/geo/v1":{"lat":54.3,"lon":10.1}}"#));
    assert_eq!(decode_send_body(golden("http-send").as_bytes(), &limits), Ok((None, send_of(message))));
    assert_eq!(decode_push_config_body(golden("http-push-create").as_bytes(), &limits), Ok((None, hook())));
}
