//! The door for calls: a method and its params come in, in the order the original checks them. Members are looked up one
//! by one, since a member of the wrong type means something here where elsewhere it is refused.

use serde_json::value::RawValue;

use crate::call::SendMessage;
use crate::dialect::json::{Check, DecodeLimits, List, Members, Obj};
use crate::dialect::compat::kinds;
use crate::error::ProtocolError;
use crate::model::{Json, Message, Part, Role, TaskId};

use super::error::not_a_text;
use super::{VERBATIM, as_received};

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
    let text = params.filter(|params| *params != "null").unwrap_or("{}");
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

type Found<'a> = [(std::borrow::Cow<'a, str>, &'a RawValue)];

/// A member; of several with the same name the last.
fn member<'a>(members: &Found<'a>, name: &str) -> Option<&'a RawValue> {
    members.iter().rfind(|(known, _)| known == name).map(|(_, value)| *value)
}

fn string(members: &Found<'_>, name: &str) -> Option<String> {
    member(members, name).and_then(|value| serde_json::from_str(value.get()).ok())
}

/// The id of a task. The original looks for any text, and finds nothing for what is none.
fn task_id(params: &Found<'_>, limits: &DecodeLimits) -> Result<TaskId, ProtocolError> {
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

fn send_message(params: &Found<'_>, limits: &DecodeLimits) -> Result<SendMessage, ProtocolError> {
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
    let parts: Vec<Part> =
        parts.items.iter().zip(&members).map(|(raw, Members(part))| convert_part(&mut check, raw, part)).collect();
    if !parts.iter().any(|part| part.as_text().is_some()) {
        return Err(invalid("at least one part of kind 'text' is required (v1 is text-first)"));
    }
    let id = |members: &Found<'_>, name: &str| {
        string(members, name).filter(|id| !id.is_empty() && id.len() <= limits.id_bytes_max)
    };
    let role = match string(&message, "role").as_deref() {
        Some("agent") => Role::Agent,
        Some(_) | None => Role::User,
    };
    let mut sent = Message::new(role, id(&message, "messageId").unwrap_or_default(), parts);
    sent.context_id = id(&message, "contextId").or_else(|| id(params, "contextId")).map(Into::into);
    sent.metadata = object(&mut check, &message);
    check.finish(SendMessage {
        open_as: None,
        message: as_received::keep(sent, &message, limits.json),
        accepted_output_modes: Vec::new(),
        push_config: None,
        history_length: None,
        return_immediately: false,
        metadata: None,
    })
}

fn object(check: &mut Check<'_>, members: &Found<'_>) -> Option<Json> {
    let metadata = member(members, "metadata").filter(|value| value.get().starts_with('{'));
    check.object(format_args!("message.metadata"), metadata)
}

/// A part is never refused: what is not understood is kept as it stands.
fn convert_part(check: &mut Check<'_>, raw: &RawValue, members: &Found<'_>) -> Part {
    let metadata = |check: &mut Check<'_>| object(check, members);
    match string(members, "kind").as_deref() {
        Some("text") => {
            if let Some(text) = string(members, "text") {
                return Part { metadata: metadata(check), ..Part::text(text) };
            }
        }
        Some("data") => {
            if let Some(data) = member(members, "data").filter(|data| data.get() != "null") {
                let data = check.value(format_args!("message.parts.data"), data);
                return Part { metadata: metadata(check), ..Part::json(data) };
            }
        }
        Some("file") => {
            let mut own = Check::new(check.limits);
            if let Ok(Obj(part)) = serde_json::from_str::<Obj<kinds::WirePart<'_>>>(raw.get()) {
                let part = kinds::convert(&mut own, format_args!(""), part);
                if let Ok(part) = own.finish(part) {
                    return part;
                }
            }
        }
        Some(_) | None => {}
    }
    Part::json(check.value(format_args!("message.parts"), raw)).with_media_type(VERBATIM)
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
