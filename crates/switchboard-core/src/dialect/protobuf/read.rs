//! From the bytes of a request to the model's types, by the same [`Check`] as the textual forms: same names of fields, same
//! limits, same words.

use std::borrow::Cow;
use std::fmt::Arguments;

use bytes::Bytes;
use prost::Message;

use crate::dialect::json::{Check, DecodeLimits, List, Text, excerpt};
use crate::error::ProtocolError;
use crate::model::{Json, Timestamp};

use super::free_form::{read_any, read_object};
use super::{Lists, Verbatim};

/// Reads a message of the generated code.
///
/// # Errors
/// When the bytes are no such message, or hold a list too long to be built.
pub(crate) fn decode<M: Message + Default>(
    message: Bytes,
    lists: &Lists,
    limits: &DecodeLimits,
) -> Result<M, ProtocolError> {
    lists.check(&message, limits)?;
    M::decode(message).map_err(|error| {
        // "failed to decode Protobuf message: Message.role: …" names the place as well as can be.
        let why = error.to_string();
        let why = why.strip_prefix("failed to decode Protobuf message: ").unwrap_or(&why);
        ProtocolError::InvalidRequest {
            reason: format!("the message is not what its method takes: {}", excerpt(why, 256)),
        }
    })
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
