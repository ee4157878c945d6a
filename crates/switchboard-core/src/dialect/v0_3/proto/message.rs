//! Messages and parts, and the items that `task` takes from its package.

use std::fmt::Arguments;

use bytes::Bytes;

use crate::dialect::json::{Check, Raw};
use crate::dialect::protobuf::{
    Fields, Holds, ListField, Lists, decode_object, list, optional, read_parts, read_role, role_number, text,
};
use crate::dialect::wire::{data_part, ends_stream};
use crate::model::{Dialect, Json, Message, Part, PartContent, PartDetails, StatusUpdate};

use super::generated as wire;
use super::generated::file_part::File;
use super::generated::part::Part as Content;

/// The lists of a message.
pub(super) const MESSAGE: Lists = &[
    ListField(wire::Message::CONTENT, "content", Holds::Parts),
    ListField(wire::Message::EXTENSIONS, "extensions", Holds::Texts),
];

/// The dialect of a task that is read.
pub(super) const DIALECT: Dialect = Dialect::V0_3Rest;

/// A message as the answer to a send, and in a stream.
pub(super) use super::generated::send_message_response::Payload::Msg as SentMessage;
pub(super) use super::generated::stream_response::Payload::Msg as StreamedMessage;

impl wire::SendMessageResponse {
    pub(super) const SAID: u32 = Self::MSG;
}

impl wire::StreamResponse {
    pub(super) const SAID: u32 = Self::MSG;
}

impl wire::TaskStatus {
    /// What was said with it.
    pub(super) const SAID: u32 = Self::UPDATE;

    pub(super) fn said(self) -> Option<wire::Message> {
        self.update
    }
}

impl wire::TaskStatusUpdateEvent {
    pub(super) fn write_final(update: &StatusUpdate, fields: &mut Fields<'_>) {
        fields.flag(Self::FINAL, ends_stream(update.status.state));
    }
}

impl wire::Message {
    pub(super) fn write(message: &Message, fields: &mut Fields<'_>) {
        fields.text(Self::MESSAGE_ID, message.message_id.as_str());
        fields.text(Self::CONTEXT_ID, message.context_id.as_ref().map_or("", |id| id.as_str()));
        fields.text(Self::TASK_ID, message.task_id.as_ref().map_or("", |id| id.as_str()));
        fields.number(Self::ROLE, role_number(message.role).into());
        for part in &message.parts {
            fields.message(Self::CONTENT, |fields| wire::Part::write(part, fields));
        }
        fields.object(Self::METADATA, message.metadata.as_ref());
        fields.texts(Self::EXTENSIONS, message.extensions.iter().map(String::as_str));
    }

    pub(super) fn read(self, check: &mut Check<'_>, at: Arguments<'_>) -> Message {
        Message {
            role: read_role(check, format_args!("{at}.role"), self.role),
            // Clients of this family may leave it out; the server then names the message.
            message_id: check.id(format_args!("{at}.messageId"), text(&self.message_id)).unwrap_or_default(),
            context_id: check.id(format_args!("{at}.contextId"), text(&self.context_id)),
            task_id: check.id(format_args!("{at}.taskId"), text(&self.task_id)),
            parts: read_parts(check, format_args!("{at}.content"), self.content, wire::Part::read),
            metadata: decode_object(check, format_args!("{at}.metadata"), self.metadata.as_ref()),
            extensions: check.lines(format_args!("{at}.extensions"), list(self.extensions)),
            reference_task_ids: Vec::new(),
        }
    }
}

impl wire::Part {
    pub(super) fn write(part: &Part, fields: &mut Fields<'_>) {
        match &part.content {
            PartContent::Text(text) => fields.present_text(Self::TEXT, text),
            PartContent::Raw(_) | PartContent::Url(_) => {
                fields.message(Self::FILE, |fields| wire::FilePart::write(part, fields));
            }
            PartContent::Data(data) => {
                let (data, metadata) = data_part::of(data, part.metadata().map(Raw::from));
                let json = |raw: Raw<'_>| Json::from_trusted(raw.0.into_owned());
                fields.message(Self::DATA, |fields| fields.object(wire::DataPart::DATA, Some(&json(data))));
                return fields.object(Self::METADATA, metadata.map(json).as_ref());
            }
        }
        fields.object(Self::METADATA, part.metadata());
    }

    pub(super) fn read(self, check: &mut Check<'_>, at: Arguments<'_>) -> Part {
        let metadata = decode_object(check, format_args!("{at}.metadata"), self.metadata.as_ref());
        match self.part {
            Some(Content::Text(text)) => Part::text(text).with_metadata(metadata),
            Some(Content::File(file)) => file.read(check, format_args!("{at}.file")).with_metadata(metadata),
            Some(Content::Data(wire::DataPart { data })) => {
                let field = format_args!("{at}.data.data");
                let Some(data) = decode_object(check, field, data.as_ref()) else {
                    if data.is_none() {
                        check.violation(field, "is required and must be an object");
                    }
                    return Part::text(String::new());
                };
                let (data, metadata) = data_part::read(data, metadata);
                Part::json(data).with_metadata(metadata)
            }
            None => {
                check.violation(at, "needs one of text, file and data");
                Part::text(String::new())
            }
        }
    }
}

impl wire::FilePart {
    fn write(part: &Part, fields: &mut Fields<'_>) {
        match &part.content {
            PartContent::Raw(bytes) => fields.present_bytes(Self::FILE_WITH_BYTES, bytes),
            PartContent::Url(uri) => fields.present_text(Self::FILE_WITH_URI, uri),
            PartContent::Text(_) | PartContent::Data(_) => {}
        }
        fields.text(Self::MIME_TYPE, part.media_type().unwrap_or_default());
        fields.text(Self::NAME, part.filename().unwrap_or_default());
    }

    fn read(self, check: &mut Check<'_>, at: Arguments<'_>) -> Part {
        let content = match self.file {
            Some(File::FileWithBytes(bytes)) => PartContent::Raw(bytes),
            Some(File::FileWithUri(uri)) => {
                check.line(format_args!("{at}.fileWithUri"), &uri, usize::MAX);
                PartContent::Url(uri)
            }
            None => {
                check.violation(at, "needs fileWithBytes or fileWithUri");
                PartContent::Raw(Bytes::new())
            }
        };
        Part::new(content).with_details(PartDetails {
            metadata: None,
            filename: optional(self.name),
            media_type: check.optional_line(format_args!("{at}.mimeType"), Some(self.mime_type)),
        })
    }
}
