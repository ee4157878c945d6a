//! Readers for what protobuf's JSON mapping allows. They borrow from the input where they can, hold a bounded number of
//! list items whatever is sent, and report a wrong type as serde does; [`parse_object`] finds out which field it was.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

use base64::Engine as _;
use base64::alphabet;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use serde::de::value::{BorrowedStrDeserializer, MapAccessDeserializer};
use serde::de::{self, Deserialize, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::ser::{Serialize, Serializer};
use serde_json::error::Category;
use serde_json::value::RawValue;

use crate::model::{Json, Timestamp};

use super::scan::plain_text;
use super::ser::{PLAIN, RAW};

/// How many items of one list are kept; the rest is counted and dropped. Configured limits lie below this, so that a
/// body of a million empty parts costs no more memory than a legal one.
pub const LIST_ITEMS_KEPT: usize = 10_000;

/// Why a text could not be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParseFault {
    /// The text is not JSON at all, as opposed to JSON of the wrong shape.
    pub is_syntax: bool,
    /// The field at fault in dotted form; empty for the whole text.
    pub path: String,
    /// What is wrong with that field.
    pub description: String,
    /// The same with the position in the text.
    pub with_position: String,
}

/// Reads one object and nothing after it. A failure is rare, so only then is the text read again, by a slower reader
/// that keeps track of where it is.
///
/// # Errors
/// When the text is not JSON, not an object, or a field has the wrong type.
#[inline]
pub fn parse_object<'a, T: Deserialize<'a>>(text: &'a str) -> Result<T, ParseFault> {
    match serde_json::from_str::<Obj<T>>(text) {
        Ok(Obj(value)) => Ok(value),
        Err(error) => Err(find_fault::<T>(text, &error)),
    }
}

#[cold]
fn find_fault<'a, T: Deserialize<'a>>(text: &'a str, error: &serde_json::Error) -> ParseFault {
    let is_syntax = match error.classify() {
        Category::Syntax | Category::Eof | Category::Io => true,
        // A wrong type may come before a syntax error; the sender must be told of the syntax error first.
        Category::Data => serde_json::from_str::<IgnoredAny>(text).is_err(),
    };
    let mut reader = serde_json::Deserializer::from_str(text);
    let (path, description) = match serde_path_to_error::deserialize::<_, Obj<T>>(&mut reader) {
        Ok(_) => (String::new(), error.to_string()),
        Err(traced) => (traced.path().to_string(), traced.inner().to_string()),
    };
    ParseFault {
        is_syntax,
        path: if path == "." { String::new() } else { excerpt(&path, 256) },
        description: excerpt(without_position(&description), 256),
        with_position: excerpt(&error.to_string(), 256),
    }
}

/// serde_json ends its messages with a position. It is of no use to a sender when the text was part of another one.
fn without_position(message: &str) -> &str {
    message.rfind(" at line ").map_or(message, |at| &message[..at])
}

/// The beginning of a text, for messages that repeat what was sent.
#[must_use]
pub fn excerpt(text: &str, bytes_max: usize) -> String {
    if text.len() <= bytes_max {
        return text.to_owned();
    }
    let end = (0..=bytes_max).rev().find(|end| text.is_char_boundary(*end)).unwrap_or_default();
    format!("{}…", &text[..end])
}

/// A string, borrowed unless it holds escapes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Text<'a>(pub Cow<'a, str>);

impl<'de: 'a, 'a> Deserialize<'de> for Text<'a> {
    #[inline]
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct TextVisitor;

        impl<'de> Visitor<'de> for TextVisitor {
            type Value = Text<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a string")
            }

            #[inline]
            fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Text<'de>, E> {
                Ok(Text(Cow::Borrowed(text)))
            }

            #[inline]
            fn visit_str<E>(self, text: &str) -> Result<Text<'de>, E> {
                Ok(Text(Cow::Owned(text.to_owned())))
            }
        }

        deserializer.deserialize_str(TextVisitor)
    }
}

impl<'a> From<&'a str> for Text<'a> {
    #[inline]
    fn from(text: &'a str) -> Self {
        Self(Cow::Borrowed(text))
    }
}

impl From<Text<'_>> for String {
    #[inline]
    fn from(text: Text<'_>) -> Self {
        text.0.into_owned()
    }
}

impl Serialize for Text<'_> {
    #[inline]
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}

/// Free-form JSON as it stands in the text. Written by [`append`](super::append) only, as it stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Raw<'a>(pub Cow<'a, str>);

impl<'a> From<&'a Json> for Raw<'a> {
    #[inline]
    fn from(json: &'a Json) -> Self {
        Self(Cow::Borrowed(json.as_str()))
    }
}

impl Raw<'_> {
    /// The text.
    #[must_use]
    pub fn get(&self) -> &str {
        &self.0
    }
}

impl<'a> From<&'a Raw<'_>> for Raw<'a> {
    fn from(raw: &'a Raw<'_>) -> Self {
        Self(Cow::Borrowed(&raw.0))
    }
}

impl<'a> From<&'a RawValue> for Raw<'a> {
    #[inline]
    fn from(raw: &'a RawValue) -> Self {
        Self(Cow::Borrowed(raw.get()))
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Raw<'a> {
    #[inline]
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        <&RawValue>::deserialize(deserializer).map(Self::from)
    }
}

impl Serialize for Raw<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_newtype_struct(RAW, &Bytes(self.0.as_bytes()))
    }
}

/// Bytes as a text of base64: it is decoded later, so that an error names the field that is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Base64<'a> {
    Encoded(Cow<'a, str>),
    Bytes(&'a [u8]),
}

impl Base64<'_> {
    /// The bytes, if it is base64 in either alphabet.
    #[must_use]
    pub fn decode(&self) -> Option<Vec<u8>> {
        match self {
            Self::Encoded(text) => decode_base64(text),
            Self::Bytes(bytes) => Some(bytes.to_vec()),
        }
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Base64<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Text::deserialize(deserializer).map(|Text(encoded)| Self::Encoded(encoded))
    }
}

impl Serialize for Base64<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Encoded(text) => serializer.serialize_str(text),
            Self::Bytes(bytes) => serializer.serialize_bytes(bytes),
        }
    }
}

/// A point in time, as RFC 3339 with milliseconds. Written by [`append`](super::append) only, without a second look at it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Time(pub Timestamp);

impl Serialize for Time {
    #[inline]
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        struct Written(Timestamp);

        impl Serialize for Written {
            #[inline]
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_bytes(&self.0.to_rfc3339())
            }
        }

        serializer.serialize_newtype_struct(PLAIN, &Written(self.0))
    }
}

/// Serde has a way to write bytes, and writes slices as lists of numbers.
struct Bytes<'a>(&'a [u8]);

impl Serialize for Bytes<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_bytes(self.0)
    }
}

/// A struct read from an object only: serde would take an array as well and assign by position.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Obj<T>(pub T);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Obj<T> {
    #[inline]
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct ObjectVisitor<T>(PhantomData<T>);

        impl<'de, T: Deserialize<'de>> Visitor<'de> for ObjectVisitor<T> {
            type Value = T;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            #[inline]
            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<T, A::Error> {
                T::deserialize(MapAccessDeserializer::new(map))
            }
        }

        deserializer.deserialize_map(ObjectVisitor(PhantomData)).map(Obj)
    }
}

impl<T: Serialize> Serialize for Obj<T> {
    #[inline]
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

/// A member that only some spellings have: in the others it is unknown, and its value is skipped. So it is parsed only
/// when a spelling asks for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LazyMember<'a, T> {
    /// The JSON that stands there.
    Sent(&'a str),
    Own(T),
}

/// Why a member cannot be read.
pub struct MemberFault {
    /// Where in the member, such as `.parts[2]`; empty if it is the member itself.
    pub below: String,
    pub description: String,
}

impl<'a, T: Deserialize<'a>> LazyMember<'a, T> {
    /// Reads the member.
    pub fn read(self) -> Result<T, MemberFault> {
        let text = match self {
            Self::Own(own) => return Ok(own),
            Self::Sent(text) => text,
        };
        // Most of them are words, for which a reader of JSON need not be set up again.
        if let Some(word) = plain_text(text)
            && let Ok(own) = T::deserialize(BorrowedStrDeserializer::<de::value::Error>::new(word))
        {
            return Ok(own);
        }
        serde_json::from_str(text).map_err(|error| {
            let mut reader = serde_json::Deserializer::from_str(text);
            let (path, description) = match serde_path_to_error::deserialize::<_, T>(&mut reader) {
                Ok(_) => (".".to_owned(), error.to_string()),
                Err(traced) => (traced.path().to_string(), traced.inner().to_string()),
            };
            let below = match path.as_str() {
                "." => String::new(),
                path if path.starts_with('[') => excerpt(path, 256),
                path => format!(".{}", excerpt(path, 256)),
            };
            MemberFault { below, description: excerpt(without_position(&description), 256) }
        })
    }
}

impl<'de: 'a, 'a, T> Deserialize<'de> for LazyMember<'a, T> {
    #[inline]
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        <&RawValue>::deserialize(deserializer).map(|raw| Self::Sent(raw.get()))
    }
}

impl<T: Serialize> Serialize for LazyMember<'_, T> {
    #[inline]
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Sent(text) => Raw(Cow::Borrowed(text)).serialize(serializer),
            Self::Own(own) => own.serialize(serializer),
        }
    }
}

/// The first items of a list, and how many there were.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct List<T> {
    /// At most [`LIST_ITEMS_KEPT`].
    pub items: Vec<T>,
    pub total: usize,
}

impl<T> Default for List<T> {
    fn default() -> Self {
        Self { items: Vec::new(), total: 0 }
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for List<T> {
    #[inline]
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct ListVisitor<T>(PhantomData<T>);

        impl<'de, T: Deserialize<'de>> Visitor<'de> for ListVisitor<T> {
            type Value = List<T>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an array")
            }

            #[inline]
            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<List<T>, A::Error> {
                // Most lists have one item.
                let mut items = Vec::with_capacity(1);
                while items.len() < LIST_ITEMS_KEPT {
                    match seq.next_element()? {
                        Some(item) => items.push(item),
                        None => return Ok(List { total: items.len(), items }),
                    }
                }
                let mut total = items.len();
                while seq.next_element::<IgnoredAny>()?.is_some() {
                    total += 1;
                }
                Ok(List { items, total })
            }
        }

        deserializer.deserialize_seq(ListVisitor(PhantomData))
    }
}

impl<T> FromIterator<T> for List<T> {
    #[inline]
    fn from_iter<I: IntoIterator<Item = T>>(items: I) -> Self {
        let items: Vec<T> = items.into_iter().collect();
        Self { total: items.len(), items }
    }
}

impl<T: Serialize> Serialize for List<T> {
    #[inline]
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(&self.items)
    }
}

/// The members of an object whose names come from outside, in their order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedMembers<'a, T>(pub Vec<(Cow<'a, str>, T)>);

impl<T> Default for NamedMembers<'_, T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<'a, T> FromIterator<(&'a str, T)> for NamedMembers<'a, T> {
    fn from_iter<I: IntoIterator<Item = (&'a str, T)>>(members: I) -> Self {
        Self(members.into_iter().map(|(name, value)| (Cow::Borrowed(name), value)).collect())
    }
}

impl<T: Serialize> Serialize for NamedMembers<'_, T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(name, value)| (name, value)))
    }
}

impl<'de: 'a, 'a, T: Deserialize<'de>> Deserialize<'de> for NamedMembers<'a, T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct NamedVisitor<T>(PhantomData<T>);

        impl<'de, T: Deserialize<'de>> Visitor<'de> for NamedVisitor<T> {
            type Value = NamedMembers<'de, T>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<NamedMembers<'de, T>, A::Error> {
                let mut members = Vec::new();
                while let Some((Text(name), value)) = map.next_entry()? {
                    members.push((name, value));
                }
                Ok(NamedMembers(members))
            }
        }

        deserializer.deserialize_map(NamedVisitor(PhantomData))
    }
}

/// An int32: a number, a number without a fraction such as `10.0`, or either as text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Int(pub i32);

impl Int {
    /// Reads the textual form, which is also what a query parameter holds.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        // Rust reads "inf", "nan" and "+1", which JSON does not know.
        let is_number_like = text.bytes().all(|b| b.is_ascii_digit() || matches!(b, b'-' | b'.' | b'e' | b'E' | b'+'));
        if !is_number_like || text.starts_with('+') {
            return None;
        }
        text.parse().ok().map(Self).or_else(|| text.parse().ok().and_then(Self::from_f64))
    }

    #[expect(clippy::cast_possible_truncation, reason = "checked to be whole and in range")]
    fn from_f64(number: f64) -> Option<Self> {
        let fits = number.fract() == 0.0 && (f64::from(i32::MIN)..=f64::from(i32::MAX)).contains(&number);
        fits.then_some(Self(number as i32))
    }
}

impl Serialize for Int {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_i32(self.0)
    }
}

impl<'de> Deserialize<'de> for Int {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct IntVisitor;

        impl Visitor<'_> for IntVisitor {
            type Value = Int;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a whole number of 32 bits")
            }

            fn visit_i64<E: de::Error>(self, number: i64) -> Result<Int, E> {
                i32::try_from(number).map(Int).map_err(|_| E::invalid_value(de::Unexpected::Signed(number), &self))
            }

            fn visit_u64<E: de::Error>(self, number: u64) -> Result<Int, E> {
                i32::try_from(number).map(Int).map_err(|_| E::invalid_value(de::Unexpected::Unsigned(number), &self))
            }

            fn visit_f64<E: de::Error>(self, number: f64) -> Result<Int, E> {
                Int::from_f64(number).ok_or_else(|| E::invalid_value(de::Unexpected::Float(number), &self))
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Int, E> {
                Int::parse(text).ok_or_else(|| E::invalid_value(de::Unexpected::Str(text), &self))
            }
        }

        deserializer.deserialize_any(IntVisitor)
    }
}

/// An enum value as it was sent: by name or by number. Which ones exist is for the dialect to say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NameOrNumber<'a> {
    Name(Cow<'a, str>),
    Number(i64),
}

impl fmt::Display for NameOrNumber<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(name) => f.write_str(&excerpt(name, 64)),
            Self::Number(number) => number.fmt(f),
        }
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for NameOrNumber<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct EnumVisitor;

        impl<'de> Visitor<'de> for EnumVisitor {
            type Value = NameOrNumber<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("the name or number of an enum value")
            }

            fn visit_borrowed_str<E>(self, name: &'de str) -> Result<Self::Value, E> {
                Ok(NameOrNumber::Name(Cow::Borrowed(name)))
            }

            fn visit_str<E>(self, name: &str) -> Result<Self::Value, E> {
                Ok(NameOrNumber::Name(Cow::Owned(name.to_owned())))
            }

            fn visit_i64<E>(self, number: i64) -> Result<Self::Value, E> {
                Ok(NameOrNumber::Number(number))
            }

            fn visit_u64<E>(self, number: u64) -> Result<Self::Value, E> {
                Ok(NameOrNumber::Number(i64::try_from(number).unwrap_or(i64::MAX)))
            }

            fn visit_f64<E: de::Error>(self, number: f64) -> Result<Self::Value, E> {
                let whole = Int::from_f64(number).ok_or_else(|| E::invalid_value(de::Unexpected::Float(number), &self));
                whole.map(|Int(number)| NameOrNumber::Number(number.into()))
            }
        }

        deserializer.deserialize_any(EnumVisitor)
    }
}

impl Serialize for NameOrNumber<'_> {
    #[inline]
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Name(name) => serializer.serialize_str(name),
            Self::Number(number) => serializer.serialize_i64(*number),
        }
    }
}

/// Reads a field for which null is a value and not the absence of one.
///
/// # Errors
/// When the text is not JSON.
pub fn present_raw<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Raw<'de>>, D::Error> {
    Raw::deserialize(deserializer).map(Some)
}

/// Decodes base64 in the standard or the URL-safe alphabet, padded or not.
#[must_use]
pub fn decode_base64(text: &str) -> Option<Vec<u8>> {
    const LENIENT: GeneralPurposeConfig = GeneralPurposeConfig::new()
        .with_decode_padding_mode(DecodePaddingMode::Indifferent)
        .with_decode_allow_trailing_bits(true);
    const STANDARD: GeneralPurpose = GeneralPurpose::new(&alphabet::STANDARD, LENIENT);
    const URL_SAFE: GeneralPurpose = GeneralPurpose::new(&alphabet::URL_SAFE, LENIENT);
    STANDARD.decode(text).or_else(|_| URL_SAFE.decode(text)).ok()
}
