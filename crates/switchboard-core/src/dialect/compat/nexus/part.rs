//! Parts: what they are in `type`, what they hold in `data`.

use std::fmt::Arguments;

use bytes::Bytes;
use serde::Deserialize;

use crate::dialect::json::{
    Check, Object, Raw, Text, decode_base64, present_raw, read_params, write_base64, write_json, write_str,
};
use crate::model::{Json, Part, PartContent};

/// The name in a part's metadata under which a type is kept that the house has no word for.
pub const TYPE_KEY: &str = "nexusType";

#[derive(Deserialize)]
pub(super) struct WirePart<'a> {
    #[serde(borrow, rename = "type")]
    kind: Option<Text<'a>>,
    #[serde(borrow, default, deserialize_with = "present_raw")]
    data: Option<Raw<'a>>,
}

/// What a file holds, in the spelling of 0.3, which has the same members.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct WireFile<'a> {
    #[serde(borrow)]
    bytes: Option<Text<'a>>,
    uri: Option<String>,
    name: Option<String>,
    mime_type: Option<String>,
}

pub(super) fn convert(check: &mut Check<'_>, at: Arguments<'_>, part: WirePart<'_>) -> Part {
    let Some(data) = part.data else {
        check.violation(format_args!("{at}.data"), "is required");
        return Part::text(String::new());
    };
    let Some(Text(kind)) = part.kind.filter(|kind| !kind.0.is_empty()) else {
        check.violation(format_args!("{at}.type"), "is required and must not be empty");
        return Part::text(String::new());
    };
    check.line(format_args!("{at}.type"), &kind, check.limits.id_bytes_max);
    match kind.as_ref() {
        "text" if data.get().starts_with('"') => match serde_json::from_str::<String>(data.get()) {
            Ok(text) => Part::text(text),
            Err(_) => {
                check.violation(format_args!("{at}.data"), "is not a text: it holds half of a surrogate pair");
                Part::text(String::new())
            }
        },
        "file" => match file(check, at, &data) {
            Some(part) => part,
            None => named(check, at, &data, "file"),
        },
        "data" => Part::json(check.value(format_args!("{at}.data"), data)),
        other => named(check, at, &data, other),
    }
}

/// Data under a name of its own.
fn named(check: &mut Check<'_>, at: Arguments<'_>, data: &Raw<'_>, kind: &str) -> Part {
    let mut text = Vec::with_capacity(32);
    let mut metadata = Object::open(&mut text);
    metadata.str(TYPE_KEY, kind);
    metadata.close();
    let metadata = Json::from_trusted(String::from_utf8(text).expect("the writer writes UTF-8"));
    Part::json(check.value(format_args!("{at}.data"), data)).with_metadata(metadata)
}

/// A file, if the payload is spelled as one; anything may be in `data`.
fn file(check: &mut Check<'_>, at: Arguments<'_>, data: &Raw<'_>) -> Option<Part> {
    let file: WireFile<'_> = data.get().starts_with('{').then(|| read_params(data.get()).ok()).flatten()?;
    let content = match (file.bytes, file.uri) {
        (Some(Text(encoded)), None) => PartContent::Raw(Bytes::from(decode_base64(&encoded)?)),
        (None, Some(uri)) => {
            check.line(format_args!("{at}.data.uri"), &uri, usize::MAX);
            PartContent::Url(uri)
        }
        (Some(_), Some(_)) => {
            check.violation(format_args!("{at}.data"), "needs either bytes or uri, not both");
            PartContent::Raw(Bytes::new())
        }
        (None, None) => return None,
    };
    let filename = file.name.filter(|name| !name.is_empty());
    let media_type = check.optional_line(format_args!("{at}.data.mimeType"), file.mime_type);
    Some(Part { content, metadata: None, filename, media_type })
}

/// Writes a part.
pub(super) fn encode(part: &Part, out: &mut Vec<u8>) {
    let mut object = Object::open(out);
    match &part.content {
        PartContent::Text(text) => {
            object.str("type", "text");
            object.str("data", text);
        }
        PartContent::Data(data) => {
            write_str(object.key("type"), kept_type(part).as_deref().unwrap_or("data"));
            write_json(object.key("data"), data);
        }
        PartContent::Raw(_) | PartContent::Url(_) => {
            object.str("type", "file");
            let mut file = Object::open(object.key("data"));
            file.str_if_set("name", part.filename.as_deref());
            file.str_if_set("mimeType", part.media_type.as_deref());
            match &part.content {
                PartContent::Raw(bytes) => write_base64(file.key("bytes"), bytes),
                PartContent::Url(uri) => file.str("uri", uri),
                PartContent::Text(_) | PartContent::Data(_) => {}
            }
            file.close();
        }
    }
    object.close();
}

#[derive(Deserialize)]
struct Kept {
    #[serde(rename = "nexusType")]
    kind: Option<String>,
}

fn kept_type(part: &Part) -> Option<String> {
    let metadata = part.metadata.as_ref().filter(|metadata| metadata.as_str().contains(TYPE_KEY))?;
    read_params::<Kept>(metadata.as_str()).ok()?.kind.filter(|kind| !kind.is_empty())
}
