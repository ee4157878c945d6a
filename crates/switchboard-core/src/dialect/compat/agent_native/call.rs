//! Calls. A server reads a method and its params into a [`Call`]; a client writes them from a request.

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::call::{Request, SendMessage};
use crate::dialect::compat::{beginning_a_task, without_webhook};
use crate::dialect::json::{Check, DecodeLimits, Object, Text, params_or_empty, read_params, unknown_method};
use crate::dialect::outgoing::{OutgoingCall, Transport, WrittenCall};
use crate::error::ProtocolError;
use crate::model::Message;

use super::NAME;
use super::message::{WireMessage, encode_message, prefix_fields, read_parts, read_role};

/// A call, and what it says beside the request itself.
#[derive(Debug, PartialEq)]
pub struct Call {
    pub request: Request,
    /// Whether the caller will poll, and so whether its key counts.
    pub is_async: bool,
    pub idempotency_key: Option<String>,
}

const METHODS: [&str; 4] = ["message/send", "message/stream", "tasks/get", "tasks/cancel"];

/// Decodes a call. Absent params, and null, are an empty object.
///
/// # Errors
/// [`ProtocolError::MethodNotFound`], or [`ProtocolError::InvalidParams`].
pub fn decode_call(method: &str, params: Option<&str>, limits: &DecodeLimits) -> Result<Call, ProtocolError> {
    let text = params_or_empty(params);
    let mut check = Check::new(limits);
    let call = match method {
        "message/send" => send_message(&mut check, read_params(text)?)?,
        "message/stream" => {
            let mut call = send_message(&mut check, read_params(text)?)?;
            if let Request::SendMessage(send) = call.request {
                call.request = Request::SendStreamingMessage(send);
            }
            call
        }
        "tasks/get" => plain(Request::GetTask { id: task_id(&mut check, text)?, history_length: None }),
        "tasks/cancel" => plain(Request::CancelTask { id: task_id(&mut check, text)?, metadata: None }),
        _ => return Err(unknown_method(method, &METHODS)),
    };
    check.finish(call)
}

fn plain(request: Request) -> Call {
    Call { request, is_async: false, idempotency_key: None }
}

#[derive(Deserialize)]
struct TaskParams<'a> {
    #[serde(borrow)]
    id: Option<&'a RawValue>,
}

fn task_id(check: &mut Check<'_>, params: &str) -> Result<crate::model::TaskId, ProtocolError> {
    let params: TaskParams<'_> = read_params(params)?;
    let id: Option<Text<'_>> = params.id.and_then(|id| serde_json::from_str(id.get()).ok());
    match id {
        Some(id) if !id.0.is_empty() => Ok(check.required_id(format_args!("id"), Some(id))),
        Some(_) | None => Err(ProtocolError::invalid("", "id required")),
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct SendParams<'a> {
    #[serde(borrow)]
    message: Option<&'a RawValue>,
    #[serde(borrow)]
    context_id: Option<Text<'a>>,
    #[serde(borrow)]
    metadata: Option<&'a RawValue>,
    #[serde(borrow, rename = "async")]
    is_async: Option<&'a RawValue>,
    #[serde(borrow)]
    idempotency_key: Option<Text<'a>>,
}

fn send_message(check: &mut Check<'_>, params: SendParams<'_>) -> Result<Call, ProtocolError> {
    let required = || ProtocolError::invalid("", "message with role and parts required");
    let message = params.message.filter(|message| message.get().starts_with('{')).ok_or_else(required)?;
    let message: WireMessage<'_> = read_params(message.get()).map_err(|error| prefix_fields("message", error))?;
    let role: Option<Text<'_>> = message.role.and_then(|role| serde_json::from_str(role.get()).ok());
    let role = role.filter(|role| !role.0.is_empty()).ok_or_else(required)?;
    let parts = message.parts.filter(|parts| parts.get().starts_with('[')).ok_or_else(required)?;
    let role = read_role(check, "message", &role.0);
    let message = Message {
        message_id: check.id(format_args!("message.messageId"), message.message_id).unwrap_or_default(),
        context_id: check.id(format_args!("contextId"), message.context_id.or(params.context_id)),
        task_id: check.id(format_args!("message.taskId"), message.task_id),
        role,
        parts: read_parts(check, "message", parts)?,
        metadata: check.object(format_args!("message.metadata"), message.metadata),
        extensions: Vec::new(),
        reference_task_ids: Vec::new(),
    };
    // Only the member of the params counts: what stands in metadata is passed on from elsewhere.
    let is_async = params.is_async.is_some_and(|value| value.get() == "true");
    let send = SendMessage {
        open_as: None,
        message,
        accepted_output_modes: Vec::new(),
        push_config: None,
        history_length: None,
        return_immediately: is_async,
        metadata: check.object(format_args!("metadata"), params.metadata),
    };
    Ok(Call {
        request: Request::SendMessage(send.into()),
        is_async,
        idempotency_key: idempotency_key(check, params.idempotency_key),
    })
}

fn idempotency_key(check: &mut Check<'_>, key: Option<Text<'_>>) -> Option<String> {
    const KEY_CHARS_MAX: usize = 128;
    let Text(key) = key.filter(|key| !key.0.is_empty())?;
    if key.chars().count() > KEY_CHARS_MAX {
        check.violation(format_args!("idempotencyKey"), format!("is longer than {KEY_CHARS_MAX} characters"));
    }
    Some(key.into_owned())
}

/// Writes a call.
///
/// # Errors
/// [`ProtocolError::UnsupportedOperation`] for a call that the dialect does not have, [`ProtocolError::InvalidParams`] naming what
/// a send cannot say.
pub fn write_call(call: &OutgoingCall<'_>) -> Result<WrittenCall, ProtocolError> {
    call.require(Transport::JsonRpc, NAME)?;
    let mut params = Vec::with_capacity(256);
    let method = match call.request {
        Request::SendMessage(send) => {
            encode_send(send, call.idempotency_key, &mut params)?;
            "message/send"
        }
        Request::SendStreamingMessage(send) => {
            encode_send(send, call.idempotency_key, &mut params)?;
            "message/stream"
        }
        Request::GetTask { id, .. } => {
            encode_id(id.as_str(), &mut params);
            "tasks/get"
        }
        Request::CancelTask { id, .. } => {
            encode_id(id.as_str(), &mut params);
            "tasks/cancel"
        }
        Request::ListTasks(_)
        | Request::SubscribeToTask { .. }
        | Request::CreatePushConfig(_)
        | Request::GetPushConfig { .. }
        | Request::ListPushConfigs { .. }
        | Request::DeletePushConfig { .. }
        | Request::GetExtendedAgentCard => return Err(call.not_in(NAME)),
    };
    Ok(WrittenCall::JsonRpc { method, params })
}

fn encode_send(send: &SendMessage, idempotency_key: Option<&str>, out: &mut Vec<u8>) -> Result<(), ProtocolError> {
    without_webhook(send, NAME)?;
    beginning_a_task(send, NAME)?;
    let mut object = Object::open(out);
    encode_message(&send.message, object.key("message"));
    object.str_if_set("contextId", send.message.context_id.as_ref().map(|id| id.as_str()));
    object.json_if_set("metadata", send.metadata.as_ref());
    object.str_if_set("idempotencyKey", idempotency_key);
    object.flag("async", send.return_immediately);
    object.close();
    Ok(())
}

fn encode_id(id: &str, out: &mut Vec<u8>) {
    let mut object = Object::open(out);
    object.str("id", id);
    object.close();
}
