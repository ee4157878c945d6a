//! A message as it was received. The original keeps the received object and shows it again, so everything that the
//! model does not keep of it (members of its own, a member that was not sent and has been made up since) stands in the
//! message's metadata under [`KEY`].

use std::borrow::Cow;

use serde_json::Value;
use serde_json::value::RawValue;

use crate::dialect::json::{Members, Object, merge_objects, write_json};
use crate::model::{Json, JsonLimits, Message};

/// The name in a message's metadata of what the model does not keep of it.
pub const KEY: &str = "selectoolsMessage";

/// What is different about a message from how the model would write it.
#[derive(Default)]
pub(super) struct Difference<'a> {
    /// Members to write in place of the model's, or beside them.
    pub(super) more: Vec<(Cow<'a, str>, &'a RawValue)>,
    /// Members that were not sent.
    pub(super) without: Vec<String>,
}

impl Difference<'_> {
    /// Whether the model's own member is written.
    pub(super) fn keeps(&self, name: &str) -> bool {
        !self.without.iter().any(|absent| absent == name) && !self.more.iter().any(|(other, _)| other == name)
    }
}

/// The members of a message as they came.
type SentMembers<'a> = [(Cow<'a, str>, &'a RawValue)];

/// The message, which the model writes as `written`, with what is needed to write it as it was received. A member that is no acceptable JSON (too deep, or with
/// a name twice) is not kept.
pub(super) fn keep(mut message: Message, written: &[u8], sent: &SentMembers<'_>, limits: JsonLimits) -> Message {
    let Some(Members(written)) = std::str::from_utf8(written).ok().and_then(Members::read) else { return message };
    let last = |members: &SentMembers<'_>, name: &str| {
        members.iter().rfind(|(known, _)| known == name).map(|(_, value)| value.get().to_owned())
    };
    let parse = |text: &str| serde_json::from_str::<Value>(text).ok();
    let is_same = |one: &str, other: &str| one == other || (parse(one).is_some() && parse(one) == parse(other));
    let mut more: Vec<(&str, Json)> = Vec::new();
    for (place, (name, value)) in sent.iter().enumerate() {
        // Of several members of one name the last one counts.
        let is_last = !sent[place + 1..].iter().any(|(later, _)| later == name);
        let is_written = last(&written, name).is_some_and(|known| is_same(&known, value.get()));
        if is_last && !is_written {
            more.extend(Json::parse(value.get(), limits).ok().map(|value| (name.as_ref(), value)));
        }
    }
    let absent = written.iter().filter(|(name, _)| last(sent, name).is_none()).map(|(name, _)| name.to_string());
    let without: Vec<String> = absent.collect();
    if more.is_empty() && without.is_empty() {
        return message;
    }
    // Beside the key, empty metadata and none would look the same.
    if message
        .metadata
        .as_ref()
        .is_some_and(|metadata| Members::read(metadata.as_str()).is_some_and(|m| m.0.is_empty()))
    {
        more.push(("metadata", Json::from_trusted("{}")));
    }
    let mut kept = Vec::with_capacity(256);
    let mut outer = Object::open(&mut kept);
    let mut inner = Object::open(outer.key(KEY));
    if !more.is_empty() {
        let mut object = Object::open(inner.key("more"));
        for (name, value) in &more {
            write_json(object.named(name), value);
        }
        object.close();
    }
    inner.strings_if_any("without", &without);
    inner.close();
    outer.close();
    let kept = String::from_utf8(kept).expect("the writer writes UTF-8");
    let metadata = match &message.metadata {
        Some(metadata) => {
            let mut merged = Vec::with_capacity(kept.len() + metadata.as_str().len());
            merge_objects(&kept, metadata.as_str(), &mut merged);
            String::from_utf8(merged).expect("the writer writes UTF-8")
        }
        None => kept,
    };
    message.metadata = Some(Json::from_trusted(metadata));
    message
}

/// What [`keep`] has kept, and the metadata without it: none if there was no other.
pub(super) fn split(metadata: &Json) -> (Difference<'_>, Option<Json>) {
    if !metadata.as_str().contains(KEY) {
        return (Difference::default(), Some(metadata.clone()));
    }
    let Some(Members(members)) = Members::read(metadata.as_str()) else {
        return (Difference::default(), Some(metadata.clone()));
    };
    let mut difference = Difference::default();
    let mut rest = Vec::with_capacity(metadata.as_str().len());
    let mut object = Object::open(&mut rest);
    let mut is_empty = true;
    for (name, value) in &members {
        if name != KEY {
            is_empty = false;
            object.named(name).extend_from_slice(value.get().as_bytes());
            continue;
        }
        let Some(Members(kept)) = Members::read(value.get()) else { continue };
        for (name, value) in kept {
            match name.as_ref() {
                "more" => difference.more = Members::read(value.get()).map_or_else(Vec::new, |Members(more)| more),
                "without" => difference.without = serde_json::from_str(value.get()).unwrap_or_default(),
                _ => {}
            }
        }
    }
    object.close();
    let rest = String::from_utf8(rest).expect("the writer writes UTF-8");
    (difference, (!is_empty).then(|| Json::from_trusted(rest)))
}
