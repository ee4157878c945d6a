//! Files are handed on as they were sent. The original looks at nothing in them, so a file that the model cannot hold, or
//! would spell otherwise, keeps the object it came in under [`KEY`] in the metadata of its part.

use std::fmt::Arguments;

use serde_json::value::RawValue;

use crate::dialect::compat::kinds;
use crate::dialect::json::{Check, Members, Object, merge_objects, write_json};
use crate::model::{Json, Part};

use super::TYPE;

/// The name in a part's metadata of a file as it was sent.
pub const KEY: &str = "agentNativeFile";

/// A file as it was sent.
#[derive(Clone, Copy)]
pub(super) struct SentFile<'a> {
    file: &'a RawValue,
    /// That of the part.
    metadata: Option<&'a RawValue>,
}

/// The file that a part holds, if it says that it is one.
pub(super) fn sent(part: &RawValue) -> Option<SentFile<'_>> {
    let Members(members) = Members::read(part.get())?;
    let find = |name: &str| members.iter().rfind(|(known, _)| known == name).map(|(_, value)| *value);
    let is_file = find("type").or(find("kind")).is_some_and(|kind| kind.get() == "\"file\"");
    let file = find("file").filter(|file| is_file && file.get().starts_with('{'))?;
    Some(SentFile { file, metadata: find("metadata").filter(|metadata| metadata.get() != "null") })
}

/// Reads a file.
pub(super) fn convert(check: &mut Check<'_>, at: Arguments<'_>, part: kinds::WirePart<'_>, sent: SentFile<'_>) -> Part {
    let SentFile { file: sent, metadata } = sent;
    let names = |name: &str| Members::read(sent.get()).is_some_and(|Members(all)| all.iter().any(|(n, _)| n == name));
    if names("bytes") && names("uri") {
        // The part holds both forms, and choosing one would be a guess.
        return kinds::convert(check, at, part);
    }
    let mut own = Check::new(check.limits);
    let converted = kinds::convert(&mut own, format_args!(""), part);
    let converted = own.finish(converted).ok();
    if let Some(part) = converted.as_ref().filter(|part| is_written_as(part, sent)) {
        return part.clone();
    }
    let file = check.value(format_args!("{at}.file"), sent);
    let part = match converted {
        Some(part) => part,
        None => {
            let metadata = check.object(format_args!("{at}.metadata"), metadata);
            Part::json(file.clone()).with_metadata(metadata)
        }
    };
    let mut kept = Vec::with_capacity(file.as_str().len() + 32);
    let mut object = Object::open(&mut kept);
    write_json(object.key(KEY), &file);
    object.close();
    let mut metadata = Vec::with_capacity(kept.len());
    let other = part.metadata().map_or("{}", Json::as_str);
    merge_objects(&String::from_utf8_lossy(&kept), other, &mut metadata);
    let metadata = String::from_utf8(metadata).expect("the writer writes UTF-8");
    part.with_metadata(Json::from_trusted(metadata))
}

/// Whether the model writes a file with the same members as it was sent with.
fn is_written_as(part: &Part, sent: &RawValue) -> bool {
    let mut written = Vec::with_capacity(sent.get().len() + 64);
    kinds::encode(part, TYPE, &mut written);
    let written = std::str::from_utf8(&written).ok().and_then(Members::read);
    let file = written.and_then(|Members(all)| all.into_iter().find(|(name, _)| name == "file"));
    let Some(Members(written)) = file.and_then(|(_, file)| Members::read(file.get())) else { return false };
    let Some(Members(sent)) = Members::read(sent.get()) else { return false };
    let has = |name: &str, value: &str| written.iter().any(|(known, same)| known == name && same.get() == value);
    sent.len() == written.len() && sent.iter().all(|(name, value)| has(name, value.get()))
}

/// Writes a part that keeps a file as it was sent; false if it keeps none.
pub(super) fn encode(part: &Part, out: &mut Vec<u8>) -> bool {
    let Some(metadata) = part.metadata().filter(|metadata| metadata.as_str().contains(KEY)) else {
        return false;
    };
    let Some(Members(members)) = Members::read(metadata.as_str()) else { return false };
    let Some((_, file)) = members.iter().find(|(name, value)| name == KEY && value.get().starts_with('{')) else {
        return false;
    };
    let mut object = Object::open(out);
    object.str(TYPE, "file");
    write_json(object.key("file"), &Json::from_trusted(file.get()));
    if members.len() > 1 {
        let mut rest = Object::open(object.key("metadata"));
        for (name, value) in members.iter().filter(|(name, _)| name != KEY) {
            write_json(rest.named(name), &Json::from_trusted(value.get()));
        }
        rest.close();
    }
    object.close();
    true
}
