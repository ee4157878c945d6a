//! The doors for requests: text comes in, a [`Request`] goes out. JSON-RPC hands over a method and its params;
//! HTTP+JSON hands over a body and has ids in its path. The text is read once, by borrowing structs, and checked while
//! it is moved into the model.

use serde::Deserialize;

use crate::call::{Request, SendMessage};
use crate::dialect::json::{Fault, excerpt, parse_object};
use crate::error::ProtocolError;
use crate::model::{Json, PushConfig};

use super::check::Check;
use super::convert::{PushConfigPlace, list_tasks, push_config, send_message};
use super::{DecodeLimits, wire};

/// A request, and the tenant it names, which the server compares with what the credential allows.
#[derive(Clone, Debug, PartialEq)]
pub struct Decoded {
    pub tenant: Option<String>,
    pub request: Request,
}

/// Decodes a JSON-RPC call. Absent params, and null, are an empty object.
///
/// # Errors
/// [`ProtocolError::MethodNotFound`], or [`ProtocolError::InvalidParams`] naming the fields at fault.
pub fn decode_call(method: &str, params: Option<&str>, limits: &DecodeLimits) -> Result<Decoded, ProtocolError> {
    let text = match params {
        None | Some("null") => "{}",
        Some(params) => params,
    };
    let mut check = Check::new(limits);
    let (tenant, request) = match method {
        "SendMessage" => {
            let (tenant, send) = send_message(&mut check, read_params(text)?);
            (tenant, Request::SendMessage(send.into()))
        }
        "SendStreamingMessage" => {
            let (tenant, send) = send_message(&mut check, read_params(text)?);
            (tenant, Request::SendStreamingMessage(send.into()))
        }
        "GetTask" => {
            let params: wire::GetTaskParams<'_> = read_params(text)?;
            let id = check.required_id(format_args!("id"), params.id);
            let history_length = check.history_length(format_args!("historyLength"), params.history_length);
            (check.id(format_args!("tenant"), params.tenant), Request::GetTask { id, history_length })
        }
        "ListTasks" => {
            let mut params: wire::ListTasksParams<'_> = read_params(text)?;
            let tenant = check.id(format_args!("tenant"), params.tenant.take());
            (tenant, Request::ListTasks(list_tasks(&mut check, params)))
        }
        "CancelTask" => {
            let params: wire::CancelTaskParams<'_> = read_params(text)?;
            let id = check.required_id(format_args!("id"), params.id);
            let metadata = check.object(format_args!("metadata"), params.metadata);
            (check.id(format_args!("tenant"), params.tenant), Request::CancelTask { id, metadata })
        }
        "SubscribeToTask" => {
            let params: wire::SubscribeParams<'_> = read_params(text)?;
            let id = check.required_id(format_args!("id"), params.id);
            (check.id(format_args!("tenant"), params.tenant), Request::SubscribeToTask { id })
        }
        "CreateTaskPushNotificationConfig" => {
            let (tenant, config) = push_config(&mut check, PushConfigPlace::Root, read_params(text)?);
            if config.task_id.is_empty() {
                check.violation(format_args!("taskId"), "is required and must not be empty");
            }
            (tenant, Request::CreatePushConfig(config.into()))
        }
        "GetTaskPushNotificationConfig" => {
            let params: wire::PushConfigParams<'_> = read_params(text)?;
            let task_id = check.required_id(format_args!("taskId"), params.task_id);
            let id = check.required_id(format_args!("id"), params.id);
            (check.id(format_args!("tenant"), params.tenant), Request::GetPushConfig { task_id, id })
        }
        "ListTaskPushNotificationConfigs" => {
            let params: wire::ListPushConfigsParams<'_> = read_params(text)?;
            let task_id = check.required_id(format_args!("taskId"), params.task_id);
            let page_size = check.implicit_page_size(params.page_size);
            let page_token = check.optional_line(format_args!("pageToken"), params.page_token);
            (
                check.id(format_args!("tenant"), params.tenant),
                Request::ListPushConfigs { task_id, page_size, page_token },
            )
        }
        "DeleteTaskPushNotificationConfig" => {
            let params: wire::PushConfigParams<'_> = read_params(text)?;
            let task_id = check.required_id(format_args!("taskId"), params.task_id);
            let id = check.required_id(format_args!("id"), params.id);
            (check.id(format_args!("tenant"), params.tenant), Request::DeletePushConfig { task_id, id })
        }
        "GetExtendedAgentCard" => {
            let params: wire::CardParams<'_> = read_params(text)?;
            (check.id(format_args!("tenant"), params.tenant), Request::GetExtendedAgentCard)
        }
        _ => return Err(ProtocolError::MethodNotFound { method: excerpt(method, 64) }),
    };
    check.finish(Decoded { tenant, request })
}

/// Decodes the body of a send or a streaming send over HTTP+JSON.
///
/// # Errors
/// [`ProtocolError::ParseError`] when the body is not JSON, [`ProtocolError::InvalidParams`] when a field is wrong.
pub fn decode_send_body(body: &[u8], limits: &DecodeLimits) -> Result<(Option<String>, SendMessage), ProtocolError> {
    let mut check = Check::new(limits);
    let decoded = send_message(&mut check, read_body(utf8(body)?)?);
    check.finish(decoded)
}

/// Decodes the body of a cancel over HTTP+JSON: a tenant and metadata, both optional, as the body itself is.
///
/// # Errors
/// As [`decode_send_body`].
pub fn decode_cancel_body(body: &[u8], limits: &DecodeLimits) -> Result<(Option<String>, Option<Json>), ProtocolError> {
    if body.trim_ascii().is_empty() {
        return Ok((None, None));
    }
    let mut check = Check::new(limits);
    let params: wire::CancelTaskParams<'_> = read_body(utf8(body)?)?;
    let metadata = check.object(format_args!("metadata"), params.metadata);
    let tenant = check.id(format_args!("tenant"), params.tenant);
    check.finish((tenant, metadata))
}

/// Decodes the body that registers a webhook over HTTP+JSON. The path names the task and wins over the body, so the
/// config's `task_id` is empty if the body has none.
///
/// # Errors
/// As [`decode_send_body`].
pub fn decode_push_config_body(
    body: &[u8],
    limits: &DecodeLimits,
) -> Result<(Option<String>, PushConfig), ProtocolError> {
    let mut check = Check::new(limits);
    let decoded = push_config(&mut check, PushConfigPlace::Root, read_body(utf8(body)?)?);
    check.finish(decoded)
}

/// Checks an id that stood in a path, by the rules for ids in a body.
///
/// # Errors
/// [`ProtocolError::InvalidParams`] naming `field`.
pub fn check_id(field: &'static str, id: &str, limits: &DecodeLimits) -> Result<(), ProtocolError> {
    let mut check = Check::new(limits);
    if id.is_empty() {
        check.violation(format_args!("{field}"), "is required and must not be empty");
    }
    check.line(format_args!("{field}"), id, limits.id_bytes_max);
    check.finish(())
}

fn utf8(body: &[u8]) -> Result<&str, ProtocolError> {
    std::str::from_utf8(body).map_err(|error| ProtocolError::ParseError { reason: format!("not UTF-8: {error}") })
}

#[inline]
fn read_params<'a, T: Deserialize<'a>>(text: &'a str) -> Result<T, ProtocolError> {
    // The envelope has been read as JSON already, so whatever is wrong here is wrong with a field.
    parse_object(text).map_err(|fault| wrong_field(fault, "params"))
}

#[inline]
fn read_body<'a, T: Deserialize<'a>>(text: &'a str) -> Result<T, ProtocolError> {
    parse_object(text).map_err(|fault| {
        if fault.is_syntax {
            ProtocolError::ParseError { reason: fault.with_position }
        } else {
            wrong_field(fault, "body")
        }
    })
}

#[cold]
fn wrong_field(fault: Fault, whole: &str) -> ProtocolError {
    ProtocolError::invalid(if fault.path.is_empty() { whole.to_owned() } else { fault.path }, fault.description)
}
