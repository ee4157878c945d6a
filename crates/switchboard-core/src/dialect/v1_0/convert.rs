//! From the wire's structs to the model: what the text said becomes what is meant, and what may not be is reported by
//! field. Nothing here reads JSON.

use bytes::Bytes;

use crate::call::{ListTasks, SendMessage};
use crate::dialect::json::{Check, List, NameOrNumber, Obj, decode_base64};
use crate::model::{AuthenticationInfo, Message, Part, PartContent, PushConfig, Role, TaskState};

use super::names::{read_role, read_state};
use super::wire;

/// Where a push config stands in its request; fields are named relative to that.
#[derive(Clone, Copy)]
pub(super) enum PushConfigPlace {
    /// It is the request.
    Root,
    /// Inside the configuration of a send.
    Inline,
}

pub(super) fn send_message(
    check: &mut Check<'_>,
    params: wire::SendMessageParams<'_>,
) -> (Option<String>, SendMessage) {
    let tenant = check.id(format_args!("tenant"), params.tenant);
    let message = match params.message {
        Some(Obj(message)) => convert_message(check, message),
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
        metadata: check.object(format_args!("metadata"), params.metadata),
    };
    if let Some(Obj(configuration)) = params.configuration {
        send.accepted_output_modes =
            check.lines(format_args!("configuration.acceptedOutputModes"), configuration.accepted_output_modes);
        send.push_config = configuration
            .task_push_notification_config
            .map(|config| push_config(check, PushConfigPlace::Inline, config.0).1);
        send.history_length =
            check.history_length(format_args!("configuration.historyLength"), configuration.history_length);
        send.return_immediately = configuration.return_immediately.unwrap_or_default();
    }
    (tenant, send)
}

fn convert_message(check: &mut Check<'_>, message: wire::Message<'_>) -> Message {
    let role = match &message.role {
        Some(sent) => read_role(sent).unwrap_or_else(|_| {
            check.violation(format_args!("message.role"), format!("{sent} is neither ROLE_USER nor ROLE_AGENT"));
            Role::User
        }),
        None => {
            check.violation(format_args!("message.role"), "is required: ROLE_USER or ROLE_AGENT");
            Role::User
        }
    };
    Message {
        message_id: check.required_id(format_args!("message.messageId"), message.message_id),
        context_id: check.id(format_args!("message.contextId"), message.context_id),
        task_id: check.id(format_args!("message.taskId"), message.task_id),
        role,
        parts: convert_parts(check, message.parts),
        metadata: check.object(format_args!("message.metadata"), message.metadata),
        extensions: check.lines(format_args!("message.extensions"), message.extensions),
        reference_task_ids: check.ids(format_args!("message.referenceTaskIds"), message.reference_task_ids),
    }
}

fn convert_parts(check: &mut Check<'_>, parts: Option<List<Obj<wire::Part<'_>>>>) -> Vec<Part> {
    let field = format_args!("message.parts");
    match parts {
        Some(list) if list.total > 0 => {
            let parts = check.bounded(field, "parts", check.limits.parts_max, list);
            parts.into_iter().enumerate().map(|(i, Obj(part))| convert_part(check, i, part)).collect()
        }
        Some(_) | None => {
            check.violation(field, "needs at least one part");
            Vec::new()
        }
    }
}

fn convert_part(check: &mut Check<'_>, i: usize, part: wire::Part<'_>) -> Part {
    let content = match (part.text, part.raw, part.url, part.data) {
        (Some(text), None, None, None) => PartContent::Text(text),
        (None, Some(raw), None, None) => match decode_base64(&raw.0) {
            Some(bytes) => PartContent::Raw(Bytes::from(bytes)),
            None => {
                check.violation(format_args!("message.parts[{i}].raw"), "must be base64");
                PartContent::Raw(Bytes::new())
            }
        },
        (None, None, Some(url), None) => {
            check.line(format_args!("message.parts[{i}].url"), &url, usize::MAX);
            PartContent::Url(url)
        }
        (None, None, None, Some(data)) => PartContent::Data(check.value(format_args!("message.parts[{i}].data"), data)),
        (None, None, None, None) => {
            check.violation(format_args!("message.parts[{i}]"), "needs one of text, raw, url and data");
            PartContent::Text(String::new())
        }
        _ => {
            check.violation(format_args!("message.parts[{i}]"), "has more than one of text, raw, url and data");
            PartContent::Text(String::new())
        }
    };
    Part {
        content,
        metadata: check.object(format_args!("message.parts[{i}].metadata"), part.metadata),
        filename: part.filename.filter(|name| !name.is_empty()),
        media_type: check.optional_line(format_args!("message.parts[{i}].mediaType"), part.media_type),
    }
}

/// A push config and the tenant that stands beside its fields.
pub(super) fn push_config(
    check: &mut Check<'_>,
    place: PushConfigPlace,
    config: wire::PushConfig<'_>,
) -> (Option<String>, PushConfig) {
    let at = match place {
        PushConfigPlace::Root => "",
        PushConfigPlace::Inline => "configuration.taskPushNotificationConfig.",
    };
    let tenant = check.id(format_args!("{at}tenant"), config.tenant);
    let authentication = config.authentication.map(|Obj(authentication)| {
        let scheme = check.optional_line(format_args!("{at}authentication.scheme"), authentication.scheme);
        if scheme.is_none() {
            check.violation(format_args!("{at}authentication.scheme"), "is required and must not be empty");
        }
        AuthenticationInfo {
            scheme: scheme.unwrap_or_default(),
            credentials: check
                .optional_line(format_args!("{at}authentication.credentials"), authentication.credentials),
        }
    });
    let config = PushConfig {
        id: check.id(format_args!("{at}id"), config.id).unwrap_or_default(),
        task_id: check.id(format_args!("{at}taskId"), config.task_id).unwrap_or_default(),
        url: check.push_url(format_args!("{at}url"), config.url),
        token: check.optional_line(format_args!("{at}token"), config.token),
        authentication,
    };
    (tenant, config)
}

pub(super) fn list_tasks(check: &mut Check<'_>, params: wire::ListTasksParams<'_>) -> ListTasks {
    ListTasks {
        context_id: check.id(format_args!("contextId"), params.context_id),
        state: params.status.and_then(|sent| state(check, &sent)),
        page_size: check.page_size(params.page_size),
        page_token: check.optional_line(format_args!("pageToken"), params.page_token),
        history_length: check.history_length(format_args!("historyLength"), params.history_length),
        status_since: check.timestamp(format_args!("statusTimestampAfter"), params.status_timestamp_after),
        include_artifacts: params.include_artifacts.unwrap_or_default(),
    }
}

/// A state to filter by; the unspecified one filters nothing.
fn state(check: &mut Check<'_>, sent: &NameOrNumber<'_>) -> Option<TaskState> {
    read_state(sent).unwrap_or_else(|_| {
        let description = format!("{sent} is not a task state; use a name such as TASK_STATE_WORKING");
        check.violation(format_args!("status"), description);
        None
    })
}
