//! Requests as clients of three SDKs sent them, and what each is read as.

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::call::{Request, SendMessage};
use crate::dialect::json::{DecodeLimits, Decoded};
use crate::model::{AuthenticationInfo, Message, Part, PushConfig, Role};

use super::super::rest::{decode_cancel_body, decode_push_config_body, decode_send_body};
use super::super::rpc::decode_call;
use super::{golden, json};

#[derive(Deserialize)]
struct Call<'a> {
    method: &'a str,
    #[serde(borrow)]
    params: Option<&'a RawValue>,
}

fn check(name: &str, expected: Request) {
    let text = golden(name);
    let call: Call<'_> = serde_json::from_str(&text).unwrap();
    let decoded = decode_call(call.method, call.params.map(RawValue::get), &DecodeLimits::default());
    assert_eq!(decoded, Ok(Decoded { tenant: None, request: expected }), "{name}");
}

fn hook(id: &str, task_id: &str) -> PushConfig {
    PushConfig {
        id: id.into(),
        task_id: task_id.into(),
        url: "https://hooks.example/tasks".to_owned(),
        token: Some("echo-me".to_owned()),
        authentication: None,
    }
}

/// What all of them were told to send: every kind of part, and a webhook.
fn sheet() -> SendMessage {
    let parts = vec![
        Part::text("Check the sheet"),
        Part::raw(&b"a,b\n1,2\n"[..]).with_filename("sheet.csv").with_media_type("text/csv"),
        Part::url("https://files.example/large.csv").with_media_type("text/csv"),
        Part::json(json(r#"{"k":[1,null]}"#)),
    ];
    let mut message = Message::new(Role::User, "msg-1", parts);
    message.metadata = Some(json(r#"{"trace":"abc"}"#));
    let authentication = AuthenticationInfo { scheme: "Bearer".to_owned(), credentials: Some("hush".to_owned()) };
    SendMessage {
        open_as: None,
        message,
        accepted_output_modes: vec!["text/plain".to_owned()],
        push_config: Some(PushConfig { authentication: Some(authentication), ..hook("", "") }),
        history_length: Some(2),
        return_immediately: false,
        metadata: None,
    }
}

fn four(return_immediately: bool) -> SendMessage {
    let mut message = Message::new(Role::User, "msg-2", vec![Part::text("Four")]);
    message.task_id = Some("task-1".into());
    message.context_id = Some("ctx-1".into());
    SendMessage {
        open_as: None,
        message,
        accepted_output_modes: Vec::new(),
        push_config: None,
        history_length: None,
        return_immediately,
        metadata: None,
    }
}

#[test]
fn sends_with_every_kind_of_part() {
    check("request-py02-send", Request::SendMessage(sheet().into()));
    let mut send = sheet();
    send.message.reference_task_ids.push("task-0".into());
    check("request-js03-send", Request::SendMessage(send.clone().into()));
    send.message.extensions.push("https://ext.example/geo/v1".to_owned());
    send.metadata = Some(json(r#"{"trace":"abc"}"#));
    check("request-py03-send", Request::SendMessage(send.into()));
}

#[test]
fn streaming_sends_to_a_task() {
    check("request-py02-stream", Request::SendStreamingMessage(four(false).into()));
    check("request-py03-stream", Request::SendStreamingMessage(four(true).into()));
    check("request-js03-stream", Request::SendStreamingMessage(four(false).into()));
}

#[test]
fn calls_about_tasks() {
    for sdk in ["py02", "py03", "js03"] {
        let get = Request::GetTask { id: "task-1".into(), history_length: Some(5) };
        check(&format!("request-{sdk}-get"), get);
        let cancel = Request::CancelTask { id: "task-1".into(), metadata: None };
        check(&format!("request-{sdk}-cancel"), cancel);
    }
    for sdk in ["py03", "js03"] {
        check(&format!("request-{sdk}-resubscribe"), Request::SubscribeToTask { id: "task-1".into() });
    }
}

#[test]
fn calls_about_push_configs() {
    let bare = PushConfig { token: None, ..hook("", "task-1") };
    check("request-py02-push-set", Request::CreatePushConfig(bare.into()));
    // 0.2 has no way to say which.
    check("request-py02-push-get", Request::GetPushConfig { task_id: "task-1".into(), id: "".into() });
    for sdk in ["py03", "js03"] {
        check(&format!("request-{sdk}-push-set"), Request::CreatePushConfig(hook("hook-1", "task-1").into()));
        let get = Request::GetPushConfig { task_id: "task-1".into(), id: "hook-1".into() };
        check(&format!("request-{sdk}-push-get"), get);
    }
    let list = Request::ListPushConfigs { task_id: "task-1".into(), page_size: None, page_token: None };
    check("request-js03-push-list", list);
    let delete = Request::DeletePushConfig { task_id: "task-1".into(), id: "hook-1".into() };
    check("request-js03-push-delete", delete);
}

#[test]
fn bodies_over_http() {
    let limits = DecodeLimits::default();
    let send = |name: &str| decode_send_body(golden(name).as_bytes(), &limits).unwrap();
    // This SDK forgets the name of a file.
    let mut nameless = sheet();
    nameless.message.parts[1].change_details(|details| details.filename = None);
    assert_eq!(send("rest-js03-send"), (None, nameless));
    // This one encodes bytes twice and writes whole numbers as fractions; what arrives is what it sent.
    let mut twice = sheet();
    twice.message.parts[1] = Part::raw(&b"YSxiCjEsMgo="[..]).with_filename("sheet.csv").with_media_type("text/csv");
    twice.message.parts[3] = Part::json(json(r#"{"k":[1.0,null]}"#));
    twice.message.extensions.push("https://ext.example/geo/v1".to_owned());
    twice.metadata = Some(json(r#"{"trace":"abc"}"#));
    assert_eq!(send("rest-py03-send"), (None, twice));
    // A configuration without the flag says false; no configuration says nothing.
    assert_eq!(send("rest-py03-stream"), (None, four(true)));
    assert_eq!(send("rest-js03-stream"), (None, four(false)));
    for name in ["rest-py03-push-set", "rest-js03-push-set"] {
        let config = decode_push_config_body("task-1".into(), golden(name).as_bytes(), &limits);
        assert_eq!(config, Ok((None, hook("hook-1", "task-1"))), "{name}");
    }
    assert_eq!(decode_cancel_body(golden("rest-py03-cancel").as_bytes(), &limits), Ok((None, None)));
}
