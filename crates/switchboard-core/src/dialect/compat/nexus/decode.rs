//! The door for calls: a method and its params come in, a [`Call`] goes out.

use serde::Deserialize;

use crate::call::SendMessage;
use crate::dialect::json::{Check, DecodeLimits, List, Obj, Text, excerpt, read_params, unknown_method};
use crate::error::ProtocolError;
use crate::model::{Message, Role, TaskId};

use super::part::{self, WirePart};

/// What can be asked.
#[derive(Debug, PartialEq)]
pub enum Call {
    Send {
        send: Box<SendMessage>,
        /// The task that is meant: one that is there, or else the name of a new one.
        id: Option<TaskId>,
        /// Whether the answer is a stream.
        is_streamed: bool,
    },
    Get(TaskId),
    Cancel(TaskId),
    /// Follow a task that is there already.
    Follow(TaskId),
}

const METHODS: [&str; 5] = ["message/send", "message/stream", "tasks/get", "tasks/cancel", "tasks/resubscribe"];

/// Decodes a call. Absent params, and null, are an empty object.
///
/// # Errors
/// [`ProtocolError::MethodNotFound`], or [`ProtocolError::InvalidParams`].
pub fn decode_call(method: &str, params: Option<&str>, limits: &DecodeLimits) -> Result<Call, ProtocolError> {
    let text = params.filter(|params| *params != "null").unwrap_or("{}");
    let mut check = Check::new(limits);
    let call = match method {
        "message/send" => send_message(&mut check, read_params(text)?, false),
        "message/stream" => send_message(&mut check, read_params(text)?, true),
        "tasks/get" => Call::Get(task_id(&mut check, text)?),
        // The original has no way to cancel over JSON-RPC; this is the one that everybody else has.
        "tasks/cancel" => Call::Cancel(task_id(&mut check, text)?),
        "tasks/resubscribe" => Call::Follow(task_id(&mut check, text)?),
        _ => return Err(unknown_method(method, &METHODS)),
    };
    check.finish(call)
}

#[derive(Deserialize)]
struct TaskParams<'a> {
    #[serde(borrow)]
    id: Option<Text<'a>>,
}

fn task_id(check: &mut Check<'_>, text: &str) -> Result<TaskId, ProtocolError> {
    let params: TaskParams<'_> = read_params(text)?;
    Ok(check.required_id(format_args!("id"), params.id))
}

#[derive(Deserialize)]
struct SendParams<'a> {
    #[serde(borrow)]
    id: Option<Text<'a>>,
    #[serde(borrow)]
    message: Option<Obj<WireMessage<'a>>>,
}

#[derive(Deserialize)]
struct WireMessage<'a> {
    #[serde(borrow)]
    role: Option<Text<'a>>,
    #[serde(borrow)]
    parts: Option<List<Obj<WirePart<'a>>>>,
}

fn send_message(check: &mut Check<'_>, params: SendParams<'_>, is_streamed: bool) -> Call {
    let id = check.id(format_args!("id"), params.id);
    let message = match params.message {
        Some(Obj(message)) => convert(check, message),
        None => {
            check.violation(format_args!("message"), "is required");
            Message::new(Role::User, "", Vec::new())
        }
    };
    let send = SendMessage {
        open_as: None,
        message,
        accepted_output_modes: Vec::new(),
        push_config: None,
        history_length: None,
        return_immediately: false,
        metadata: None,
    };
    Call::Send { send: Box::new(send), id, is_streamed }
}

fn convert(check: &mut Check<'_>, message: WireMessage<'_>) -> Message {
    let role = match message.role.as_ref().map(|Text(role)| role.as_ref()) {
        Some("user") => Role::User,
        Some("agent") => Role::Agent,
        Some(other) => {
            check.violation(format_args!("message.role"), format!("{} is neither user nor agent", excerpt(other, 64)));
            Role::User
        }
        None => {
            check.violation(format_args!("message.role"), "is required: user or agent");
            Role::User
        }
    };
    let parts = message.parts.filter(|parts| parts.total > 0);
    let Some(parts) = parts else {
        check.violation(format_args!("message.parts"), "needs at least one part");
        return Message::new(role, "", Vec::new());
    };
    let parts = check.bounded(format_args!("message.parts"), "parts", check.limits.parts_max, parts);
    let convert = |(i, Obj(part))| part::convert(check, format_args!("message.parts[{i}]"), part);
    Message::new(role, "", parts.into_iter().enumerate().map(convert).collect())
}
