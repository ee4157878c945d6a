//! Free-form JSON between the model's text and `google.protobuf.Struct` and `Value`, without a tree in between.
//!
//! ```text
//! Struct    = repeated entry 1 { key 1: string, value 2: Value }
//! Value     = one of null 1, number 2: double, string 3, bool 4, struct 5: Struct, list 6: ListValue
//! ListValue = repeated value 1: Value
//! ```

use std::collections::BTreeMap;
use std::fmt;

use prost::DecodeError;
use prost::bytes::{Buf, BufMut, Bytes};
use prost::encoding::{
    DecodeContext, WireType, bytes, decode_key, decode_varint, encode_key, encode_varint, fixed32, fixed64, skip_field,
};
use serde::de::{self, DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};

use crate::dialect::json::{write_i64, write_str};
use crate::model::{Json, JsonLimits};

/// A `google.protobuf.Struct` or `Value`, not yet read. The trees that protobuf makes of them take many times the
/// memory of their bytes, and no code here needs a tree: the model keeps free-form JSON as text.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Verbatim(pub Vec<u8>);

impl prost::Message for Verbatim {
    fn encode_raw(&self, buf: &mut impl BufMut) {
        buf.put_slice(&self.0);
    }

    fn merge_field(
        &mut self,
        tag: u32,
        wire_type: WireType,
        buf: &mut impl Buf,
        ctx: DecodeContext,
    ) -> Result<(), DecodeError> {
        match wire_type {
            WireType::Varint => {
                let value = decode_varint(buf)?;
                encode_key(tag, wire_type, &mut self.0);
                encode_varint(value, &mut self.0);
            }
            WireType::SixtyFourBit => {
                let mut value = 0;
                fixed64::merge(wire_type, &mut value, buf, ctx)?;
                fixed64::encode(tag, &value, &mut self.0);
            }
            WireType::ThirtyTwoBit => {
                let mut value = 0;
                fixed32::merge(wire_type, &mut value, buf, ctx)?;
                fixed32::encode(tag, &value, &mut self.0);
            }
            WireType::LengthDelimited => {
                let mut value = Bytes::new();
                bytes::merge(wire_type, &mut value, buf, ctx)?;
                bytes::encode(tag, &value, &mut self.0);
            }
            // Nothing we know has groups.
            WireType::StartGroup | WireType::EndGroup => skip_field(wire_type, tag, buf, ctx)?,
        }
        Ok(())
    }

    fn encoded_len(&self) -> usize {
        self.0.len()
    }

    fn clear(&mut self) {
        self.0.clear();
    }
}

const NULL: u32 = 1;
const NUMBER: u32 = 2;
const STRING: u32 = 3;
const BOOL: u32 = 4;
const STRUCT: u32 = 5;
const LIST: u32 = 6;

/// Why the bytes are no acceptable JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FreeFormFault {
    TooDeep,
    NotUtf8,
    NotFinite,
    NoKind,
    Broken,
}

impl fmt::Display for FreeFormFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::TooDeep => "nested too deep",
            Self::NotUtf8 => "a text in it is not UTF-8",
            Self::NotFinite => "NaN and infinity are no numbers of JSON",
            Self::NoKind => "a value in it has no kind (null is one: null_value)",
            Self::Broken => "it is not a google.protobuf.Value",
        })
    }
}

/// Reads a `Struct`.
pub(super) fn read_object(Verbatim(wire): &Verbatim, limits: JsonLimits) -> Result<Json, FreeFormFault> {
    let mut out = Vec::with_capacity(wire.len());
    read_struct(wire, limits.depth_max, &mut out)?;
    into_json(out)
}

/// Reads a `Value`.
pub(super) fn read_any(Verbatim(wire): &Verbatim, limits: JsonLimits) -> Result<Json, FreeFormFault> {
    let mut out = Vec::with_capacity(wire.len());
    read_value(wire, limits.depth_max, &mut out)?;
    into_json(out)
}

fn into_json(out: Vec<u8>) -> Result<Json, FreeFormFault> {
    String::from_utf8(out).map(Json::from_trusted).map_err(|_| FreeFormFault::NotUtf8)
}

/// One field on the wire.
enum Field<'a> {
    Varint(u64),
    Double(f64),
    Bytes(&'a [u8]),
}

/// Takes the next field off; none at the end.
fn next<'a>(rest: &mut &'a [u8]) -> Result<Option<(u32, Field<'a>)>, FreeFormFault> {
    if !rest.has_remaining() {
        return Ok(None);
    }
    let (tag, wire_type) = decode_key(rest).map_err(|_| FreeFormFault::Broken)?;
    let field = match wire_type {
        WireType::Varint => Field::Varint(decode_varint(rest).map_err(|_| FreeFormFault::Broken)?),
        WireType::SixtyFourBit => Field::Double(rest.try_get_f64_le().map_err(|_| FreeFormFault::Broken)?),
        WireType::LengthDelimited => {
            let length = decode_varint(rest).ok().and_then(|length| usize::try_from(length).ok());
            let (content, after) =
                length.and_then(|length| rest.split_at_checked(length)).ok_or(FreeFormFault::Broken)?;
            *rest = after;
            Field::Bytes(content)
        }
        WireType::ThirtyTwoBit | WireType::StartGroup | WireType::EndGroup => return Err(FreeFormFault::Broken),
    };
    Ok(Some((tag, field)))
}

fn read_struct(mut wire: &[u8], depth_left: usize, out: &mut Vec<u8>) -> Result<(), FreeFormFault> {
    let depth_left = depth_left.checked_sub(1).ok_or(FreeFormFault::TooDeep)?;
    // A key that comes again replaces what it had.
    let mut members = BTreeMap::new();
    while let Some((tag, field)) = next(&mut wire)? {
        let (1, Field::Bytes(mut entry)) = (tag, field) else { continue };
        let (mut key, mut value) = (&[][..], &[][..]);
        while let Some((tag, field)) = next(&mut entry)? {
            match (tag, field) {
                (1, Field::Bytes(bytes)) => key = bytes,
                (2, Field::Bytes(bytes)) => value = bytes,
                _ => {}
            }
        }
        members.insert(std::str::from_utf8(key).map_err(|_| FreeFormFault::NotUtf8)?, value);
    }
    out.push(b'{');
    for (i, (key, value)) in members.into_iter().enumerate() {
        if i > 0 {
            out.push(b',');
        }
        write_str(out, key);
        out.push(b':');
        read_value(value, depth_left, out)?;
    }
    out.push(b'}');
    Ok(())
}

fn read_value(mut wire: &[u8], depth_left: usize, out: &mut Vec<u8>) -> Result<(), FreeFormFault> {
    // Of several kinds the last one counts, as for every oneof.
    let mut kind = None;
    while let Some((tag, field)) = next(&mut wire)? {
        if (NULL..=LIST).contains(&tag) {
            kind = Some((tag, field));
        }
    }
    match kind {
        Some((NULL, Field::Varint(_))) => out.extend_from_slice(b"null"),
        Some((NUMBER, Field::Double(number))) => write_number(number, out)?,
        Some((STRING, Field::Bytes(text))) => {
            write_str(out, std::str::from_utf8(text).map_err(|_| FreeFormFault::NotUtf8)?);
        }
        Some((BOOL, Field::Varint(is_true))) => {
            out.extend_from_slice(if is_true != 0 { b"true" } else { b"false" });
        }
        Some((STRUCT, Field::Bytes(inner))) => read_struct(inner, depth_left, out)?,
        Some((LIST, Field::Bytes(inner))) => read_list(inner, depth_left, out)?,
        Some(_) => return Err(FreeFormFault::Broken),
        None => return Err(FreeFormFault::NoKind),
    }
    Ok(())
}

fn read_list(mut wire: &[u8], depth_left: usize, out: &mut Vec<u8>) -> Result<(), FreeFormFault> {
    let depth_left = depth_left.checked_sub(1).ok_or(FreeFormFault::TooDeep)?;
    let mut is_first = true;
    out.push(b'[');
    while let Some((tag, field)) = next(&mut wire)? {
        let (1, Field::Bytes(value)) = (tag, field) else { continue };
        if !is_first {
            out.push(b',');
        }
        is_first = false;
        read_value(value, depth_left, out)?;
    }
    out.push(b']');
    Ok(())
}

/// Whole numbers that a double holds exactly are written without a fraction: most of them were counted, not measured.
#[expect(clippy::cast_possible_truncation, reason = "checked to be whole and in range")]
fn write_number(number: f64, out: &mut Vec<u8>) -> Result<(), FreeFormFault> {
    const EXACT_MAX: f64 = 9_007_199_254_740_992.0;
    if !number.is_finite() {
        return Err(FreeFormFault::NotFinite);
    }
    if number.fract() == 0.0 && number.abs() <= EXACT_MAX && !(number == 0.0 && number.is_sign_negative()) {
        write_i64(out, number as i64);
        return Ok(());
    }
    serde_json::to_writer(out, &number).map_err(|_| FreeFormFault::NotFinite)
}

/// Writes an object as a `Struct`; what is no object is an empty one.
#[must_use]
pub fn encode_object(json: &Json) -> Verbatim {
    let mut out = Vec::with_capacity(json.as_str().len());
    match write_text(json, Nesting::Struct, &mut out) {
        Ok(()) => Verbatim(out),
        Err(_) => Verbatim::default(),
    }
}

/// Writes any JSON as a `Value`.
#[must_use]
pub fn encode_value(json: &Json) -> Verbatim {
    let mut out = Vec::with_capacity(json.as_str().len());
    if write_text(json, Nesting::Value, &mut out).is_err() {
        // Only text that was never checked comes here.
        out.clear();
        write_null(&mut out);
    }
    Verbatim(out)
}

fn write_text(json: &Json, nesting: Nesting, out: &mut Vec<u8>) -> Result<(), serde_json::Error> {
    let mut reader = serde_json::Deserializer::from_str(json.as_str());
    Write { nesting, out }.deserialize(&mut reader)
}

/// What is being written: a value, or the object itself without a value around it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Nesting {
    Value,
    Struct,
}

struct Write<'o> {
    nesting: Nesting,
    out: &'o mut Vec<u8>,
}

impl<'de> DeserializeSeed<'de> for Write<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        match self.nesting {
            Nesting::Value => deserializer.deserialize_any(self),
            Nesting::Struct => deserializer.deserialize_map(self),
        }
    }
}

impl<'de> Visitor<'de> for Write<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_bool<E>(self, value: bool) -> Result<(), E> {
        encode_key(BOOL, WireType::Varint, self.out);
        self.out.push(value.into());
        Ok(())
    }

    #[expect(clippy::cast_precision_loss, reason = "protobuf has no other number here")]
    fn visit_i64<E>(self, number: i64) -> Result<(), E> {
        write_double(number as f64, self.out);
        Ok(())
    }

    #[expect(clippy::cast_precision_loss, reason = "protobuf has no other number here")]
    fn visit_u64<E>(self, number: u64) -> Result<(), E> {
        write_double(number as f64, self.out);
        Ok(())
    }

    fn visit_f64<E>(self, number: f64) -> Result<(), E> {
        write_double(number, self.out);
        Ok(())
    }

    fn visit_str<E>(self, text: &str) -> Result<(), E> {
        write_bytes(STRING, text.as_bytes(), self.out);
        Ok(())
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        write_null(self.out);
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<(), A::Error> {
        nested(LIST, self.out, |out| {
            while nested(1, out, |out| seq.next_element_seed(Write { nesting: Nesting::Value, out }))?.is_some() {}
            // The last one was opened for an element that did not come.
            out.truncate(out.len() - 2);
            Ok(())
        })
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let mut members = |out: &mut Vec<u8>| -> Result<(), A::Error> {
            while let Some(key) = map.next_key::<std::borrow::Cow<'de, str>>()? {
                nested(1, out, |out| {
                    write_bytes(1, key.as_bytes(), out);
                    nested(2, out, |out| map.next_value_seed(Write { nesting: Nesting::Value, out }))
                })?;
            }
            Ok(())
        };
        match self.nesting {
            Nesting::Value => nested(STRUCT, self.out, members),
            Nesting::Struct => members(self.out),
        }
    }
}

fn write_null(out: &mut Vec<u8>) {
    encode_key(NULL, WireType::Varint, out);
    out.push(0);
}

fn write_double(number: f64, out: &mut Vec<u8>) {
    encode_key(NUMBER, WireType::SixtyFourBit, out);
    out.extend_from_slice(&number.to_le_bytes());
}

fn write_bytes(tag: u32, bytes: &[u8], out: &mut Vec<u8>) {
    encode_key(tag, WireType::LengthDelimited, out);
    encode_varint(bytes.len() as u64, out);
    out.extend_from_slice(bytes);
}

/// Writes a message inside another. Its length comes first and is known last, so what is longer than one byte can say is
/// moved up.
fn nested<T, E: de::Error>(
    tag: u32,
    out: &mut Vec<u8>,
    write: impl FnOnce(&mut Vec<u8>) -> Result<T, E>,
) -> Result<T, E> {
    encode_key(tag, WireType::LengthDelimited, out);
    out.push(0);
    let from = out.len();
    let written = write(out)?;
    let length = out.len() - from;
    match u8::try_from(length) {
        Ok(short @ ..0x80) => out[from - 1] = short,
        Ok(_) | Err(_) => {
            let mut prefix = Vec::with_capacity(10);
            encode_varint(length as u64, &mut prefix);
            out.splice(from - 1..from, prefix);
        }
    }
    Ok(written)
}
