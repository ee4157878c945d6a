//! Query parameters: the same rules as for fields, and the parameter is named.

use std::borrow::Cow;

use crate::call::ListTasks;
use crate::error::ProtocolError;
use crate::model::{TaskState, Timestamp};

use crate::dialect::json::DecodeLimits;

use super::super::{decode_history_length, decode_list_query, decode_push_list_query};

fn pairs(query: &'static str) -> Vec<(Cow<'static, str>, Cow<'static, str>)> {
    let split = query.split('&').filter(|pair| !pair.is_empty());
    split.filter_map(|pair| pair.split_once('=')).map(|(name, value)| (name.into(), value.into())).collect()
}

fn list(query: &'static str) -> Result<ListTasks, ProtocolError> {
    decode_list_query(&pairs(query), &DecodeLimits::default())
}

fn blamed<T: std::fmt::Debug>(result: Result<T, ProtocolError>) -> Vec<String> {
    match result {
        Err(ProtocolError::InvalidParams { violations }) => violations.into_iter().map(|v| v.field).collect(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn every_parameter_of_a_list_is_read() {
    let expected = ListTasks {
        context_id: Some("c-10".into()),
        state: Some(TaskState::Working),
        page_size: Some(20),
        page_token: Some("p".to_owned()),
        history_length: Some(0),
        status_since: Timestamp::parse_rfc3339("2026-02-03T00:00:00Z"),
        include_artifacts: true,
    };
    let camel = "contextId=c-10&status=TASK_STATE_WORKING&pageSize=20&pageToken=p&historyLength=0\
        &statusTimestampAfter=2026-02-03T00:00:00Z&includeArtifacts=true";
    let snake = "context_id=c-10&status=2&page_size=20&page_token=p&history_length=0\
        &status_timestamp_after=2026-02-03T02:00:00+02:00&include_artifacts=true";
    assert_eq!(list(camel), Ok(expected.clone()));
    assert_eq!(list(snake), Ok(expected));
}

#[test]
fn no_parameters_and_unknown_ones_ask_for_everything() {
    assert_eq!(list(""), Ok(ListTasks::default()));
    assert_eq!(list("tenant=acme&A2A-Version=1.0&x=y"), Ok(ListTasks::default()));
    assert_eq!(
        list("contextId=&pageToken=&status=TASK_STATE_UNSPECIFIED&includeArtifacts=false"),
        Ok(ListTasks::default())
    );
}

#[test]
fn each_wrong_parameter_is_named() {
    assert_eq!(
        blamed(list("status=busy&pageSize=many&historyLength=-1&statusTimestampAfter=now&includeArtifacts=1")),
        ["pageSize", "includeArtifacts", "status", "historyLength", "statusTimestampAfter"]
    );
    assert_eq!(blamed(list("pageSize=0")), ["pageSize"]);
    assert_eq!(blamed(list("pageSize=101")), ["pageSize"]);
    assert_eq!(blamed(list("pageSize=")), ["pageSize"]);
    assert_eq!(blamed(list("pageSize=5&page_size=6")), ["pageSize"]);
    assert_eq!(blamed(list("contextId=a&contextId=b")), ["contextId"]);
}

#[test]
fn a_history_length_is_a_count() {
    assert_eq!(decode_history_length("0"), Ok(0));
    assert_eq!(decode_history_length("12"), Ok(12));
    for value in ["-1", "", "x", "1.5", "99999999999"] {
        assert_eq!(blamed(decode_history_length(value)), ["historyLength"], "{value}");
    }
}

#[test]
fn a_list_of_push_configs_can_be_paged() {
    let decode = |query| decode_push_list_query(&pairs(query), &DecodeLimits::default());
    assert_eq!(decode(""), Ok((None, None)));
    assert_eq!(decode("pageSize=5&pageToken=p"), Ok((Some(5), Some("p".to_owned()))));
    assert_eq!(decode("pageSize=0&pageToken="), Ok((None, None)));
    assert_eq!(blamed(decode("pageSize=-5")), ["pageSize"]);
}
