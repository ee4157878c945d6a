//! Free-form JSON (metadata, params, data parts), held as the text it came in. It is checked once, where it enters, for
//! being JSON at all, for depth, and for duplicate keys; after that it is parsed again only where it must be changed.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

use serde::de::{self, DeserializeOwned, DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Serialize, Serializer, ser};
use serde_json::value::RawValue;

/// One JSON value as validated text.
#[derive(Clone, PartialEq, Eq)]
pub struct Json(Arc<str>);

/// Bounds on a free-form value.
#[derive(Clone, Copy, Debug)]
pub struct JsonLimits {
    /// How deep arrays and objects may nest.
    pub depth_max: usize,
}

impl Default for JsonLimits {
    fn default() -> Self {
        Self { depth_max: 64 }
    }
}

/// Why a text is not acceptable JSON.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JsonError(String);

impl fmt::Display for JsonError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for JsonError {}

impl Json {
    /// Checks a text and keeps it.
    ///
    /// # Errors
    /// When it is not exactly one JSON value, nests deeper than allowed, or an object repeats a key.
    pub fn parse(text: &str, limits: JsonLimits) -> Result<Self, JsonError> {
        let text = text.trim_matches([' ', '\n', '\r', '\t']);
        let mut reader = serde_json::Deserializer::from_str(text);
        Check { depth_left: limits.depth_max }.deserialize(&mut reader).map_err(|e| JsonError(e.to_string()))?;
        reader.end().map_err(|e| JsonError(e.to_string()))?;
        Ok(Self(Arc::from(text)))
    }

    /// A value of yours as JSON.
    ///
    /// # Errors
    /// When it cannot be written as JSON (a map whose keys are not texts), or nests deeper than [`JsonLimits`] allow: what
    /// readers would refuse must not be written.
    pub fn from_serialize<T: Serialize + ?Sized>(value: &T) -> Result<Self, JsonError> {
        let text = serde_json::to_string(value).map_err(|error| JsonError(error.to_string()))?;
        Self::parse(&text, JsonLimits::default())
    }

    /// Reads it as a value of yours.
    ///
    /// # Errors
    /// When it has another shape; the error names what is missing or wrong, and where.
    pub fn deserialize<T: DeserializeOwned>(&self) -> Result<T, JsonError> {
        serde_json::from_str(&self.0).map_err(|error| JsonError(error.to_string()))
    }

    /// Wraps text that this process wrote itself or has checked before.
    #[must_use]
    pub fn from_trusted(text: impl Into<Arc<str>>) -> Self {
        Self(text.into())
    }

    /// The text of the value, as it came in.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether the value is an object, as metadata has to be.
    #[must_use]
    pub fn is_object(&self) -> bool {
        self.0.starts_with('{')
    }

    /// The keys of both objects; where both have one, `newer` wins. A side that is not an object counts as empty.
    #[must_use]
    pub fn merged_with(&self, newer: &Json) -> Json {
        let read =
            |json: &Json| -> BTreeMap<String, Box<RawValue>> { serde_json::from_str(&json.0).unwrap_or_default() };
        let mut merged = read(self);
        merged.extend(read(newer));
        serde_json::to_string(&merged).map_or_else(|_| newer.clone(), Json::from_trusted)
    }

    /// The members of an object that have one of these names, as an object; none if there is none.
    #[must_use]
    pub fn only(&self, names: &[&str]) -> Option<Json> {
        let mut members = self.members_if_named(names)?;
        members.retain(|name, _| names.contains(&name.as_str()));
        if members.is_empty() { None } else { serde_json::to_string(&members).ok().map(Json::from_trusted) }
    }

    /// An object without the members that have one of these names; none if there is nothing to leave out.
    #[must_use]
    pub fn without(&self, names: &[&str]) -> Option<Json> {
        let mut members = self.members_if_named(names)?;
        let all = members.len();
        members.retain(|name, _| !names.contains(&name.as_str()));
        if members.len() == all { None } else { serde_json::to_string(&members).ok().map(Json::from_trusted) }
    }

    /// The members of an object, if one of them may have one of these names. Most objects are not parsed to find out.
    fn members_if_named(&self, names: &[&str]) -> Option<BTreeMap<String, Box<RawValue>>> {
        let may_be_there = self.0.contains('\\') || names.iter().any(|name| self.0.contains(name));
        may_be_there.then(|| serde_json::from_str(&self.0).ok()).flatten()
    }
}

/// Free-form JSON inside a value of yours is written as it is.
impl Serialize for Json {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let raw: &RawValue = serde_json::from_str(&self.0).map_err(ser::Error::custom)?;
        raw.serialize(serializer)
    }
}

impl fmt::Debug for Json {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Walks a value without building it.
struct Check {
    depth_left: usize,
}

impl<'de> DeserializeSeed<'de> for Check {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Check {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_bool<E>(self, _: bool) -> Result<(), E> {
        Ok(())
    }

    fn visit_i64<E>(self, _: i64) -> Result<(), E> {
        Ok(())
    }

    fn visit_u64<E>(self, _: u64) -> Result<(), E> {
        Ok(())
    }

    fn visit_f64<E>(self, _: f64) -> Result<(), E> {
        Ok(())
    }

    fn visit_str<E>(self, _: &str) -> Result<(), E> {
        Ok(())
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<(), A::Error> {
        let depth_left = descend(self.depth_left)?;
        while seq.next_element_seed(Check { depth_left })?.is_some() {}
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let depth_left = descend(self.depth_left)?;
        let mut seen = Keys::default();
        while let Some(Key(key)) = map.next_key::<Key<'de>>()? {
            if let Some(key) = seen.insert(key) {
                return Err(de::Error::custom(format_args!("duplicate key `{key}`")));
            }
            map.next_value_seed(Check { depth_left })?;
        }
        Ok(())
    }
}

fn descend<E: de::Error>(depth_left: usize) -> Result<usize, E> {
    depth_left.checked_sub(1).ok_or_else(|| E::custom("nested too deep"))
}

/// A key, borrowed unless it holds escapes.
#[derive(Deserialize)]
struct Key<'a>(#[serde(borrow)] Cow<'a, str>);

/// The keys of one object so far. Most objects have few, and comparing a few is quicker than ordering them.
#[derive(Default)]
struct Keys<'de> {
    few: Vec<Cow<'de, str>>,
    many: BTreeSet<Cow<'de, str>>,
}

impl<'de> Keys<'de> {
    const FEW: usize = 16;

    /// Takes a key in, or gives it back if it was there already.
    fn insert(&mut self, key: Cow<'de, str>) -> Option<Cow<'de, str>> {
        if self.few.contains(&key) || self.many.contains(&key) {
            return Some(key);
        }
        if self.few.len() < Self::FEW {
            self.few.push(key);
        } else {
            self.many.insert(key);
        }
        None
    }
}

#[cfg(test)]
#[path = "json_tests.rs"]
mod tests;
