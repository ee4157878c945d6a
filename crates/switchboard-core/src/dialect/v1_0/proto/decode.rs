//! The door for requests: the bytes of a message come in, a [`Request`] goes out. Fields are named as the JSON of 1.0 names
//! them, so that a refusal reads the same over every binding.

use bytes::Bytes;

use crate::call::{ListTasks, Request, SendMessage};
use crate::dialect::json::{Check, DecodeLimits, Decoded, Int, NameOrNumber, unknown_method};
use crate::dialect::protobuf::{Lists, What, decode, decode_object, decode_timestamp, decode_value, list, text};
use crate::error::ProtocolError;
use crate::model::{AuthenticationInfo, Message, Part, PartContent, PushConfig, Role, TaskState};

use super::super::decode::METHODS;
use super::generated as wire;
use super::generated::part::Content;
use crate::dialect::wire::V1_0;

/// The lists of a send; no other request has any.
const SEND: Lists = Lists(&[
    (&[2, 5], "message.parts", What::Parts),
    (&[2, 7], "message.extensions", What::Texts),
    (&[2, 8], "message.referenceTaskIds", What::Texts),
    (&[3, 1], "configuration.acceptedOutputModes", What::Texts),
]);
const NONE: Lists = Lists(&[]);

/// Decodes a call.
///
/// # Errors
/// [`ProtocolError::MethodNotFound`], [`ProtocolError::InvalidRequest`] when the bytes are no message of the method, or
/// [`ProtocolError::InvalidParams`] naming the fields at fault.
pub fn decode_call(method: &str, message: Bytes, limits: &DecodeLimits) -> Result<Decoded, ProtocolError> {
    let mut check = Check::new(limits);
    let (tenant, request) = match method {
        "SendMessage" => {
            let (tenant, send) = send_message(&mut check, decode(message, &SEND, limits)?);
            (tenant, Request::SendMessage(send.into()))
        }
        "SendStreamingMessage" => {
            let (tenant, send) = send_message(&mut check, decode(message, &SEND, limits)?);
            (tenant, Request::SendStreamingMessage(send.into()))
        }
        "GetTask" => {
            let sent: wire::GetTaskRequest = decode(message, &NONE, limits)?;
            let id = check.required_id(format_args!("id"), text(&sent.id));
            let history_length = check.history_length(format_args!("historyLength"), sent.history_length.map(Int));
            (tenant(&mut check, &sent.tenant), Request::GetTask { id, history_length })
        }
        "ListTasks" => {
            let sent: wire::ListTasksRequest = decode(message, &NONE, limits)?;
            (tenant(&mut check, &sent.tenant), Request::ListTasks(list_tasks(&mut check, sent)))
        }
        "CancelTask" => {
            let sent: wire::CancelTaskRequest = decode(message, &NONE, limits)?;
            let id = check.required_id(format_args!("id"), text(&sent.id));
            let metadata = decode_object(&mut check, format_args!("metadata"), sent.metadata.as_ref());
            (tenant(&mut check, &sent.tenant), Request::CancelTask { id, metadata })
        }
        "SubscribeToTask" => {
            let sent: wire::SubscribeToTaskRequest = decode(message, &NONE, limits)?;
            let id = check.required_id(format_args!("id"), text(&sent.id));
            (tenant(&mut check, &sent.tenant), Request::SubscribeToTask { id })
        }
        "CreateTaskPushNotificationConfig" => {
            let (tenant, config) = push_config(&mut check, "", decode(message, &NONE, limits)?);
            if config.task_id.is_empty() {
                check.violation(format_args!("taskId"), "is required and must not be empty");
            }
            (tenant, Request::CreatePushConfig(config.into()))
        }
        "GetTaskPushNotificationConfig" => {
            let sent: wire::GetTaskPushNotificationConfigRequest = decode(message, &NONE, limits)?;
            let task_id = check.required_id(format_args!("taskId"), text(&sent.task_id));
            let id = check.required_id(format_args!("id"), text(&sent.id));
            (tenant(&mut check, &sent.tenant), Request::GetPushConfig { task_id, id })
        }
        "ListTaskPushNotificationConfigs" => {
            let sent: wire::ListTaskPushNotificationConfigsRequest = decode(message, &NONE, limits)?;
            let task_id = check.required_id(format_args!("taskId"), text(&sent.task_id));
            let page_size = check.implicit_page_size(Some(Int(sent.page_size)));
            let page_token = check.optional_line(format_args!("pageToken"), Some(sent.page_token));
            (tenant(&mut check, &sent.tenant), Request::ListPushConfigs { task_id, page_size, page_token })
        }
        "DeleteTaskPushNotificationConfig" => {
            let sent: wire::DeleteTaskPushNotificationConfigRequest = decode(message, &NONE, limits)?;
            let task_id = check.required_id(format_args!("taskId"), text(&sent.task_id));
            let id = check.required_id(format_args!("id"), text(&sent.id));
            (tenant(&mut check, &sent.tenant), Request::DeletePushConfig { task_id, id })
        }
        "GetExtendedAgentCard" => {
            let sent: wire::GetExtendedAgentCardRequest = decode(message, &NONE, limits)?;
            (tenant(&mut check, &sent.tenant), Request::GetExtendedAgentCard)
        }
        _ => return Err(unknown_method(method, &METHODS)),
    };
    check.finish(Decoded { tenant, request })
}

fn tenant(check: &mut Check<'_>, sent: &str) -> Option<String> {
    check.id(format_args!("tenant"), text(sent))
}

fn send_message(check: &mut Check<'_>, sent: wire::SendMessageRequest) -> (Option<String>, SendMessage) {
    let tenant = tenant(check, &sent.tenant);
    let message = match sent.message {
        Some(message) => convert_message(check, message),
        None => {
            check.violation(format_args!("message"), "is required");
            Message::new(Role::User, "", Vec::new())
        }
    };
    let mut send = SendMessage {
        open_as: None,
        message,
        accepted_output_modes: Vec::new(),
        push_config: None,
        history_length: None,
        return_immediately: false,
        metadata: decode_object(check, format_args!("metadata"), sent.metadata.as_ref()),
    };
    if let Some(configuration) = sent.configuration {
        send.accepted_output_modes =
            check.lines(format_args!("configuration.acceptedOutputModes"), list(configuration.accepted_output_modes));
        send.push_config = configuration
            .task_push_notification_config
            .map(|config| push_config(check, "configuration.taskPushNotificationConfig.", config).1);
        send.history_length =
            check.history_length(format_args!("configuration.historyLength"), configuration.history_length.map(Int));
        send.return_immediately = configuration.return_immediately;
    }
    (tenant, send)
}

fn convert_message(check: &mut Check<'_>, message: wire::Message) -> Message {
    let role = V1_0.read_role(&NameOrNumber::Number(message.role.into())).unwrap_or_else(|| {
        let description = match message.role {
            0 => "is required: ROLE_USER or ROLE_AGENT".to_owned(),
            other => format!("{other} is neither ROLE_USER nor ROLE_AGENT"),
        };
        check.violation(format_args!("message.role"), description);
        Role::User
    });
    let references: Vec<_> = message.reference_task_ids.iter().filter_map(|id| text(id)).collect();
    Message {
        message_id: check.required_id(format_args!("message.messageId"), text(&message.message_id)),
        context_id: check.id(format_args!("message.contextId"), text(&message.context_id)),
        task_id: check.id(format_args!("message.taskId"), text(&message.task_id)),
        role,
        parts: convert_parts(check, message.parts),
        metadata: decode_object(check, format_args!("message.metadata"), message.metadata.as_ref()),
        extensions: check.lines(format_args!("message.extensions"), list(message.extensions)),
        reference_task_ids: check.ids(format_args!("message.referenceTaskIds"), list(references)),
    }
}

fn convert_parts(check: &mut Check<'_>, parts: Vec<wire::Part>) -> Vec<Part> {
    let field = format_args!("message.parts");
    match list(parts).filter(|parts| parts.total > 0) {
        Some(parts) => {
            let parts = check.bounded(field, "parts", check.limits.parts_max, parts);
            parts.into_iter().enumerate().map(|(i, part)| convert_part(check, i, part)).collect()
        }
        None => {
            check.violation(field, "needs at least one part");
            Vec::new()
        }
    }
}

fn convert_part(check: &mut Check<'_>, i: usize, part: wire::Part) -> Part {
    let content = match part.content {
        Some(Content::Text(text)) => PartContent::Text(text),
        Some(Content::Raw(bytes)) => PartContent::Raw(bytes),
        Some(Content::Url(url)) => {
            check.line(format_args!("message.parts[{i}].url"), &url, usize::MAX);
            PartContent::Url(url)
        }
        Some(Content::Data(data)) => {
            PartContent::Data(decode_value(check, format_args!("message.parts[{i}].data"), &data))
        }
        None => {
            check.violation(format_args!("message.parts[{i}]"), "needs one of text, raw, url and data");
            PartContent::Text(String::new())
        }
    };
    Part {
        content,
        metadata: decode_object(check, format_args!("message.parts[{i}].metadata"), part.metadata.as_ref()),
        filename: Some(part.filename).filter(|name| !name.is_empty()),
        media_type: check.optional_line(format_args!("message.parts[{i}].mediaType"), Some(part.media_type)),
    }
}

/// A push config and the tenant that stands beside its fields; `at` is where it stands in its request.
fn push_config(
    check: &mut Check<'_>,
    at: &str,
    config: wire::TaskPushNotificationConfig,
) -> (Option<String>, PushConfig) {
    let tenant = check.id(format_args!("{at}tenant"), text(&config.tenant));
    let authentication = config.authentication.map(|authentication| {
        let scheme = check.optional_line(format_args!("{at}authentication.scheme"), Some(authentication.scheme));
        if scheme.is_none() {
            check.violation(format_args!("{at}authentication.scheme"), "is required and must not be empty");
        }
        AuthenticationInfo {
            scheme: scheme.unwrap_or_default(),
            credentials: check
                .optional_line(format_args!("{at}authentication.credentials"), Some(authentication.credentials)),
        }
    });
    let config = PushConfig {
        id: check.id(format_args!("{at}id"), text(&config.id)).unwrap_or_default(),
        task_id: check.id(format_args!("{at}taskId"), text(&config.task_id)).unwrap_or_default(),
        url: check.push_url(format_args!("{at}url"), Some(config.url)),
        token: check.optional_line(format_args!("{at}token"), Some(config.token)),
        authentication,
    };
    (tenant, config)
}

fn list_tasks(check: &mut Check<'_>, sent: wire::ListTasksRequest) -> ListTasks {
    ListTasks {
        context_id: check.id(format_args!("contextId"), text(&sent.context_id)),
        state: state(check, sent.status),
        page_size: check.page_size(sent.page_size.map(Int)),
        page_token: check.optional_line(format_args!("pageToken"), Some(sent.page_token)),
        history_length: check.history_length(format_args!("historyLength"), sent.history_length.map(Int)),
        status_since: decode_timestamp(check, format_args!("statusTimestampAfter"), sent.status_timestamp_after),
        include_artifacts: sent.include_artifacts.unwrap_or_default(),
    }
}

/// A state to filter by; the unspecified one filters nothing.
fn state(check: &mut Check<'_>, sent: i32) -> Option<TaskState> {
    V1_0.read_state(&NameOrNumber::Number(sent.into())).unwrap_or_else(|| {
        let description = format!("{sent} is not a task state; use a name such as TASK_STATE_WORKING");
        check.violation(format_args!("status"), description);
        None
    })
}
