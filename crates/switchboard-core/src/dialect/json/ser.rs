//! Writes any `Serialize` as JSON at the end of a byte buffer, as protobuf's JSON mapping wants it: an absent member is left
//! out, bytes are base64, and a [`Raw`](super::Raw) is written as it stands. Output is compact and never holds a raw line
//! break, so that a document fits on one `data:` line of an event stream.
//!
//! It is our own because serde_json would need an attribute on every member of every form to leave it out, parses raw JSON
//! again before it writes it, and looks at texts byte by byte.

use std::fmt;

use serde::ser::{self, Serialize};

use super::write::{write_base64, write_i64, write_json_text, write_str, write_u64};

/// The name of the newtype whose bytes are JSON, and written as they stand.
pub(super) const RAW: &str = "$switchboard::raw";
/// The name of the newtype whose bytes are a text that needs no escapes.
pub(super) const PLAIN: &str = "$switchboard::plain";

/// Appends a value.
///
/// # Errors
/// When it cannot be JSON: a map whose keys are not texts, or a value whose own `Serialize` fails.
#[inline]
pub fn append<T: Serialize + ?Sized>(out: &mut Vec<u8>, value: &T) -> Result<(), Unwritable> {
    match value.serialize(Writer::new(out))? {
        Written::Value => {}
        Written::Absent => out.extend_from_slice(b"null"),
    }
    Ok(())
}

/// Why a value could not be written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unwritable(Box<str>);

impl fmt::Display for Unwritable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Unwritable {}

impl ser::Error for Unwritable {
    fn custom<T: fmt::Display>(message: T) -> Self {
        Self(message.to_string().into())
    }
}

/// What a value has left in the buffer.
enum Written {
    Value,
    /// Nothing: a member that is absent is left out, an item of a list is null.
    Absent,
}

type Outcome = Result<Written, Unwritable>;

struct Writer<'o> {
    out: &'o mut Vec<u8>,
    bytes: ByteEncoding,
}

/// What bytes are written as.
#[derive(Clone, Copy)]
enum ByteEncoding {
    Base64,
    Raw,
    Plain,
}

impl<'o> Writer<'o> {
    #[inline]
    fn new(out: &'o mut Vec<u8>) -> Self {
        Self { out, bytes: ByteEncoding::Base64 }
    }

    #[inline]
    fn open(self, bracket: u8, close: u8) -> Members<'o> {
        self.out.push(bracket);
        Members { out: self.out, is_empty: true, close, closes_variant: false }
    }

    /// Opens the object that names a variant, and what stands in it.
    fn open_variant(self, name: &str, bracket: u8, close: u8) -> Members<'o> {
        self.out.push(b'{');
        write_str(self.out, name);
        self.out.push(b':');
        Members { closes_variant: true, ..self.open(bracket, close) }
    }

    fn number_text(self, number: impl fmt::Display) -> Outcome {
        self.out.extend_from_slice(number.to_string().as_bytes());
        Ok(Written::Value)
    }

    fn float(self, number: f64) -> Outcome {
        serde_json::to_writer(&mut *self.out, &number).map_err(ser::Error::custom)?;
        Ok(Written::Value)
    }
}

impl<'o> ser::Serializer for Writer<'o> {
    type Ok = Written;
    type Error = Unwritable;
    type SerializeSeq = Members<'o>;
    type SerializeTuple = Members<'o>;
    type SerializeTupleStruct = Members<'o>;
    type SerializeTupleVariant = Members<'o>;
    type SerializeMap = Members<'o>;
    type SerializeStruct = Members<'o>;
    type SerializeStructVariant = Members<'o>;

    #[inline]
    fn serialize_bool(self, value: bool) -> Outcome {
        self.out.extend_from_slice(if value { b"true" } else { b"false" });
        Ok(Written::Value)
    }

    fn serialize_i8(self, number: i8) -> Outcome {
        self.serialize_i64(number.into())
    }

    fn serialize_i16(self, number: i16) -> Outcome {
        self.serialize_i64(number.into())
    }

    fn serialize_i32(self, number: i32) -> Outcome {
        self.serialize_i64(number.into())
    }

    fn serialize_i64(self, number: i64) -> Outcome {
        write_i64(self.out, number);
        Ok(Written::Value)
    }

    fn serialize_i128(self, number: i128) -> Outcome {
        self.number_text(number)
    }

    fn serialize_u8(self, number: u8) -> Outcome {
        self.serialize_u64(number.into())
    }

    fn serialize_u16(self, number: u16) -> Outcome {
        self.serialize_u64(number.into())
    }

    fn serialize_u32(self, number: u32) -> Outcome {
        self.serialize_u64(number.into())
    }

    fn serialize_u64(self, number: u64) -> Outcome {
        write_u64(self.out, number);
        Ok(Written::Value)
    }

    fn serialize_u128(self, number: u128) -> Outcome {
        self.number_text(number)
    }

    fn serialize_f32(self, number: f32) -> Outcome {
        self.float(number.into())
    }

    fn serialize_f64(self, number: f64) -> Outcome {
        self.float(number)
    }

    fn serialize_char(self, value: char) -> Outcome {
        self.serialize_str(value.encode_utf8(&mut [0; 4]))
    }

    #[inline]
    fn serialize_str(self, text: &str) -> Outcome {
        write_str(self.out, text);
        Ok(Written::Value)
    }

    fn serialize_bytes(self, bytes: &[u8]) -> Outcome {
        match self.bytes {
            ByteEncoding::Base64 => write_base64(self.out, bytes),
            ByteEncoding::Raw => write_json_text(self.out, bytes),
            ByteEncoding::Plain => {
                self.out.push(b'"');
                self.out.extend_from_slice(bytes);
                self.out.push(b'"');
            }
        }
        Ok(Written::Value)
    }

    #[inline]
    fn serialize_none(self) -> Outcome {
        Ok(Written::Absent)
    }

    #[inline]
    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Outcome {
        value.serialize(self)
    }

    fn serialize_unit(self) -> Outcome {
        self.out.extend_from_slice(b"null");
        Ok(Written::Value)
    }

    fn serialize_unit_struct(self, _: &'static str) -> Outcome {
        self.serialize_unit()
    }

    fn serialize_unit_variant(self, _: &'static str, _: u32, name: &'static str) -> Outcome {
        self.serialize_str(name)
    }

    #[inline]
    fn serialize_newtype_struct<T: Serialize + ?Sized>(self, name: &'static str, value: &T) -> Outcome {
        let bytes = match name {
            RAW => ByteEncoding::Raw,
            PLAIN => ByteEncoding::Plain,
            _ => ByteEncoding::Base64,
        };
        value.serialize(Writer { bytes, ..self })
    }

    #[inline]
    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        _: u32,
        name: &'static str,
        value: &T,
    ) -> Outcome {
        let mut members = self.open(b'{', b'}');
        members.member(name, value)?;
        members.close()
    }

    #[inline]
    fn serialize_seq(self, _: Option<usize>) -> Result<Members<'o>, Unwritable> {
        Ok(self.open(b'[', b']'))
    }

    fn serialize_tuple(self, _: usize) -> Result<Members<'o>, Unwritable> {
        Ok(self.open(b'[', b']'))
    }

    fn serialize_tuple_struct(self, _: &'static str, _: usize) -> Result<Members<'o>, Unwritable> {
        Ok(self.open(b'[', b']'))
    }

    fn serialize_tuple_variant(
        self,
        _: &'static str,
        _: u32,
        name: &'static str,
        _: usize,
    ) -> Result<Members<'o>, Unwritable> {
        Ok(self.open_variant(name, b'[', b']'))
    }

    fn serialize_map(self, _: Option<usize>) -> Result<Members<'o>, Unwritable> {
        Ok(self.open(b'{', b'}'))
    }

    #[inline]
    fn serialize_struct(self, _: &'static str, _: usize) -> Result<Members<'o>, Unwritable> {
        Ok(self.open(b'{', b'}'))
    }

    fn serialize_struct_variant(
        self,
        _: &'static str,
        _: u32,
        name: &'static str,
        _: usize,
    ) -> Result<Members<'o>, Unwritable> {
        Ok(self.open_variant(name, b'{', b'}'))
    }
}

/// What stands between two brackets.
struct Members<'o> {
    out: &'o mut Vec<u8>,
    is_empty: bool,
    close: u8,
    closes_variant: bool,
}

impl Members<'_> {
    #[inline]
    fn separate(&mut self) {
        if !self.is_empty {
            self.out.push(b',');
        }
        self.is_empty = false;
    }

    // Where the name is known at compile time, its copy is a few stores instead of a call.
    #[inline(always)]
    fn member<T: Serialize + ?Sized>(&mut self, name: &'static str, value: &T) -> Result<(), Unwritable> {
        // Looked at before the name is written: most members of most objects are absent.
        if is_absent(value) {
            return Ok(());
        }
        // One reservation for the separator, the name, its quotes and the colon. Names of members need no escapes.
        self.out.reserve(name.len() + 4);
        self.separate();
        self.out.push(b'"');
        self.out.extend_from_slice(name.as_bytes());
        self.out.extend_from_slice(b"\":");
        append(self.out, value)
    }

    #[inline]
    fn item<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Unwritable> {
        self.separate();
        append(self.out, value)
    }

    #[inline]
    fn close(self) -> Outcome {
        self.out.push(self.close);
        if self.closes_variant {
            self.out.push(b'}');
        }
        Ok(Written::Value)
    }
}

/// What serde calls a list, in four ways.
macro_rules! lists {
    ($($list:ident::$method:ident),*) => {
        $(
            impl ser::$list for Members<'_> {
                type Ok = Written;
                type Error = Unwritable;

                #[inline]
                fn $method<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Unwritable> {
                    self.item(value)
                }

                #[inline]
                fn end(self) -> Outcome {
                    self.close()
                }
            }
        )*
    };
}

lists!(
    SerializeSeq::serialize_element,
    SerializeTuple::serialize_element,
    SerializeTupleStruct::serialize_field,
    SerializeTupleVariant::serialize_field
);

impl ser::SerializeMap for Members<'_> {
    type Ok = Written;
    type Error = Unwritable;

    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Result<(), Unwritable> {
        self.separate();
        let from = self.out.len();
        append(self.out, key)?;
        if self.out.get(from) != Some(&b'"') {
            return Err(ser::Error::custom("a key of a map is not a text"));
        }
        self.out.push(b':');
        Ok(())
    }

    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Unwritable> {
        append(self.out, value)
    }

    fn end(self) -> Outcome {
        self.close()
    }
}

impl ser::SerializeStruct for Members<'_> {
    type Ok = Written;
    type Error = Unwritable;

    #[inline(always)]
    fn serialize_field<T: Serialize + ?Sized>(&mut self, name: &'static str, value: &T) -> Result<(), Unwritable> {
        self.member(name, value)
    }

    #[inline]
    fn end(self) -> Outcome {
        self.close()
    }
}

impl ser::SerializeStructVariant for Members<'_> {
    type Ok = Written;
    type Error = Unwritable;

    fn serialize_field<T: Serialize + ?Sized>(&mut self, name: &'static str, value: &T) -> Result<(), Unwritable> {
        self.member(name, value)
    }

    fn end(self) -> Outcome {
        self.close()
    }
}

/// Whether a value is absent: it serializes as none.
#[inline]
fn is_absent<T: Serialize + ?Sized>(value: &T) -> bool {
    value.serialize(Probe).is_ok()
}

/// Only what serializes as none succeeds. Everything else fails at its first word, so nothing is looked at twice. A newtype counts
/// as a value, so one around none is written as null.
struct Probe;

/// There is a value.
#[derive(Debug)]
struct Present;

impl fmt::Display for Present {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("there is a value")
    }
}

impl std::error::Error for Present {}

impl ser::Error for Present {
    fn custom<T: fmt::Display>(_: T) -> Self {
        Self
    }
}

type Never = ser::Impossible<(), Present>;

/// Methods of [`Probe`] for values that are there.
macro_rules! present {
    ($($method:ident($($argument:ty),*) -> $ok:ty;)*) => {
        $(
            #[inline]
            fn $method(self, $(_: $argument),*) -> Result<$ok, Present> {
                Err(Present)
            }
        )*
    };
}

impl ser::Serializer for Probe {
    type Ok = ();
    type Error = Present;
    type SerializeSeq = Never;
    type SerializeTuple = Never;
    type SerializeTupleStruct = Never;
    type SerializeTupleVariant = Never;
    type SerializeMap = Never;
    type SerializeStruct = Never;
    type SerializeStructVariant = Never;

    #[inline]
    fn serialize_none(self) -> Result<(), Present> {
        Ok(())
    }

    #[inline]
    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<(), Present> {
        value.serialize(self)
    }

    #[inline]
    fn serialize_newtype_struct<T: Serialize + ?Sized>(self, _: &'static str, _: &T) -> Result<(), Present> {
        Err(Present)
    }

    #[inline]
    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        _: u32,
        _: &'static str,
        _: &T,
    ) -> Result<(), Present> {
        Err(Present)
    }

    present! {
        serialize_bool(bool) -> ();
        serialize_i8(i8) -> ();
        serialize_i16(i16) -> ();
        serialize_i32(i32) -> ();
        serialize_i64(i64) -> ();
        serialize_i128(i128) -> ();
        serialize_u8(u8) -> ();
        serialize_u16(u16) -> ();
        serialize_u32(u32) -> ();
        serialize_u64(u64) -> ();
        serialize_u128(u128) -> ();
        serialize_f32(f32) -> ();
        serialize_f64(f64) -> ();
        serialize_char(char) -> ();
        serialize_str(&str) -> ();
        serialize_bytes(&[u8]) -> ();
        serialize_unit() -> ();
        serialize_unit_struct(&'static str) -> ();
        serialize_unit_variant(&'static str, u32, &'static str) -> ();
        serialize_seq(Option<usize>) -> Never;
        serialize_tuple(usize) -> Never;
        serialize_tuple_struct(&'static str, usize) -> Never;
        serialize_tuple_variant(&'static str, u32, &'static str, usize) -> Never;
        serialize_map(Option<usize>) -> Never;
        serialize_struct(&'static str, usize) -> Never;
        serialize_struct_variant(&'static str, u32, &'static str, usize) -> Never;
    }
}
