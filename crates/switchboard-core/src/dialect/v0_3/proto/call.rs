//! Requests and replies. No request of 0.3 names a tenant, and none lists tasks.

use bytes::Bytes;

use crate::call::{Reply, Request, SendMessage};
use crate::dialect::json::{Check, DecodeLimits, Decoded, Int, unknown_method};
use crate::dialect::protobuf::{Fields, Holds, ListField, Lists, decode, decode_answer, decode_object, list, write};
use crate::error::ProtocolError;
use crate::model::{Message, Role, TaskId, TaskView};

use super::card::{read_card, write_card};
use super::generated as wire;
use super::message::MESSAGE;
use super::push::{CONFIG, CONFIGS, CREATE, NAMED, push_config_name, read_push_config_name, read_task_name, task_name};
use super::task::{TASK, read_sent};

const NONE: Lists = &[];
const SEND: Lists = &[
    ListField(wire::SendMessageRequest::REQUEST, "message", Holds::One(MESSAGE)),
    ListField(wire::SendMessageRequest::CONFIGURATION, "configuration", Holds::One(CONFIGURATION)),
];
const CONFIGURATION: Lists = &[
    ListField(wire::SendMessageConfiguration::ACCEPTED_OUTPUT_MODES, "acceptedOutputModes", Holds::Texts),
    ListField(wire::SendMessageConfiguration::PUSH_NOTIFICATION, "pushNotification", Holds::One(CONFIG)),
];

/// The methods of the service.
const METHODS: [&str; 10] = [
    "SendMessage",
    "SendStreamingMessage",
    "GetTask",
    "CancelTask",
    "TaskSubscription",
    "CreateTaskPushNotificationConfig",
    "GetTaskPushNotificationConfig",
    "ListTaskPushNotificationConfig",
    "DeleteTaskPushNotificationConfig",
    "GetAgentCard",
];

/// Reads a call.
///
/// # Errors
/// [`ProtocolError::MethodNotFound`], [`ProtocolError::InvalidRequest`] when the bytes are no message of the method, or
/// [`ProtocolError::InvalidParams`] naming the fields at fault.
pub fn read_call(method: &str, message: Bytes, limits: &DecodeLimits) -> Result<Decoded, ProtocolError> {
    let mut check = Check::new(limits);
    let name = format_args!("name");
    let request = match method {
        "SendMessage" => {
            let sent: wire::SendMessageRequest = decode(message, SEND, limits)?;
            Request::SendMessage(sent.read(&mut check).into())
        }
        "SendStreamingMessage" => {
            let sent: wire::SendMessageRequest = decode(message, SEND, limits)?;
            Request::SendStreamingMessage(sent.read(&mut check).into())
        }
        "GetTask" => {
            let sent: wire::GetTaskRequest = decode(message, NONE, limits)?;
            let history_length = history_length(&mut check, "historyLength", sent.history_length);
            Request::GetTask { id: read_task_name(&mut check, name, &sent.name), history_length }
        }
        "CancelTask" => {
            let sent: wire::CancelTaskRequest = decode(message, NONE, limits)?;
            Request::CancelTask { id: read_task_name(&mut check, name, &sent.name), metadata: None }
        }
        "TaskSubscription" => {
            let sent: wire::TaskSubscriptionRequest = decode(message, NONE, limits)?;
            Request::SubscribeToTask { id: read_task_name(&mut check, name, &sent.name) }
        }
        "CreateTaskPushNotificationConfig" => {
            let sent: wire::CreateTaskPushNotificationConfigRequest = decode(message, CREATE, limits)?;
            Request::CreatePushConfig(sent.read(&mut check).into())
        }
        "GetTaskPushNotificationConfig" => {
            let sent: wire::GetTaskPushNotificationConfigRequest = decode(message, NONE, limits)?;
            let (task_id, id) = read_push_config_name(&mut check, name, &sent.name);
            Request::GetPushConfig { task_id, id }
        }
        "ListTaskPushNotificationConfig" => {
            let sent: wire::ListTaskPushNotificationConfigRequest = decode(message, NONE, limits)?;
            let task_id = read_task_name(&mut check, format_args!("parent"), &sent.parent);
            let page_size = check.implicit_page_size(Some(Int(sent.page_size)));
            let page_token = check.optional_line(format_args!("pageToken"), Some(sent.page_token));
            Request::ListPushConfigs { task_id, page_size, page_token }
        }
        "DeleteTaskPushNotificationConfig" => {
            let sent: wire::DeleteTaskPushNotificationConfigRequest = decode(message, NONE, limits)?;
            let (task_id, id) = read_push_config_name(&mut check, name, &sent.name);
            Request::DeletePushConfig { task_id, id }
        }
        "GetAgentCard" => {
            let _: wire::GetAgentCardRequest = decode(message, NONE, limits)?;
            Request::GetExtendedAgentCard
        }
        _ => return Err(unknown_method(method, &METHODS)),
    };
    check.finish(Decoded { tenant: None, request })
}

/// Appends the message of a call, and says the name of its method. None for a call that this version does not have: it has no
/// list of tasks.
#[must_use]
pub fn write_call(request: &Request, out: &mut Vec<u8>) -> Option<&'static str> {
    Some(match request {
        Request::SendMessage(send) => {
            wire::SendMessageRequest::write(send, &mut Fields(out));
            "SendMessage"
        }
        Request::SendStreamingMessage(send) => {
            wire::SendMessageRequest::write(send, &mut Fields(out));
            "SendStreamingMessage"
        }
        Request::GetTask { id, history_length } => {
            let history_length = history_length.map(number).unwrap_or_default();
            write(&wire::GetTaskRequest { name: task_name(id), history_length }, out);
            "GetTask"
        }
        Request::ListTasks(_) => return None,
        Request::CancelTask { id, metadata: _ } => {
            write(&wire::CancelTaskRequest { name: task_name(id) }, out);
            "CancelTask"
        }
        Request::SubscribeToTask { id } => {
            write(&wire::TaskSubscriptionRequest { name: task_name(id) }, out);
            "TaskSubscription"
        }
        Request::CreatePushConfig(config) => {
            write(&wire::CreateTaskPushNotificationConfigRequest::of(config), out);
            "CreateTaskPushNotificationConfig"
        }
        Request::GetPushConfig { task_id, id } => {
            write(&wire::GetTaskPushNotificationConfigRequest { name: push_config_name(task_id, id) }, out);
            "GetTaskPushNotificationConfig"
        }
        Request::ListPushConfigs { task_id, page_size, page_token } => {
            let sent = wire::ListTaskPushNotificationConfigRequest {
                parent: task_name(task_id),
                page_size: page_size.map(number).unwrap_or_default(),
                page_token: page_token.clone().unwrap_or_default(),
            };
            write(&sent, out);
            "ListTaskPushNotificationConfig"
        }
        Request::DeletePushConfig { task_id, id } => {
            write(&wire::DeleteTaskPushNotificationConfigRequest { name: push_config_name(task_id, id) }, out);
            "DeleteTaskPushNotificationConfig"
        }
        Request::GetExtendedAgentCard => "GetAgentCard",
    })
}

fn number(number: u32) -> i32 {
    i32::try_from(number).unwrap_or(i32::MAX)
}

/// A number without presence: 0 is no limit.
fn history_length(check: &mut Check<'_>, field: &str, sent: i32) -> Option<u32> {
    check.history_length(format_args!("{field}"), Some(Int(sent))).filter(|length| *length > 0)
}

impl wire::SendMessageRequest {
    fn write(send: &SendMessage, fields: &mut Fields<'_>) {
        fields.message(Self::REQUEST, |fields| wire::Message::write(&send.message, fields));
        let configuration = wire::SendMessageConfiguration {
            accepted_output_modes: send.accepted_output_modes.clone(),
            push_notification: send.push_config.as_ref().map(wire::PushNotificationConfig::of),
            history_length: send.history_length.map(number).unwrap_or_default(),
            blocking: !send.return_immediately,
        };
        fields.generated(Self::CONFIGURATION, &configuration);
        fields.object(Self::METADATA, send.metadata.as_ref());
    }

    fn read(self, check: &mut Check<'_>) -> SendMessage {
        let message = match self.request {
            Some(message) => message.read(check, format_args!("message")),
            None => {
                check.violation(format_args!("message"), "is required");
                Message::new(Role::User, "", Vec::new())
            }
        };
        let metadata = decode_object(check, format_args!("metadata"), self.metadata.as_ref());
        // A flag without presence: absent is false. Without any configuration the client said nothing, and the send
        // waits.
        let return_immediately = self.configuration.as_ref().is_some_and(|sent| !sent.blocking);
        let sent = self.configuration.unwrap_or_default();
        let modes = format_args!("configuration.acceptedOutputModes");
        let push_config = format_args!("configuration.pushNotification");
        SendMessage {
            open_as: None,
            message,
            accepted_output_modes: check.lines(modes, list(sent.accepted_output_modes)),
            push_config: sent.push_notification.map(|config| config.read(check, push_config, TaskId::default())),
            history_length: history_length(check, "configuration.historyLength", sent.history_length),
            return_immediately,
            metadata,
        }
    }
}

/// Appends the result of a call. A deletion is the empty message; a stream is written update by update with
/// [`write_update`](super::write_update).
pub fn write_reply(reply: &Reply, out: &mut Vec<u8>) {
    type SendReply = wire::SendMessageResponse;
    let mut fields = Fields(out);
    match reply {
        Reply::Task(view) => wire::Task::write(view, &mut fields),
        Reply::SentTask(view) => fields.message(SendReply::TASK, |fields| wire::Task::write(view, fields)),
        Reply::SentMessage(said) => fields.message(SendReply::SAID, |fields| wire::Message::write(said, fields)),
        Reply::PushConfig(config) => write(&wire::TaskPushNotificationConfig::of(config), out),
        Reply::PushConfigs(page) => write(&wire::ListTaskPushNotificationConfigResponse::of(page), out),
        Reply::Card(card) => write_card(card, out),
        Reply::Deleted => {}
        Reply::Tasks(_) | Reply::Stream(_) => debug_assert!(false, "no call of 0.3 is answered by this"),
    }
}

/// Reads what a call of this method is answered with. Of a method that is answered with a stream, [`read_update`](super::read_update) reads each
/// message.
///
/// # Errors
/// [`ProtocolError::InvalidAgentResponse`] when the bytes are no message that answers the method,
/// [`ProtocolError::InvalidParams`] naming the fields at fault, or [`ProtocolError::MethodNotFound`].
pub fn read_reply(method: &str, message: Bytes, limits: &DecodeLimits) -> Result<Reply, ProtocolError> {
    let mut check = Check::new(limits);
    let reply = match method {
        "SendMessage" => return read_sent(message, limits),
        "GetTask" | "CancelTask" => {
            let task: wire::Task = decode_answer(message, TASK, limits)?;
            Reply::Task(TaskView::whole(task.read(&mut check, format_args!("task")).into()))
        }
        "CreateTaskPushNotificationConfig" | "GetTaskPushNotificationConfig" => {
            let config: wire::TaskPushNotificationConfig = decode_answer(message, NAMED, limits)?;
            Reply::PushConfig(config.read(&mut check, format_args!("")))
        }
        "ListTaskPushNotificationConfig" => {
            let page: wire::ListTaskPushNotificationConfigResponse = decode_answer(message, CONFIGS, limits)?;
            Reply::PushConfigs(page.read(&mut check))
        }
        "DeleteTaskPushNotificationConfig" => Reply::Deleted,
        "GetAgentCard" => Reply::Card(read_card(message, limits)?.into()),
        _ => return Err(unknown_method(method, &METHODS)),
    };
    check.finish(reply)
}
