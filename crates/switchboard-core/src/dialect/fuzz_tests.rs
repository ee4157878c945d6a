//! Fuzz targets of everything that reads bytes of others: calls, answers, updates, refusals and cards of every dialect, as
//! JSON and as protobuf. What is read must be written and read again to the same value, where a dialect reads what it writes.

use switchboard_fuzz::{golden, run, texts};

use super::json::{DecodeLimits, decode_base64};
use super::{Dialect, compat, v0_3, v1_0};
use crate::call::{ListTasks, Request, SendMessage};
use crate::model::{Json, JsonLimits, Message, Part, Role, Timestamp};

fn limits() -> DecodeLimits {
    DecodeLimits::default()
}

/// The requests and answers that others have sent, and the values of their `params` and `result`, which is what decoders get.
fn json() -> Vec<Vec<u8>> {
    let mut corpus = golden(".json");
    for whole in corpus.clone() {
        let Ok(serde_json::Value::Object(members)) = serde_json::from_slice(&whole) else { continue };
        corpus
            .extend(["params", "result"].iter().filter_map(|name| Some(members.get(*name)?.to_string().into_bytes())));
    }
    corpus
}

/// Every method of every dialect over JSON-RPC.
const METHODS: [&str; 21] = [
    "SendMessage",
    "SendStreamingMessage",
    "GetTask",
    "ListTasks",
    "CancelTask",
    "SubscribeToTask",
    "CreateTaskPushNotificationConfig",
    "GetTaskPushNotificationConfig",
    "ListTaskPushNotificationConfigs",
    "DeleteTaskPushNotificationConfig",
    "GetExtendedAgentCard",
    "message/send",
    "message/stream",
    "tasks/send",
    "tasks/get",
    "tasks/cancel",
    "tasks/resubscribe",
    "tasks/pushNotificationConfig/set",
    "tasks/pushNotificationConfig/get",
    "tasks/pushNotificationConfig/list",
    "agent/getAuthenticatedExtendedCard",
];

#[test]
fn fuzz_json_calls() {
    run("json calls", &json(), |input| {
        let Ok(text) = std::str::from_utf8(input) else { return };
        for method in METHODS {
            let _ = v1_0::decode_call(method, Some(text), &limits());
            let _ = v0_3::rpc::decode_call(method, Some(text), &limits());
            let _ = compat::agent_native::decode_call(method, Some(text), &limits());
            let _ = compat::selectools::decode_call(method, Some(text), &limits());
            let _ = compat::nexus::decode_call(method, Some(text), &limits());
        }
    });
}

#[test]
fn fuzz_json_bodies() {
    run("json bodies", &json(), |input| {
        let _ = v1_0::decode_send_body(input, &limits());
        let _ = v1_0::decode_cancel_body(input, &limits());
        let _ = v0_3::rest::decode_send_body(input, &limits());
        let _ = v0_3::rest::decode_cancel_body(input, &limits());
        let _ = compat::corvid::decode_send(input, &limits());
        if let Ok(text) = std::str::from_utf8(input) {
            let _ = v0_3::rest::decode_history_length(text);
        }
    });
}

#[test]
fn fuzz_json_answers() {
    let send = Message::new(Role::User, "m", vec![Part::text("hello")]);
    let requests = [
        Request::SendMessage(Box::new(SendMessage::new(send))),
        Request::GetTask { id: "t".into(), history_length: None },
        Request::ListTasks(ListTasks::default()),
        Request::GetExtendedAgentCard,
    ];
    run("json answers", &json(), |input| {
        for dialect in Dialect::ALL {
            for request in &requests {
                let _ = dialect.read_reply(request, input, &limits());
            }
            let _ = dialect.read_error(input, None);
            let _ = dialect.read_error(input, Some(409));
            let _ = dialect.read_card(input, &limits());
        }
    });
}

#[test]
fn fuzz_json_updates() {
    run("json updates", &json(), |input| {
        for dialect in Dialect::ALL {
            let Ok(update) = dialect.read_update(input, &limits()) else { continue };
            if !matches!(dialect, Dialect::V1_0) {
                continue;
            }
            let (mut first, mut second) = (Vec::new(), Vec::new());
            dialect.write_update(&update, &mut first);
            let again = dialect.read_update(&first, &limits()).expect("what is written can be read");
            dialect.write_update(&again, &mut second);
            assert_eq!(first, second, "{}", first.escape_ascii());
        }
    });
}

#[test]
fn fuzz_values() {
    let corpus =
        texts(&["2026-11-17T02:00:00.000Z", "2024-02-29T23:59:60+14:00", "aGVsbG8=", r#"{"a":[1,{"b":null}]}"#]);
    run("values", &corpus, |input| {
        let Ok(text) = std::str::from_utf8(input) else { return };
        if let Some(time) = Timestamp::parse_rfc3339(text) {
            let written = time.to_string();
            let again = Timestamp::parse_rfc3339(&written);
            // Years beyond four digits are written as far as they fit.
            assert!(again == Some(time) || !(0..=253_402_300_799_999).contains(&time.as_ms()), "{text}: {written}");
        }
        let _ = decode_base64(text);
        if let Ok(json) = Json::parse(text, JsonLimits::default()) {
            let again = Json::parse(json.as_str(), JsonLimits::default()).expect("what was accepted is accepted again");
            assert_eq!(again.as_str(), json.as_str());
            let _ = json.merged_with(&again);
        }
    });
}

#[cfg(feature = "protobuf")]
mod protobuf {
    use bytes::Bytes;
    use switchboard_fuzz::{golden, run};

    use super::limits;
    use crate::call::{ListTasks, Request, SendMessage};
    use crate::dialect::Package;
    use crate::model::{Message, Part, Role};

    /// Messages of protobuf, made of requests that can be written.
    fn protobuf() -> Vec<Vec<u8>> {
        let mut corpus = golden(".binpb");
        let parts = vec![Part::text("hello"), Part::raw(vec![1, 2, 3])];
        let requests = [
            Request::SendMessage(Box::new(SendMessage::new(Message::new(Role::User, "m-1", parts)))),
            Request::GetTask { id: "t-1".into(), history_length: Some(3) },
            Request::ListTasks(ListTasks {
                page_size: Some(7),
                page_token: Some("abc".to_owned()),
                ..ListTasks::default()
            }),
            Request::DeletePushConfig { task_id: "t".into(), id: "c".into() },
        ];
        for package in [Package::V1_0, Package::V0_3] {
            for request in &requests {
                let mut out = Vec::new();
                if package.write_call(request, Some("acme"), &mut out).is_some() {
                    corpus.push(out);
                }
            }
        }
        corpus
    }

    const GRPC_METHODS: [&str; 12] = [
        "SendMessage",
        "SendStreamingMessage",
        "GetTask",
        "ListTasks",
        "CancelTask",
        "SubscribeToTask",
        "TaskSubscription",
        "CreateTaskPushNotificationConfig",
        "GetTaskPushNotificationConfig",
        "ListTaskPushNotificationConfigs",
        "DeleteTaskPushNotificationConfig",
        "GetExtendedAgentCard",
    ];

    #[test]
    fn fuzz_protobuf() {
        run("protobuf", &protobuf(), |input| {
            let message = Bytes::copy_from_slice(input);
            for package in [Package::V1_0, Package::V0_3] {
                for method in GRPC_METHODS {
                    let _ = package.read_reply(method, message.clone(), &limits());
                    let Ok(call) = package.read_call(method, message.clone(), &limits()) else { continue };
                    let (mut first, mut second) = (Vec::new(), Vec::new());
                    let Some(written) = package.write_call(&call.request, call.tenant.as_deref(), &mut first) else {
                        continue;
                    };
                    let again = package.read_call(written, Bytes::from(first.clone()), &limits());
                    let again = again.unwrap_or_else(|error| panic!("{method}: {error:?}: {}", first.escape_ascii()));
                    let _ = package.write_call(&again.request, again.tenant.as_deref(), &mut second);
                    assert_eq!(first, second, "{method}");
                }
                let _ = package.read_update(message.clone(), &limits());
            }
        });
    }
}
