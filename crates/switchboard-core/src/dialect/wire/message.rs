//! A message and its parts: text, bytes, a URL or data. [`Items`] is a list of the model's own things: when one is
//! written, each item is made just before, so a reply needs no copy of its lists.

use std::borrow::Cow;
use std::fmt::Arguments;
use std::marker::PhantomData;
use std::sync::Arc;

use bytes::Bytes;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::{PartForm, Spelling, data_part, put};
use crate::dialect::json::{Base64, Check, LazyMember, List, NameOrNumber, Obj, Raw, Text, excerpt, present_raw};
use crate::model::{self, PartContent, PartDetails, Role};

#[derive(Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Message<'a> {
    #[serde(borrow)]
    kind: Option<LazyMember<'a, Text<'a>>>,
    #[serde(borrow, alias = "message_id")]
    pub(super) message_id: Option<Text<'a>>,
    #[serde(borrow, alias = "context_id")]
    pub(super) context_id: Option<Text<'a>>,
    #[serde(borrow, alias = "task_id")]
    task_id: Option<Text<'a>>,
    #[serde(borrow)]
    role: Option<NameOrNumber<'a>>,
    #[serde(borrow)]
    parts: Option<Parts<'a>>,
    /// What 0.3 over HTTP calls the parts.
    #[serde(borrow)]
    content: Option<LazyMember<'a, Parts<'a>>>,
    #[serde(borrow)]
    metadata: Option<Raw<'a>>,
    #[serde(borrow)]
    extensions: Option<List<Text<'a>>>,
    #[serde(borrow, alias = "reference_task_ids")]
    reference_task_ids: Option<List<Text<'a>>>,
}

/// Writes a message.
pub fn write_message(message: &model::Message, spelling: &Spelling, out: &mut Vec<u8>) {
    put(out, &Message::of(message, spelling));
}

impl model::Message {
    /// All that the message says, as bytes: equal messages have equal ones, and others have others. It is the message in the
    /// JSON of 1.0, and stays that: repeats of a send are recognised by its digest, also after an upgrade.
    #[must_use]
    pub fn canonical(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(512);
        write_message(self, &super::V1_0, &mut out);
        out
    }
}

/// A list of texts, unless it is empty.
pub(super) fn texts_of<'a>(texts: impl ExactSizeIterator<Item = &'a str>) -> Option<List<Text<'a>>> {
    (texts.len() > 0).then(|| texts.map(Text::from).collect())
}

impl<'a> FromModel<'a, Arc<model::Message>> for Obj<Message<'a>> {
    #[inline]
    fn of(message: &'a Arc<model::Message>, spelling: &'a Spelling) -> Self {
        Obj(Message::of(message, spelling))
    }
}

impl<'a> Message<'a> {
    pub(super) fn of(message: &'a model::Message, spelling: &'a Spelling) -> Self {
        let parts = Some(Items::of(&message.parts, spelling));
        let (parts, content) = match spelling.parts {
            PartForm::Nested => (None, parts.map(LazyMember::Own)),
            PartForm::Flat | PartForm::Kind => (parts, None),
        };
        Self {
            kind: (!spelling.wraps).then_some(LazyMember::Own(Text::from("message"))),
            message_id: Some(Text::from(message.message_id.as_str())),
            context_id: message.context_id.as_ref().map(|id| Text::from(id.as_str())),
            task_id: message.task_id.as_ref().map(|id| Text::from(id.as_str())),
            role: Some(NameOrNumber::Name(spelling.role(message.role).into())),
            parts,
            content,
            metadata: message.metadata.as_ref().map(Raw::from),
            extensions: texts_of(message.extensions.iter().map(String::as_str)),
            reference_task_ids: match spelling.has_references {
                true => texts_of(message.reference_task_ids.iter().map(|id| id.as_str())),
                false => None,
            },
        }
    }

    /// Reads the message that stands at `at`.
    pub(super) fn read(self, check: &mut Check<'_>, at: Arguments<'_>, spelling: &Spelling) -> model::Message {
        let kind = self.kind.filter(|_| !spelling.wraps);
        let kind = check.only(format_args!("{at}.kind"), kind);
        if let Some(Text(kind)) = kind.as_ref().filter(|kind| kind.0 != "message") {
            let description = format!("is {}; a message is of kind message", excerpt(kind, 64));
            check.violation(format_args!("{at}.kind"), description);
        }
        let role = self.role.as_ref().and_then(|sent| spelling.read_role(sent)).unwrap_or_else(|| {
            check.violation(format_args!("{at}.role"), no_role(self.role.as_ref(), spelling));
            Role::User
        });
        let message_id = match spelling.requires_message_id {
            true => check.required_id(format_args!("{at}.messageId"), self.message_id),
            false => check.id(format_args!("{at}.messageId"), self.message_id).unwrap_or_default(),
        };
        let references = self.reference_task_ids.filter(|_| spelling.has_references);
        model::Message {
            message_id,
            context_id: check.id(format_args!("{at}.contextId"), self.context_id),
            task_id: check.id(format_args!("{at}.taskId"), self.task_id),
            role,
            parts: match spelling.parts {
                PartForm::Flat | PartForm::Kind => read_parts(check, format_args!("{at}.parts"), self.parts, spelling),
                PartForm::Nested if self.content.is_none() && self.parts.is_some() => {
                    let description = "is what HTTP+JSON of A2A 0.3 calls the parts of a message, and each is \
                                       {\"text\":…}, {\"file\":…} or {\"data\":…} without a kind";
                    check.violation(format_args!("{at}.content"), description);
                    Vec::new()
                }
                PartForm::Nested => {
                    let is_sent = self.content.is_some();
                    let content = check.only(format_args!("{at}.content"), self.content);
                    match content.is_none() && is_sent {
                        // Its violation has been reported already.
                        true => Vec::new(),
                        false => read_parts(check, format_args!("{at}.content"), content, spelling),
                    }
                }
            },
            metadata: check.object(format_args!("{at}.metadata"), self.metadata),
            extensions: check.lines(format_args!("{at}.extensions"), self.extensions),
            reference_task_ids: check.ids(format_args!("{at}.referenceTaskIds"), references),
        }
    }
}

#[cold]
fn no_role(sent: Option<&NameOrNumber<'_>>, spelling: &Spelling) -> String {
    let [user, agent] = spelling.roles;
    match sent {
        Some(NameOrNumber::Name(name)) if name.starts_with("ROLE_") && !user.starts_with("ROLE_") => {
            format!("{} is how A2A 1.0 spells it; in 0.3 it is {user} or {agent}", excerpt(name, 64))
        }
        Some(sent) => format!("{sent} is neither {user} nor {agent}"),
        None => format!("is required: {user} or {agent}"),
    }
}

#[derive(Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Part<'a> {
    #[serde(borrow)]
    kind: Option<LazyMember<'a, Text<'a>>>,
    /// What 0.1 called `kind`. It is written as well: clients that read only that cannot be told from others by their requests,
    /// and no reader of `kind` minds.
    #[serde(borrow, rename = "type")]
    old_kind: Option<LazyMember<'a, Text<'a>>>,
    #[serde(borrow)]
    text: Option<Text<'a>>,
    /// Boxed, because few parts are files and each would be larger by its size.
    #[serde(borrow)]
    file: Option<LazyMember<'a, Box<Obj<File<'a>>>>>,
    #[serde(borrow)]
    raw: Option<Base64<'a>>,
    #[serde(borrow)]
    url: Option<Text<'a>>,
    /// The data, or in 0.3 over HTTP an object with the data in it.
    #[serde(borrow, default, deserialize_with = "present_raw")]
    data: Option<Raw<'a>>,
    #[serde(borrow)]
    metadata: Option<Raw<'a>>,
    #[serde(borrow)]
    filename: Option<Text<'a>>,
    #[serde(borrow, alias = "media_type")]
    media_type: Option<Text<'a>>,
}

/// A file of 0.3. The first four are of one meaning: its schema, samples of 0.2 (`data`), and the proto.
#[derive(Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
struct File<'a> {
    #[serde(borrow)]
    bytes: Option<Base64<'a>>,
    #[serde(borrow)]
    data: Option<Base64<'a>>,
    #[serde(borrow, alias = "file_with_bytes")]
    file_with_bytes: Option<Base64<'a>>,
    #[serde(borrow)]
    uri: Option<Text<'a>>,
    #[serde(borrow, alias = "file_with_uri")]
    file_with_uri: Option<Text<'a>>,
    #[serde(borrow, alias = "mime_type")]
    mime_type: Option<Text<'a>>,
    #[serde(borrow)]
    name: Option<Text<'a>>,
}

/// What 0.3 over HTTP has in `data`.
#[derive(Deserialize)]
struct Data<'a> {
    #[serde(borrow)]
    data: Option<Raw<'a>>,
}

/// The parts of a message or an artifact.
pub(super) type Parts<'a> = Items<'a, Obj<Part<'a>>, model::Part>;

impl<'a> FromModel<'a, model::Part> for Obj<Part<'a>> {
    #[inline]
    fn of(part: &'a model::Part, spelling: &'a Spelling) -> Self {
        Obj(Part::of(part, spelling))
    }
}

/// Reads the parts that stand at `at`. There must be one.
pub(super) fn read_parts(
    check: &mut Check<'_>,
    at: Arguments<'_>,
    parts: Option<Parts<'_>>,
    spelling: &Spelling,
) -> Vec<model::Part> {
    match parts.map(Items::read) {
        Some(list) if list.total > 0 => {
            let parts = check.bounded(at, "parts", check.limits.parts_max, list);
            let read = |(i, Obj(part)): (usize, Obj<Part<'_>>)| part.read(check, format_args!("{at}[{i}]"), spelling);
            parts.into_iter().enumerate().map(read).collect()
        }
        Some(_) | None => {
            check.violation(at, "needs at least one part");
            Vec::new()
        }
    }
}

impl<'a> Part<'a> {
    fn of(part: &'a model::Part, spelling: &Spelling) -> Self {
        let metadata = part.metadata().map(Raw::from);
        let mut written = match (spelling.parts, &part.content) {
            (PartForm::Flat, content) => {
                let beside = Self {
                    metadata,
                    filename: part.filename().map(Text::from),
                    media_type: part.media_type().map(Text::from),
                    ..Self::default()
                };
                return match content {
                    PartContent::Text(text) => Self { text: Some(Text::from(&**text)), ..beside },
                    PartContent::Raw(bytes) => Self { raw: Some(Base64::Bytes(bytes)), ..beside },
                    PartContent::Url(url) => Self { url: Some(Text::from(&**url)), ..beside },
                    PartContent::Data(data) => Self { data: Some(Raw::from(data)), ..beside },
                };
            }
            (_, PartContent::Text(text)) => Self { text: Some(Text::from(&**text)), metadata, ..Self::default() },
            (_, PartContent::Raw(_) | PartContent::Url(_)) => Self {
                file: Some(LazyMember::Own(Box::new(Obj(File::of(part, spelling))))),
                metadata,
                ..Self::default()
            },
            (form, PartContent::Data(data)) => {
                let (data, metadata) = data_part::of(data, metadata);
                let data = match form {
                    PartForm::Nested => Raw(Cow::Owned(format!("{{\"data\":{}}}", data.get()))),
                    PartForm::Kind | PartForm::Flat => data,
                };
                Self { data: Some(data), metadata, ..Self::default() }
            }
        };
        if spelling.parts == PartForm::Kind {
            let kind = match &part.content {
                PartContent::Text(_) => "text",
                PartContent::Raw(_) | PartContent::Url(_) => "file",
                PartContent::Data(_) => "data",
            };
            (written.kind, written.old_kind) =
                (Some(LazyMember::Own(Text::from(kind))), Some(LazyMember::Own(Text::from(kind))));
        }
        written
    }

    fn read(self, check: &mut Check<'_>, at: Arguments<'_>, spelling: &Spelling) -> model::Part {
        match spelling.parts {
            PartForm::Flat => self.read_flat(check, at),
            PartForm::Kind => self.read_with_kind(check, at),
            PartForm::Nested => self.read_nested(check, at),
        }
    }

    fn read_flat(self, check: &mut Check<'_>, at: Arguments<'_>) -> model::Part {
        let content = match (self.text, self.raw, self.url, self.data) {
            (Some(text), None, None, None) => PartContent::Text(text.0.into_owned()),
            (None, Some(raw), None, None) => read_bytes(check, format_args!("{at}.raw"), &raw),
            (None, None, Some(url), None) => read_url(check, format_args!("{at}.url"), url),
            (None, None, None, Some(data)) => PartContent::Data(check.value(format_args!("{at}.data"), data)),
            (None, None, None, None) => {
                check.violation(at, "needs one of text, raw, url and data");
                PartContent::Text(String::new())
            }
            _ => {
                check.violation(at, "has more than one of text, raw, url and data");
                PartContent::Text(String::new())
            }
        };
        model::Part::new(content).with_details(PartDetails {
            metadata: check.object(format_args!("{at}.metadata"), self.metadata),
            filename: read_name(self.filename),
            media_type: check.optional_line(format_args!("{at}.mediaType"), self.media_type),
        })
    }

    /// Libraries that are halfway between the versions send files as 1.0 spells them, and that can mean only one thing.
    fn is_flat_file(&self) -> bool {
        self.raw.is_some() || self.url.is_some()
    }

    fn read_with_kind(mut self, check: &mut Check<'_>, at: Arguments<'_>) -> model::Part {
        // A part that says no kind is spelled as in 1.0, where texts and data have a name and a type, too.
        let says_kind = self.kind.is_some() || self.old_kind.is_some();
        self.check_kind(check, at);
        if says_kind && !self.is_flat_file() {
            (self.filename, self.media_type) = (None, None);
        }
        match (&self.text, &self.file, &self.data, self.is_flat_file()) {
            (None, None, None, true) if self.raw.is_none() || self.url.is_none() => self.read_flat(check, at),
            (Some(_), None, None, false) => self.read_flat(check, at),
            (None, Some(_), None, false) => self.read_file(check, at, ["bytes", "uri"]),
            (None, None, Some(data), false) => {
                if !data.get().starts_with(['{', '[']) {
                    check.violation(format_args!("{at}.data"), "must be an object");
                }
                let read = self.read_flat(check, at);
                match &read.content {
                    PartContent::Data(data) => {
                        let (data, metadata) = data_part::read(data.clone(), read.metadata().cloned());
                        read.with_content(PartContent::Data(data)).with_metadata(metadata)
                    }
                    PartContent::Text(_) | PartContent::Raw(_) | PartContent::Url(_) => read,
                }
            }
            // Its violations have been reported already.
            _ => model::Part::text(String::new()),
        }
    }

    /// Whether a part says what it is, and is that: exactly one of text, file and data, under the name of its kind.
    fn check_kind(&mut self, check: &mut Check<'_>, at: Arguments<'_>) {
        let kind = check.only(format_args!("{at}.kind"), self.kind.take());
        let old_kind = check.only(format_args!("{at}.type"), self.old_kind.take());
        let held = [
            ("text", self.text.is_some()),
            ("file", self.file.is_some()),
            ("data", self.data.is_some()),
            ("raw", self.raw.is_some()),
            ("url", self.url.is_some()),
        ];
        let mut held = held.iter().filter(|(_, is_held)| *is_held).map(|(kind, _)| *kind);
        let (first, second) = (held.next(), held.next());
        let named = match (&kind, &old_kind) {
            (Some(kind), Some(old)) if kind != old => {
                let (kind, old) = (excerpt(&kind.0, 64), excerpt(&old.0, 64));
                return check.violation(at, format!("is of kind {kind} and of type {old}; say one"));
            }
            (kind, old) => kind.as_ref().or(old.as_ref()).map(|Text(kind)| kind.as_ref()),
        };
        match (named, first, second) {
            (_, Some(first), Some(second)) => {
                check.violation(at, format!("has both {first} and {second}; one part holds one"));
            }
            (Some(named), Some(first), None) if named == first => {}
            (None, Some(_), None) | (Some("file"), Some("raw" | "url"), None) => {}
            (None, None, _) => check.violation(at, "needs one of text, file and data"),
            (Some(named @ ("text" | "file" | "data")), ..) => {
                check.violation(format_args!("{at}.{named}"), format!("is required in a part of kind {named}"));
            }
            (Some(named), ..) => {
                let description = format!("is {}, which is none of text, file and data", excerpt(named, 64));
                check.violation(format_args!("{at}.kind"), description);
            }
        }
    }

    fn read_nested(mut self, check: &mut Check<'_>, at: Arguments<'_>) -> model::Part {
        if self.is_flat_file() {
            if (self.text.is_some() || self.file.is_some() || self.data.is_some())
                || (self.raw.is_some() && self.url.is_some())
            {
                check.violation(at, "has raw or url beside another content; one part holds one");
                return model::Part::text(String::new());
            }
            return self.read_flat(check, at);
        }
        match (&self.text, &self.file, &self.data) {
            (Some(_), None, None) => {
                (self.filename, self.media_type) = (None, None);
                self.read_flat(check, at)
            }
            (None, Some(_), None) => self.read_file(check, at, ["fileWithBytes", "fileWithUri"]),
            (None, None, Some(data)) => {
                let Ok(Obj(Data { data })) = serde_json::from_str(data.get()) else {
                    check.violation(format_args!("{at}.data"), "must be an object with data in it");
                    return model::Part::text(String::new());
                };
                let is_missing = data.is_none();
                let Some(data) = check.object(format_args!("{at}.data.data"), data) else {
                    if is_missing {
                        check.violation(format_args!("{at}.data.data"), "is required and must be an object");
                    }
                    return model::Part::text(String::new());
                };
                let metadata = check.object(format_args!("{at}.metadata"), self.metadata);
                let (data, metadata) = data_part::read(data, metadata);
                model::Part::json(data).with_metadata(metadata)
            }
            (None, None, None) => {
                check.violation(at, "needs one of text, file and data");
                model::Part::text(String::new())
            }
            _ => {
                check.violation(at, "has more than one of text, file and data");
                model::Part::text(String::new())
            }
        }
    }

    /// Reads a file whose members for bytes and for a URL have these names.
    fn read_file(self, check: &mut Check<'_>, at: Arguments<'_>, [bytes, uri]: [&str; 2]) -> model::Part {
        let Some(Obj(file)) = check.only(format_args!("{at}.file"), self.file).map(|file| *file) else {
            return model::Part::text(String::new());
        };
        let at_file = format_args!("{at}.file");
        let held = [("data", &file.data), (bytes, if bytes == "bytes" { &file.bytes } else { &file.file_with_bytes })];
        let mut contents: Vec<PartContent> = Vec::with_capacity(1);
        for (name, encoded) in held {
            if let Some(encoded) = encoded {
                contents.push(read_bytes(check, format_args!("{at_file}.{name}"), encoded));
            }
        }
        let url = if uri == "uri" { file.uri } else { file.file_with_uri };
        if let Some(url) = url {
            contents.push(read_url(check, format_args!("{at_file}.{uri}"), url));
        }
        let content = match contents.len() {
            1 => contents.remove(0),
            0 => {
                check.violation(at_file, format!("needs {bytes} or {uri}"));
                PartContent::Raw(Bytes::new())
            }
            _ => {
                check.violation(
                    at_file,
                    format!("has more than one of {bytes}, {uri} and data; a file is {bytes} or {uri}"),
                );
                PartContent::Raw(Bytes::new())
            }
        };
        model::Part::new(content).with_details(PartDetails {
            metadata: check.object(format_args!("{at}.metadata"), self.metadata),
            filename: read_name(file.name),
            media_type: check.optional_line(format_args!("{at_file}.mimeType"), file.mime_type),
        })
    }
}

impl<'a> File<'a> {
    fn of(part: &'a model::Part, spelling: &Spelling) -> Self {
        let (bytes, uri) = match &part.content {
            PartContent::Raw(bytes) => (Some(Base64::Bytes(bytes)), None),
            PartContent::Url(uri) => (None, Some(Text::from(&**uri))),
            PartContent::Text(_) | PartContent::Data(_) => (None, None),
        };
        let beside = Self {
            mime_type: part.media_type().map(Text::from),
            name: part.filename().map(Text::from),
            ..Self::default()
        };
        match spelling.parts {
            PartForm::Nested => Self { file_with_bytes: bytes, file_with_uri: uri, ..beside },
            PartForm::Kind | PartForm::Flat => Self { bytes, uri, ..beside },
        }
    }
}

fn read_bytes(check: &mut Check<'_>, at: Arguments<'_>, encoded: &Base64<'_>) -> PartContent {
    let bytes = encoded.decode();
    if bytes.is_none() {
        check.violation(at, "must be base64");
    }
    PartContent::Raw(Bytes::from(bytes.unwrap_or_default()))
}

fn read_url(check: &mut Check<'_>, at: Arguments<'_>, url: Text<'_>) -> PartContent {
    check.line(at, &url.0, usize::MAX);
    PartContent::Url(url.into())
}

fn read_name(name: Option<Text<'_>>) -> Option<String> {
    name.map(String::from).filter(|name| !name.is_empty())
}

/// A list as it was read, or the model's list that is to be written.
pub(super) enum Items<'a, T, M> {
    Read(List<T>),
    FromModel(&'a [M], &'a Spelling, PhantomData<T>),
}

/// What one thing of the model looks like on the wire.
pub(super) trait FromModel<'a, M> {
    fn of(model: &'a M, spelling: &'a Spelling) -> Self;
}

impl<'a, T, M> Items<'a, T, M> {
    pub(super) fn of(models: &'a [M], spelling: &'a Spelling) -> Self {
        Self::FromModel(models, spelling, PhantomData)
    }

    /// The list as it was read. One that was made to be written is empty to readers.
    pub(super) fn read(self) -> List<T> {
        match self {
            Self::Read(list) => list,
            Self::FromModel(..) => List { items: Vec::new(), total: 0 },
        }
    }
}

impl<'de, T: Deserialize<'de>, M> Deserialize<'de> for Items<'_, T, M> {
    #[inline]
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        List::deserialize(deserializer).map(Self::Read)
    }
}

impl<'a, T: FromModel<'a, M> + Serialize, M> Serialize for Items<'a, T, M> {
    #[inline]
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Read(list) => list.serialize(serializer),
            Self::FromModel(models, spelling, _) => {
                serializer.collect_seq(models.iter().map(|model| T::of(model, spelling)))
            }
        }
    }
}
