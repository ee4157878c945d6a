//! Decodes requests from text into a [`Request`]. JSON-RPC hands over a method and its params; HTTP+JSON hands over a
//! body and has ids in its path. The text is read once, by borrowing structs, and checked while it is moved into the
//! model.

use crate::call::{Request, SendMessage};
use crate::dialect::json::{Check, DecodeLimits, Decoded, read_body, read_params, unknown_method};
use crate::error::ProtocolError;
use crate::model::{Json, PushConfig};

use crate::dialect::wire::{
    BareParams, ListTasksParams, PushConfig as WireConfig, PushParams, SendParams, TaskParams, V1_0,
};

/// The operations, by the names that JSON-RPC and gRPC have for them.
pub(super) const METHODS: [&str; 11] = [
    "SendMessage",
    "SendStreamingMessage",
    "GetTask",
    "ListTasks",
    "CancelTask",
    "SubscribeToTask",
    "CreateTaskPushNotificationConfig",
    "GetTaskPushNotificationConfig",
    "ListTaskPushNotificationConfigs",
    "DeleteTaskPushNotificationConfig",
    "GetExtendedAgentCard",
];

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
            let (tenant, send) = read_params::<SendParams<'_>>(text)?.read(&mut check, &V1_0);
            (tenant, Request::SendMessage(send.into()))
        }
        "SendStreamingMessage" => {
            let (tenant, send) = read_params::<SendParams<'_>>(text)?.read(&mut check, &V1_0);
            (tenant, Request::SendStreamingMessage(send.into()))
        }
        "GetTask" => {
            let params: TaskParams<'_> = read_params(text)?;
            let id = check.required_id(format_args!("id"), params.id);
            let history_length = check.only(format_args!("historyLength"), params.history_length);
            let history_length = check.history_length(format_args!("historyLength"), history_length);
            (check.id(format_args!("tenant"), params.tenant), Request::GetTask { id, history_length })
        }
        "ListTasks" => {
            let mut params: ListTasksParams<'_> = read_params(text)?;
            let tenant = check.id(format_args!("tenant"), params.tenant.take());
            (tenant, Request::ListTasks(params.read(&mut check, &V1_0)))
        }
        "CancelTask" => {
            let params: TaskParams<'_> = read_params(text)?;
            let id = check.required_id(format_args!("id"), params.id);
            let metadata = check.object(format_args!("metadata"), params.metadata);
            (check.id(format_args!("tenant"), params.tenant), Request::CancelTask { id, metadata })
        }
        "SubscribeToTask" => {
            let params: TaskParams<'_> = read_params(text)?;
            let id = check.required_id(format_args!("id"), params.id);
            (check.id(format_args!("tenant"), params.tenant), Request::SubscribeToTask { id })
        }
        "CreateTaskPushNotificationConfig" => {
            let (tenant, config) = read_params::<WireConfig<'_>>(text)?.read(&mut check, format_args!(""), &V1_0);
            if config.task_id.is_empty() {
                check.violation(format_args!("taskId"), "is required and must not be empty");
            }
            (tenant, Request::CreatePushConfig(config.into()))
        }
        "GetTaskPushNotificationConfig" => {
            let params: PushParams<'_> = read_params(text)?;
            let task_id = check.only(format_args!("taskId"), params.task_id);
            let task_id = check.required_id(format_args!("taskId"), task_id);
            let id = check.required_id(format_args!("id"), params.id);
            (check.id(format_args!("tenant"), params.tenant), Request::GetPushConfig { task_id, id })
        }
        "ListTaskPushNotificationConfigs" => {
            let params: PushParams<'_> = read_params(text)?;
            let task_id = check.only(format_args!("taskId"), params.task_id);
            let task_id = check.required_id(format_args!("taskId"), task_id);
            let page_size = check.only(format_args!("pageSize"), params.page_size);
            let page_size = check.implicit_page_size(page_size);
            let page_token = check.only(format_args!("pageToken"), params.page_token);
            let page_token = check.optional_line(format_args!("pageToken"), page_token);
            (
                check.id(format_args!("tenant"), params.tenant),
                Request::ListPushConfigs { task_id, page_size, page_token },
            )
        }
        "DeleteTaskPushNotificationConfig" => {
            let params: PushParams<'_> = read_params(text)?;
            let task_id = check.only(format_args!("taskId"), params.task_id);
            let task_id = check.required_id(format_args!("taskId"), task_id);
            let id = check.required_id(format_args!("id"), params.id);
            (check.id(format_args!("tenant"), params.tenant), Request::DeletePushConfig { task_id, id })
        }
        "GetExtendedAgentCard" => {
            let params: BareParams<'_> = read_params(text)?;
            (check.id(format_args!("tenant"), params.tenant), Request::GetExtendedAgentCard)
        }
        _ => return Err(unknown_method(method, &METHODS)),
    };
    check.finish(Decoded { tenant, request })
}

/// Decodes the body of a send or a streaming send over HTTP+JSON.
///
/// # Errors
/// [`ProtocolError::ParseError`] when the body is not JSON, [`ProtocolError::InvalidParams`] when a field is wrong.
pub fn decode_send_body(body: &[u8], limits: &DecodeLimits) -> Result<(Option<String>, SendMessage), ProtocolError> {
    let mut check = Check::new(limits);
    let decoded = read_body::<SendParams<'_>>(body)?.read(&mut check, &V1_0);
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
    let params: BareParams<'_> = read_body(body)?;
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
    let decoded = read_body::<WireConfig<'_>>(body)?.read(&mut check, format_args!(""), &V1_0);
    check.finish(decoded)
}
