//! What the tests of every dialect throw at it: messages with anything in them, and requests with something wrong in them.

use bytes::Bytes;
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::{BoxedStrategy, Just, Strategy, any, prop_oneof};

use crate::model::{Json, Message, Part, PartContent, Role};

/// Small, quick and the same on every run.
pub(super) struct Dice(u64);

impl Dice {
    pub(super) fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(super) fn roll(&mut self, sides: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % sides as u64).expect("smaller than sides")
    }
}

/// As [`mutate`], of a protobuf message: bits flipped, ends cut, and bytes put in that mean much in a length.
#[cfg(feature = "protobuf")]
pub(super) fn mutate_message(dice: &mut Dice, sample: &[u8]) -> Vec<u8> {
    let mut bytes = sample.to_vec();
    for _ in 0..=dice.roll(4) {
        let at = dice.roll(bytes.len() + 1);
        match dice.roll(3) {
            0 if at < bytes.len() => bytes[at] ^= 1 << dice.roll(8),
            1 => bytes.truncate(at),
            _ => bytes.insert(at, [0x00, 0x7f, 0x80, 0xff][dice.roll(4)]),
        }
    }
    bytes
}

/// Changes a few places of a valid request: bytes flipped, cut, doubled or replaced by what parsers trip over.
pub(super) fn mutate(dice: &mut Dice, sample: &str) -> Vec<u8> {
    const TRAPS: [&str; 17] = [
        "null",
        "{}",
        "[]",
        "\"\"",
        "-1",
        "1e999",
        "9999999999999999999",
        "\"\\ud800\"",
        "\\u0000",
        "\"",
        "{",
        "}",
        "[",
        ",",
        ":",
        "\u{feff}",
        "\"data_part_compat\":true",
    ];
    let mut bytes = sample.as_bytes().to_vec();
    for _ in 0..=dice.roll(4) {
        let at = dice.roll(bytes.len() + 1);
        match dice.roll(5) {
            0 if at < bytes.len() => bytes[at] ^= 1 << dice.roll(8),
            1 => bytes.truncate(at),
            2 => {
                let end = (at + dice.roll(20)).min(bytes.len());
                let piece = bytes[at..end].to_vec();
                bytes.splice(at..at, piece);
            }
            3 => {
                let end = (at + dice.roll(6)).min(bytes.len());
                bytes.splice(at..end, TRAPS[dice.roll(TRAPS.len())].bytes());
            }
            _ => {
                let end = (at + dice.roll(6)).min(bytes.len());
                bytes.drain(at..end);
            }
        }
    }
    bytes
}

fn id() -> impl Strategy<Value = String> {
    "[a-zA-Z0-9 äß\"\\\\/🙂-]{1,40}"
}

fn line() -> impl Strategy<Value = String> {
    "[a-z:/\"\\\\ü.+-]{1,30}"
}

fn json() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        Just("null".to_owned()),
        any::<bool>().prop_map(|value| value.to_string()),
        any::<i64>().prop_map(|value| value.to_string()),
        any::<String>().prop_map(|value| serde_json::to_string(&value).unwrap()),
    ];
    leaf.prop_recursive(4, 32, 5, |inner| {
        prop_oneof![vec(inner.clone(), 0..5).prop_map(|items| format!("[{}]", items.join(", "))), object(inner)]
    })
}

fn object(value: impl Strategy<Value = String> + 'static) -> BoxedStrategy<String> {
    let members = vec((any::<String>(), value), 0..5).prop_map(|members| {
        let members: std::collections::BTreeMap<_, _> = members.into_iter().collect();
        let write = |(key, value): (&String, &String)| format!("{}:{value}", serde_json::to_string(key).unwrap());
        format!("{{{}}}", members.iter().map(write).collect::<Vec<_>>().join(","))
    });
    members.boxed()
}

fn metadata() -> impl Strategy<Value = Option<Json>> {
    option::of(object(json()).prop_map(Json::from_trusted))
}

fn part() -> impl Strategy<Value = Part> {
    let content = prop_oneof![
        any::<String>().prop_map(PartContent::Text),
        any::<Vec<u8>>().prop_map(|bytes| PartContent::Raw(Bytes::from(bytes))),
        line().prop_map(PartContent::Url),
        json().prop_map(|text| PartContent::Data(Json::from_trusted(text))),
    ];
    (content, metadata(), option::of(id()), option::of(line()))
        .prop_map(|(content, metadata, filename, media_type)| Part { content, metadata, filename, media_type })
}

/// A message with anything in it.
pub(super) fn message() -> impl Strategy<Value = Message> {
    let ids = (id(), option::of(id()), option::of(id()), vec(id(), 0..3));
    let rest = (any::<bool>(), vec(part(), 1..4), metadata(), vec(line(), 0..3));
    (ids, rest).prop_map(|((message_id, context_id, task_id, referenced), (agent, parts, metadata, extensions))| {
        Message {
            message_id: message_id.into(),
            context_id: context_id.map(Into::into),
            task_id: task_id.map(Into::into),
            role: if agent { Role::Agent } else { Role::User },
            parts,
            metadata,
            extensions,
            reference_task_ids: referenced.into_iter().map(Into::into).collect(),
        }
    })
}
