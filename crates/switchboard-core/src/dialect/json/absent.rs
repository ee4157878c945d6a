//! Whether a value would be written as nothing.

use std::fmt;

use serde::ser::{self, Serialize};

/// Whether a value is absent: it serializes as none.
#[inline]
pub(super) fn is_absent<T: Serialize + ?Sized>(value: &T) -> bool {
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
    fn serialize_bool(self, _: bool) -> Result<(), Present> {
        Err(Present)
    }

    #[inline]
    fn serialize_i8(self, _: i8) -> Result<(), Present> {
        Err(Present)
    }

    #[inline]
    fn serialize_i16(self, _: i16) -> Result<(), Present> {
        Err(Present)
    }

    #[inline]
    fn serialize_i32(self, _: i32) -> Result<(), Present> {
        Err(Present)
    }

    #[inline]
    fn serialize_i64(self, _: i64) -> Result<(), Present> {
        Err(Present)
    }

    #[inline]
    fn serialize_i128(self, _: i128) -> Result<(), Present> {
        Err(Present)
    }

    #[inline]
    fn serialize_u8(self, _: u8) -> Result<(), Present> {
        Err(Present)
    }

    #[inline]
    fn serialize_u16(self, _: u16) -> Result<(), Present> {
        Err(Present)
    }

    #[inline]
    fn serialize_u32(self, _: u32) -> Result<(), Present> {
        Err(Present)
    }

    #[inline]
    fn serialize_u64(self, _: u64) -> Result<(), Present> {
        Err(Present)
    }

    #[inline]
    fn serialize_u128(self, _: u128) -> Result<(), Present> {
        Err(Present)
    }

    #[inline]
    fn serialize_f32(self, _: f32) -> Result<(), Present> {
        Err(Present)
    }

    #[inline]
    fn serialize_f64(self, _: f64) -> Result<(), Present> {
        Err(Present)
    }

    #[inline]
    fn serialize_char(self, _: char) -> Result<(), Present> {
        Err(Present)
    }

    #[inline]
    fn serialize_str(self, _: &str) -> Result<(), Present> {
        Err(Present)
    }

    #[inline]
    fn serialize_bytes(self, _: &[u8]) -> Result<(), Present> {
        Err(Present)
    }

    #[inline]
    fn serialize_unit(self) -> Result<(), Present> {
        Err(Present)
    }

    #[inline]
    fn serialize_unit_struct(self, _: &'static str) -> Result<(), Present> {
        Err(Present)
    }

    #[inline]
    fn serialize_unit_variant(self, _: &'static str, _: u32, _: &'static str) -> Result<(), Present> {
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

    #[inline]
    fn serialize_seq(self, _: Option<usize>) -> Result<Never, Present> {
        Err(Present)
    }

    #[inline]
    fn serialize_tuple(self, _: usize) -> Result<Never, Present> {
        Err(Present)
    }

    #[inline]
    fn serialize_tuple_struct(self, _: &'static str, _: usize) -> Result<Never, Present> {
        Err(Present)
    }

    #[inline]
    fn serialize_tuple_variant(self, _: &'static str, _: u32, _: &'static str, _: usize) -> Result<Never, Present> {
        Err(Present)
    }

    #[inline]
    fn serialize_map(self, _: Option<usize>) -> Result<Never, Present> {
        Err(Present)
    }

    #[inline]
    fn serialize_struct(self, _: &'static str, _: usize) -> Result<Never, Present> {
        Err(Present)
    }

    #[inline]
    fn serialize_struct_variant(self, _: &'static str, _: u32, _: &'static str, _: usize) -> Result<Never, Present> {
        Err(Present)
    }
}
