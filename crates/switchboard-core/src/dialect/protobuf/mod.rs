//! What the protobuf forms of the dialects share, as `json` does for the textual ones: a request's bytes into a message of
//! the generated code, free-form JSON between text and `google.protobuf.Value`, and the details of a refusal. Names of
//! fields and rules about them belong to the dialects; framing and metadata belong to the gRPC binding.
//!
//! LOSSES of protobuf itself, whatever the dialect: a number in free-form JSON is a double, so whole numbers beyond 2^53 are
//! rounded; the order of an object's members is not kept; times have milliseconds in the model.

mod count;
mod free_form;
#[rustfmt::skip]
pub mod generated;
mod read;
mod status;
mod verbatim;
mod write;

pub use free_form::{encode_object, encode_value};
pub(crate) use read::decode;
pub use read::{decode_object, decode_timestamp, decode_value, encode_timestamp, list, text};
pub use status::{Status, encode_error};
pub use verbatim::Verbatim;

pub(crate) use count::{Lists, What};
pub(crate) use write::Fields;

use prost::Message;

/// Appends a message.
pub(crate) fn write(message: &impl Message, out: &mut Vec<u8>) {
    message.encode(out).expect("a Vec grows");
}

#[cfg(test)]
mod tests;
