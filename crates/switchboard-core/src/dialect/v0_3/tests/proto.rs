//! The protobuf of 0.3, beside what another implementation makes of the documents that `rest` is checked against.

use bytes::Bytes;
use prost::Message as _;

use crate::call::{Reply, Request};
use crate::dialect::json::DecodeLimits;
use crate::dialect::testing::{Dice, mutate_message};
use crate::error::ProtocolError;
use crate::model::{Json, PartContent, PushConfig, Update};

use super::super::proto::generated as wire;
use super::super::proto::{read_call, read_reply, read_update, write_reply, write_update};
use super::super::rest::{decode_push_config_body, decode_send_body};
use super::{folder, wrong};

fn golden(name: &str) -> Bytes {
    let path = folder().join("proto").join(format!("{name}.binpb"));
    std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display())).into()
}

/// The SDK that wrote the documents drops times on its way.
fn timeless(task: &mut wire::Task) {
    task.status.as_mut().unwrap().timestamp = None;
}

fn compare<M: prost::Message + Default + PartialEq + std::fmt::Debug>(
    name: &str,
    ours: &[u8],
    change: impl Fn(&mut M),
) {
    let [mut ours, mut theirs] = [ours, &golden(name)].map(|bytes| M::decode(bytes).unwrap());
    change(&mut ours);
    change(&mut theirs);
    assert_eq!(ours, theirs, "{name}");
}

/// Checks what is written of a reply, and what is written of the reply that is read of the document.
pub(super) fn check_reply(name: &str, reply: &Reply) {
    let name = &format!("reply-{name}");
    let method = match reply {
        Reply::Task(_) => "GetTask",
        Reply::SentTask(_) | Reply::SentMessage(_) => "SendMessage",
        Reply::PushConfig(_) => "GetTaskPushNotificationConfig",
        _ => "ListTaskPushNotificationConfig",
    };
    compare_reply(name, reply);
    compare_reply(name, &read_reply(method, golden(name), &DecodeLimits::default()).unwrap());
}

fn compare_reply(name: &str, reply: &Reply) {
    use wire::send_message_response::Payload;
    let mut ours = Vec::new();
    write_reply(reply, &mut ours);
    match reply {
        Reply::Task(_) => compare(name, &ours, timeless),
        Reply::SentTask(_) | Reply::SentMessage(_) => compare(name, &ours, |sent: &mut wire::SendMessageResponse| {
            if let Some(Payload::Task(task)) = &mut sent.payload {
                timeless(task);
            }
        }),
        Reply::PushConfig(_) => compare(name, &ours, |_: &mut wire::TaskPushNotificationConfig| {}),
        _ => compare(name, &ours, |_: &mut wire::ListTaskPushNotificationConfigResponse| {}),
    }
}

/// As [`check_reply`].
pub(super) fn check_update(name: &str, update: &Update) {
    let name = &format!("update-{name}");
    compare_update(name, update);
    compare_update(name, &read_update(golden(name), &DecodeLimits::default()).unwrap());
}

fn compare_update(name: &str, update: &Update) {
    use wire::stream_response::Payload;
    let mut ours = Vec::new();
    write_update(update, &mut ours);
    compare(name, &ours, |update: &mut wire::StreamResponse| match &mut update.payload {
        Some(Payload::Task(task)) => timeless(task),
        Some(Payload::StatusUpdate(update)) => update.status.as_mut().unwrap().timestamp = None,
        _ => {}
    });
}

fn decode(method: &str, message: Bytes) -> Result<Request, ProtocolError> {
    read_call(method, message, &DecodeLimits::default()).map(|decoded| decoded.request)
}

#[test]
fn sends_of_sdks_are_read_as_over_http() {
    for name in ["py03-send", "js03-send", "py03-stream", "js03-stream"] {
        let text = super::golden(&format!("rest-{name}"));
        let (_, mut expected) = decode_send_body(text.as_bytes(), &DecodeLimits::default()).unwrap();
        for part in &mut expected.message.parts {
            if let PartContent::Data(data) = &mut part.content {
                *data = Json::from_trusted(data.as_str().replace("1.0", "1"));
            }
        }
        let read = decode("SendMessage", golden(name)).unwrap();
        assert_eq!(read, Request::SendMessage(expected.clone().into()), "{name}");
        let read = decode("SendStreamingMessage", golden(name)).unwrap();
        assert_eq!(read, Request::SendStreamingMessage(expected.into()), "{name}");
    }
}

#[test]
fn a_webhook_of_an_sdk_is_read_as_over_http() {
    let text = super::golden("rest-py03-push-set");
    let (_, expected): (_, PushConfig) =
        decode_push_config_body("task-1".into(), text.as_bytes(), &DecodeLimits::default()).unwrap();
    let read = decode("CreateTaskPushNotificationConfig", golden("py03-push-set")).unwrap();
    assert_eq!(read, Request::CreatePushConfig(expected.into()));
}

#[test]
fn bytes_that_are_no_message_are_refused_and_never_panic() {
    let garbage = decode("SendMessage", Bytes::from_static(b"\xff\xff\xff\xff"));
    assert!(matches!(garbage, Err(ProtocolError::InvalidRequest { .. })), "{garbage:?}");
    let mut dice = Dice::new(7);
    for (name, method) in [
        ("py03-send", "SendMessage"),
        ("js03-stream", "SendStreamingMessage"),
        ("py03-push-set", "CreateTaskPushNotificationConfig"),
    ] {
        let sample = golden(name);
        for _ in 0..10_000 {
            let _ = decode(method, mutate_message(&mut dice, &sample).into());
        }
    }
}

#[test]
fn names_of_resources_are_checked() {
    for name in ["", "task-1", "tasks/", "tasks/a/b", "tasks/a/pushNotificationConfigs/b"] {
        let sent = wire::CancelTaskRequest { name: name.to_owned() };
        let read = decode("CancelTask", sent.encode_to_vec().into());
        assert_eq!(wrong(read), ["name: must be tasks/{id}"], "{name}");
    }
    for name in ["tasks/a", "tasks/a/pushNotificationConfigs/", "tasks//pushNotificationConfigs/b", "a/b"] {
        let sent = wire::GetTaskPushNotificationConfigRequest { name: name.to_owned() };
        let read = decode("GetTaskPushNotificationConfig", sent.encode_to_vec().into());
        assert_eq!(wrong(read), ["name: must be tasks/{id}/pushNotificationConfigs/{id}"], "{name}");
    }
    let sent = wire::GetTaskPushNotificationConfigRequest { name: "tasks/a/pushNotificationConfigs/b".to_owned() };
    let read = decode("GetTaskPushNotificationConfig", sent.encode_to_vec().into());
    assert_eq!(read, Ok(Request::GetPushConfig { task_id: "a".into(), id: "b".into() }));
}
