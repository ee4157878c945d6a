//! What every JSON dialect needs: a writer that appends to a byte buffer ([`write_str`], [`Object`]), readers that take
//! what protobuf's JSON mapping allows (numbers as text, enums by name or number, base64 in either alphabet, null for
//! absent), and a [`Check`] that collects what is wrong by field, within [`DecodeLimits`]. None builds a tree. Names of
//! fields and rules about them belong to the dialects.

mod merge;
mod read;
mod request;
mod scan;
mod ser;
mod write;

pub use merge::{Members, merge_objects};
pub use read::{
    Base64, Int, LIST_ITEMS_KEPT, LazyMember, List, NameOrNumber, NamedMembers, Obj, ParseFault, Raw, Text, Time,
    decode_base64, excerpt, parse_object, present_raw,
};
pub use request::{Check, DecodeLimits, Decoded, check_id, params_or_empty, read_body, read_params, unknown_method};
pub use scan::{NotScanned, ScannedMembers, plain_text};
pub use ser::{Unwritable, append};
pub use write::{
    Object, write_array, write_base64, write_i64, write_json, write_str, write_strings, write_timestamp, write_u64,
};

#[cfg(test)]
#[path = "json/tests.rs"]
mod tests;
