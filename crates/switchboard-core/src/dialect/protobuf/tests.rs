//! Free-form JSON and refusals on the wire, and in `forms` every message of both packages.

mod forms;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use expect_test::expect;
use prost::Message;

use crate::dialect::testing::every_refusal;
use crate::dialect::wire::{V0_3_REST, V1_0};
use crate::dialect::{v0_3, v1_0};
use crate::error::{ProtocolError, Violation};
use crate::model::{Json, JsonLimits, Package, Role, TaskState, Timestamp};

use super::free_form::{read_any, read_object};
use super::{
    Status, Verbatim, encode_object, encode_timestamp, encode_value, generated as rpc, read_error, role_number,
    state_number, write_error,
};

fn through(text: &str) -> String {
    let json = Json::parse(text, JsonLimits::default()).unwrap();
    read_any(&encode_value(&json), JsonLimits::default()).unwrap().as_str().to_owned()
}

#[test]
fn values_come_back_as_they_went() {
    let long = format!("{{\"long\":\"{}\"}}", "x".repeat(40_000));
    for text in [
        "null",
        "true",
        "false",
        "0",
        "-17",
        "9007199254740992",
        "0.1",
        "-0.0",
        "1e+300",
        "\"\"",
        "\"ä \\\" \\\\ \\n\"",
        "[]",
        "{}",
        "[[],{},[null,[1,2]]]",
        "{\"a\":{\"b\":[{\"c\":\"d\"}]},\"e\":[]}",
        &long,
    ] {
        assert_eq!(through(text), text);
    }
}

#[test]
fn what_protobuf_cannot_hold_is_rounded_or_reordered() {
    assert_eq!(through("9007199254740993"), "9007199254740992", "a double");
    assert_eq!(through("18446744073709551615"), "1.8446744073709552e+19");
    assert_eq!(through("1.0"), "1");
    assert_eq!(through("{\"b\":1,\"a\":2}"), "{\"a\":2,\"b\":1}", "a map");
}

#[test]
fn the_last_of_two_equal_keys_counts() {
    let one = encode_object(&Json::from_trusted("{\"a\":1}"));
    let two = encode_object(&Json::from_trusted("{\"a\":2}"));
    let both = Verbatim([one.0, two.0].concat());
    assert_eq!(read_object(&both, JsonLimits::default()).unwrap().as_str(), "{\"a\":2}");
}

#[test]
fn an_object_in_place_of_an_object_only() {
    assert_eq!(encode_object(&Json::from_trusted("[1]")), Verbatim::default());
    assert_eq!(read_object(&Verbatim::default(), JsonLimits::default()).unwrap().as_str(), "{}");
}

#[test]
fn times_before_1970_have_nanoseconds_that_count_up() {
    let time = encode_timestamp(Timestamp::from_ms(-1));
    assert_eq!((time.seconds, time.nanos), (-1, 999_000_000));
}

fn picture(error: &ProtocolError) -> String {
    let Status { code, message, details } = write_error(error, TaskState::word);
    let status = rpc::Status::decode(STANDARD_NO_PAD.decode(details).unwrap().as_slice()).unwrap();
    assert_eq!((status.code, status.message.as_str()), (code.into(), message.as_str()));
    let mut lines = vec![format!("{code} {message}")];
    for detail in status.details {
        let name = detail.type_url.strip_prefix("type.googleapis.com/google.rpc.").unwrap();
        lines.push(match name {
            "ErrorInfo" => format!("{:?}", rpc::ErrorInfo::decode(detail.value.as_slice()).unwrap()),
            "BadRequest" => format!("{:?}", rpc::BadRequest::decode(detail.value.as_slice()).unwrap()),
            "RetryInfo" => format!("{:?}", rpc::RetryInfo::decode(detail.value.as_slice()).unwrap()),
            other => panic!("{other}"),
        });
    }
    lines.join("\n") + "\n"
}

#[test]
fn refusals_carry_their_details() {
    let mut shown = picture(&ProtocolError::TaskNotCancelable { id: "t-1".into(), state: TaskState::Failed });
    shown += &picture(&ProtocolError::invalid("message.parts", "needs at least one part"));
    shown += &picture(&ProtocolError::Unavailable { reason: "shutting down".to_owned(), retry_after_s: 5 });
    expect![[r#"
        9 Task cannot be canceled: it is failed
        ErrorInfo { reason: "TASK_NOT_CANCELABLE", domain: "a2a-protocol.org", metadata: {"state": "failed", "taskId": "t-1"} }
        3 Invalid parameters: message.parts: needs at least one part
        ErrorInfo { reason: "INVALID_PARAMS", domain: "a2a-protocol.org", metadata: {} }
        BadRequest { field_violations: [FieldViolation { field: "message.parts", description: "needs at least one part" }] }
        14 Temporarily unavailable: shutting down
        ErrorInfo { reason: "UNAVAILABLE", domain: "a2a-protocol.org", metadata: {} }
        RetryInfo { retry_delay: Some(Duration { seconds: 5, nanos: 0 }) }
    "#]]
    .assert_eq(&shown);
}

#[test]
fn trailers_stay_small_whatever_was_wrong() {
    let violation = |i: usize| Violation { field: format!("f{i}"), description: "x".repeat(300) };
    let error = ProtocolError::InvalidParams { violations: (0..20).map(violation).collect() };
    let status = write_error(&error, TaskState::word);
    assert!(status.details.len() + status.message.len() < 6_000, "{}", status.details.len());
}

#[test]
fn a_refusal_is_read_as_it_was_written() {
    for package in [Package::V1_0, Package::V0_3] {
        for error in every_refusal() {
            assert_eq!(read_error(&package.write_error(&error)).protocol_error(None), Some(error), "{package:?}");
        }
    }
}

/// What other servers send has a code and a text, and nothing else that can be relied on.
#[test]
fn a_foreign_refusal_is_read_as_far_as_it_is_understood() {
    let plain = |code, details: &str| Status { code, message: "nope".to_owned(), details: details.to_owned() };
    let read = |status: &Status| read_error(status).protocol_error(None);
    let gone = Some(ProtocolError::TaskNotFound { id: "".into() });
    for details in ["", "?", "AAAA", "CAU"] {
        assert_eq!(read(&plain(5, details)), gone, "{details}");
    }
    assert_eq!(read(&plain(12, "")), Some(ProtocolError::unsupported("nope")));
    assert_eq!(read(&plain(3, "")), Some(ProtocolError::invalid("", "nope")));
    assert_eq!(read(&plain(0, "")), None);
    assert_eq!(read(&plain(1, "")), None);
    let delay = prost_types::Duration { seconds: 1, nanos: 1 };
    let retry = rpc::RetryInfo { retry_delay: Some(delay) };
    let detail = prost_types::Any {
        type_url: "type.googleapis.com/google.rpc.RetryInfo".to_owned(),
        value: retry.encode_to_vec(),
    };
    let details = rpc::Status { code: 8, message: String::new(), details: vec![detail, prost_types::Any::default()] };
    let padded = base64::engine::general_purpose::STANDARD.encode(details.encode_to_vec());
    let slow = ProtocolError::Unavailable { reason: "nope".to_owned(), retry_after_s: 2 };
    assert_eq!(read(&plain(8, &padded)), Some(slow));
}

/// The numbers are written down once for both packages, so both must have them.
#[test]
fn the_sdks_of_0_3_name_an_error_in_its_text() {
    let read = |code: u8, message: &str| {
        read_error(&Status { code, message: message.to_owned(), details: String::new() }).reason.unwrap_or_default()
    };
    assert_eq!(read(12, "TaskNotCancelableError: Task cannot be canceled"), "TASK_NOT_CANCELABLE");
    assert_eq!(read(12, "PushNotificationNotSupportedError: no"), "PUSH_NOTIFICATION_NOT_SUPPORTED");
    assert_eq!(read(9, "Task not cancelable: 41665d3a"), "TASK_NOT_CANCELABLE");
    // A name that is none of the protocol's says nothing.
    assert_eq!(read(12, "SomeError: Task cannot be canceled"), "UNSUPPORTED_OPERATION");
}

#[test]
fn states_and_roles_have_the_numbers_of_both_packages() {
    for state in TaskState::ALL {
        let number = state_number(state);
        let names = [
            v1_0::proto::generated::TaskState::try_from(number).unwrap().as_str_name(),
            v0_3::proto::generated::TaskState::try_from(number).unwrap().as_str_name(),
        ];
        assert_eq!(names, [V1_0.state(state), V0_3_REST.state(state)]);
    }
    for role in [Role::User, Role::Agent] {
        let number = role_number(role);
        let names = [
            v1_0::proto::generated::Role::try_from(number).unwrap().as_str_name(),
            v0_3::proto::generated::Role::try_from(number).unwrap().as_str_name(),
        ];
        assert_eq!(names, [V1_0.role(role), V0_3_REST.role(role)]);
    }
}
