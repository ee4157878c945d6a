//! The door for calls: a method and its params come in, a [`Call`] goes out.

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::call::{Request, SendMessage};
use crate::dialect::json::{Check, DecodeLimits, List, Obj, Text, excerpt, read_params, unknown_method};
use crate::dialect::compat::kinds;
use crate::error::ProtocolError;
use crate::model::{Message, Part, Role};

use super::file;

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
    let text = params.filter(|params| *params != "null").unwrap_or("{}");
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

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct WireMessage<'a> {
    #[serde(borrow)]
    role: Option<&'a RawValue>,
    #[serde(borrow)]
    parts: Option<&'a RawValue>,
    #[serde(borrow)]
    message_id: Option<Text<'a>>,
    #[serde(borrow)]
    context_id: Option<Text<'a>>,
    #[serde(borrow)]
    task_id: Option<Text<'a>>,
    #[serde(borrow)]
    metadata: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Parts<'a> {
    #[serde(borrow)]
    parts: List<Obj<kinds::WirePart<'a>>>,
}

fn send_message(check: &mut Check<'_>, params: SendParams<'_>) -> Result<Call, ProtocolError> {
    let required = || ProtocolError::invalid("", "message with role and parts required");
    let message = params.message.filter(|message| message.get().starts_with('{')).ok_or_else(required)?;
    let message: WireMessage<'_> = read_params(message.get()).map_err(in_message)?;
    let role: Option<Text<'_>> = message.role.and_then(|role| serde_json::from_str(role.get()).ok());
    let role = role.filter(|role| !role.0.is_empty()).ok_or_else(required)?;
    let parts = message.parts.filter(|parts| parts.get().starts_with('[')).ok_or_else(required)?;
    let role = match role.0.as_ref() {
        "user" => Role::User,
        "agent" => Role::Agent,
        other => {
            check.violation(format_args!("message.role"), format!("{} is neither user nor agent", excerpt(other, 64)));
            Role::User
        }
    };
    let message = Message {
        message_id: check.id(format_args!("message.messageId"), message.message_id).unwrap_or_default(),
        context_id: check.id(format_args!("contextId"), message.context_id.or(params.context_id)),
        task_id: check.id(format_args!("message.taskId"), message.task_id),
        role,
        parts: convert_parts(check, parts)?,
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

fn convert_parts(check: &mut Check<'_>, parts: &RawValue) -> Result<Vec<Part>, ProtocolError> {
    let raw = parts.get();
    let text = format!(r#"{{"parts":{raw}}}"#);
    let Parts { parts } = read_params(&text).map_err(in_message)?;
    if parts.total == 0 {
        check.violation(format_args!("message.parts"), "needs at least one part");
    }
    let parts = check.bounded(format_args!("message.parts"), "parts", check.limits.parts_max, parts);
    // Only files have more to them than the model keeps.
    let sent: Vec<&RawValue> =
        if raw.contains("\"file\"") { serde_json::from_str(raw).unwrap_or_default() } else { Vec::new() };
    let convert = |(i, Obj(part)): (usize, Obj<kinds::WirePart<'_>>)| {
        let at = format_args!("message.parts[{i}]");
        match sent.get(i).and_then(|sent| file::sent(sent)) {
            Some(sent) => file::convert(check, at, part, sent),
            None => kinds::convert(check, at, part),
        }
    };
    Ok(parts.into_iter().enumerate().map(convert).collect())
}

/// Names a field of the message as a field of the params.
fn in_message(error: ProtocolError) -> ProtocolError {
    match error {
        ProtocolError::InvalidParams { mut violations } => {
            for violation in &mut violations {
                violation.field = format!("message.{}", violation.field);
            }
            ProtocolError::InvalidParams { violations }
        }
        error => error,
    }
}
