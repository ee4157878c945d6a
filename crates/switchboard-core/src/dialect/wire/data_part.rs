//! Data in 0.3 is an object. What is none travels inside one, with a mark in the part's metadata that the SDKs of three
//! languages agree on.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::dialect::json::{Members, Object, Raw, merge_objects};
use crate::model::Json;

const MARK: &str = "data_part_compat";
const MARKED: &str = r#"{"data_part_compat":true}"#;

/// Data as an object and, where it had to be marked, what the metadata of the part must be instead.
pub(in crate::dialect) fn of<'a>(data: &'a Json, metadata: Option<Raw<'a>>) -> (Raw<'a>, Option<Raw<'a>>) {
    if data.is_object() {
        return (Raw::from(data), metadata);
    }
    let wrapped = format!("{{\"value\":{}}}", data.as_str());
    let metadata = metadata.as_ref().map_or("{}", Raw::get);
    let mut marked = Vec::with_capacity(metadata.len() + MARKED.len());
    merge_objects(MARKED, metadata, &mut marked);
    let marked = String::from_utf8(marked).unwrap_or_else(|_| MARKED.to_owned());
    (Raw(Cow::Owned(wrapped)), Some(Raw(Cow::Owned(marked))))
}

/// Data as it was before it was marked, and the metadata without the mark.
pub(in crate::dialect) fn read(data: Json, metadata: Option<Json>) -> (Json, Option<Json>) {
    let is_marked = metadata.as_ref().is_some_and(|metadata| metadata.as_str().contains(MARK));
    if !is_marked {
        return (data, metadata);
    }
    match (unwrapped(&data), metadata.as_ref().and_then(unmarked)) {
        (Some(value), Some(rest)) => (value, rest),
        _ => (data, metadata),
    }
}

fn unwrapped(data: &Json) -> Option<Json> {
    #[derive(Deserialize)]
    struct Wrapped<'a> {
        #[serde(borrow)]
        value: &'a RawValue,
    }
    let Wrapped { value } = serde_json::from_str(data.as_str()).ok()?;
    Some(Json::from_trusted(value.get()))
}

/// The metadata without the mark, if the mark is set: the inner option is empty when nothing else was there.
fn unmarked(metadata: &Json) -> Option<Option<Json>> {
    let Members(members) = Members::read(metadata.as_str())?;
    let (marks, rest): (Vec<_>, Vec<_>) = members.into_iter().partition(|(name, _)| name == MARK);
    if !marks.iter().any(|(_, value)| value.get() == "true") {
        return None;
    }
    if rest.is_empty() {
        return Some(None);
    }
    let mut out = Vec::with_capacity(metadata.as_str().len());
    let mut object = Object::open(&mut out);
    for (name, value) in rest {
        object.named(&name).extend_from_slice(value.get().as_bytes());
    }
    object.close();
    String::from_utf8(out).ok().map(|text| Some(Json::from_trusted(text)))
}
