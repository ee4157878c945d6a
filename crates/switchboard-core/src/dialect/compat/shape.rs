//! What the parameters of a send look like, where that tells one dialect from another. The spellings of single systems
//! differ from 0.3's in a few members; where they do not, they are 0.3's.
//!
//! Only methods of 0.3's family come here. Most of their requests hold none of the words that could matter and are not
//! read at all; the others are skimmed, nothing of them is kept.

use std::fmt;

use serde::de::{Deserialize, Deserializer, IgnoredAny, SeqAccess, Visitor};
use serde_json::value::RawValue;

use crate::model::Dialect;

use crate::dialect::json::{Obj, Text};

/// The shape of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::dialect) enum Shape {
    /// It holds no message: nothing in it is spelled in one way or another.
    Open,
    /// As 0.3 has it. A shape that no dialect has counts as 0.3's, so that 0.3 refuses it.
    Plain,
    /// As one system has it.
    Of(Dialect),
}

pub(in crate::dialect) fn shape(method: &str, params: Option<&str>) -> Shape {
    let is_send = matches!(method, "message/send" | "message/stream" | "tasks/send" | "tasks/sendSubscribe");
    let Some(params) = params.filter(|_| is_send) else { return if is_send { Shape::Plain } else { Shape::Open } };
    // A part that says its `type`, a send that says it is `async`, and a method that has an older name.
    let may_differ = method == "tasks/send" || params.contains("\"type\"") || params.contains("\"async\"");
    if !may_differ {
        return Shape::Plain;
    }
    serde_json::from_str::<Obj<Params<'_>>>(params).map_or(Shape::Plain, |Obj(params)| params.shape(method))
}

#[derive(serde::Deserialize)]
#[serde(rename_all = "camelCase")]
struct Params<'a> {
    message: Option<Obj<Message>>,
    /// Where one sample of the 0.2 specification has it.
    message_id: Option<IgnoredAny>,
    #[serde(borrow, rename = "async")]
    is_async: Option<&'a RawValue>,
    /// The task's, which one system lets its clients choose.
    id: Option<IgnoredAny>,
}

#[derive(serde::Deserialize)]
#[serde(rename_all = "camelCase")]
struct Message {
    message_id: Option<IgnoredAny>,
    parts: Option<Parts>,
}

impl Params<'_> {
    fn shape(&self, method: &str) -> Shape {
        let Some(Obj(message)) = &self.message else { return Shape::Plain };
        if self.is_async.is_some_and(|value| value.get() == "true") {
            return Shape::Of(Dialect::AgentNative);
        }
        let Some(parts) = &message.parts else { return Shape::Plain };
        let has_id = message.message_id.is_some() || self.message_id.is_some();
        match method {
            "tasks/send" if parts.all_have_kind && parts.has_text_of_kind => Shape::Of(Dialect::Selectools),
            "message/send" | "message/stream" if parts.all_have_type_alone && !has_id => {
                let is_nexus = parts.all_have_data && (parts.has_data_not_named_so || self.id.is_some());
                Shape::Of(if is_nexus { Dialect::Nexus } else { Dialect::AgentNative })
            }
            _ => Shape::Plain,
        }
    }
}

#[derive(serde::Deserialize)]
struct Part<'a> {
    #[serde(borrow)]
    kind: Option<Text<'a>>,
    #[serde(borrow, rename = "type")]
    old_kind: Option<Text<'a>>,
    text: Option<IgnoredAny>,
    data: Option<IgnoredAny>,
}

/// What holds for the parts of a message, found while they pass by.
struct Parts {
    all_have_kind: bool,
    has_text_of_kind: bool,
    /// Each has a `type` and no `kind`.
    all_have_type_alone: bool,
    /// Each holds what it holds in `data`.
    all_have_data: bool,
    /// One holds something in `data` that is of another type.
    has_data_not_named_so: bool,
}

impl<'de> Deserialize<'de> for Parts {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct PartsVisitor;

        impl<'de> Visitor<'de> for PartsVisitor {
            type Value = Parts;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an array of parts")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut parts: A) -> Result<Parts, A::Error> {
                let mut found = Parts {
                    all_have_kind: true,
                    has_text_of_kind: false,
                    all_have_type_alone: true,
                    all_have_data: true,
                    has_data_not_named_so: false,
                };
                let mut is_empty = true;
                while let Some(Obj(part)) = parts.next_element::<Obj<Part<'_>>>()? {
                    is_empty = false;
                    let is = |kind: &Option<Text<'_>>, name: &str| kind.as_ref().is_some_and(|kind| kind.0 == name);
                    let has_data = part.data.is_some();
                    found.all_have_kind &= part.kind.is_some();
                    found.has_text_of_kind |= is(&part.kind, "text") && part.text.is_some();
                    found.all_have_type_alone &= part.old_kind.is_some() && part.kind.is_none();
                    found.all_have_data &= has_data;
                    found.has_data_not_named_so |= has_data && !is(&part.old_kind, "data");
                }
                found.all_have_type_alone &= !is_empty;
                // Parts of two systems in one message: no dialect has that, so 0.3 reads it and refuses it.
                found.all_have_type_alone &= found.all_have_data || !found.has_data_not_named_so;
                Ok(found)
            }
        }

        deserializer.deserialize_seq(PartsVisitor)
    }
}
