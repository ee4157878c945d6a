//! Hostile input. Nothing panics, nothing grows without bound, and the answer is JSON.

use serde::de::IgnoredAny;

use crate::dialect::json::DecodeLimits;
use crate::dialect::testing::{Dice, mutate};

use super::super::encode_rpc_error;
use super::super::rest::{decode_cancel_body, decode_history_length, decode_push_config_body, decode_send_body};
use super::super::rpc::decode_call;
use super::{encoded, sent, wrong};

const SEND: &str = r#"{"message":{"kind":"message","messageId":"m-1","contextId":"c-1","taskId":"t-1","role":"user",
    "parts":[{"kind":"text","text":"a \"b\" \u00e4","metadata":{"k":null}},{"kind":"file","file":{"bytes":"AAEC","name":"x"}},
    {"type":"file","file":{"uri":"https://files.example/x","mimeType":"a/b"}},
    {"kind":"data","data":{"value":[1,2.5]},"metadata":{"data_part_compat":true}}],
    "metadata":{"x":1},"extensions":["https://e.example/1"],"referenceTaskIds":["t-0"]},
    "configuration":{"acceptedOutputModes":["text/plain"],"historyLength":0,"blocking":false,
    "pushNotificationConfig":{"url":"https://h.example/x","authentication":{"schemes":["Bearer"],"credentials":"s"}}}}"#;

const REST_SEND: &str = r#"{"request":{"message_id":"m-1","role":"ROLE_USER","content":[{"text":"x"},
    {"file":{"file_with_bytes":"AAEC","mime_type":"a/b"}},{"data":{"data":{"value":1}},"metadata":{"data_part_compat":true}}]},
    "configuration":{"blocking":true,"push_notification":{"url":"https://h.example/x"}}}"#;

const SAMPLES: [(&str, &str); 9] = [
    ("message/send", SEND),
    ("message/stream", REST_SEND),
    ("tasks/get", r#"{"id":"t-1","historyLength":3,"metadata":{}}"#),
    ("tasks/cancel", r#"{"id":"t-1","metadata":{"why":["late"]}}"#),
    ("tasks/resubscribe", r#"{"id":"t-1"}"#),
    (
        "tasks/pushNotificationConfig/set",
        r#"{"taskId":"t","pushNotificationConfig":{"id":"p","url":"https://h.example/"}}"#,
    ),
    ("tasks/pushNotificationConfig/get", r#"{"id":"t","pushNotificationConfigId":"p"}"#),
    ("tasks/pushNotificationConfig/delete", r#"{"id":"t","pushNotificationConfigId":"p"}"#),
    ("agent/getAuthenticatedExtendedCard", "{}"),
];

/// Puts bytes through every decoder. None may panic or hang.
fn knock(bytes: &[u8]) {
    let limits = DecodeLimits::default();
    let text = String::from_utf8_lossy(bytes);
    for (method, _) in SAMPLES {
        if let Err(error) = decode_call(method, Some(&text), &limits) {
            let written = encoded(|out| encode_rpc_error(&error, "null", out));
            assert!(serde_json::from_str::<IgnoredAny>(&written).is_ok(), "{written}");
        }
    }
    let _ = decode_send_body(bytes, &limits);
    let _ = decode_cancel_body(bytes, &limits);
    let _ = decode_push_config_body("t".into(), bytes, &limits);
    let _ = decode_history_length(&text);
}

#[test]
fn no_bytes_make_a_decoder_panic() {
    let rounds = if cfg!(debug_assertions) { 500 } else { 5_000 };
    let mut dice = Dice::new(0x0ddb_a11c_afe0_1234);
    for _ in 0..rounds {
        let (_, sample) = SAMPLES[dice.roll(SAMPLES.len())];
        knock(&mutate(&mut dice, sample));
        let noise: Vec<u8> = (0..dice.roll(40)).map(|_| dice.roll(256).to_le_bytes()[0]).collect();
        knock(&noise);
    }
}

#[test]
fn the_samples_are_valid_before_they_are_spoilt() {
    assert_eq!(sent(SEND).message.parts.len(), 4);
    assert!(decode_send_body(REST_SEND.as_bytes(), &DecodeLimits::default()).is_ok());
}

#[test]
fn too_much_of_anything_is_refused_with_the_limit() {
    let parts = |count: usize| {
        let parts = "{\"text\":\"x\"},".repeat(count - 1);
        format!(r#"{{"message":{{"role":"user","parts":[{parts}{{"text":"x"}}]}}}}"#)
    };
    assert_eq!(
        wrong(super::decode("message/send", &parts(1_001))),
        ["message.parts: has 1001 parts; the limit is 1000"]
    );
    assert_eq!(sent(&parts(1_000)).message.parts.len(), 1_000);
    let body = parts(1_001).replace("parts", "content").replace("user", "ROLE_USER");
    let refused = wrong(decode_send_body(body.as_bytes(), &DecodeLimits::default()));
    assert_eq!(refused, ["message.content: has 1001 parts; the limit is 1000"]);
    let id = format!(r#"{{"id":"{}"}}"#, "x".repeat(257));
    assert_eq!(wrong(super::decode("tasks/get", &id)), ["id: is 257 bytes long; the limit is 256"]);
    let deep = format!("{}{}", "[".repeat(200_000), "]".repeat(200_000));
    let data = format!(r#"{{"message":{{"role":"user","parts":[{{"kind":"data","data":{deep}}}]}}}}"#);
    assert_eq!(
        wrong(super::decode("message/send", &data)),
        ["message.parts[0].data: is not acceptable JSON: nested too deep"]
    );
    let noise = "x".repeat(1_000_000);
    for params in [
        format!(r#"{{"message":{{"kind":"{noise}","role":"{noise}","parts":[{{"kind":"{noise}","type":"y"}}]}}}}"#),
        format!(r#"{{"message":{{"role":"user","parts":[{{"kind":"{noise}","text":""}}]}}}}"#),
    ] {
        let error = super::decode("message/send", &params).unwrap_err();
        assert!(encoded(|out| encode_rpc_error(&error, "1", out)).len() < 5_000);
    }
}
