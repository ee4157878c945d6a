//! What the protobuf forms of the dialects share, as `json` and `wire` do for the textual ones. Names of fields and rules about
//! them belong to the dialects; framing and metadata belong to the gRPC binding.
//!
//! A message is one struct of the generated code, and what it is in the model stands beside it in one `impl`, for both
//! directions: `read` makes the model of it and reports what may not be by field; `of` makes it of the model, or, for what can be
//! large or is sent often, `write` writes it without making it (see `write`). The numbers of fields are constants of the
//! generated code.
//! - `read`: bytes into a message, and the checks that all of them need; `count`: how long its lists are, before that.
//! - `write`: fields, one after the other.
//! - `task`: tasks and what streams say, which both packages have as their own module; `card`: what is the same in both cards.
//! - `free_form`: free-form JSON between text and `google.protobuf.Value`; `status`: refusals.
//!
//! LOSSES of protobuf itself, whatever the dialect: a number in free-form JSON is a double, so whole numbers beyond 2^53 are
//! rounded; the order of an object's members is not kept, nor that of the names in a card's schemes, requirements and scopes;
//! a text that is empty is none; times have milliseconds in the model.

pub mod card;
mod count;
mod free_form;
#[rustfmt::skip]
pub mod generated;
mod read;
mod status;
mod write;

pub use free_form::Verbatim;
pub use free_form::{encode_object, encode_value};
pub(crate) use read::{
    decode, decode_answer, each, optional, read_parts, read_role, read_state, role_number, state_number,
};
pub use read::{decode_object, decode_timestamp, decode_value, encode_timestamp, list, text};
pub use status::{Status, read_error, write_error};

pub(crate) use count::{Holds, ListField, Lists};
pub(crate) use write::Fields;

use prost::Message;

/// Appends a message.
pub(crate) fn write(message: &impl Message, out: &mut Vec<u8>) {
    message.encode(out).expect("a Vec grows");
}

#[cfg(test)]
mod tests;
