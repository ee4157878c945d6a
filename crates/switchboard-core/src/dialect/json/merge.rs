//! Two objects as one: for documents that hold the members of several dialects side by side, such as an agent card that
//! readers of every version understand. Done once per document, so it is plain rather than quick.

use std::borrow::Cow;
use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

use super::read::Text;
use super::write::{write_array, write_str};

/// Writes an object with the members of both, those of `first` in front. Where both have a member, objects are merged
/// likewise, lists of the same length item by item, and of anything else the first is kept. Both must be JSON that this
/// process wrote; what is not an object counts as the first alone.
pub fn merge_objects(first: &str, second: &str, out: &mut Vec<u8>) {
    match (Members::read(first), Members::read(second)) {
        (Some(Members(first)), Some(Members(second))) => write_merged(&first, &second, out),
        _ => out.extend_from_slice(first.as_bytes()),
    }
}

fn write_merged(first: &[(Cow<'_, str>, &RawValue)], second: &[(Cow<'_, str>, &RawValue)], out: &mut Vec<u8>) {
    let mut separator = b'{';
    let mut name_it = |name: &str, out: &mut Vec<u8>| {
        out.push(separator);
        separator = b',';
        write_str(out, name);
        out.push(b':');
    };
    for (name, value) in first {
        name_it(name, out);
        match second.iter().find(|(other, _)| other == name) {
            Some((_, other)) => merge_values(value.get(), other.get(), out),
            None => out.extend_from_slice(value.get().as_bytes()),
        }
    }
    for (name, value) in second {
        if !first.iter().any(|(known, _)| known == name) {
            name_it(name, out);
            out.extend_from_slice(value.get().as_bytes());
        }
    }
    if separator == b'{' {
        out.push(b'{');
    }
    out.push(b'}');
}

fn merge_values(first: &str, second: &str, out: &mut Vec<u8>) {
    let items = |text: &str| -> Option<Vec<Box<RawValue>>> { serde_json::from_str(text).ok() };
    if let (Some(first), Some(second)) = (items(first), items(second))
        && first.len() == second.len()
    {
        write_array(out, first.iter().zip(&second), |out, (a, b)| merge_objects(a.get(), b.get(), out));
    } else {
        merge_objects(first, second, out);
    }
}

/// The members of an object in their order, their values as text.
pub struct Members<'a>(pub Vec<(Cow<'a, str>, &'a RawValue)>);

impl<'a> Members<'a> {
    /// None if the text is not an object.
    #[must_use]
    pub fn read(text: &'a str) -> Option<Self> {
        serde_json::from_str(text).ok()
    }
}

impl<'de> Deserialize<'de> for Members<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct MembersVisitor;

        impl<'de> Visitor<'de> for MembersVisitor {
            type Value = Members<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Members<'de>, A::Error> {
                let mut members = Vec::new();
                while let Some((Text(name), value)) = map.next_entry()? {
                    members.push((name, value));
                }
                Ok(Members(members))
            }
        }

        deserializer.deserialize_map(MembersVisitor)
    }
}
