//! Query parameters of HTTP+JSON, already split and percent-decoded. They hold what the fields of the same name hold in
//! a body, as text. Unknown parameters are ignored, as unknown fields are; a repeated one is refused.

use std::borrow::Cow;

use crate::call::ListTasks;
use crate::dialect::json::{Check, DecodeLimits, Int, NameOrNumber, Text};
use crate::error::ProtocolError;

use crate::dialect::wire::{ListTasksParams, V1_0};

/// Decodes the query of `GET /tasks`.
///
/// # Errors
/// [`ProtocolError::InvalidParams`] naming each wrong parameter.
pub fn decode_list_query(
    pairs: &[(Cow<'_, str>, Cow<'_, str>)],
    limits: &DecodeLimits,
) -> Result<ListTasks, ProtocolError> {
    let mut check = Check::new(limits);
    let mut query = Query { pairs, check: &mut check };
    let params = ListTasksParams {
        tenant: None,
        context_id: query.take("contextId", "context_id").map(text),
        status: query.take("status", "status").map(name_or_number),
        page_size: query.int("pageSize", "page_size"),
        page_token: query.take("pageToken", "page_token").map(text),
        history_length: query.int("historyLength", "history_length"),
        status_timestamp_after: query.take("statusTimestampAfter", "status_timestamp_after").map(text),
        include_artifacts: query.bool("includeArtifacts", "include_artifacts"),
    };
    let list = params.read(&mut check, &V1_0);
    check.finish(list)
}

/// Decodes the query of a list of push configs: the page size and the page token.
///
/// # Errors
/// [`ProtocolError::InvalidParams`] naming each wrong parameter.
pub fn decode_push_list_query(
    pairs: &[(Cow<'_, str>, Cow<'_, str>)],
    limits: &DecodeLimits,
) -> Result<(Option<u32>, Option<String>), ProtocolError> {
    let mut check = Check::new(limits);
    let mut query = Query { pairs, check: &mut check };
    let page_size = query.int("pageSize", "page_size");
    let page_token = query.take("pageToken", "page_token").map(str::to_owned);
    let page_size = check.implicit_page_size(page_size);
    let page_token = check.optional_line(format_args!("pageToken"), page_token);
    check.finish((page_size, page_token))
}

/// Decodes the value of `historyLength`.
///
/// # Errors
/// [`ProtocolError::InvalidParams`] naming the parameter.
pub fn decode_history_length(value: &str) -> Result<u32, ProtocolError> {
    match Int::parse(value).map(|Int(number)| u32::try_from(number)) {
        Some(Ok(length)) => Ok(length),
        Some(Err(_)) => Err(ProtocolError::invalid("historyLength", "must not be negative")),
        None => Err(ProtocolError::invalid("historyLength", NOT_AN_INT)),
    }
}

const NOT_AN_INT: &str = "must be a whole number of 32 bits";

struct Query<'q, 'c, 'l> {
    pairs: &'q [(Cow<'q, str>, Cow<'q, str>)],
    check: &'c mut Check<'l>,
}

impl<'q> Query<'q, '_, '_> {
    /// The one value of a parameter, under either of its spellings.
    fn take(&mut self, name: &'static str, proto_name: &'static str) -> Option<&'q str> {
        let mut values = self.pairs.iter().filter(|(key, _)| key == name || key == proto_name);
        let (_, value) = values.next()?;
        if values.next().is_some() {
            self.check.violation(format_args!("{name}"), "must be given once");
        }
        Some(value)
    }

    fn int(&mut self, name: &'static str, proto_name: &'static str) -> Option<Int> {
        let number = Int::parse(self.take(name, proto_name)?);
        if number.is_none() {
            self.check.violation(format_args!("{name}"), NOT_AN_INT);
        }
        number
    }

    fn bool(&mut self, name: &'static str, proto_name: &'static str) -> Option<bool> {
        let value = self.take(name, proto_name)?.parse().ok();
        if value.is_none() {
            self.check.violation(format_args!("{name}"), "must be true or false");
        }
        value
    }
}

fn text(value: &str) -> Text<'_> {
    Text(Cow::Borrowed(value))
}

fn name_or_number(value: &str) -> NameOrNumber<'_> {
    value.parse().map_or(NameOrNumber::Name(Cow::Borrowed(value)), NameOrNumber::Number)
}
