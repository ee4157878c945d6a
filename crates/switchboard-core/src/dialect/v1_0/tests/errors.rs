//! Refusals as they are written. The shapes of the examples are in the golden files; here is what each error adds.

use serde::Deserialize;

use crate::dialect::codes;
use crate::error::ProtocolError as E;

use super::super::{encode_http_error, encode_rpc_error};
use super::encoded;

#[derive(Deserialize)]
struct RpcResponse {
    jsonrpc: String,
    error: Option<RpcError>,
}

#[derive(Deserialize)]
struct RpcError {
    code: i32,
    data: Vec<Detail>,
}

#[derive(Deserialize)]
struct Detail {
    #[serde(rename = "@type")]
    kind: String,
}

#[test]
fn the_id_is_repeated_as_it_stood() {
    for id in ["7", "\"r-1\"", "null", "\"7\"", "1.0"] {
        let written = encoded(|out| encode_rpc_error(&E::PushNotificationNotSupported, id, out));
        assert!(written.starts_with(&format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{{"code":-32003,"#)), "{written}");
    }
}

#[test]
fn details_are_typed_objects_and_the_first_is_error_info() {
    for (error, kinds) in [
        (E::unsupported("no"), &["ErrorInfo"][..]),
        (E::invalid("a.b", "wrong"), &["ErrorInfo", "BadRequest"]),
        (E::Unavailable { reason: "busy".to_owned(), retry_after_s: 5 }, &["ErrorInfo", "RetryInfo"]),
    ] {
        let written = encoded(|out| encode_rpc_error(&error, "1", out));
        let response: RpcResponse = serde_json::from_str(&written).unwrap();
        let rpc = response.error.expect("it is an error");
        assert_eq!((response.jsonrpc.as_str(), rpc.code), ("2.0", codes::of(&error).jsonrpc));
        let found: Vec<_> =
            rpc.data.iter().map(|d| d.kind.strip_prefix("type.googleapis.com/google.rpc.").unwrap()).collect();
        assert_eq!(found, kinds);
    }
}

#[test]
fn a_temporary_error_says_when_to_come_back() {
    let error = E::Unavailable { reason: "the inbox is full".to_owned(), retry_after_s: 5 };
    let written = encoded(|out| encode_http_error(&error, codes::of(&error).http, out));
    assert!(written.starts_with(r#"{"error":{"code":503,"status":"UNAVAILABLE","#), "{written}");
    assert!(written.contains(r#"google.rpc.RetryInfo","retryDelay":"5s"}"#), "{written}");
}

#[test]
fn hostile_text_in_an_error_stays_inside_its_string() {
    let error = E::MethodNotFound { method: "\"},\n{\"x\":\u{0}".to_owned(), hint: None };
    for written in [
        encoded(|out| encode_rpc_error(&error, "1", out)),
        encoded(|out| encode_http_error(&error, codes::of(&error).http, out)),
    ] {
        assert!(serde_json::from_str::<serde::de::IgnoredAny>(&written).is_ok(), "{written}");
        assert!(!written.contains('\n'));
    }
}
