//! The door for JSON-RPC calls: a method and its params come in, a [`Request`] goes out.

use crate::call::Request;
use crate::dialect::json::{Check, DecodeLimits, Decoded, read_params, unknown_method};
use crate::error::ProtocolError;

use super::super::push;
use super::convert::send_message;
use super::wire;

/// The methods that a mistyped one is compared with; the names of 0.1 are left out, since no new client should use them.
const METHODS: [&str; 10] = [
    "message/send",
    "message/stream",
    "tasks/get",
    "tasks/cancel",
    "tasks/resubscribe",
    "tasks/pushNotificationConfig/set",
    "tasks/pushNotificationConfig/get",
    "tasks/pushNotificationConfig/list",
    "tasks/pushNotificationConfig/delete",
    "agent/getAuthenticatedExtendedCard",
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
        // The second name is that of 0.1, which some of its clients still use.
        "message/send" | "tasks/send" => {
            let (tenant, send) = send_message(&mut check, read_params(text)?);
            (tenant, Request::SendMessage(send.into()))
        }
        "message/stream" | "tasks/sendSubscribe" => {
            let (tenant, send) = send_message(&mut check, read_params(text)?);
            (tenant, Request::SendStreamingMessage(send.into()))
        }
        "tasks/get" => {
            let params: wire::TaskParams<'_> = read_params(text)?;
            let id = check.required_id(format_args!("id"), params.id);
            let history_length = check.history_length(format_args!("historyLength"), params.history_length);
            // "A positive number", says 7.3.1: none is not a way to ask for no history.
            let history_length = history_length.filter(|length| *length > 0);
            (check.id(format_args!("tenant"), params.tenant), Request::GetTask { id, history_length })
        }
        "tasks/cancel" => {
            let params: wire::TaskParams<'_> = read_params(text)?;
            let id = check.required_id(format_args!("id"), params.id);
            let metadata = check.object(format_args!("metadata"), params.metadata);
            (check.id(format_args!("tenant"), params.tenant), Request::CancelTask { id, metadata })
        }
        "tasks/resubscribe" => {
            let params: wire::TaskParams<'_> = read_params(text)?;
            let id = check.required_id(format_args!("id"), params.id);
            (check.id(format_args!("tenant"), params.tenant), Request::SubscribeToTask { id })
        }
        "tasks/pushNotificationConfig/set" => {
            let params: wire::SetPushParams<'_> = read_params(text)?;
            let tenant = check.id(format_args!("tenant"), params.tenant);
            let task_id = check.required_id(format_args!("taskId"), params.task_id);
            let at = format_args!("pushNotificationConfig");
            let config = push::convert_required(&mut check, at, task_id, params.push_notification_config);
            (tenant, Request::CreatePushConfig(config.into()))
        }
        "tasks/pushNotificationConfig/get" => {
            let params: wire::PushParams<'_> = read_params(text)?;
            let task_id = check.required_id(format_args!("id"), params.id);
            // Without one, the server picks.
            let id = check.id(format_args!("pushNotificationConfigId"), params.push_notification_config_id);
            let request = Request::GetPushConfig { task_id, id: id.unwrap_or_default() };
            (check.id(format_args!("tenant"), params.tenant), request)
        }
        "tasks/pushNotificationConfig/list" => {
            let params: wire::PushParams<'_> = read_params(text)?;
            let task_id = check.required_id(format_args!("id"), params.id);
            let request = Request::ListPushConfigs { task_id, page_size: None, page_token: None };
            (check.id(format_args!("tenant"), params.tenant), request)
        }
        "tasks/pushNotificationConfig/delete" => {
            let params: wire::PushParams<'_> = read_params(text)?;
            let task_id = check.required_id(format_args!("id"), params.id);
            let id = check.required_id(format_args!("pushNotificationConfigId"), params.push_notification_config_id);
            (check.id(format_args!("tenant"), params.tenant), Request::DeletePushConfig { task_id, id })
        }
        "agent/getAuthenticatedExtendedCard" => {
            let params: wire::CardParams<'_> = read_params(text)?;
            (check.id(format_args!("tenant"), params.tenant), Request::GetExtendedAgentCard)
        }
        _ => return Err(unknown_method(method, &METHODS)),
    };
    check.finish(Decoded { tenant, request })
}
