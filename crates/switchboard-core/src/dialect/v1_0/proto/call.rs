//! Requests and replies.

use bytes::Bytes;

use crate::call::{ListTasks, Reply, Request, SendMessage, TaskPage};
use crate::dialect::json::{Check, DecodeLimits, Decoded, Int, NameOrNumber, unknown_method};
use crate::dialect::protobuf::{
    Fields, Holds, ListField, Lists, decode, decode_answer, decode_object, decode_timestamp, each, encode_object,
    encode_timestamp, list, state_number, text, write,
};
use crate::dialect::wire::V1_0;
use crate::error::ProtocolError;
use crate::model::{Message, Role, TaskState, TaskView};

use super::card::{read_card, write_card};
use super::generated as wire;
use super::message::MESSAGE;
use super::push::CONFIGS;
use super::task::{TASK, read_sent};
use crate::dialect::v1_0::METHODS;

const NONE: Lists = &[];
const SEND: Lists = &[
    ListField(wire::SendMessageRequest::MESSAGE, "message", Holds::One(MESSAGE)),
    ListField(wire::SendMessageRequest::CONFIGURATION, "configuration", Holds::One(CONFIGURATION)),
];
const CONFIGURATION: Lists =
    &[ListField(wire::SendMessageConfiguration::ACCEPTED_OUTPUT_MODES, "acceptedOutputModes", Holds::Texts)];
const TASKS: Lists = &[ListField(wire::ListTasksResponse::TASKS, "tasks", Holds::Many("tasks", TASK))];

/// Reads a call.
///
/// # Errors
/// [`ProtocolError::MethodNotFound`], [`ProtocolError::InvalidRequest`] when the bytes are no message of the method, or
/// [`ProtocolError::InvalidParams`] naming the fields at fault.
pub fn read_call(method: &str, message: Bytes, limits: &DecodeLimits) -> Result<Decoded, ProtocolError> {
    let mut check = Check::new(limits);
    let (tenant, request) = match method {
        "SendMessage" => {
            let (tenant, send) = decode::<wire::SendMessageRequest>(message, SEND, limits)?.read(&mut check);
            (tenant, Request::SendMessage(send.into()))
        }
        "SendStreamingMessage" => {
            let (tenant, send) = decode::<wire::SendMessageRequest>(message, SEND, limits)?.read(&mut check);
            (tenant, Request::SendStreamingMessage(send.into()))
        }
        "GetTask" => {
            let sent: wire::GetTaskRequest = decode(message, NONE, limits)?;
            let id = check.required_id(format_args!("id"), text(&sent.id));
            let history_length = check.history_length(format_args!("historyLength"), sent.history_length.map(Int));
            (tenant(&mut check, &sent.tenant), Request::GetTask { id, history_length })
        }
        "ListTasks" => {
            let sent: wire::ListTasksRequest = decode(message, NONE, limits)?;
            (tenant(&mut check, &sent.tenant), Request::ListTasks(sent.read(&mut check)))
        }
        "CancelTask" => {
            let sent: wire::CancelTaskRequest = decode(message, NONE, limits)?;
            let id = check.required_id(format_args!("id"), text(&sent.id));
            let metadata = decode_object(&mut check, format_args!("metadata"), sent.metadata.as_ref());
            (tenant(&mut check, &sent.tenant), Request::CancelTask { id, metadata })
        }
        "SubscribeToTask" => {
            let sent: wire::SubscribeToTaskRequest = decode(message, NONE, limits)?;
            let id = check.required_id(format_args!("id"), text(&sent.id));
            (tenant(&mut check, &sent.tenant), Request::SubscribeToTask { id })
        }
        "CreateTaskPushNotificationConfig" => {
            let sent: wire::TaskPushNotificationConfig = decode(message, NONE, limits)?;
            let (tenant, config) = sent.read(&mut check, format_args!(""));
            if config.task_id.is_empty() {
                check.violation(format_args!("taskId"), "is required and must not be empty");
            }
            (tenant, Request::CreatePushConfig(config.into()))
        }
        "GetTaskPushNotificationConfig" => {
            let sent: wire::GetTaskPushNotificationConfigRequest = decode(message, NONE, limits)?;
            let task_id = check.required_id(format_args!("taskId"), text(&sent.task_id));
            let id = check.required_id(format_args!("id"), text(&sent.id));
            (tenant(&mut check, &sent.tenant), Request::GetPushConfig { task_id, id })
        }
        "ListTaskPushNotificationConfigs" => {
            let sent: wire::ListTaskPushNotificationConfigsRequest = decode(message, NONE, limits)?;
            let task_id = check.required_id(format_args!("taskId"), text(&sent.task_id));
            let page_size = check.implicit_page_size(Some(Int(sent.page_size)));
            let page_token = check.optional_line(format_args!("pageToken"), Some(sent.page_token));
            (tenant(&mut check, &sent.tenant), Request::ListPushConfigs { task_id, page_size, page_token })
        }
        "DeleteTaskPushNotificationConfig" => {
            let sent: wire::DeleteTaskPushNotificationConfigRequest = decode(message, NONE, limits)?;
            let task_id = check.required_id(format_args!("taskId"), text(&sent.task_id));
            let id = check.required_id(format_args!("id"), text(&sent.id));
            (tenant(&mut check, &sent.tenant), Request::DeletePushConfig { task_id, id })
        }
        "GetExtendedAgentCard" => {
            let sent: wire::GetExtendedAgentCardRequest = decode(message, NONE, limits)?;
            (tenant(&mut check, &sent.tenant), Request::GetExtendedAgentCard)
        }
        _ => return Err(unknown_method(method, &METHODS)),
    };
    check.finish(Decoded { tenant, request })
}

fn tenant(check: &mut Check<'_>, sent: &str) -> Option<String> {
    check.id(format_args!("tenant"), text(sent))
}

/// Appends the message of a call, and says the name of its method.
pub fn write_call(request: &Request, tenant: Option<&str>, out: &mut Vec<u8>) -> &'static str {
    let own = |text: &str| text.to_owned();
    let tenant_of = || tenant.unwrap_or_default().to_owned();
    match request {
        Request::SendMessage(send) | Request::SendStreamingMessage(send) => {
            wire::SendMessageRequest::write(send, tenant, &mut Fields(out));
        }
        Request::GetTask { id, history_length } => {
            let history_length = history_length.map(number);
            write(&wire::GetTaskRequest { tenant: tenant_of(), id: own(id.as_str()), history_length }, out);
        }
        Request::ListTasks(list) => write(&wire::ListTasksRequest::of(list, tenant), out),
        Request::CancelTask { id, metadata } => {
            let metadata = metadata.as_ref().map(encode_object);
            write(&wire::CancelTaskRequest { tenant: tenant_of(), id: own(id.as_str()), metadata }, out);
        }
        Request::SubscribeToTask { id } => {
            write(&wire::SubscribeToTaskRequest { tenant: tenant_of(), id: own(id.as_str()) }, out);
        }
        Request::CreatePushConfig(config) => write(&wire::TaskPushNotificationConfig::of(config, tenant), out),
        Request::GetPushConfig { task_id, id } => {
            let (task_id, id) = (own(task_id.as_str()), own(id.as_str()));
            write(&wire::GetTaskPushNotificationConfigRequest { tenant: tenant_of(), task_id, id }, out);
        }
        Request::ListPushConfigs { task_id, page_size, page_token } => {
            let sent = wire::ListTaskPushNotificationConfigsRequest {
                task_id: own(task_id.as_str()),
                page_size: page_size.map(number).unwrap_or_default(),
                page_token: page_token.clone().unwrap_or_default(),
                tenant: tenant_of(),
            };
            write(&sent, out);
        }
        Request::DeletePushConfig { task_id, id } => {
            let (task_id, id) = (own(task_id.as_str()), own(id.as_str()));
            write(&wire::DeleteTaskPushNotificationConfigRequest { tenant: tenant_of(), task_id, id }, out);
        }
        Request::GetExtendedAgentCard => {
            write(&wire::GetExtendedAgentCardRequest { tenant: tenant_of() }, out);
        }
    }
    request.operation()
}

fn number(number: u32) -> i32 {
    i32::try_from(number).unwrap_or(i32::MAX)
}

impl wire::SendMessageRequest {
    fn write(send: &SendMessage, tenant: Option<&str>, fields: &mut Fields<'_>) {
        let push_config = send.push_config.as_ref().map(|config| wire::TaskPushNotificationConfig::of(config, None));
        fields.text(Self::TENANT, tenant.unwrap_or_default());
        fields.message(Self::MESSAGE, |fields| wire::Message::write(&send.message, fields));
        let configuration = wire::SendMessageConfiguration {
            accepted_output_modes: send.accepted_output_modes.clone(),
            task_push_notification_config: push_config,
            history_length: send.history_length.map(number),
            return_immediately: send.return_immediately,
        };
        if configuration != wire::SendMessageConfiguration::default() {
            fields.generated(Self::CONFIGURATION, &configuration);
        }
        fields.object(Self::METADATA, send.metadata.as_ref());
    }

    fn read(self, check: &mut Check<'_>) -> (Option<String>, SendMessage) {
        let tenant = tenant(check, &self.tenant);
        let message = match self.message {
            Some(message) => message.read(check, format_args!("message")),
            None => {
                check.violation(format_args!("message"), "is required");
                Message::new(Role::User, "", Vec::new())
            }
        };
        let metadata = decode_object(check, format_args!("metadata"), self.metadata.as_ref());
        let sent = self.configuration.unwrap_or_default();
        let modes = format_args!("configuration.acceptedOutputModes");
        let push_config = format_args!("configuration.taskPushNotificationConfig.");
        let send = SendMessage {
            open_as: None,
            message,
            accepted_output_modes: check.lines(modes, list(sent.accepted_output_modes)),
            push_config: sent.task_push_notification_config.map(|config| config.read(check, push_config).1),
            history_length: check
                .history_length(format_args!("configuration.historyLength"), sent.history_length.map(Int)),
            return_immediately: sent.return_immediately,
            metadata,
        };
        (tenant, send)
    }
}

impl wire::ListTasksRequest {
    fn of(list: &ListTasks, tenant: Option<&str>) -> Self {
        Self {
            tenant: tenant.unwrap_or_default().to_owned(),
            context_id: list.context_id.as_ref().map(|id| id.as_str().to_owned()).unwrap_or_default(),
            status: list.state.map(state_number).unwrap_or_default(),
            page_size: list.page_size.map(number),
            page_token: list.page_token.clone().unwrap_or_default(),
            history_length: list.history_length.map(number),
            status_timestamp_after: list.status_since.map(encode_timestamp),
            include_artifacts: list.include_artifacts.then_some(true),
        }
    }

    fn read(self, check: &mut Check<'_>) -> ListTasks {
        ListTasks {
            context_id: check.id(format_args!("contextId"), text(&self.context_id)),
            state: read_filter(check, self.status),
            page_size: check.page_size(self.page_size.map(Int)),
            page_token: check.optional_line(format_args!("pageToken"), Some(self.page_token)),
            history_length: check.history_length(format_args!("historyLength"), self.history_length.map(Int)),
            status_since: decode_timestamp(check, format_args!("statusTimestampAfter"), self.status_timestamp_after),
            include_artifacts: self.include_artifacts.unwrap_or_default(),
        }
    }
}

/// A state to filter by; the unspecified one filters nothing.
fn read_filter(check: &mut Check<'_>, sent: i32) -> Option<TaskState> {
    V1_0.read_state(&NameOrNumber::Number(sent.into())).unwrap_or_else(|| {
        let description = format!("{sent} is not a task state; use a name such as TASK_STATE_WORKING");
        check.violation(format_args!("status"), description);
        None
    })
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
        Reply::Tasks(page) => wire::ListTasksResponse::write(page, &mut fields),
        Reply::PushConfig(config) => write(&wire::TaskPushNotificationConfig::of(config, None), out),
        Reply::PushConfigs(page) => write(&wire::ListTaskPushNotificationConfigsResponse::of(page), out),
        Reply::Card(card) => write_card(card, out),
        Reply::Deleted => {}
        Reply::Stream(_) => debug_assert!(false, "a stream has no single written form"),
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
        "ListTasks" => Reply::Tasks(decode_answer::<wire::ListTasksResponse>(message, TASKS, limits)?.read(&mut check)),
        "CreateTaskPushNotificationConfig" | "GetTaskPushNotificationConfig" => {
            let config: wire::TaskPushNotificationConfig = decode_answer(message, NONE, limits)?;
            Reply::PushConfig(config.read(&mut check, format_args!("")).1)
        }
        "ListTaskPushNotificationConfigs" => {
            let page: wire::ListTaskPushNotificationConfigsResponse = decode_answer(message, CONFIGS, limits)?;
            Reply::PushConfigs(page.read(&mut check))
        }
        "DeleteTaskPushNotificationConfig" => Reply::Deleted,
        "GetExtendedAgentCard" => Reply::Card(read_card(message, limits)?.into()),
        _ => return Err(unknown_method(method, &METHODS)),
    };
    check.finish(reply)
}

impl wire::ListTasksResponse {
    fn write(page: &TaskPage, fields: &mut Fields<'_>) {
        for view in &page.tasks {
            fields.message(Self::TASKS, |fields| wire::Task::write(view, fields));
        }
        fields.text(Self::NEXT_PAGE_TOKEN, &page.next_page_token);
        fields.number(Self::PAGE_SIZE, i32::try_from(page.page_size).unwrap_or(i32::MAX).into());
        fields.number(Self::TOTAL_SIZE, i32::try_from(page.total_size).unwrap_or(i32::MAX).into());
    }

    fn read(self, check: &mut Check<'_>) -> TaskPage {
        let tasks = each(check, format_args!("tasks"), ("tasks", usize::MAX), self.tasks, wire::Task::read);
        TaskPage {
            tasks: tasks.into_iter().map(|task| TaskView::whole(task.into())).collect(),
            next_page_token: self.next_page_token,
            page_size: self.page_size.try_into().unwrap_or_default(),
            total_size: self.total_size.try_into().unwrap_or_default(),
        }
    }
}
