//! What is refused, with which code and in which words.

use crate::error::ProtocolError;
use crate::model::TaskState;

use super::super::{encode_http_error, encode_rpc_error, no_streaming};
use super::{decode, encoded};

fn said(error: &ProtocolError) -> String {
    let written = encoded(|out| encode_rpc_error(error, "7", out));
    let value: serde_json::Value = serde_json::from_str(&written).unwrap();
    assert_eq!(value["id"], 7);
    format!("{} {}", value["error"]["code"], value["error"]["message"].as_str().unwrap())
}

#[test]
fn a_call_that_is_wrong_is_refused_in_the_original_s_words() {
    let message = "-32602 Invalid params: message with role and parts required";
    let id = "-32602 Invalid params: id required";
    for (method, params, expected) in [
        ("message/send", "{}", message),
        ("message/send", r#"{"message":null}"#, message),
        ("message/send", r#"{"message":"hi"}"#, message),
        ("message/send", r#"{"message":{"parts":[]}}"#, message),
        ("message/send", r#"{"message":{"role":"","parts":[]}}"#, message),
        ("message/send", r#"{"message":{"role":"user"}}"#, message),
        ("message/stream", r#"{"message":{"role":"user","parts":{}}}"#, message),
        ("tasks/get", "{}", id),
        ("tasks/get", r#"{"id":""}"#, id),
        ("tasks/cancel", r#"{"id":5}"#, id),
        ("tasks/list", "{}", "-32601 Method not found: tasks/list"),
        (
            "message/send",
            r#"{"message":{"role":"user","parts":[]}}"#,
            "-32602 Invalid params: message.parts: needs at least one part",
        ),
        (
            "message/send",
            r#"{"message":{"role":"user","parts":[{"type":"text"}]}}"#,
            "-32602 Invalid params: message.parts[0].text: is required in a part of type text",
        ),
        (
            "message/send",
            r#"{"message":{"role":"user","parts":[{"type":"text","text":5}]}}"#,
            "-32602 Invalid params: message.parts[0].text: invalid type: integer `5`, expected a string",
        ),
        (
            "message/send",
            r#"{"message":{"role":"ROLE_USER","parts":[{"type":"text","text":"x"}]}}"#,
            "-32602 Invalid params: message.role: ROLE_USER is neither user nor agent",
        ),
        (
            "message/send",
            r#"{"message":{"role":"user","parts":[{"type":"image","data":"x"}]}}"#,
            "-32602 Invalid params: message.parts[0]: is of type image, which is none of text, file and data",
        ),
        (
            "message/send",
            r#"{"message":{"role":"user","parts":[{"type":"file","file":{"bytes":"aGk=","uri":"https://x.example"}}]}}"#,
            "-32602 Invalid params: message.parts[0].file: needs either bytes or uri",
        ),
    ] {
        assert_eq!(said(&decode(method, params).unwrap_err()), expected, "{method} {params}");
    }
    let long = format!(
        r#"{{"message":{{"role":"user","parts":[{{"type":"text","text":"x"}}]}},"idempotencyKey":"{}"}}"#,
        "k".repeat(129)
    );
    let refused = said(&decode("message/send", &long).unwrap_err());
    assert_eq!(refused, "-32602 Invalid params: idempotencyKey: is longer than 128 characters");
}

#[test]
fn only_true_beside_the_message_makes_a_send_async() {
    for (beside, expected) in [
        (r#""async":true"#, true),
        (r#""async":false"#, false),
        (r#""async":"true""#, false),
        (r#""async":1"#, false),
        (r#""async":null"#, false),
        (r#""metadata":{"async":true}"#, false),
    ] {
        let params = format!(r#"{{"message":{{"role":"user","parts":[{{"type":"text","text":"x"}}]}},{beside}}}"#);
        assert_eq!(decode("message/send", &params).unwrap().is_async, expected, "{beside}");
    }
}

#[test]
fn every_other_refusal_has_its_code_and_words() {
    let text = || "because".to_owned();
    for (error, expected) in [
        (ProtocolError::Unauthenticated { reason: text() }, "-32001 Authentication required"),
        (ProtocolError::TaskNotFound { id: "t".into() }, "-32001 Task not found"),
        (ProtocolError::AgentFailed { reason: text() }, "-32000 because"),
        (ProtocolError::ParseError { reason: text() }, "-32600 Invalid JSON-RPC request"),
        (ProtocolError::InvalidRequest { reason: text() }, "-32600 Invalid JSON-RPC request"),
        (no_streaming(), "-32601 Streaming not supported"),
        (
            ProtocolError::TaskNotCancelable { id: "t".into(), state: TaskState::Completed },
            "-32002 Task cannot be canceled: it is completed",
        ),
    ] {
        assert_eq!(said(&error), expected);
    }
    let refused = ProtocolError::PermissionDenied { reason: text() };
    assert_eq!(encoded(|out| encode_http_error(&refused, out)), r#"{"error":"Permission denied: because"}"#);
}
