//! From the wire's structs to the model; what may not be is reported by field.

use bytes::Bytes;

use crate::call::SendMessage;
use crate::dialect::json::{Check, List, Obj, decode_base64};
use crate::model::{Message, Part, PartContent, Role, TaskId};

use super::super::names::read_role_name;
use super::super::new_file::NewFile;
use super::super::{data_part, push};
use super::wire;

pub(super) fn send_message(check: &mut Check<'_>, body: wire::SendBody<'_>) -> (Option<String>, SendMessage) {
    let tenant = check.id(format_args!("tenant"), body.tenant);
    let message = match body.message {
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
        metadata: check.object(format_args!("metadata"), body.metadata),
    };
    if let Some(Obj(configuration)) = body.configuration {
        send.accepted_output_modes =
            check.lines(format_args!("configuration.acceptedOutputModes"), configuration.accepted_output_modes);
        send.push_config = configuration.push_notification.map(|Obj(config)| {
            push::convert(check, format_args!("configuration.pushNotification"), TaskId::default(), config)
        });
        // A number without presence: 0 is none.
        send.history_length = check
            .history_length(format_args!("configuration.historyLength"), configuration.history_length)
            .filter(|length| *length > 0);
        // A flag without presence: absent is false. Without any configuration nobody has said anything, and we wait.
        send.return_immediately = !configuration.blocking.unwrap_or_default();
    }
    (tenant, send)
}

fn convert_message(check: &mut Check<'_>, message: wire::Message<'_>) -> Message {
    let role = message.role.as_ref().and_then(read_role_name).unwrap_or_else(|| {
        let description = match &message.role {
            Some(sent) => format!("{sent} is neither ROLE_USER nor ROLE_AGENT"),
            None => "is required: ROLE_USER or ROLE_AGENT".to_owned(),
        };
        check.violation(format_args!("message.role"), description);
        Role::User
    });
    Message {
        // Clients of this family may leave it out; the server then names the message.
        message_id: check.id(format_args!("message.messageId"), message.message_id).unwrap_or_default(),
        context_id: check.id(format_args!("message.contextId"), message.context_id),
        task_id: check.id(format_args!("message.taskId"), message.task_id),
        role,
        parts: convert_parts(check, message.content, message.parts.is_some()),
        metadata: check.object(format_args!("message.metadata"), message.metadata),
        extensions: check.lines(format_args!("message.extensions"), message.extensions),
        reference_task_ids: Vec::new(),
    }
}

fn convert_parts(check: &mut Check<'_>, parts: Option<List<Obj<wire::Part<'_>>>>, has_others: bool) -> Vec<Part> {
    let field = format_args!("message.content");
    match parts {
        Some(list) if list.total > 0 => {
            let parts = check.bounded(field, "parts", check.limits.parts_max, list);
            parts.into_iter().enumerate().map(|(i, Obj(part))| convert_part(check, i, part)).collect()
        }
        Some(_) | None => {
            let description = match has_others {
                true => {
                    "is what HTTP+JSON of A2A 0.3 calls the parts of a message, and each is {\"text\":…}, \
                         {\"file\":…} or {\"data\":…} without a kind"
                }
                false => "needs at least one part",
            };
            check.violation(field, description);
            Vec::new()
        }
    }
}

fn convert_part(check: &mut Check<'_>, i: usize, part: wire::Part<'_>) -> Part {
    let metadata = check.object(format_args!("message.content[{i}].metadata"), part.metadata);
    let wire::Part { raw, url, media_type, filename, .. } = part;
    let new_file = NewFile { raw, url, media_type, filename };
    match (part.text, part.file, part.data) {
        (None, None, None) if new_file.is_there() && !new_file.is_two() => {
            Part { metadata, ..new_file.convert(check, format_args!("message.content[{i}]")) }
        }
        _ if new_file.is_there() => {
            let description = "has raw or url beside another content; one part holds one";
            check.violation(format_args!("message.content[{i}]"), description);
            Part::text(String::new())
        }
        (Some(text), None, None) => Part { metadata, ..Part::text(text) },
        (None, Some(Obj(file)), None) => Part { metadata, ..convert_file(check, i, file) },
        (None, None, Some(Obj(wire::Data { data }))) => {
            let field = format_args!("message.content[{i}].data.data");
            let Some(data) = check.object(field, data) else {
                if data.is_none() {
                    check.violation(field, "is required and must be an object");
                }
                return Part::text(String::new());
            };
            let (data, metadata) = data_part::decode(data, metadata);
            Part { metadata, ..Part::json(data) }
        }
        (None, None, None) => {
            check.violation(format_args!("message.content[{i}]"), "needs one of text, file and data");
            Part::text(String::new())
        }
        _ => {
            check.violation(format_args!("message.content[{i}]"), "has more than one of text, file and data");
            Part::text(String::new())
        }
    }
}

fn convert_file(check: &mut Check<'_>, i: usize, file: wire::File<'_>) -> Part {
    let at = format_args!("message.content[{i}].file");
    let content = match (file.file_with_bytes, file.file_with_uri) {
        (Some(encoded), None) => {
            let bytes = decode_base64(&encoded.0);
            if bytes.is_none() {
                check.violation(format_args!("{at}.fileWithBytes"), "must be base64");
            }
            PartContent::Raw(Bytes::from(bytes.unwrap_or_default()))
        }
        (None, Some(uri)) => {
            check.line(format_args!("{at}.fileWithUri"), &uri, usize::MAX);
            PartContent::Url(uri)
        }
        (None, None) => {
            check.violation(at, "needs fileWithBytes or fileWithUri");
            PartContent::Raw(Bytes::new())
        }
        (Some(_), Some(_)) => {
            check.violation(at, "has both fileWithBytes and fileWithUri");
            PartContent::Raw(Bytes::new())
        }
    };
    Part {
        content,
        metadata: None,
        filename: file.name.filter(|name| !name.is_empty()),
        media_type: check.optional_line(format_args!("{at}.mimeType"), file.mime_type),
    }
}
