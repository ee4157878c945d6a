//! Messages and their parts, both ways. Members are looked up one by one, since a member of the wrong type is none here.

use serde_json::value::RawValue;

use crate::dialect::compat::kinds;
use crate::dialect::json::{Check, List, Members, Obj, Object, write_array, write_json};
use crate::model::{ContextId, Json, Message, Part, PartContent, Role};

use super::{KIND, VERBATIM, as_received};

/// Writes a message; one of this dialect as it was received.
pub fn encode_message(message: &Message, out: &mut Vec<u8>) {
    encode(message, None, out);
}

/// Writes a message that is sent: it names the context it is to belong to.
pub(super) fn encode_sent_message(message: &Message, out: &mut Vec<u8>) {
    encode(message, message.context_id.as_ref(), out);
}

fn encode(message: &Message, context: Option<&ContextId>, out: &mut Vec<u8>) {
    let (difference, metadata) = message.metadata.as_ref().map(as_received::split).unwrap_or_default();
    let mut object = Object::open(out);
    if difference.keeps("role") {
        object.str("role", if message.role == Role::User { "user" } else { "agent" });
    }
    if difference.keeps("parts") {
        encode_parts(&message.parts, object.key("parts"));
    }
    if difference.keeps("messageId") {
        match message.role {
            Role::User => object.str("messageId", message.message_id.as_str()),
            // Ids of the agent's messages are ours, and ours have no dashes here.
            Role::Agent => object.str("messageId", &without_dashes(message.message_id.as_str())),
        }
    }
    if difference.keeps("kind") {
        object.str("kind", "message");
    }
    if difference.keeps("contextId") {
        object.str_if_set("contextId", context.map(|id| id.as_str()));
    }
    if difference.keeps("metadata") {
        object.json_if_set("metadata", metadata.as_ref());
    }
    for (name, value) in &difference.more {
        write_json(object.named(name), &Json::from_trusted(value.get()));
    }
    object.close();
}

pub(super) fn encode_parts(parts: &[Part], out: &mut Vec<u8>) {
    write_array(out, parts, |out, part| match (&part.content, part.media_type()) {
        (PartContent::Data(whole), Some(VERBATIM)) => write_json(out, whole),
        _ => kinds::encode(part, KIND, out),
    });
}

pub(super) fn without_dashes(id: &str) -> String {
    let is_uuid = id.len() == 36 && id.bytes().all(|byte| byte == b'-' || byte.is_ascii_hexdigit());
    if is_uuid { id.replace('-', "") } else { id.to_owned() }
}

/// Reads the message of a reply, which stands at `at`. What it has beside what the model keeps is skipped.
pub(super) fn read_message(check: &mut Check<'_>, at: &str, raw: &RawValue) -> Message {
    let Some(Members(members)) = Members::read(raw.get()) else {
        check.violation(format_args!("{at}"), "must be an object");
        return Message::new(Role::User, "", Vec::new());
    };
    let role = match string(&members, "role").as_deref() {
        Some("agent") => Role::Agent,
        Some(_) | None => Role::User,
    };
    let parts = read_parts(check, &format!("{at}.parts"), member(&members, "parts"));
    let mut id = |name: &str| {
        let id = string(&members, name).filter(|id| !id.is_empty());
        if let Some(id) = &id {
            check.line(format_args!("{at}.{name}"), id, check.limits.id_bytes_max);
        }
        id
    };
    let mut message = Message::new(role, id("messageId").unwrap_or_default(), parts);
    message.context_id = id("contextId").map(Into::into);
    message.task_id = id("taskId").map(Into::into);
    message.metadata = object(check, at, &members);
    message
}

/// Reads the parts of a reply, which must have some.
pub(super) fn read_parts(check: &mut Check<'_>, at: &str, parts: Option<&RawValue>) -> Vec<Part> {
    let parts = parts.and_then(|parts| serde_json::from_str::<List<&RawValue>>(parts.get()).ok());
    let Some(parts) = parts.filter(|parts| parts.total > 0) else {
        check.violation(format_args!("{at}"), "must be a non-empty array");
        return Vec::new();
    };
    let parts = check.bounded(format_args!("{at}"), "parts", check.limits.parts_max, parts);
    let mut read = Vec::with_capacity(parts.len());
    for (i, raw) in parts.into_iter().enumerate() {
        match Members::read(raw.get()) {
            Some(Members(members)) => read.push(read_part(check, &format!("{at}[{i}]"), raw, &members)),
            None => check.violation(format_args!("{at}[{i}]"), "must be an object"),
        }
    }
    read
}

pub(super) fn object(check: &mut Check<'_>, at: &str, members: &MemberList<'_>) -> Option<Json> {
    let metadata = member(members, "metadata").filter(|value| value.get().starts_with('{'));
    check.object(format_args!("{at}.metadata"), metadata)
}

/// A part is never refused: what is not understood is kept as it stands.
pub(super) fn read_part(check: &mut Check<'_>, at: &str, raw: &RawValue, members: &MemberList<'_>) -> Part {
    let metadata = |check: &mut Check<'_>| object(check, at, members);
    match string(members, "kind").as_deref() {
        Some("text") => {
            if let Some(text) = string(members, "text") {
                return Part::text(text).with_metadata(metadata(check));
            }
        }
        Some("data") => {
            if let Some(data) = member(members, "data").filter(|data| data.get() != "null") {
                let data = check.value(format_args!("{at}.data"), data);
                return Part::json(data).with_metadata(metadata(check));
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
    Part::json(check.value(format_args!("{at}"), raw)).with_media_type(VERBATIM)
}

pub(super) type MemberList<'a> = [(std::borrow::Cow<'a, str>, &'a RawValue)];

/// A member; of several with the same name the last.
pub(super) fn member<'a>(members: &MemberList<'a>, name: &str) -> Option<&'a RawValue> {
    members.iter().rfind(|(known, _)| known == name).map(|(_, value)| *value)
}

pub(super) fn string(members: &MemberList<'_>, name: &str) -> Option<String> {
    member(members, name).and_then(|value| serde_json::from_str(value.get()).ok())
}
