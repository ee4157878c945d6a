//! Calls. A server reads a method and its params in the order the original checks them; a client writes them from a request.
//! Members are looked up one by one, since a member of the wrong type means something here where elsewhere it is refused.

use serde_json::value::RawValue;

use crate::call::{Request, SendMessage};
use crate::dialect::compat::{beginning_a_task, without_webhook};
use crate::dialect::json::{Check, DecodeLimits, List, Members, Object, params_or_empty};
use crate::dialect::outgoing::{OutgoingCall, Transport, WrittenCall};
use crate::error::ProtocolError;
use crate::model::{Message, Part, Role, TaskId};

use super::error::not_a_text;
use super::message::{MemberList, encode_message, encode_sent_message, member, object, read_part, string};
use super::{NAME, as_received};

/// What can be asked.
#[derive(Debug, PartialEq)]
pub enum Call {
    Send(Box<SendMessage>),
    Get(TaskId),
    Cancel(TaskId),
}

/// Decodes a call. Absent params, and null, are an empty object.
///
/// # Errors
/// [`ProtocolError::InvalidRequest`] for params that are no object, [`ProtocolError::MethodNotFound`],
/// [`ProtocolError::InvalidParams`] with one violation, or [`ProtocolError::TaskNotFound`] for an id that is no text.
pub fn decode_call(method: &str, params: Option<&str>, limits: &DecodeLimits) -> Result<Call, ProtocolError> {
    let text = params_or_empty(params);
    let Some(Members(params)) = Members::read(text) else {
        return Err(ProtocolError::InvalidRequest { reason: "'params' must be an object".to_owned() });
    };
    match method {
        "message/send" | "tasks/send" => send_message(&params, limits).map(|send| Call::Send(Box::new(send))),
        "tasks/get" => task_id(&params, limits).map(Call::Get),
        "tasks/cancel" => task_id(&params, limits).map(Call::Cancel),
        _ => Err(ProtocolError::MethodNotFound { method: method.to_owned(), hint: None }),
    }
}

/// The id of a task. The original looks for any text, and finds nothing for what is none.
fn task_id(params: &MemberList<'_>, limits: &DecodeLimits) -> Result<TaskId, ProtocolError> {
    match string(params, "id") {
        Some(id) if !id.is_empty() && id.len() <= limits.id_bytes_max && !id.contains('\0') => Ok(id.into()),
        Some(_) | None => {
            let sent = member(params, "id").map_or("null", RawValue::get);
            Err(ProtocolError::TaskNotFound { id: not_a_text(sent) })
        }
    }
}

fn invalid(description: impl Into<String>) -> ProtocolError {
    ProtocolError::invalid("", description)
}

fn send_message(params: &MemberList<'_>, limits: &DecodeLimits) -> Result<SendMessage, ProtocolError> {
    let message = member(params, "message").and_then(|message| Members::read(message.get()));
    let Some(Members(message)) = message else {
        return Err(invalid("'message' is required and must be an object"));
    };
    let not_empty = || invalid("'message.parts' must be a non-empty array");
    let parts = member(&message, "parts").ok_or_else(not_empty)?;
    let parts: List<&RawValue> = serde_json::from_str(parts.get()).map_err(|_| not_empty())?;
    if parts.total == 0 {
        return Err(not_empty());
    }
    if parts.total > limits.parts_max {
        let (total, max) = (parts.total, limits.parts_max);
        return Err(invalid(format!("'message.parts' has {total} entries; the limit is {max}")));
    }
    let members: Option<Vec<Members<'_>>> = parts.items.iter().map(|part| Members::read(part.get())).collect();
    let Some(members) = members else {
        return Err(invalid("every entry in 'message.parts' must be an object"));
    };
    let mut check = Check::new(limits);
    let parts: Vec<Part> = parts
        .items
        .iter()
        .zip(&members)
        .map(|(raw, Members(part))| read_part(&mut check, "message.parts", raw, part))
        .collect();
    if !parts.iter().any(|part| part.as_text().is_some()) {
        return Err(invalid("at least one part of kind 'text' is required (v1 is text-first)"));
    }
    let id = |members: &MemberList<'_>, name: &str| {
        string(members, name).filter(|id| !id.is_empty() && id.len() <= limits.id_bytes_max)
    };
    let role = match string(&message, "role").as_deref() {
        Some("agent") => Role::Agent,
        Some(_) | None => Role::User,
    };
    let mut sent = Message::new(role, id(&message, "messageId").unwrap_or_default(), parts);
    sent.context_id = id(&message, "contextId").or_else(|| id(params, "contextId")).map(Into::into);
    sent.metadata = object(&mut check, "message", &message);
    let mut written = Vec::with_capacity(256);
    encode_message(&sent, &mut written);
    check.finish(SendMessage {
        open_as: None,
        message: as_received::keep(sent, &written, &message, limits.json),
        accepted_output_modes: Vec::new(),
        push_config: None,
        history_length: None,
        return_immediately: false,
        metadata: None,
    })
}

/// The envelope around a call, in the order the original checks it.
#[derive(Debug)]
pub struct Envelope<'a> {
    /// The id as it was written, `null` if there was none.
    pub id: &'a str,
    pub method: String,
    pub params: Option<&'a str>,
}

impl<'a> Envelope<'a> {
    /// Reads the envelope; a refusal comes with the id to answer it under.
    ///
    /// # Errors
    /// [`ProtocolError::ParseError`] or [`ProtocolError::InvalidRequest`].
    pub fn parse(body: &'a [u8]) -> Result<Self, (ProtocolError, &'a str)> {
        let invalid = |reason: &str| ProtocolError::InvalidRequest { reason: reason.to_owned() };
        let broken = || (ProtocolError::ParseError { reason: String::new() }, "null");
        let text = std::str::from_utf8(body).map_err(|_| broken())?;
        let raw: &RawValue = serde_json::from_str(text).map_err(|_| broken())?;
        let Some(Members(members)) = Members::read(raw.get()) else {
            return Err((invalid("body must be a JSON object"), "null"));
        };
        let id = member(&members, "id").map_or("null", RawValue::get);
        match (string(&members, "jsonrpc").as_deref(), string(&members, "method")) {
            (Some("2.0"), Some(method)) => {
                Ok(Self { id, method, params: member(&members, "params").map(RawValue::get) })
            }
            _ => Err((invalid("'jsonrpc' must be '2.0' and 'method' must be a string"), id)),
        }
    }
}

/// Writes a call.
///
/// # Errors
/// [`ProtocolError::UnsupportedOperation`] for a call that the dialect does not have, [`ProtocolError::InvalidParams`] naming what
/// a send cannot say.
pub fn write_call(call: &OutgoingCall<'_>) -> Result<WrittenCall, ProtocolError> {
    call.require(Transport::JsonRpc, NAME)?;
    let mut params = Vec::with_capacity(256);
    let mut object = Object::open(&mut params);
    let method = match call.request {
        Request::SendMessage(send) => {
            without_webhook(send, NAME)?;
            beginning_a_task(send, NAME)?;
            encode_sent_message(&send.message, object.key("message"));
            "message/send"
        }
        Request::GetTask { id, .. } => {
            object.str("id", id.as_str());
            "tasks/get"
        }
        Request::CancelTask { id, .. } => {
            object.str("id", id.as_str());
            "tasks/cancel"
        }
        Request::SendStreamingMessage(_)
        | Request::ListTasks(_)
        | Request::SubscribeToTask { .. }
        | Request::CreatePushConfig(_)
        | Request::GetPushConfig { .. }
        | Request::ListPushConfigs { .. }
        | Request::DeletePushConfig { .. }
        | Request::GetExtendedAgentCard => return Err(call.not_in(NAME)),
    };
    object.close();
    Ok(WrittenCall::JsonRpc { method, params })
}
