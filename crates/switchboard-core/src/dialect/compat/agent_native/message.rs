//! Messages and their parts, both ways. They have no ids; one that is there all the same is read.

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::dialect::compat::kinds;
use crate::dialect::json::{Check, List, Obj, Object, Text, excerpt, read_params, write_array};
use crate::error::ProtocolError;
use crate::model::{Message, Part, Role};

use super::{TYPE, file};

/// A message as it is read. What its role and its parts must be is said differently to a client that sends one.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct WireMessage<'a> {
    #[serde(borrow)]
    pub(super) role: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) parts: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) message_id: Option<Text<'a>>,
    #[serde(borrow)]
    pub(super) context_id: Option<Text<'a>>,
    #[serde(borrow)]
    pub(super) task_id: Option<Text<'a>>,
    #[serde(borrow)]
    pub(super) metadata: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Parts<'a> {
    #[serde(borrow)]
    parts: List<Obj<kinds::WirePart<'a>>>,
}

/// Writes a message.
pub fn encode_message(message: &Message, out: &mut Vec<u8>) {
    let mut object = Object::open(out);
    let role = match message.role {
        Role::User => "user",
        Role::Agent => "agent",
    };
    object.str("role", role);
    encode_parts(&message.parts, object.key("parts"));
    object.json_if_set("metadata", message.metadata.as_ref());
    object.close();
}

pub(super) fn encode_parts(parts: &[Part], out: &mut Vec<u8>) {
    write_array(out, parts, |out, part| {
        if !file::encode(part, out) {
            kinds::encode(part, TYPE, out);
        }
    });
}

impl WireMessage<'_> {
    /// Reads the message of a reply, which stands at `at`.
    pub(super) fn read(self, check: &mut Check<'_>, at: &str) -> Result<Message, ProtocolError> {
        let role: Option<Text<'_>> = self.role.and_then(|role| serde_json::from_str(role.get()).ok());
        let role = match role.as_ref().map(|Text(role)| role.as_ref()) {
            Some(word) => read_role(check, at, word),
            None => {
                check.violation(format_args!("{at}.role"), "is required: user or agent");
                Role::User
            }
        };
        Ok(Message {
            message_id: check.id(format_args!("{at}.messageId"), self.message_id).unwrap_or_default(),
            context_id: check.id(format_args!("{at}.contextId"), self.context_id),
            task_id: check.id(format_args!("{at}.taskId"), self.task_id),
            role,
            parts: read_required_parts(check, at, self.parts)?,
            metadata: check.object(format_args!("{at}.metadata"), self.metadata),
            extensions: Vec::new(),
            reference_task_ids: Vec::new(),
        })
    }
}

pub(super) fn read_role(check: &mut Check<'_>, at: &str, word: &str) -> Role {
    match word {
        "user" => Role::User,
        "agent" => Role::Agent,
        other => {
            check.violation(format_args!("{at}.role"), format!("{} is neither user nor agent", excerpt(other, 64)));
            Role::User
        }
    }
}

/// Reads the parts of what stands at `at`, which must have some.
pub(super) fn read_required_parts(
    check: &mut Check<'_>,
    at: &str,
    parts: Option<&RawValue>,
) -> Result<Vec<Part>, ProtocolError> {
    match parts {
        Some(parts) => read_parts(check, at, parts),
        None => {
            check.violation(format_args!("{at}.parts"), "is required");
            Ok(Vec::new())
        }
    }
}

pub(super) fn read_parts(check: &mut Check<'_>, at: &str, parts: &RawValue) -> Result<Vec<Part>, ProtocolError> {
    let raw = parts.get();
    let text = format!(r#"{{"parts":{raw}}}"#);
    let Parts { parts } = read_params(&text).map_err(|error| prefix_fields(at, error))?;
    if parts.total == 0 {
        check.violation(format_args!("{at}.parts"), "needs at least one part");
    }
    let parts = check.bounded(format_args!("{at}.parts"), "parts", check.limits.parts_max, parts);
    // Only files have more to them than the model keeps.
    let sent: Vec<&RawValue> =
        if raw.contains("\"file\"") { serde_json::from_str(raw).unwrap_or_default() } else { Vec::new() };
    let convert = |(i, Obj(part)): (usize, Obj<kinds::WirePart<'_>>)| {
        let at = format_args!("{at}.parts[{i}]");
        match sent.get(i).and_then(|sent| file::sent(sent)) {
            Some(sent) => file::convert(check, at, part, sent),
            None => kinds::convert(check, at, part),
        }
    };
    Ok(parts.into_iter().enumerate().map(convert).collect())
}

/// Names a field of what stands at `at` as a field of the whole.
pub(super) fn prefix_fields(at: &str, error: ProtocolError) -> ProtocolError {
    match error {
        ProtocolError::InvalidParams { mut violations } => {
            for violation in &mut violations {
                violation.field = format!("{at}.{}", violation.field);
            }
            ProtocolError::InvalidParams { violations }
        }
        error => error,
    }
}
