//! The table of numbers, whole: a changed number is a broken client.

use expect_test::expect;

use crate::error::ProtocolError as E;
use crate::model::TaskState;

use super::{REASONS, of, reason_of, reason_of_http};

fn every_error() -> Vec<E> {
    let text = String::new;
    vec![
        E::AgentFailed { reason: text() },
        E::TaskNotFound { id: "t".into() },
        E::TaskNotCancelable { id: "t".into(), state: TaskState::Completed },
        E::PushNotificationNotSupported,
        E::UnsupportedOperation { reason: text() },
        E::ContentTypeNotSupported { reason: text() },
        E::InvalidAgentResponse { reason: text() },
        E::ExtendedAgentCardNotConfigured,
        E::ExtensionSupportRequired { uri: text(), header: "A2A-Extensions".into() },
        E::VersionNotSupported { requested: text(), supported: Vec::new(), fix: None },
        E::ParseError { reason: text() },
        E::InvalidRequest { reason: text() },
        E::MethodNotFound { method: text(), hint: None },
        E::InvalidParams { violations: Vec::new() },
        E::Internal { incident: text() },
        E::Unauthenticated { reason: text() },
        E::PermissionDenied { reason: text() },
        E::Unavailable { reason: text(), retry_after_s: 1 },
        E::ResourceExhausted { reason: text(), retry_after_s: 1 },
        E::TooLarge { what: "body".into(), bytes_max: 1 },
    ]
}

#[test]
fn every_error_has_its_row() {
    let rows: String = every_error()
        .iter()
        .map(of)
        .map(|c| format!("{} {} {} {} {}\n", c.jsonrpc, c.http, c.grpc, c.status, c.reason))
        .collect();
    expect![[r#"
        -32000 500 13 INTERNAL AGENT_FAILED
        -32001 404 5 NOT_FOUND TASK_NOT_FOUND
        -32002 400 9 FAILED_PRECONDITION TASK_NOT_CANCELABLE
        -32003 400 9 FAILED_PRECONDITION PUSH_NOTIFICATION_NOT_SUPPORTED
        -32004 400 9 FAILED_PRECONDITION UNSUPPORTED_OPERATION
        -32005 400 3 INVALID_ARGUMENT CONTENT_TYPE_NOT_SUPPORTED
        -32006 500 13 INTERNAL INVALID_AGENT_RESPONSE
        -32007 400 9 FAILED_PRECONDITION EXTENDED_AGENT_CARD_NOT_CONFIGURED
        -32008 400 9 FAILED_PRECONDITION EXTENSION_SUPPORT_REQUIRED
        -32009 400 9 FAILED_PRECONDITION VERSION_NOT_SUPPORTED
        -32700 400 3 INVALID_ARGUMENT PARSE_ERROR
        -32600 400 3 INVALID_ARGUMENT INVALID_REQUEST
        -32601 404 12 UNIMPLEMENTED METHOD_NOT_FOUND
        -32602 400 3 INVALID_ARGUMENT INVALID_PARAMS
        -32603 500 13 INTERNAL INTERNAL_ERROR
        -31401 401 16 UNAUTHENTICATED UNAUTHENTICATED
        -31403 403 7 PERMISSION_DENIED PERMISSION_DENIED
        -32050 503 14 UNAVAILABLE UNAVAILABLE
        -32052 429 8 RESOURCE_EXHAUSTED RESOURCE_EXHAUSTED
        -32051 413 8 RESOURCE_EXHAUSTED PAYLOAD_TOO_LARGE
    "#]]
    .assert_eq(&rows);
}

#[test]
fn no_two_errors_share_a_code_or_a_reason() {
    let rows: Vec<_> = every_error().iter().map(of).collect();
    for (i, a) in rows.iter().enumerate() {
        for b in &rows[i + 1..] {
            assert_ne!(a.jsonrpc, b.jsonrpc);
            assert_ne!(a.reason, b.reason);
        }
    }
}

#[test]
fn a_code_leads_back_to_its_reason() {
    for codes in every_error().iter().map(of) {
        assert_eq!(reason_of(codes.jsonrpc.into()), Some(codes.reason));
    }
    assert_eq!(REASONS.len(), every_error().len());
    assert_eq!(reason_of(-1), None);
}

/// The Python SDK of 0.3 answers over HTTP with a status and a text.
#[test]
fn a_status_of_http_leads_to_a_reason() {
    assert_eq!(
        [404, 409, 422].map(reason_of_http),
        [Some("TASK_NOT_FOUND"), Some("TASK_NOT_CANCELABLE"), Some("INVALID_REQUEST"),]
    );
}
