//! What can be wrong with a request: something is missing, of another kind, under another name, of another dialect, said
//! twice, cut off, or no JSON at all.

use serde_json::{Map, Value, json};

use crate::sim::dice::Dice;

/// Names that one dialect or another knows.
const NAMES: [&str; 36] = [
    "jsonrpc",
    "id",
    "method",
    "params",
    "message",
    "role",
    "parts",
    "content",
    "kind",
    "type",
    "text",
    "data",
    "raw",
    "url",
    "file",
    "bytes",
    "uri",
    "fileWithBytes",
    "mimeType",
    "mediaType",
    "name",
    "filename",
    "metadata",
    "messageId",
    "contextId",
    "taskId",
    "referenceTaskIds",
    "extensions",
    "configuration",
    "blocking",
    "returnImmediately",
    "async",
    "idempotencyKey",
    "depth",
    "timeoutMs",
    "tenant",
];

/// Values that something somewhere takes.
fn odd_value(dice: &mut Dice) -> Value {
    let values = [
        json!(null),
        json!(true),
        json!(0),
        json!(-1),
        json!(1e300),
        json!(u64::MAX),
        json!(""),
        json!("2.0"),
        json!("user"),
        json!("ROLE_USER"),
        json!("text"),
        json!("file"),
        json!("message/send"),
        json!("SendMessage"),
        json!("tasks/get"),
        json!("tasks/resubscribe"),
        json!("https://hooks.example/"),
        json!("\u{0}\u{7f}\u{feff}💥"),
        json!("x".repeat(5_000)),
        json!([]),
        json!([[[[]]]]),
        json!([null, 1, "two", {}]),
        json!({}),
        json!({"type": "text", "data": "hello"}),
        json!({"kind": "text", "text": "hello"}),
        json!({"text": "hello"}),
        json!({"role": "user", "parts": [{"type": "text", "text": "hello"}]}),
    ];
    values[dice.pick(values.len())].clone()
}

/// The request with something wrong in it. `other` is one to take pieces from.
pub(super) fn damaged(dice: &mut Dice, golden: &[u8], other: &[u8]) -> Vec<u8> {
    if dice.one_in(4) {
        return damaged_bytes(dice, golden);
    }
    let (Ok(mut value), Ok(other)) = (serde_json::from_slice(golden), serde_json::from_slice(other)) else {
        return damaged_bytes(dice, golden);
    };
    for _ in 0..dice.between(1, 3) {
        damage(dice, &mut value, &other);
    }
    value.to_string().into_bytes()
}

/// Damages a place of the tree that chance leads to.
fn damage(dice: &mut Dice, value: &mut Value, other: &Value) {
    match value {
        Value::Object(members) if !members.is_empty() && !dice.one_in(3) => {
            let key = key_of(dice, members);
            damage(dice, &mut members[&key], other);
        }
        Value::Array(items) if !items.is_empty() && !dice.one_in(3) => {
            let at = dice.pick(items.len());
            damage(dice, &mut items[at], other);
        }
        Value::Object(members) => damage_members(dice, members, other),
        Value::Array(items) if !items.is_empty() => match dice.below(3) {
            0 => drop(items.remove(dice.pick(items.len()))),
            1 => items.push(odd_value(dice)),
            _ => {
                let item = items[dice.pick(items.len())].clone();
                items.extend(std::iter::repeat_n(item, dice.pick(300)));
            }
        },
        _ => *value = if dice.one_in(8) { piece(dice, other) } else { odd_value(dice) },
    }
}

fn damage_members(dice: &mut Dice, members: &mut Map<String, Value>, other: &Value) {
    let name = NAMES[dice.pick(NAMES.len())].to_owned();
    if members.is_empty() {
        members.insert(name, odd_value(dice));
        return;
    }
    let key = key_of(dice, members);
    match dice.below(5) {
        0 => drop(members.remove(&key)),
        1 => {
            let value = members.remove(&key).expect("the key is one of them");
            members.insert(name, value);
        }
        2 => drop(members.insert(name, piece(dice, other))),
        3 => drop(members.insert(name, odd_value(dice))),
        _ => drop(members.insert(key, odd_value(dice))),
    }
}

fn key_of(dice: &mut Dice, members: &Map<String, Value>) -> String {
    members.keys().nth(dice.pick(members.len())).expect("there are members").clone()
}

/// Something out of another request.
fn piece(dice: &mut Dice, other: &Value) -> Value {
    let inner = match other {
        Value::Object(members) if !members.is_empty() => members.values().nth(dice.pick(members.len())),
        Value::Array(items) if !items.is_empty() => items.get(dice.pick(items.len())),
        _ => None,
    };
    match inner {
        Some(inner) if !dice.one_in(3) => piece(dice, inner),
        Some(_) | None => other.clone(),
    }
}

/// The bytes with some of them changed, cut off, doubled or put in.
pub(super) fn damaged_bytes(dice: &mut Dice, golden: &[u8]) -> Vec<u8> {
    let mut bytes = golden.to_vec();
    for _ in 0..dice.between(1, 4) {
        let at = dice.pick(bytes.len() + 1);
        match dice.below(5) {
            0 => bytes.truncate(at),
            1 => bytes.insert(at, dice.roll().to_le_bytes()[0]),
            2 => drop(bytes.splice(at..at, *b"\xff\x00\"{[}],:")),
            3 => {
                let end = bytes.len().min(at + dice.pick(40));
                let piece = bytes[at..end].to_vec();
                bytes.splice(at..at, piece);
            }
            _ => {
                if let Some(byte) = bytes.get_mut(at) {
                    *byte ^= 1 << dice.below(8);
                }
            }
        }
    }
    bytes
}
