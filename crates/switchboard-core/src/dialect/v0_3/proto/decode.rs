//! The door for requests: the bytes of a message come in, a [`Request`] goes out. Fields are named as `rest` names them.

use bytes::Bytes;

use crate::call::{Request, SendMessage};
use crate::dialect::json::{Check, DecodeLimits, Decoded, Int, NameOrNumber, unknown_method};
use crate::dialect::protobuf::{Lists, What, decode, decode_object, list, text};
use crate::error::ProtocolError;
use crate::model::{AuthenticationInfo, ConfigId, Message, Part, PartContent, PushConfig, Role, TaskId};

use super::generated as wire;
use super::generated::file_part::File;
use super::generated::part::Part as Content;
use super::resource::{read_push_config, read_task};
use crate::dialect::wire::V0_3_REST;
use crate::dialect::wire::data_part;

const SEND: Lists = Lists(&[
    (&[1, 5], "message.content", What::Parts),
    (&[1, 7], "message.extensions", What::Texts),
    (&[2, 1], "configuration.acceptedOutputModes", What::Texts),
    (&[2, 2, 4, 1], "configuration.pushNotification.authentication.schemes", What::Texts),
]);
const CREATE: Lists = Lists(&[(&[3, 2, 4, 1], "config.pushNotificationConfig.authentication.schemes", What::Texts)]);
const NONE: Lists = Lists(&[]);

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

/// Decodes a call.
///
/// # Errors
/// [`ProtocolError::MethodNotFound`], [`ProtocolError::InvalidRequest`] when the bytes are no message of the method, or
/// [`ProtocolError::InvalidParams`] naming the fields at fault.
pub fn decode_call(method: &str, message: Bytes, limits: &DecodeLimits) -> Result<Decoded, ProtocolError> {
    let mut check = Check::new(limits);
    let name = format_args!("name");
    let request = match method {
        "SendMessage" => Request::SendMessage(send_message(&mut check, decode(message, &SEND, limits)?).into()),
        "SendStreamingMessage" => {
            Request::SendStreamingMessage(send_message(&mut check, decode(message, &SEND, limits)?).into())
        }
        "GetTask" => {
            let sent: wire::GetTaskRequest = decode(message, &NONE, limits)?;
            let history_length = history_length(&mut check, "historyLength", sent.history_length);
            Request::GetTask { id: read_task(&mut check, name, &sent.name), history_length }
        }
        "CancelTask" => {
            let sent: wire::CancelTaskRequest = decode(message, &NONE, limits)?;
            Request::CancelTask { id: read_task(&mut check, name, &sent.name), metadata: None }
        }
        "TaskSubscription" => {
            let sent: wire::TaskSubscriptionRequest = decode(message, &NONE, limits)?;
            Request::SubscribeToTask { id: read_task(&mut check, name, &sent.name) }
        }
        "CreateTaskPushNotificationConfig" => {
            Request::CreatePushConfig(create_push_config(&mut check, decode(message, &CREATE, limits)?).into())
        }
        "GetTaskPushNotificationConfig" => {
            let sent: wire::GetTaskPushNotificationConfigRequest = decode(message, &NONE, limits)?;
            let (task_id, id) = read_push_config(&mut check, name, &sent.name);
            Request::GetPushConfig { task_id, id }
        }
        "ListTaskPushNotificationConfig" => {
            let sent: wire::ListTaskPushNotificationConfigRequest = decode(message, &NONE, limits)?;
            let task_id = read_task(&mut check, format_args!("parent"), &sent.parent);
            let page_size = check.implicit_page_size(Some(Int(sent.page_size)));
            let page_token = check.optional_line(format_args!("pageToken"), Some(sent.page_token));
            Request::ListPushConfigs { task_id, page_size, page_token }
        }
        "DeleteTaskPushNotificationConfig" => {
            let sent: wire::DeleteTaskPushNotificationConfigRequest = decode(message, &NONE, limits)?;
            let (task_id, id) = read_push_config(&mut check, name, &sent.name);
            Request::DeletePushConfig { task_id, id }
        }
        "GetAgentCard" => {
            let _: wire::GetAgentCardRequest = decode(message, &NONE, limits)?;
            Request::GetExtendedAgentCard
        }
        _ => return Err(unknown_method(method, &METHODS)),
    };
    check.finish(Decoded { tenant: None, request })
}

fn send_message(check: &mut Check<'_>, sent: wire::SendMessageRequest) -> SendMessage {
    let message = match sent.request {
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
            .push_notification
            .map(|config| push_config(check, "configuration.pushNotification", TaskId::default(), config));
        send.history_length = history_length(check, "configuration.historyLength", configuration.history_length);
        // A flag without presence: absent is false. Without any configuration nobody has said anything, and we wait.
        send.return_immediately = !configuration.blocking;
    }
    send
}

/// A number without presence: 0 is no limit.
fn history_length(check: &mut Check<'_>, field: &str, sent: i32) -> Option<u32> {
    check.history_length(format_args!("{field}"), Some(Int(sent))).filter(|length| *length > 0)
}

fn convert_message(check: &mut Check<'_>, message: wire::Message) -> Message {
    let role = V0_3_REST.read_role(&NameOrNumber::Number(message.role.into())).unwrap_or_else(|| {
        let description = match message.role {
            0 => "is required: ROLE_USER or ROLE_AGENT".to_owned(),
            other => format!("{other} is neither ROLE_USER nor ROLE_AGENT"),
        };
        check.violation(format_args!("message.role"), description);
        Role::User
    });
    Message {
        // Clients of this family may leave it out; the server then names the message.
        message_id: check.id(format_args!("message.messageId"), text(&message.message_id)).unwrap_or_default(),
        context_id: check.id(format_args!("message.contextId"), text(&message.context_id)),
        task_id: check.id(format_args!("message.taskId"), text(&message.task_id)),
        role,
        parts: convert_parts(check, message.content),
        metadata: decode_object(check, format_args!("message.metadata"), message.metadata.as_ref()),
        extensions: check.lines(format_args!("message.extensions"), list(message.extensions)),
        reference_task_ids: Vec::new(),
    }
}

fn convert_parts(check: &mut Check<'_>, parts: Vec<wire::Part>) -> Vec<Part> {
    let field = format_args!("message.content");
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
    let metadata = decode_object(check, format_args!("message.content[{i}].metadata"), part.metadata.as_ref());
    match part.part {
        Some(Content::Text(text)) => Part { metadata, ..Part::text(text) },
        Some(Content::File(file)) => Part { metadata, ..convert_file(check, i, file) },
        Some(Content::Data(wire::DataPart { data })) => {
            let field = format_args!("message.content[{i}].data.data");
            let Some(data) = decode_object(check, field, data.as_ref()) else {
                if data.is_none() {
                    check.violation(field, "is required and must be an object");
                }
                return Part::text(String::new());
            };
            let (data, metadata) = data_part::read(data, metadata);
            Part { metadata, ..Part::json(data) }
        }
        None => {
            check.violation(format_args!("message.content[{i}]"), "needs one of text, file and data");
            Part::text(String::new())
        }
    }
}

fn convert_file(check: &mut Check<'_>, i: usize, file: wire::FilePart) -> Part {
    let at = format_args!("message.content[{i}].file");
    let content = match file.file {
        Some(File::FileWithBytes(bytes)) => PartContent::Raw(bytes),
        Some(File::FileWithUri(uri)) => {
            check.line(format_args!("{at}.fileWithUri"), &uri, usize::MAX);
            PartContent::Url(uri)
        }
        None => {
            check.violation(at, "needs fileWithBytes or fileWithUri");
            PartContent::Raw(Bytes::new())
        }
    };
    Part {
        content,
        metadata: None,
        filename: Some(file.name).filter(|name| !name.is_empty()),
        media_type: check.optional_line(format_args!("{at}.mimeType"), Some(file.mime_type)),
    }
}

/// The task is named by `parent`, the config by its own id, by `configId`, or by its name.
fn create_push_config(check: &mut Check<'_>, sent: wire::CreateTaskPushNotificationConfigRequest) -> PushConfig {
    let task_id = read_task(check, format_args!("parent"), &sent.parent);
    let (name, config) = sent.config.map(|config| (config.name, config.push_notification_config)).unwrap_or_default();
    let at = "config.pushNotificationConfig";
    let Some(config) = config else {
        check.violation(format_args!("{at}"), "is required");
        return PushConfig { id: ConfigId::default(), task_id, url: String::new(), token: None, authentication: None };
    };
    let mut config = push_config(check, at, task_id, config);
    if config.id.is_empty()
        && let Some(id) = check.id(format_args!("configId"), text(&sent.config_id))
    {
        config.id = id;
    }
    if config.id.is_empty() && !name.is_empty() {
        config.id = read_push_config(check, format_args!("config.name"), &name).1;
    }
    config
}

fn push_config(check: &mut Check<'_>, at: &str, task_id: TaskId, config: wire::PushNotificationConfig) -> PushConfig {
    let authentication = config.authentication.map(|authentication| {
        let schemes = check.lines(format_args!("{at}.authentication.schemes"), list(authentication.schemes));
        let scheme = schemes.into_iter().find(|scheme| !scheme.is_empty());
        if scheme.is_none() {
            check.violation(format_args!("{at}.authentication.schemes"), "needs at least one scheme, such as Bearer");
        }
        let credentials = Some(authentication.credentials);
        AuthenticationInfo {
            scheme: scheme.unwrap_or_default(),
            credentials: check.optional_line(format_args!("{at}.authentication.credentials"), credentials),
        }
    });
    PushConfig {
        id: check.id(format_args!("{at}.id"), text(&config.id)).unwrap_or_default(),
        task_id,
        url: check.push_url(format_args!("{at}.url"), Some(config.url)),
        token: check.optional_line(format_args!("{at}.token"), Some(config.token)),
        authentication,
    }
}
