//! Hostile input: too much of everything, characters that break lines, and bytes at random. Nothing panics, nothing
//! grows without bound, and what is refused is refused by name.

use std::borrow::Cow;

use crate::error::ProtocolError;
use crate::model::{JsonLimits, PartContent};

use crate::dialect::detect::{self, Clues, Ingress, Mount};
use crate::dialect::json::DecodeLimits;
use crate::dialect::testing::{Dice, mutate};

use super::super::{
    decode_call, decode_cancel_body, decode_history_length, decode_list_query, decode_push_config_body,
    decode_push_list_query, decode_send_body, encode_rpc_error,
};
use super::samples::REQUESTS;
use super::{blamed, encoded, send_part, send_with, sent, wrong};

#[test]
fn ten_thousand_parts_are_refused_with_the_limit() {
    let parts =
        |count: usize| send_with(&format!(r#""parts":[{}{{"text":"x"}}]"#, "{\"text\":\"x\"},".repeat(count - 1)));
    assert_eq!(wrong("SendMessage", &parts(10_000)), ["message.parts: has 10000 parts; the limit is 1000"]);
    assert_eq!(wrong("SendMessage", &parts(10_001)), ["message.parts: has 10001 parts; the limit is 1000"]);
    assert_eq!(wrong("SendMessage", &parts(1_001)), ["message.parts: has 1001 parts; the limit is 1000"]);
    assert_eq!(sent(&parts(1_000)).message.parts.len(), 1_000);
    // No configuration makes the list of kept parts grow further.
    let limits = DecodeLimits { parts_max: usize::MAX, ..Default::default() };
    assert!(decode_call("SendMessage", Some(&parts(10_000)), &limits).is_ok());
    assert!(decode_call("SendMessage", Some(&parts(10_001)), &limits).is_err());
}

#[test]
fn long_lists_of_strings_are_refused_with_the_limit() {
    let list = format!("[{}\"x\"]", "\"x\",".repeat(1_000));
    for field in ["extensions", "referenceTaskIds"] {
        let params = send_with(&format!(r#""parts":[{{"text":""}}],"{field}":{list}"#));
        assert_eq!(wrong("SendMessage", &params), [format!("message.{field}: has 1001 entries; the limit is 1000")]);
    }
}

#[test]
fn long_ids_are_refused_and_measured_in_bytes() {
    let id = |id: &str| format!(r#"{{"id":"{id}"}}"#);
    assert!(super::decode("GetTask", &id(&"x".repeat(256))).is_ok());
    assert_eq!(wrong("GetTask", &id(&"x".repeat(257))), ["id: is 257 bytes long; the limit is 256"]);
    assert_eq!(wrong("GetTask", &id(&"ä".repeat(129))), ["id: is 258 bytes long; the limit is 256"]);
}

#[test]
fn control_characters_are_refused_where_they_could_break_a_line() {
    for control in [r"\r\n", r"\n", r"\u0000", r"\u001b", r"\u007f", r"\u0085"] {
        for (method, params, field) in [
            ("GetTask", r#"{"id":"t@"}"#, "id"),
            ("GetTask", r#"{"id":"t","tenant":"a@"}"#, "tenant"),
            ("GetTaskPushNotificationConfig", r#"{"taskId":"t","id":"a@b"}"#, "id"),
            ("CreateTaskPushNotificationConfig", r#"{"taskId":"t","url":"https://h/@"}"#, "url"),
            ("CreateTaskPushNotificationConfig", r#"{"taskId":"t","url":"https://h/","token":"a@b"}"#, "token"),
            (
                "CreateTaskPushNotificationConfig",
                r#"{"taskId":"t","url":"https://h/","authentication":{"scheme":"a@b"}}"#,
                "authentication.scheme",
            ),
            (
                "CreateTaskPushNotificationConfig",
                r#"{"taskId":"t","url":"https://h/","authentication":{"scheme":"a","credentials":"b@c"}}"#,
                "authentication.credentials",
            ),
            ("SendMessage", r#"{"message":{"messageId":"@","role":1,"parts":[{"text":""}]}}"#, "message.messageId"),
            (
                "SendMessage",
                r#"{"message":{"messageId":"m","role":1,"parts":[{"url":"https://h/@"}]}}"#,
                "message.parts[0].url",
            ),
        ] {
            assert_eq!(blamed(method, &params.replace('@', control)), [field], "{params} {control}");
        }
    }
}

#[test]
fn control_characters_in_text_are_content_and_survive() {
    let send = sent(&send_part(r#"{"text":"a\u0000b\r\n\u001b"}"#));
    assert_eq!(send.message.parts[0].content, PartContent::Text("a\0b\r\n\u{1b}".to_owned()));
    let written = encoded(|out| super::super::encode_message(&send.message, out));
    assert!(written.contains(r#"{"text":"a\u0000b\r\n\u001b"}"#), "{written}");
}

#[test]
fn deep_values_are_refused_where_they_stand() {
    let nested = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
    let part = |depth| send_part(&format!(r#"{{"data":{}}}"#, nested(depth)));
    assert!(super::decode("SendMessage", &part(64)).is_ok());
    assert_eq!(wrong("SendMessage", &part(65)), ["message.parts[0].data: is not acceptable JSON: nested too deep"]);
    // Far beyond what a recursive reader would survive, both in a field we read and in one we skip.
    assert_eq!(blamed("SendMessage", &part(200_000)), ["message.parts[0].data"]);
    assert_eq!(blamed("SendMessage", &send_part(&nested(200_000))), ["message.parts[0]"]);
    let skipped = send_part(&format!(r#"{{"text":"x","unknown":{}}}"#, nested(200_000)));
    assert!(super::decode("SendMessage", &skipped).is_ok());
    // The configured depth counts, whatever it is.
    let limits = DecodeLimits { json: JsonLimits { depth_max: 1_000_000 }, ..Default::default() };
    assert!(decode_call("SendMessage", Some(&part(200_000)), &limits).is_err());
}

#[test]
fn the_answer_to_nonsense_is_short() {
    let noise = "x".repeat(1_000_000);
    for params in [
        format!(r#"{{"{noise}":1,"message":{{"role":"{noise}"}}}}"#),
        format!(r#"{{"message":{{"messageId":["{noise}"]}}}}"#),
        format!(r#"{{"message":{{"messageId":"{noise}"}}}}"#),
        send_part(&format!(r#"{{"data":{{"{noise}":1,"{noise}":2}}}}"#)),
        send_with(&format!(r#""parts":[{}{{}}]"#, "{},".repeat(999))),
    ] {
        let error = super::decode("SendMessage", &params).unwrap_err();
        let written = encoded(|out| encode_rpc_error(&error, "1", out));
        assert!(written.len() < 5_000, "{} bytes", written.len());
    }
    let error = super::decode(&noise, "{}").unwrap_err();
    assert!(matches!(&error, ProtocolError::MethodNotFound { method, .. } if method.len() < 100));
}

/// Puts bytes through every decoder. None may panic or hang.
fn knock(bytes: &[u8]) {
    let limits = DecodeLimits::default();
    let text = String::from_utf8_lossy(bytes);
    for (method, _) in REQUESTS {
        if let Err(error) = decode_call(method, Some(&text), &limits) {
            let written = encoded(|out| encode_rpc_error(&error, "null", out));
            assert!(serde_json::from_str::<serde::de::IgnoredAny>(&written).is_ok(), "{written}");
        }
    }
    let _ = decode_send_body(bytes, &limits);
    let _ = decode_cancel_body(bytes, &limits);
    let _ = decode_push_config_body(bytes, &limits);
    let pairs: Vec<_> = text
        .split('&')
        .filter_map(|pair| pair.split_once('='))
        .map(|(name, value)| (Cow::Borrowed(name), Cow::Borrowed(value)))
        .collect();
    let _ = decode_list_query(&pairs, &limits);
    let _ = decode_push_list_query(&pairs, &limits);
    let _ = decode_history_length(&text);
    let ingress = Ingress::JsonRpc { method: &text, params: Some(&text) };
    let clues = Clues { header: Some(&text), query: Some(&text), default: None, mount: Mount::FREE, ingress };
    let _ = detect::dialect(&clues);
    let ingress = Ingress::JsonRpc { method: "message/send", params: Some(&text) };
    let _ = detect::dialect(&Clues { header: None, query: None, ingress, ..clues });
}

#[test]
fn no_bytes_make_a_decoder_panic() {
    let rounds = if cfg!(debug_assertions) { 1_000 } else { 10_000 };
    let mut dice = Dice::new(0x5eed_1e55_c0ff_ee11);
    for _ in 0..rounds {
        let (_, sample) = REQUESTS[dice.roll(REQUESTS.len())];
        knock(&mutate(&mut dice, sample));
        let noise: Vec<u8> = (0..dice.roll(40)).map(|_| dice.roll(256).to_le_bytes()[0]).collect();
        knock(&noise);
    }
}
