//! The doors for bodies and query parameters of HTTP+JSON. Ids stand in the path.

use crate::call::SendMessage;
use crate::dialect::json::{Check, DecodeLimits, Int, Obj, read_body};
use crate::error::ProtocolError;
use crate::model::{Json, PushConfig, TaskId};

use super::super::push;
use super::convert::send_message;
use super::wire;

/// Decodes the body of a send or a streaming send.
///
/// # Errors
/// [`ProtocolError::ParseError`] when the body is not JSON, [`ProtocolError::InvalidParams`] when a field is wrong.
pub fn decode_send_body(body: &[u8], limits: &DecodeLimits) -> Result<(Option<String>, SendMessage), ProtocolError> {
    let mut check = Check::new(limits);
    let decoded = send_message(&mut check, read_body(body)?);
    check.finish(decoded)
}

/// Decodes the body of a cancel or a subscription, which may be missing, empty or null.
///
/// # Errors
/// As [`decode_send_body`].
pub fn decode_cancel_body(body: &[u8], limits: &DecodeLimits) -> Result<(Option<String>, Option<Json>), ProtocolError> {
    let body = body.trim_ascii();
    if body.is_empty() || body == b"null" {
        return Ok((None, None));
    }
    let mut check = Check::new(limits);
    let body: wire::CancelBody<'_> = read_body(body)?;
    let metadata = check.object(format_args!("metadata"), body.metadata);
    let tenant = check.id(format_args!("tenant"), body.tenant);
    check.finish((tenant, metadata))
}

/// Decodes the body that registers a webhook of the task its path names.
///
/// # Errors
/// As [`decode_send_body`].
pub fn decode_push_config_body(
    task_id: TaskId,
    body: &[u8],
    limits: &DecodeLimits,
) -> Result<(Option<String>, PushConfig), ProtocolError> {
    let mut check = Check::new(limits);
    let body: wire::PushBody<'_> = read_body(body)?;
    let tenant = check.id(format_args!("tenant"), body.tenant);
    let (at, config) = match body.config {
        Some(Obj(config)) => ("config.pushNotificationConfig", config.push_notification_config),
        None => ("pushNotificationConfig", body.push_notification_config),
    };
    let mut config = push::convert_required(&mut check, format_args!("{at}"), task_id, config);
    if config.id.is_empty()
        && let Some(id) = check.id(format_args!("configId"), body.config_id)
    {
        config.id = id;
    }
    check.finish((tenant, config))
}

/// Decodes the value of `historyLength`; 0 is no limit.
///
/// # Errors
/// [`ProtocolError::InvalidParams`] naming the parameter.
pub fn decode_history_length(value: &str) -> Result<Option<u32>, ProtocolError> {
    let wrong = |why: &str| Err(ProtocolError::invalid("historyLength", why));
    match Int::parse(value).map(|Int(number)| u32::try_from(number)) {
        Some(Ok(length)) => Ok(Some(length).filter(|length| *length > 0)),
        Some(Err(_)) => wrong("must not be negative"),
        None => wrong("must be a whole number of 32 bits"),
    }
}
