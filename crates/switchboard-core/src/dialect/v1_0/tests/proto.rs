//! The protobuf of 1.0. The golden files under `proto` were made by another implementation from the JSON files beside them, so
//! each case of `golden_requests` and `golden_replies` is checked in both forms.

use bytes::Bytes;
use prost::Message as _;

use crate::call::Reply;
use crate::dialect::json::{DecodeLimits, Decoded};
use crate::dialect::protobuf::Verbatim;
use crate::dialect::testing::{Dice, mutate_message};
use crate::error::ProtocolError;
use crate::model::{AgentCard, Update};

use super::super::proto::generated as wire;
use super::super::proto::{
    read_call, read_card, read_reply, read_update, write_call, write_card, write_reply, write_update,
};
use super::goldens::folder;

fn golden(name: &str) -> Bytes {
    let path = folder().join("proto").join(format!("{name}.binpb"));
    std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display())).into()
}

fn written(write: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let mut out = Vec::new();
    write(&mut out);
    out
}

/// Checks that a reply is written as it is in the file, and that what is read of the file is written in the same way.
pub(super) fn check_reply(name: &str, reply: &Reply) {
    let expected = golden(name);
    assert_eq!(written(|out| write_reply(reply, out)), expected, "{name}");
    let method = match reply {
        Reply::Task(_) => "GetTask",
        Reply::SentTask(_) | Reply::SentMessage(_) => "SendMessage",
        Reply::Tasks(_) => "ListTasks",
        Reply::PushConfig(_) => "GetTaskPushNotificationConfig",
        Reply::PushConfigs(_) => "ListTaskPushNotificationConfigs",
        Reply::Stream(_) | Reply::Deleted | Reply::Card(_) => panic!("{reply:?} has no golden file"),
    };
    let read = read_reply(method, expected.clone(), &DecodeLimits::default()).unwrap();
    assert_eq!(written(|out| write_reply(&read, out)), expected, "{name}");
}

/// As [`check_reply`].
pub(super) fn check_update(name: &str, update: &Update) {
    let expected = golden(name);
    assert_eq!(written(|out| write_update(update, out)), expected, "{name}");
    let read = read_update(expected.clone(), &DecodeLimits::default()).unwrap();
    assert_eq!(written(|out| write_update(&read, out)), expected, "{name}");
}

pub(super) fn check_read(name: &str, method: &str, expected: &Decoded) {
    let read = read_call(method, golden(name), &DecodeLimits::default());
    assert_eq!(read.as_ref(), Ok(expected), "{name}");
    let mut out = Vec::new();
    assert_eq!(write_call(&expected.request, expected.tenant.as_deref(), &mut out), method, "{name}");
    assert_eq!(out, golden(name), "{name}");
}

/// A card has maps, whose entries may leave out what is empty. What is read of the file is written in the same way.
pub(super) fn check_card(name: &str, card: &AgentCard) {
    let decoded = |bytes: &[u8]| wire::AgentCard::decode(bytes).unwrap();
    let read = read_card(golden(name), &DecodeLimits::default()).unwrap();
    for card in [card, &read] {
        assert_eq!(decoded(&written(|out| write_card(card, out))), decoded(&golden(name)), "{name}");
    }
}

fn decode<M: prost::Message>(method: &str, sent: &M) -> Result<Decoded, ProtocolError> {
    read_call(method, sent.encode_to_vec().into(), &DecodeLimits::default())
}

/// What is wrong with a call, one `field: description` per violation.
fn wrong<M: prost::Message + std::fmt::Debug>(method: &str, sent: &M) -> Vec<String> {
    match decode(method, sent) {
        Err(ProtocolError::InvalidParams { violations }) => {
            violations.into_iter().map(|v| format!("{}: {}", v.field, v.description)).collect()
        }
        other => panic!("{method} {sent:?}: {other:?}"),
    }
}

fn part(content: wire::part::Content) -> wire::Part {
    wire::Part { content: Some(content), ..Default::default() }
}

fn said(parts: Vec<wire::Part>) -> wire::SendMessageRequest {
    let message = wire::Message { message_id: "m-1".to_owned(), role: 1, parts, ..Default::default() };
    wire::SendMessageRequest { message: Some(message), ..Default::default() }
}

#[test]
fn fields_are_blamed_as_in_json() {
    let json = |params: &str| super::wrong("SendMessage", params);
    let empty = wire::SendMessageRequest::default();
    assert_eq!(wrong("SendMessage", &empty), json("{}"));
    let bare = wire::SendMessageRequest { message: Some(wire::Message::default()), ..Default::default() };
    assert_eq!(wrong("SendMessage", &bare), json(r#"{"message":{}}"#));
    assert_eq!(wrong("SendMessage", &said(vec![wire::Part::default()])), json(&super::send_part("{}")));
    let mut many = said(vec![part(wire::part::Content::Text("x".to_owned()))]);
    many.tenant = "x".repeat(300);
    many.message.as_mut().unwrap().message_id = "a\nb".to_owned();
    many.configuration = Some(wire::SendMessageConfiguration {
        history_length: Some(-1),
        accepted_output_modes: vec!["a\u{7}".to_owned()],
        task_push_notification_config: Some(wire::TaskPushNotificationConfig {
            url: "ftp://x".to_owned(),
            authentication: Some(wire::AuthenticationInfo::default()),
            ..Default::default()
        }),
        ..Default::default()
    });
    let same = format!(
        r#"{{"tenant":"{}","message":{{"messageId":"a\nb","role":"ROLE_USER","parts":[{{"text":"x"}}]}},"configuration":{{
            "historyLength":-1,"acceptedOutputModes":["a\u0007"],
            "taskPushNotificationConfig":{{"url":"ftp://x","authentication":{{}}}}}}}}"#,
        "x".repeat(300)
    );
    assert_eq!(wrong("SendMessage", &many), json(&same));
    let list =
        wire::ListTasksRequest { page_size: Some(101), history_length: Some(-1), status: 9, ..Default::default() };
    let same = r#"{"pageSize":101,"historyLength":-1,"status":9}"#;
    assert_eq!(wrong("ListTasks", &list), super::wrong("ListTasks", same));
    let subscribe = wire::SubscribeToTaskRequest::default();
    assert_eq!(wrong("SubscribeToTask", &subscribe), super::wrong("SubscribeToTask", "{}"));
}

#[test]
fn a_role_that_is_none_is_refused() {
    let mut sent = said(vec![part(wire::part::Content::Text(String::new()))]);
    sent.message.as_mut().unwrap().role = 3;
    assert_eq!(wrong("SendMessage", &sent), ["message.role: 3 is neither ROLE_USER nor ROLE_AGENT"]);
}

#[test]
fn free_form_values_are_checked_by_field() {
    // A value without a kind, a number that is none, a text that is none.
    let data = |bytes: &[u8]| said(vec![part(wire::part::Content::Data(Verbatim(bytes.to_vec())))]);
    let why = |bytes: &[u8]| wrong("SendMessage", &data(bytes)).join("\n");
    let field = "message.parts[0].data: is not acceptable JSON:";
    assert_eq!(why(&[]), format!("{field} a value in it has no kind (null is one: null_value)"));
    let mut nan = vec![0x11];
    nan.extend_from_slice(&f64::NAN.to_le_bytes());
    assert_eq!(why(&nan), format!("{field} NaN and infinity are no numbers of JSON"));
    assert_eq!(why(&[0x1a, 1, 0xff]), format!("{field} a text in it is not UTF-8"));
    assert_eq!(why(&[0x32, 3, 0x0a, 9, b'x']), format!("{field} it is not a google.protobuf.Value"));
}

#[test]
fn nothing_nests_deeper_than_in_json() {
    let nested = |depth: usize| {
        let mut value = vec![0x08, 0x00];
        for _ in 0..depth {
            for tag in [0x0a, 0x32] {
                let mut outer = vec![tag];
                prost::encoding::encode_varint(value.len() as u64, &mut outer);
                outer.append(&mut value);
                value = outer;
            }
        }
        said(vec![part(wire::part::Content::Data(Verbatim(value)))])
    };
    assert!(decode("SendMessage", &nested(64)).is_ok());
    let expected = "message.parts[0].data: is not acceptable JSON: nested too deep";
    assert_eq!(wrong("SendMessage", &nested(65)), [expected]);
    assert_eq!(wrong("SendMessage", &nested(10_000)), [expected]);
}

#[test]
fn a_list_too_long_is_refused_before_it_is_built() {
    let expected = |total: usize| [format!("message.parts: has {total} parts; the limit is 1000")];
    for total in [1_001, 10_001, 500_000] {
        assert_eq!(wrong("SendMessage", &said(vec![wire::Part::default(); total])), expected(total));
    }
    let mut sent = said(vec![part(wire::part::Content::Text(String::new()))]);
    sent.message.as_mut().unwrap().extensions = vec![String::new(); 20_000];
    assert_eq!(wrong("SendMessage", &sent), ["message.extensions: has 20000 entries; the limit is 1000"]);
}

#[test]
fn bytes_that_are_no_message_are_refused_and_never_panic() {
    let limits = DecodeLimits::default();
    let garbage = read_call("SendMessage", Bytes::from_static(b"\xff\xff\xff\xff"), &limits);
    assert!(matches!(garbage, Err(ProtocolError::InvalidRequest { .. })), "{garbage:?}");
    let unknown = read_call("Sendmessage", Bytes::new(), &limits);
    assert!(matches!(unknown, Err(ProtocolError::MethodNotFound { .. })), "{unknown:?}");
    let mut dice = Dice::new(7);
    for (name, method) in [
        ("request-send", "SendMessage"),
        ("request-stream", "SendStreamingMessage"),
        ("request-list-tasks", "ListTasks"),
        ("request-cancel-task", "CancelTask"),
        ("request-push-create", "CreateTaskPushNotificationConfig"),
    ] {
        let sample = golden(name);
        for _ in 0..10_000 {
            let _ = read_call(method, mutate_message(&mut dice, &sample).into(), &limits);
        }
    }
}
