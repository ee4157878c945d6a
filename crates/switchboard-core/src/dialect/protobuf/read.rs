//! From the bytes of a message to the model's types, by the same [`Check`] as the textual forms: same names of fields, same
//! limits, same words. Enums go both ways here, since both packages have the same numbers for them.

use std::borrow::Cow;
use std::fmt::Arguments;

use bytes::Bytes;
use prost::Message;

use crate::dialect::json::{Check, DecodeLimits, List, NameOrNumber, Text, excerpt};
use crate::dialect::wire::V1_0;
use crate::error::ProtocolError;
use crate::model::{Json, Role, TaskState, Timestamp};

use super::count::{self, Lists};
use super::free_form::Verbatim;
use super::free_form::{read_any, read_object};

/// Reads the message of a request.
///
/// # Errors
/// When the bytes are no such message, or hold a list too long to be built.
pub(crate) fn decode<M: Message + Default>(
    message: Bytes,
    lists: Lists,
    limits: &DecodeLimits,
) -> Result<M, ProtocolError> {
    count::check(&message, lists, limits)?;
    M::decode(message).map_err(|error| ProtocolError::InvalidRequest {
        reason: format!("the message is not what its method takes: {}", why(&error)),
    })
}

/// Reads the message of an answer.
///
/// # Errors
/// As [`decode`], but that it is the agent who did wrong.
pub(crate) fn decode_answer<M: Message + Default>(
    message: Bytes,
    lists: Lists,
    limits: &DecodeLimits,
) -> Result<M, ProtocolError> {
    count::check(&message, lists, limits)?;
    M::decode(message).map_err(|error| ProtocolError::InvalidAgentResponse {
        reason: format!("the message is not what its method answers: {}", why(&error)),
    })
}

/// "failed to decode Protobuf message: Message.role: …" names the place as well as can be.
#[cold]
fn why(error: &prost::DecodeError) -> String {
    let why = error.to_string();
    excerpt(why.strip_prefix("failed to decode Protobuf message: ").unwrap_or(&why), 256)
}

/// A text for the checks of [`Check`]; to them an empty one is absent, as it is in protobuf.
#[must_use]
pub fn text(text: &str) -> Option<Text<'_>> {
    Some(Text(Cow::Borrowed(text)))
}

/// A list for the checks of [`Check`].
#[must_use]
pub fn list<T>(items: Vec<T>) -> Option<List<T>> {
    Some(List { total: items.len(), items })
}

/// A text that is absent when it is empty, as it is in protobuf.
pub(crate) fn optional(text: String) -> Option<String> {
    Some(text).filter(|text| !text.is_empty())
}

/// Reads each entry of a list, at its place. Of a list that is too long nothing is read.
pub(crate) fn each<T, M>(
    check: &mut Check<'_>,
    at: Arguments<'_>,
    (what, max): (&str, usize),
    items: Vec<T>,
    read: impl Fn(T, &mut Check<'_>, Arguments<'_>) -> M,
) -> Vec<M> {
    let items = check.bounded(at, what, max, List { total: items.len(), items });
    items.into_iter().enumerate().map(|(i, item)| read(item, check, format_args!("{at}[{i}]"))).collect()
}

/// Reads the parts of a message or an artifact. There must be one.
pub(crate) fn read_parts<T, M>(
    check: &mut Check<'_>,
    at: Arguments<'_>,
    parts: Vec<T>,
    read: impl Fn(T, &mut Check<'_>, Arguments<'_>) -> M,
) -> Vec<M> {
    if parts.is_empty() {
        check.violation(at, "needs at least one part");
    }
    let max = check.limits.parts_max;
    each(check, at, ("parts", max), parts, read)
}

pub(crate) fn role_number(role: Role) -> i32 {
    match role {
        Role::User => 1,
        Role::Agent => 2,
    }
}

pub(crate) fn read_role(check: &mut Check<'_>, at: Arguments<'_>, number: i32) -> Role {
    V1_0.read_role(&NameOrNumber::Number(number.into())).unwrap_or_else(|| {
        let description = match number {
            0 => "is required: ROLE_USER or ROLE_AGENT".to_owned(),
            other => format!("{other} is neither ROLE_USER nor ROLE_AGENT"),
        };
        check.violation(at, description);
        Role::User
    })
}

pub(crate) fn state_number(state: TaskState) -> i32 {
    match state {
        TaskState::Submitted => 1,
        TaskState::Working => 2,
        TaskState::Completed => 3,
        TaskState::Failed => 4,
        TaskState::Canceled => 5,
        TaskState::InputRequired => 6,
        TaskState::Rejected => 7,
        TaskState::AuthRequired => 8,
        TaskState::Unspecified => 0,
    }
}

pub(crate) fn read_state(check: &mut Check<'_>, at: Arguments<'_>, number: i32) -> TaskState {
    match V1_0.read_state(&NameOrNumber::Number(number.into())) {
        Some(Some(state)) => state,
        Some(None) => TaskState::Unspecified,
        None => {
            check.violation(at, format!("{number} is not a task state"));
            TaskState::Submitted
        }
    }
}

/// Free-form JSON that is an object.
pub fn decode_object(check: &mut Check<'_>, field: Arguments<'_>, sent: Option<&Verbatim>) -> Option<Json> {
    match read_object(sent?, check.limits.json) {
        Ok(json) => Some(json),
        Err(fault) => {
            check.violation(field, format!("is not acceptable JSON: {fault}"));
            None
        }
    }
}

/// Free-form JSON of any kind.
pub fn decode_value(check: &mut Check<'_>, field: Arguments<'_>, sent: &Verbatim) -> Json {
    read_any(sent, check.limits.json).unwrap_or_else(|fault| {
        check.violation(field, format!("is not acceptable JSON: {fault}"));
        Json::from_trusted("null")
    })
}

/// A moment; finer than a millisecond is cut off.
pub fn decode_timestamp(
    check: &mut Check<'_>,
    field: Arguments<'_>,
    sent: Option<prost_types::Timestamp>,
) -> Option<Timestamp> {
    let prost_types::Timestamp { seconds, nanos } = sent?;
    let ms = seconds.checked_mul(1000).and_then(|ms| ms.checked_add(i64::from(nanos) / 1_000_000));
    // What the model cannot hold it would move to its nearest end.
    let moment = ms.map(Timestamp::from_ms).filter(|moment| Some(moment.as_ms()) == ms);
    if moment.is_none() || !(0..1_000_000_000).contains(&nanos) {
        check.violation(field, "must be a timestamp between the years 1 and 9999");
        return None;
    }
    moment
}

#[must_use]
pub fn encode_timestamp(moment: Timestamp) -> prost_types::Timestamp {
    let ms = moment.as_ms();
    let nanos = i32::try_from(ms.rem_euclid(1000) * 1_000_000).unwrap_or_default();
    prost_types::Timestamp { seconds: ms.div_euclid(1000), nanos }
}
