//! How long the lists of a message are, told from its bytes before anything is built of them. An empty part takes two bytes on
//! the wire and a hundred in memory, so a body within its limit could otherwise ask for far more memory than its size.

use prost::bytes::Buf;
use prost::encoding::{DecodeContext, WireType, decode_key, decode_varint, skip_field};

use crate::dialect::json::{Check, DecodeLimits, LIST_ITEMS_KEPT};
use crate::error::ProtocolError;

/// The fields of one kind of message that are lists or have lists inside.
pub(crate) type Lists = &'static [ListField];

/// A field that is a list or has lists inside: its number, its name in the dialect, and what it holds.
pub(crate) struct ListField(pub(crate) u32, pub(crate) &'static str, pub(crate) Holds);

pub(crate) enum Holds {
    /// A message that has these lists.
    One(Lists),
    Parts,
    Texts,
    /// Messages that have these lists, and what they are called.
    Many(&'static str, Lists),
}

/// How many entries are built of lists that stand inside the entries of another, all together: a page has many tasks, and
/// each of them its messages.
const INNER_ITEMS_KEPT: usize = 100_000;

/// Refuses a message with a list that is too long to be built. Whether one is longer than allowed is checked later, with the
/// other fields.
pub(super) fn check(message: &[u8], lists: Lists, limits: &DecodeLimits) -> Result<(), ProtocolError> {
    // An entry takes two bytes at least.
    if message.len() < 2 * LIST_ITEMS_KEPT {
        return Ok(());
    }
    let mut check = Check::new(limits);
    let mut path = Path { message, numbers: Vec::new(), name: String::new(), kept: LIST_ITEMS_KEPT };
    path.check(lists, &mut check);
    check.finish(())
}

/// The field that is looked at, as the numbers and names that lead to it.
struct Path<'m> {
    message: &'m [u8],
    numbers: Vec<u32>,
    name: String,
    /// How many entries of a list at this place are built.
    kept: usize,
}

impl Path<'_> {
    fn check(&mut self, lists: Lists, check: &mut Check<'_>) {
        for ListField(number, name, holds) in lists {
            let (outer_name, outer_kept) = (self.name.len(), self.kept);
            self.numbers.push(*number);
            self.name.push_str(if outer_name == 0 { "" } else { "." });
            self.name.push_str(name);
            let inner = match holds {
                Holds::One(inner) => inner,
                Holds::Parts => self.bound("parts", check.limits.parts_max, &[], check),
                Holds::Texts => self.bound("entries", check.limits.list_items_max, &[], check),
                Holds::Many(what, inner) => self.bound(what, usize::MAX, inner, check),
            };
            self.check(inner, check);
            self.numbers.pop();
            self.name.truncate(outer_name);
            self.kept = outer_kept;
        }
    }

    fn bound(&mut self, what: &str, max: usize, inner: Lists, check: &mut Check<'_>) -> Lists {
        let total = count(self.message, &self.numbers);
        if total > self.kept {
            let max = if self.kept == LIST_ITEMS_KEPT { max.min(self.kept) } else { self.kept };
            check.violation(format_args!("{}", self.name), format!("has {total} {what}; the limit is {max}"));
        }
        self.kept = INNER_ITEMS_KEPT;
        inner
    }
}

/// How often the field at `path` occurs. What is broken ends the count: reading the message will say so better.
fn count(message: &[u8], path: &[u32]) -> usize {
    let Some((&wanted, inner)) = path.split_first() else { return 0 };
    let (mut rest, mut total) = (message, 0);
    while rest.has_remaining() {
        let Ok((tag, wire_type)) = decode_key(&mut rest) else { break };
        if tag != wanted || wire_type != WireType::LengthDelimited {
            if skip_field(wire_type, tag, &mut rest, DecodeContext::default()).is_err() {
                break;
            }
            continue;
        }
        let length = decode_varint(&mut rest).ok().and_then(|length| usize::try_from(length).ok());
        let Some((content, after)) = length.and_then(|length| rest.split_at_checked(length)) else { break };
        total += if inner.is_empty() { 1 } else { count(content, inner) };
        rest = after;
    }
    total
}
