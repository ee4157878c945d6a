//! Calls. A server reads a method and its params into a [`Call`]; a client writes them from a request.

use serde::{Deserialize, Serialize};

use crate::call::{Request, SendMessage};
use crate::dialect::compat::without_webhook;
use crate::dialect::json::{Check, DecodeLimits, Obj, Text, params_or_empty, read_params, unknown_method};
use crate::dialect::outgoing::{OutgoingCall, Transport, WrittenCall};
use crate::error::ProtocolError;
use crate::model::{self, Role, TaskId};

use super::NAME;
use super::task::{Message, put};

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

#[derive(Deserialize, Serialize)]
struct TaskParams<'a> {
    #[serde(borrow)]
    id: Option<Text<'a>>,
}

#[derive(Deserialize, Serialize)]
struct SendParams<'a> {
    #[serde(borrow)]
    id: Option<Text<'a>>,
    #[serde(borrow)]
    message: Option<Obj<Message<'a>>>,
}

/// Decodes a call. Absent params, and null, are an empty object.
///
/// # Errors
/// [`ProtocolError::MethodNotFound`], or [`ProtocolError::InvalidParams`].
pub fn decode_call(method: &str, params: Option<&str>, limits: &DecodeLimits) -> Result<Call, ProtocolError> {
    let text = params_or_empty(params);
    let mut check = Check::new(limits);
    let call = match method {
        "message/send" => send_message(&mut check, read_params(text)?, false),
        "message/stream" => send_message(&mut check, read_params(text)?, true),
        "tasks/get" => Call::Get(task_id(&mut check, text)?),
        // The original has no way to cancel over JSON-RPC; this is the method of A2A 0.3.
        "tasks/cancel" => Call::Cancel(task_id(&mut check, text)?),
        "tasks/resubscribe" => Call::Follow(task_id(&mut check, text)?),
        _ => return Err(unknown_method(method, &METHODS)),
    };
    check.finish(call)
}

fn task_id(check: &mut Check<'_>, text: &str) -> Result<TaskId, ProtocolError> {
    let params: TaskParams<'_> = read_params(text)?;
    Ok(check.required_id(format_args!("id"), params.id))
}

fn send_message(check: &mut Check<'_>, params: SendParams<'_>, is_streamed: bool) -> Call {
    let id = check.id(format_args!("id"), params.id);
    let message = match params.message {
        Some(Obj(message)) => message.read(check, format_args!("message")),
        None => {
            check.violation(format_args!("message"), "is required");
            model::Message::new(Role::User, "", Vec::new())
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

/// Writes a call. The name under which a repeat is recognised is that of the task, so a send that names no task is given its
/// idempotency key for one.
///
/// # Errors
/// [`ProtocolError::UnsupportedOperation`] for a call that the dialect does not have, [`ProtocolError::InvalidParams`] for a send
/// with a webhook.
pub fn write_call(call: &OutgoingCall<'_>) -> Result<WrittenCall, ProtocolError> {
    call.require(Transport::JsonRpc, NAME)?;
    let mut params = Vec::with_capacity(256);
    let mut send = |send: &SendMessage| {
        without_webhook(send, NAME)?;
        let task = send.message.task_id.as_ref().or(send.open_as.as_ref()).map(TaskId::as_str);
        let id = task.or(call.idempotency_key).map(Text::from);
        put(&mut params, &SendParams { id, message: Some(Obj(Message::of(&send.message))) });
        Ok(())
    };
    let method = match call.request {
        Request::SendMessage(message) => {
            send(message)?;
            "message/send"
        }
        Request::SendStreamingMessage(message) => {
            send(message)?;
            "message/stream"
        }
        Request::GetTask { id, .. } => {
            put(&mut params, &TaskParams { id: Some(Text::from(id.as_str())) });
            "tasks/get"
        }
        Request::CancelTask { id, .. } => {
            put(&mut params, &TaskParams { id: Some(Text::from(id.as_str())) });
            "tasks/cancel"
        }
        Request::SubscribeToTask { id } => {
            put(&mut params, &TaskParams { id: Some(Text::from(id.as_str())) });
            "tasks/resubscribe"
        }
        Request::ListTasks(_)
        | Request::CreatePushConfig(_)
        | Request::GetPushConfig { .. }
        | Request::ListPushConfigs { .. }
        | Request::DeletePushConfig { .. }
        | Request::GetExtendedAgentCard => return Err(call.not_in(NAME)),
    };
    Ok(WrittenCall::JsonRpc { method, params })
}
