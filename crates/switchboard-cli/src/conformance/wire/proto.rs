//! Protobuf by table: JSON is written as a message, and a message is read as JSON, with nothing filled in and nothing dropped but
//! fields that the table does not have.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value, json};
use switchboard_core::model::Timestamp;

/// How deep free-form values may be nested.
const DEPTH_MAX: usize = 64;

pub(super) struct Field {
    number: u64,
    name: &'static str,
    kind: Kind,
    is_list: bool,
}

enum Kind {
    Text,
    Bytes,
    Bool,
    Number,
    Names(&'static [&'static str]),
    Message(&'static [Field]),
    Struct,
    Value,
    Timestamp,
}

const fn one(number: u64, name: &'static str, kind: Kind) -> Field {
    Field { number, name, kind, is_list: false }
}

const fn many(number: u64, name: &'static str, kind: Kind) -> Field {
    Field { number, name, kind, is_list: true }
}

const STATES: &[&str] = &[
    "TASK_STATE_UNSPECIFIED",
    "TASK_STATE_SUBMITTED",
    "TASK_STATE_WORKING",
    "TASK_STATE_COMPLETED",
    "TASK_STATE_FAILED",
    "TASK_STATE_CANCELED",
    "TASK_STATE_INPUT_REQUIRED",
    "TASK_STATE_REJECTED",
    "TASK_STATE_AUTH_REQUIRED",
];
const OLD_STATES: &[&str] = &[
    "TASK_STATE_UNSPECIFIED",
    "TASK_STATE_SUBMITTED",
    "TASK_STATE_WORKING",
    "TASK_STATE_COMPLETED",
    "TASK_STATE_FAILED",
    "TASK_STATE_CANCELLED",
    "TASK_STATE_INPUT_REQUIRED",
    "TASK_STATE_REJECTED",
    "TASK_STATE_AUTH_REQUIRED",
];
const ROLES: &[&str] = &["ROLE_UNSPECIFIED", "ROLE_USER", "ROLE_AGENT"];

/// The messages of 1.0.
pub(super) mod v1 {
    use super::Kind::{Bool, Bytes, Message, Names, Number, Struct, Text, Timestamp, Value};
    use super::{Field, ROLES, STATES, many, one};

    const PART: &[Field] = &[
        one(1, "text", Text),
        one(2, "raw", Bytes),
        one(3, "url", Text),
        one(4, "data", Value),
        one(5, "metadata", Struct),
        one(6, "filename", Text),
        one(7, "mediaType", Text),
    ];
    const MESSAGE: &[Field] = &[
        one(1, "messageId", Text),
        one(2, "contextId", Text),
        one(3, "taskId", Text),
        one(4, "role", Names(ROLES)),
        many(5, "parts", Message(PART)),
        one(6, "metadata", Struct),
        many(7, "extensions", Text),
        many(8, "referenceTaskIds", Text),
    ];
    const STATUS: &[Field] =
        &[one(1, "state", Names(STATES)), one(2, "message", Message(MESSAGE)), one(3, "timestamp", Timestamp)];
    const ARTIFACT: &[Field] = &[
        one(1, "artifactId", Text),
        one(2, "name", Text),
        one(3, "description", Text),
        many(4, "parts", Message(PART)),
        one(5, "metadata", Struct),
        many(6, "extensions", Text),
    ];
    pub(in super::super) const TASK: &[Field] = &[
        one(1, "id", Text),
        one(2, "contextId", Text),
        one(3, "status", Message(STATUS)),
        many(4, "artifacts", Message(ARTIFACT)),
        many(5, "history", Message(MESSAGE)),
        one(6, "metadata", Struct),
    ];
    const STATUS_UPDATE: &[Field] = &[
        one(1, "taskId", Text),
        one(2, "contextId", Text),
        one(3, "status", Message(STATUS)),
        one(4, "metadata", Struct),
    ];
    const ARTIFACT_UPDATE: &[Field] = &[
        one(1, "taskId", Text),
        one(2, "contextId", Text),
        one(3, "artifact", Message(ARTIFACT)),
        one(4, "append", Bool),
        one(5, "lastChunk", Bool),
        one(6, "metadata", Struct),
    ];
    /// Of a send, too: its answer has the first two of these.
    pub(in super::super) const STREAM_RESPONSE: &[Field] = &[
        one(1, "task", Message(TASK)),
        one(2, "message", Message(MESSAGE)),
        one(3, "statusUpdate", Message(STATUS_UPDATE)),
        one(4, "artifactUpdate", Message(ARTIFACT_UPDATE)),
    ];
    const AUTHENTICATION: &[Field] = &[one(1, "scheme", Text), one(2, "credentials", Text)];
    pub(in super::super) const PUSH_CONFIG: &[Field] = &[
        one(1, "tenant", Text),
        one(2, "id", Text),
        one(3, "taskId", Text),
        one(4, "url", Text),
        one(5, "token", Text),
        one(6, "authentication", Message(AUTHENTICATION)),
    ];
    const CONFIGURATION: &[Field] = &[
        many(1, "acceptedOutputModes", Text),
        one(2, "taskPushNotificationConfig", Message(PUSH_CONFIG)),
        one(3, "historyLength", Number),
        one(4, "returnImmediately", Bool),
    ];
    pub(in super::super) const SEND: &[Field] = &[
        one(1, "tenant", Text),
        one(2, "message", Message(MESSAGE)),
        one(3, "configuration", Message(CONFIGURATION)),
        one(4, "metadata", Struct),
    ];
    /// `GetTask`, `CancelTask` and `SubscribeToTask`, whose first two fields are the same.
    pub(in super::super) const GET: &[Field] =
        &[one(1, "tenant", Text), one(2, "id", Text), one(3, "historyLength", Number)];
    pub(in super::super) const LIST: &[Field] = &[
        one(1, "tenant", Text),
        one(2, "contextId", Text),
        one(3, "status", Names(STATES)),
        one(4, "pageSize", Number),
        one(5, "pageToken", Text),
        one(6, "historyLength", Number),
        one(8, "includeArtifacts", Bool),
    ];
    pub(in super::super) const LISTED: &[Field] = &[
        many(1, "tasks", Message(TASK)),
        one(2, "nextPageToken", Text),
        one(3, "pageSize", Number),
        one(4, "totalSize", Number),
    ];
    pub(in super::super) const GET_PUSH: &[Field] =
        &[one(1, "tenant", Text), one(2, "taskId", Text), one(3, "id", Text)];
    pub(in super::super) const LIST_PUSH: &[Field] = &[one(1, "taskId", Text), one(4, "tenant", Text)];
    pub(in super::super) const PUSH_CONFIGS: &[Field] =
        &[many(1, "configs", Message(PUSH_CONFIG)), one(2, "nextPageToken", Text)];
    /// The members of a card that the checks look at.
    pub(in super::super) const CARD: &[Field] =
        &[one(1, "name", Text), one(2, "description", Text), one(5, "version", Text)];
    pub(in super::super) const TENANT: &[Field] = &[one(1, "tenant", Text)];
}

/// The messages of 0.3.
pub(super) mod v0_3 {
    use super::Kind::{Bool, Bytes, Message, Names, Number, Struct, Text, Timestamp};
    use super::{Field, OLD_STATES, ROLES, many, one};

    const FILE: &[Field] =
        &[one(1, "fileWithUri", Text), one(2, "fileWithBytes", Bytes), one(3, "mimeType", Text), one(4, "name", Text)];
    const DATA: &[Field] = &[one(1, "data", Struct)];
    const PART: &[Field] = &[
        one(1, "text", Text),
        one(2, "file", Message(FILE)),
        one(3, "data", Message(DATA)),
        one(4, "metadata", Struct),
    ];
    const MESSAGE: &[Field] = &[
        one(1, "messageId", Text),
        one(2, "contextId", Text),
        one(3, "taskId", Text),
        one(4, "role", Names(ROLES)),
        many(5, "content", Message(PART)),
        one(6, "metadata", Struct),
        many(7, "extensions", Text),
    ];
    const STATUS: &[Field] =
        &[one(1, "state", Names(OLD_STATES)), one(2, "message", Message(MESSAGE)), one(3, "timestamp", Timestamp)];
    const ARTIFACT: &[Field] = &[
        one(1, "artifactId", Text),
        one(3, "name", Text),
        one(4, "description", Text),
        many(5, "parts", Message(PART)),
        one(6, "metadata", Struct),
        many(7, "extensions", Text),
    ];
    pub(in super::super) const TASK: &[Field] = &[
        one(1, "id", Text),
        one(2, "contextId", Text),
        one(3, "status", Message(STATUS)),
        many(4, "artifacts", Message(ARTIFACT)),
        many(5, "history", Message(MESSAGE)),
        one(6, "metadata", Struct),
    ];
    const STATUS_UPDATE: &[Field] = &[
        one(1, "taskId", Text),
        one(2, "contextId", Text),
        one(3, "status", Message(STATUS)),
        one(4, "final", Bool),
        one(5, "metadata", Struct),
    ];
    const ARTIFACT_UPDATE: &[Field] = &[
        one(1, "taskId", Text),
        one(2, "contextId", Text),
        one(3, "artifact", Message(ARTIFACT)),
        one(4, "append", Bool),
        one(5, "lastChunk", Bool),
        one(6, "metadata", Struct),
    ];
    pub(in super::super) const STREAM_RESPONSE: &[Field] = &[
        one(1, "task", Message(TASK)),
        one(2, "message", Message(MESSAGE)),
        one(3, "statusUpdate", Message(STATUS_UPDATE)),
        one(4, "artifactUpdate", Message(ARTIFACT_UPDATE)),
    ];
    const PUSH: &[Field] = &[one(1, "id", Text), one(2, "url", Text), one(3, "token", Text)];
    pub(in super::super) const PUSH_CONFIG: &[Field] =
        &[one(1, "name", Text), one(2, "pushNotificationConfig", Message(PUSH))];
    const CONFIGURATION: &[Field] = &[
        many(1, "acceptedOutputModes", Text),
        one(2, "pushNotification", Message(PUSH)),
        one(3, "historyLength", Number),
        one(4, "blocking", Bool),
    ];
    pub(in super::super) const SEND: &[Field] = &[
        one(1, "message", Message(MESSAGE)),
        one(2, "configuration", Message(CONFIGURATION)),
        one(3, "metadata", Struct),
    ];
    /// All requests that name one thing.
    pub(in super::super) const NAME: &[Field] = &[one(1, "name", Text), one(2, "historyLength", Number)];
    pub(in super::super) const CREATE_PUSH: &[Field] =
        &[one(1, "parent", Text), one(2, "configId", Text), one(3, "config", Message(PUSH_CONFIG))];
    pub(in super::super) const PARENT: &[Field] = &[one(1, "parent", Text)];
    pub(in super::super) const PUSH_CONFIGS: &[Field] =
        &[many(1, "configs", Message(PUSH_CONFIG)), one(2, "nextPageToken", Text)];
}

/// What errors of gRPC carry.
const ANY: &[Field] = &[one(1, "typeUrl", Kind::Text), one(2, "value", Kind::Bytes)];
const STATUS: &[Field] =
    &[one(1, "code", Kind::Number), one(2, "message", Kind::Text), many(3, "details", Kind::Message(ANY))];
const ERROR_INFO: &[Field] = &[one(1, "reason", Kind::Text), one(2, "domain", Kind::Text)];

/// A message with nothing in it.
pub(super) const EMPTY: &[Field] = &[];

/// The details of an error in the form that JSON has, with the code and the text of the status.
pub(super) fn read_status(bytes: &[u8]) -> Result<Value, String> {
    let mut status = read(STATUS, bytes)?;
    let details = status["details"].as_array().cloned().unwrap_or_default();
    let mut shown = Vec::new();
    for detail in &details {
        let kind = detail["typeUrl"].as_str().unwrap_or_default();
        let bytes = STANDARD.decode(detail["value"].as_str().unwrap_or_default()).unwrap_or_default();
        let mut json = if kind.ends_with("google.rpc.ErrorInfo") { read(ERROR_INFO, &bytes)? } else { json!({}) };
        json["@type"] = json!(kind);
        shown.push(json);
    }
    status["details"] = Value::Array(shown);
    Ok(status)
}

pub(super) fn write(fields: &[Field], json: &Value) -> Vec<u8> {
    let mut out = Vec::new();
    for field in fields {
        match json.get(field.name) {
            None | Some(Value::Null) => {}
            Some(Value::Array(items)) if field.is_list => {
                items.iter().for_each(|item| write_field(field, item, &mut out));
            }
            Some(value) => write_field(field, value, &mut out),
        }
    }
    out
}

fn write_field(field: &Field, value: &Value, out: &mut Vec<u8>) {
    let number = |value: u64, out: &mut Vec<u8>| {
        write_varint(field.number << 3, out);
        write_varint(value, out);
    };
    let bytes = |bytes: &[u8], out: &mut Vec<u8>| {
        write_varint(field.number << 3 | 2, out);
        write_varint(bytes.len() as u64, out);
        out.extend_from_slice(bytes);
    };
    match &field.kind {
        Kind::Text => bytes(value.as_str().unwrap_or_default().as_bytes(), out),
        Kind::Bytes => bytes(&STANDARD.decode(value.as_str().unwrap_or_default()).unwrap_or_default(), out),
        Kind::Bool => number(u64::from(value == true), out),
        Kind::Number => number(value.as_i64().unwrap_or_default().cast_unsigned(), out),
        Kind::Names(names) => {
            let position = names.iter().position(|name| value == *name).unwrap_or_default();
            number(position as u64, out);
        }
        Kind::Message(fields) => bytes(&write(fields, value), out),
        // The checker sends none of these.
        Kind::Struct | Kind::Value | Kind::Timestamp => {}
    }
}

fn write_varint(mut value: u64, out: &mut Vec<u8>) {
    while value >= 0x80 {
        out.push((value & 0x7f) as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// What stands behind one tag.
enum Wired<'a> {
    Number(u64),
    Fixed(u64),
    Bytes(&'a [u8]),
}

/// # Errors
/// When the bytes are no message, or a field has another type than the table says.
pub(super) fn read(fields: &[Field], bytes: &[u8]) -> Result<Value, String> {
    let mut object = Map::new();
    each_field(bytes, &mut |number, wired| {
        let Some(field) = fields.iter().find(|field| field.number == number) else { return Ok(()) };
        let value = read_value(field, wired)?;
        if field.is_list {
            let list = object.entry(field.name).or_insert_with(|| json!([]));
            list.as_array_mut().into_iter().for_each(|list| list.push(value.clone()));
        } else {
            object.insert(field.name.to_owned(), value);
        }
        Ok(())
    })?;
    Ok(Value::Object(object))
}

fn read_value(field: &Field, wired: Wired<'_>) -> Result<Value, String> {
    let wrong = || format!("field {} ({}) has the wrong type", field.number, field.name);
    Ok(match (&field.kind, wired) {
        (Kind::Text, Wired::Bytes(bytes)) => json!(String::from_utf8(bytes.to_vec()).map_err(|_| wrong())?),
        (Kind::Bytes, Wired::Bytes(bytes)) => json!(STANDARD.encode(bytes)),
        (Kind::Bool, Wired::Number(number)) => json!(number != 0),
        (Kind::Number, Wired::Number(number)) => json!(number.cast_signed()),
        (Kind::Names(names), Wired::Number(number)) => match names.get(usize::try_from(number).unwrap_or(usize::MAX)) {
            Some(name) => json!(name),
            None => json!(number),
        },
        (Kind::Message(fields), Wired::Bytes(bytes)) => read(fields, bytes)?,
        (Kind::Struct, Wired::Bytes(bytes)) => read_struct(bytes, 0)?,
        (Kind::Value, Wired::Bytes(bytes)) => read_free(bytes, 0)?,
        (Kind::Timestamp, Wired::Bytes(bytes)) => read_timestamp(bytes)?,
        (_, _) => return Err(wrong()),
    })
}

fn read_timestamp(bytes: &[u8]) -> Result<Value, String> {
    let (mut seconds, mut nanos) = (0, 0);
    each_field(bytes, &mut |number, wired| {
        match (number, wired) {
            (1, Wired::Number(value)) => seconds = value.cast_signed(),
            (2, Wired::Number(value)) => nanos = value.cast_signed(),
            (_, _) => {}
        }
        Ok(())
    })?;
    let ms = seconds.saturating_mul(1_000).saturating_add(nanos / 1_000_000);
    Ok(json!(Timestamp::from_ms(ms).to_string()))
}

fn read_struct(bytes: &[u8], depth: usize) -> Result<Value, String> {
    let mut object = Map::new();
    each_field(bytes, &mut |number, wired| {
        let (1, Wired::Bytes(entry)) = (number, wired) else { return Ok(()) };
        let (mut key, mut value) = (String::new(), Value::Null);
        each_field(entry, &mut |number, wired| {
            match (number, wired) {
                (1, Wired::Bytes(text)) => key = String::from_utf8_lossy(text).into_owned(),
                (2, Wired::Bytes(bytes)) => value = read_free(bytes, depth + 1)?,
                (_, _) => {}
            }
            Ok(())
        })?;
        object.insert(key, value);
        Ok(())
    })?;
    Ok(Value::Object(object))
}

fn read_free(bytes: &[u8], depth: usize) -> Result<Value, String> {
    if depth > DEPTH_MAX {
        return Err(format!("a value is nested deeper than {DEPTH_MAX}"));
    }
    let mut read = Value::Null;
    each_field(bytes, &mut |number, wired| {
        read = match (number, wired) {
            (2, Wired::Fixed(bits)) => json!(f64::from_bits(bits)),
            (3, Wired::Bytes(text)) => json!(String::from_utf8_lossy(text)),
            (4, Wired::Number(number)) => json!(number != 0),
            (5, Wired::Bytes(bytes)) => read_struct(bytes, depth + 1)?,
            (6, Wired::Bytes(bytes)) => {
                let mut list = Vec::new();
                each_field(bytes, &mut |_, wired| {
                    if let Wired::Bytes(bytes) = wired {
                        list.push(read_free(bytes, depth + 1)?);
                    }
                    Ok(())
                })?;
                Value::Array(list)
            }
            (_, _) => Value::Null,
        };
        Ok(())
    })?;
    Ok(read)
}

fn each_field(mut bytes: &[u8], found: &mut dyn FnMut(u64, Wired<'_>) -> Result<(), String>) -> Result<(), String> {
    let cut = || "the message is cut off".to_owned();
    while !bytes.is_empty() {
        let tag = read_varint(&mut bytes)?;
        let wired = match tag & 7 {
            0 => Wired::Number(read_varint(&mut bytes)?),
            1 => {
                let (number, rest) = bytes.split_first_chunk::<8>().ok_or_else(cut)?;
                bytes = rest;
                Wired::Fixed(u64::from_le_bytes(*number))
            }
            2 => {
                let length = usize::try_from(read_varint(&mut bytes)?).map_err(|_| cut())?;
                let (inner, rest) = bytes.split_at_checked(length).ok_or_else(cut)?;
                bytes = rest;
                Wired::Bytes(inner)
            }
            5 => {
                let (number, rest) = bytes.split_first_chunk::<4>().ok_or_else(cut)?;
                bytes = rest;
                Wired::Fixed(u32::from_le_bytes(*number).into())
            }
            kind => return Err(format!("the message has a field of the unknown wire type {kind}")),
        };
        found(tag >> 3, wired)?;
    }
    Ok(())
}

fn read_varint(bytes: &mut &[u8]) -> Result<u64, String> {
    let mut value = 0u64;
    for shift in (0..64).step_by(7) {
        let (byte, rest) = bytes.split_first().ok_or("the message is cut off")?;
        *bytes = rest;
        value |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Ok(value);
        }
    }
    Err("a number of the message is too long".to_owned())
}

#[cfg(test)]
mod tests {
    use super::{read, v0_3, v1, write};
    use serde_json::json;

    #[test]
    fn a_request_is_read_as_it_was_written() {
        let send = json!({
            "tenant": "t",
            "message": { "messageId": "m", "role": "ROLE_USER", "parts": [{ "text": "hi" }, { "raw": "AAE=" }] },
            "configuration": { "historyLength": 0, "returnImmediately": true },
        });
        assert_eq!(read(v1::SEND, &write(v1::SEND, &send)), Ok(send));
        let old =
            json!({ "parent": "tasks/1", "config": { "pushNotificationConfig": { "url": "https://a.example" } } });
        assert_eq!(read(v0_3::CREATE_PUSH, &write(v0_3::CREATE_PUSH, &old)), Ok(old));
    }

    #[test]
    fn a_negative_number_survives() {
        let get = json!({ "id": "x", "historyLength": -1 });
        assert_eq!(read(v1::GET, &write(v1::GET, &get)), Ok(get));
    }

    #[test]
    fn bytes_that_are_no_message_are_an_error() {
        for bytes in [&[0xff][..], &[0x0a, 5, 1], &[0x0b], &[0x08, 1]] {
            assert!(read(v1::TASK, bytes).is_err(), "{bytes:?}");
        }
    }
}
