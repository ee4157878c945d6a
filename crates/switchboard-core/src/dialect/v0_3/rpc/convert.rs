//! From the wire's structs to the model. What is sloppy but clear is understood; what could mean two things is refused
//! with the field that is to blame.

use bytes::Bytes;

use crate::call::SendMessage;
use crate::dialect::json::{Check, List, Obj, Text, decode_base64, excerpt};
use crate::model::{Message, Part, PartContent, Role, TaskId};

use super::super::names::read_role_word;
use super::super::new_file::NewFile;
use super::super::{data_part, push};
use super::wire;

pub(super) fn send_message(check: &mut Check<'_>, params: wire::SendParams<'_>) -> (Option<String>, SendMessage) {
    let tenant = check.id(format_args!("tenant"), params.tenant);
    let message = match params.message {
        Some(Obj(mut message)) => {
            message.message_id = message.message_id.or(params.message_id);
            message.context_id = message.context_id.or(params.context_id);
            convert_message(check, message)
        }
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
        send.push_config = configuration.push_notification_config.map(|config| {
            let at = format_args!("configuration.pushNotificationConfig");
            push::convert(check, at, TaskId::default(), config.0)
        });
        send.history_length = check
            .history_length(format_args!("configuration.historyLength"), configuration.history_length)
            .filter(|length| *length > 0);
        // The schema leaves open what an absent flag means. Waiting is what most servers of its time did.
        send.return_immediately = configuration.blocking == Some(false);
    }
    (tenant, send)
}

fn convert_message(check: &mut Check<'_>, message: wire::Message<'_>) -> Message {
    if let Some(Text(kind)) = message.kind.as_ref().filter(|kind| kind.0 != "message") {
        check
            .violation(format_args!("message.kind"), format!("is {}; a message is of kind message", excerpt(kind, 64)));
    }
    let role = match &message.role {
        Some(Text(word)) => read_role_word(word).unwrap_or_else(|| {
            let description = match word.strip_prefix("ROLE_") {
                Some(_) => format!("{} is how A2A 1.0 spells it; in 0.3 it is user or agent", excerpt(word, 64)),
                None => format!("{} is neither user nor agent", excerpt(word, 64)),
            };
            check.violation(format_args!("message.role"), description);
            Role::User
        }),
        None => {
            check.violation(format_args!("message.role"), "is required: user or agent");
            Role::User
        }
    };
    Message {
        // Clients of this family may leave it out; the server then names the message.
        message_id: check.id(format_args!("message.messageId"), message.message_id).unwrap_or_default(),
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
    check_kind(check, i, &part);
    let metadata = check.object(format_args!("message.parts[{i}].metadata"), part.metadata);
    // A part that says no kind is spelled as in 1.0, where texts and data have these, too.
    let is_new = part.kind.is_none() && part.old_kind.is_none();
    let wire::Part { raw, url, media_type, filename, .. } = part;
    let new_file = NewFile { raw, url, media_type, filename };
    match (part.text, part.file, part.data) {
        (None, None, None) if new_file.is_there() => {
            Part { metadata, ..new_file.convert(check, format_args!("message.parts[{i}]")) }
        }
        (Some(text), None, None) => {
            let (filename, media_type) = new_file.beside(check, i, is_new);
            Part { metadata, filename, media_type, ..Part::text(text) }
        }
        (None, Some(Obj(file)), None) => Part { metadata, ..convert_file(check, i, file) },
        (None, None, Some(data)) => {
            let field = format_args!("message.parts[{i}].data");
            if !data.get().starts_with(['{', '[']) {
                check.violation(field, "must be an object");
            }
            let (data, metadata) = data_part::decode(check.value(field, data), metadata);
            let (filename, media_type) = new_file.beside(check, i, is_new);
            Part { metadata, filename, media_type, ..Part::json(data) }
        }
        // Whatever is wrong with it has been said.
        _ => Part::text(String::new()),
    }
}

/// Whether a part says what it is, and is that: exactly one of text, file and data, under the name of its kind.
fn check_kind(check: &mut Check<'_>, i: usize, part: &wire::Part<'_>) {
    let at = format_args!("message.parts[{i}]");
    let held = [
        ("text", part.text.is_some()),
        ("file", part.file.is_some()),
        ("data", part.data.is_some()),
        ("raw", part.raw.is_some()),
        ("url", part.url.is_some()),
    ];
    let mut held = held.iter().filter(|(_, is_held)| *is_held).map(|(kind, _)| *kind);
    let (first, second) = (held.next(), held.next());
    let named = match (&part.kind, &part.old_kind) {
        (Some(kind), Some(old)) if kind != old => {
            let (kind, old) = (excerpt(&kind.0, 64), excerpt(&old.0, 64));
            return check.violation(at, format!("is of kind {kind} and of type {old}; say one"));
        }
        (kind, old) => kind.as_ref().or(old.as_ref()).map(|Text(kind)| kind.as_ref()),
    };
    match (named, first, second) {
        (_, Some(first), Some(second)) => {
            check.violation(at, format!("has both {first} and {second}; one part holds one"));
        }
        (Some(named), Some(first), None) if named == first => {}
        (None, Some(_), None) | (Some("file"), Some("raw" | "url"), None) => {}
        (None, None, _) => check.violation(at, "needs one of text, file and data"),
        (Some(named @ ("text" | "file" | "data")), ..) => {
            check.violation(format_args!("{at}.{named}"), format!("is required in a part of kind {named}"));
        }
        (Some(named), ..) => {
            let description = format!("is {}, which is none of text, file and data", excerpt(named, 64));
            check.violation(format_args!("{at}.kind"), description);
        }
    }
}

fn convert_file(check: &mut Check<'_>, i: usize, file: wire::File<'_>) -> Part {
    let at = format_args!("message.parts[{i}].file");
    let mut raw = |name: &str, Text(encoded): Text<'_>| {
        let bytes = decode_base64(&encoded);
        if bytes.is_none() {
            check.violation(format_args!("{at}.{name}"), "must be base64");
        }
        PartContent::Raw(Bytes::from(bytes.unwrap_or_default()))
    };
    let content = match (file.bytes, file.data, file.uri) {
        (Some(bytes), None, None) => raw("bytes", bytes),
        (None, Some(data), None) => raw("data", data),
        (None, None, Some(uri)) => {
            check.line(format_args!("{at}.uri"), &uri, usize::MAX);
            PartContent::Url(uri)
        }
        (None, None, None) => {
            check.violation(at, "needs bytes or uri");
            PartContent::Raw(Bytes::new())
        }
        _ => {
            check.violation(at, "has more than one of bytes, uri and data; a file is bytes or uri");
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
