//! Parts: what they are in `type`, what they hold in `data`.

use std::borrow::Cow;
use std::fmt::Arguments;

use bytes::Bytes;
use serde::{Deserialize, Deserializer, Serialize};

use crate::dialect::json::{Base64, Check, Object, Raw, Text, read_params};
use crate::model::{self, Json, PartContent, PartDetails};

/// The name in a part's metadata under which a type is kept that the model does not have.
pub const TYPE_KEY: &str = "nexusType";

#[derive(Deserialize, Serialize)]
pub(super) struct Part<'a> {
    #[serde(borrow, rename = "type")]
    kind: Option<Text<'a>>,
    #[serde(borrow, default, deserialize_with = "present")]
    data: Option<Data<'a>>,
}

/// What a part holds: as it was sent, because only its type tells what it is, or as it will be.
#[derive(Serialize)]
#[serde(untagged)]
enum Data<'a> {
    Sent(Raw<'a>),
    Text(&'a str),
    File(Box<File<'a>>),
}

/// What a file holds, in the spelling of 0.3, which has the same members.
#[derive(Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
struct File<'a> {
    #[serde(borrow)]
    name: Option<Text<'a>>,
    #[serde(borrow)]
    mime_type: Option<Text<'a>>,
    #[serde(borrow)]
    bytes: Option<Base64<'a>>,
    #[serde(borrow)]
    uri: Option<Text<'a>>,
}

/// Null is data, too.
fn present<'de: 'a, 'a, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Data<'a>>, D::Error> {
    Raw::deserialize(deserializer).map(|raw| Some(Data::Sent(raw)))
}

impl<'a> Part<'a> {
    pub(super) fn of(part: &'a model::Part) -> Self {
        let (kind, data) = match &part.content {
            PartContent::Text(text) => (Cow::Borrowed("text"), Data::Text(text)),
            PartContent::Data(data) => {
                (kept_type(part).map_or(Cow::Borrowed("data"), Cow::Owned), Data::Sent(Raw::from(data)))
            }
            PartContent::Raw(_) | PartContent::Url(_) => (Cow::Borrowed("file"), Data::File(Box::new(File::of(part)))),
        };
        Self { kind: Some(Text(kind)), data: Some(data) }
    }

    pub(super) fn read(self, check: &mut Check<'_>, at: Arguments<'_>) -> model::Part {
        let Some(Data::Sent(data)) = self.data else {
            check.violation(format_args!("{at}.data"), "is required");
            return model::Part::text(String::new());
        };
        let Some(Text(kind)) = self.kind.filter(|kind| !kind.0.is_empty()) else {
            check.violation(format_args!("{at}.type"), "is required and must not be empty");
            return model::Part::text(String::new());
        };
        check.line(format_args!("{at}.type"), &kind, check.limits.id_bytes_max);
        match kind.as_ref() {
            "text" if data.get().starts_with('"') => match serde_json::from_str::<String>(data.get()) {
                Ok(text) => model::Part::text(text),
                Err(_) => {
                    check.violation(format_args!("{at}.data"), "is not a text: it holds half of a surrogate pair");
                    model::Part::text(String::new())
                }
            },
            "file" => match read_file(check, at, &data) {
                Some(part) => part,
                None => named(check, at, &data, "file"),
            },
            "data" => model::Part::json(check.value(format_args!("{at}.data"), data)),
            other => named(check, at, &data, other),
        }
    }
}

/// Data under a name of its own.
fn named(check: &mut Check<'_>, at: Arguments<'_>, data: &Raw<'_>, kind: &str) -> model::Part {
    let mut text = Vec::with_capacity(32);
    let mut metadata = Object::open(&mut text);
    metadata.str(TYPE_KEY, kind);
    metadata.close();
    let metadata = Json::from_trusted(String::from_utf8(text).expect("the writer writes UTF-8"));
    model::Part::json(check.value(format_args!("{at}.data"), data)).with_metadata(metadata)
}

impl<'a> File<'a> {
    fn of(part: &'a model::Part) -> Self {
        let (bytes, uri) = match &part.content {
            PartContent::Raw(bytes) => (Some(Base64::Bytes(bytes)), None),
            PartContent::Url(uri) => (None, Some(Text::from(uri.as_str()))),
            PartContent::Text(_) | PartContent::Data(_) => (None, None),
        };
        Self { name: part.filename().map(Text::from), mime_type: part.media_type().map(Text::from), bytes, uri }
    }
}

/// A file, if the payload is spelled as one; anything may be in `data`.
fn read_file(check: &mut Check<'_>, at: Arguments<'_>, data: &Raw<'_>) -> Option<model::Part> {
    let file: File<'_> = data.get().starts_with('{').then(|| read_params(data.get()).ok()).flatten()?;
    let content = match (file.bytes, file.uri) {
        (Some(encoded), None) => PartContent::Raw(Bytes::from(encoded.decode()?)),
        (None, Some(Text(uri))) => {
            check.line(format_args!("{at}.data.uri"), &uri, usize::MAX);
            PartContent::Url(uri.into_owned())
        }
        (Some(_), Some(_)) => {
            check.violation(format_args!("{at}.data"), "needs either bytes or uri, not both");
            PartContent::Raw(Bytes::new())
        }
        (None, None) => return None,
    };
    let filename = file.name.map(String::from).filter(|name| !name.is_empty());
    let media_type = check.optional_line(format_args!("{at}.data.mimeType"), file.mime_type);
    Some(model::Part::new(content).with_details(PartDetails { metadata: None, filename, media_type }))
}

#[derive(Deserialize)]
struct KeptType {
    #[serde(rename = "nexusType")]
    kind: Option<String>,
}

fn kept_type(part: &model::Part) -> Option<String> {
    let metadata = part.metadata().filter(|metadata| metadata.as_str().contains(TYPE_KEY))?;
    read_params::<KeptType>(metadata.as_str()).ok()?.kind.filter(|kind| !kind.is_empty())
}
