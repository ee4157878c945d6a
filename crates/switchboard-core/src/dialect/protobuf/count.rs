//! How long the lists of a request are, told from its bytes before anything is built of them. An empty part takes two bytes on
//! the wire and a hundred in memory, so a body within its limit could otherwise ask for far more memory than its size.

use prost::bytes::Buf;
use prost::encoding::{DecodeContext, WireType, decode_key, decode_varint, skip_field};

use crate::dialect::json::{Check, DecodeLimits, LIST_ITEMS_KEPT};
use crate::error::ProtocolError;

/// The lists of one kind of request.
pub(crate) struct Lists(pub(crate) &'static [List]);

/// Where a list stands in a request, as numbers of fields from the outside in, and by name.
pub(crate) type List = (&'static [u32], &'static str, What);

/// What a list holds, which says what bounds it.
#[derive(Clone, Copy)]
pub(crate) enum What {
    Parts,
    Texts,
}

impl Lists {
    /// Refuses a request with a list that is too long to be built. Whether one is longer than allowed is checked later, with
    /// the other fields.
    pub(crate) fn check(&self, message: &[u8], limits: &DecodeLimits) -> Result<(), ProtocolError> {
        // An entry takes two bytes at least.
        if message.len() < 2 * LIST_ITEMS_KEPT {
            return Ok(());
        }
        let mut check = Check::new(limits);
        for (path, name, what) in self.0 {
            let total = count(message, path);
            let (what, max) = match what {
                What::Parts => ("parts", limits.parts_max),
                What::Texts => ("entries", limits.list_items_max),
            };
            if total > LIST_ITEMS_KEPT {
                let max = max.min(LIST_ITEMS_KEPT);
                check.violation(format_args!("{name}"), format!("has {total} {what}; the limit is {max}"));
            }
        }
        check.finish(())
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
