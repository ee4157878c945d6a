//! Free-form JSON and refusals on the wire.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use expect_test::expect;
use prost::Message;

use crate::error::{ProtocolError, Violation};
use crate::model::{Json, JsonLimits, TaskState, Timestamp};

use super::free_form::{read_any, read_object};
use super::{Status, Verbatim, encode_error, encode_object, encode_timestamp, encode_value, generated as rpc};

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
    let Status { code, message, details } = encode_error(error, TaskState::word);
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
    let status = encode_error(&error, TaskState::word);
    assert!(status.details.len() + status.message.len() < 6_000, "{}", status.details.len());
}
