//! Parts that name what they hold: `text`, `file` or `data`, in a member `kind` or `type`. Several compat dialects
//! share them; each says which of the two members it reads and writes.

use std::fmt::Arguments;

use bytes::Bytes;
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::model::{Part, PartContent, PartDetails};

use crate::dialect::json::{
    Check, Obj, Object, Raw, Text, decode_base64, excerpt, present_raw, write_base64, write_json,
};

#[derive(Deserialize)]
pub(super) struct WirePart<'a> {
    #[serde(borrow)]
    kind: Option<Text<'a>>,
    #[serde(borrow, rename = "type")]
    old_kind: Option<Text<'a>>,
    text: Option<String>,
    #[serde(borrow)]
    file: Option<Obj<WireFile<'a>>>,
    #[serde(borrow, default, deserialize_with = "present_raw")]
    data: Option<Raw<'a>>,
    #[serde(borrow)]
    metadata: Option<&'a RawValue>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct WireFile<'a> {
    #[serde(borrow)]
    bytes: Option<Text<'a>>,
    uri: Option<String>,
    name: Option<String>,
    mime_type: Option<String>,
}

/// Reads a part: what it names must be what it holds, and it may hold no more than that.
pub(super) fn convert(check: &mut Check<'_>, at: Arguments<'_>, part: WirePart<'_>) -> Part {
    let metadata = check.object(format_args!("{at}.metadata"), part.metadata);
    let named = part.kind.as_ref().or(part.old_kind.as_ref()).map(|Text(kind)| kind.as_ref());
    let content = match (named, part.text, part.file, part.data) {
        (Some("text") | None, Some(text), None, None) => Part::text(text),
        (Some("file") | None, None, Some(Obj(file)), None) => convert_file(check, at, file),
        (Some("data") | None, None, None, Some(data)) => Part::json(check.value(format_args!("{at}.data"), data)),
        (Some(named @ ("text" | "file" | "data")), None, None, None) => {
            check.violation(format_args!("{at}.{named}"), format!("is required in a part of type {named}"));
            Part::text(String::new())
        }
        (Some("text" | "file" | "data") | None, ..) => {
            check.violation(at, "needs one of text, file and data, under the name of its type");
            Part::text(String::new())
        }
        (Some(named), ..) => {
            check.violation(at, format!("is of type {}, which is none of text, file and data", excerpt(named, 64)));
            Part::text(String::new())
        }
    };
    content.with_metadata(metadata)
}

fn convert_file(check: &mut Check<'_>, at: Arguments<'_>, file: WireFile<'_>) -> Part {
    let content = match (file.bytes, file.uri) {
        (Some(Text(encoded)), None) => {
            let bytes = decode_base64(&encoded);
            if bytes.is_none() {
                check.violation(format_args!("{at}.file.bytes"), "must be base64");
            }
            PartContent::Raw(Bytes::from(bytes.unwrap_or_default()))
        }
        (None, Some(uri)) => {
            check.line(format_args!("{at}.file.uri"), &uri, usize::MAX);
            PartContent::Url(uri)
        }
        (Some(_), Some(_)) | (None, None) => {
            check.violation(format_args!("{at}.file"), "needs either bytes or uri");
            PartContent::Raw(Bytes::new())
        }
    };
    Part::new(content).with_details(PartDetails {
        metadata: None,
        filename: file.name.filter(|name| !name.is_empty()),
        media_type: check.optional_line(format_args!("{at}.file.mimeType"), file.mime_type),
    })
}

/// Writes a part that names what it holds in `member`.
pub(super) fn encode(part: &Part, member: &'static str, out: &mut Vec<u8>) {
    let mut object = Object::open(out);
    match &part.content {
        PartContent::Text(text) => {
            object.str(member, "text");
            object.str("text", text);
        }
        PartContent::Raw(_) | PartContent::Url(_) => {
            object.str(member, "file");
            encode_file(part, object.key("file"));
        }
        PartContent::Data(data) => {
            object.str(member, "data");
            write_json(object.key("data"), data);
        }
    }
    object.json_if_set("metadata", part.metadata());
    object.close();
}

fn encode_file(part: &Part, out: &mut Vec<u8>) {
    let mut file = Object::open(out);
    file.str_if_set("name", part.filename());
    file.str_if_set("mimeType", part.media_type());
    match &part.content {
        PartContent::Raw(bytes) => write_base64(file.key("bytes"), bytes),
        PartContent::Url(uri) => file.str("uri", uri),
        PartContent::Text(_) | PartContent::Data(_) => {}
    }
    file.close();
}
