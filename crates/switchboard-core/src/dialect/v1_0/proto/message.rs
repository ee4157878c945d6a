//! Messages and parts, and the items that `task` takes from its package.

use std::fmt::Arguments;

use crate::dialect::json::Check;
use crate::dialect::protobuf::{
    Fields, Holds, ListField, Lists, decode_object, decode_value, encode_value, list, optional, read_parts, read_role,
    role_number, text,
};
use crate::model::{Dialect, Message, Part, PartContent, PartDetails, StatusUpdate};

use super::generated as wire;
use super::generated::part::Content;

/// The lists of a message.
pub(super) const MESSAGE: Lists = &[
    ListField(wire::Message::PARTS, "parts", Holds::Parts),
    ListField(wire::Message::EXTENSIONS, "extensions", Holds::Texts),
    ListField(wire::Message::REFERENCE_TASK_IDS, "referenceTaskIds", Holds::Texts),
];

/// The dialect of a task that is read.
pub(super) const DIALECT: Dialect = Dialect::V1_0;

/// A message as the answer to a send, and in a stream.
pub(super) use super::generated::send_message_response::Payload::Message as SentMessage;
pub(super) use super::generated::stream_response::Payload::Message as StreamedMessage;

impl wire::SendMessageResponse {
    pub(super) const SAID: u32 = Self::MESSAGE;
}

impl wire::StreamResponse {
    pub(super) const SAID: u32 = Self::MESSAGE;
}

impl wire::TaskStatus {
    /// What was said with it.
    pub(super) const SAID: u32 = Self::MESSAGE;

    pub(super) fn said(self) -> Option<wire::Message> {
        self.message
    }
}

impl wire::TaskStatusUpdateEvent {
    /// 1.0 has no flag for the end of a stream.
    pub(super) fn write_final(_: &StatusUpdate, _: &mut Fields<'_>) {}
}

impl wire::Message {
    pub(super) fn write(message: &Message, fields: &mut Fields<'_>) {
        fields.text(Self::MESSAGE_ID, message.message_id.as_str());
        fields.text(Self::CONTEXT_ID, message.context_id.as_ref().map_or("", |id| id.as_str()));
        fields.text(Self::TASK_ID, message.task_id.as_ref().map_or("", |id| id.as_str()));
        fields.number(Self::ROLE, role_number(message.role).into());
        for part in &message.parts {
            fields.message(Self::PARTS, |fields| wire::Part::write(part, fields));
        }
        fields.object(Self::METADATA, message.metadata.as_ref());
        fields.texts(Self::EXTENSIONS, message.extensions.iter().map(String::as_str));
        fields.texts(Self::REFERENCE_TASK_IDS, message.reference_task_ids.iter().map(|id| id.as_str()));
    }

    pub(super) fn read(self, check: &mut Check<'_>, at: Arguments<'_>) -> Message {
        let references: Vec<_> = self.reference_task_ids.iter().filter_map(|id| text(id)).collect();
        Message {
            role: read_role(check, format_args!("{at}.role"), self.role),
            message_id: check.required_id(format_args!("{at}.messageId"), text(&self.message_id)),
            context_id: check.id(format_args!("{at}.contextId"), text(&self.context_id)),
            task_id: check.id(format_args!("{at}.taskId"), text(&self.task_id)),
            parts: read_parts(check, format_args!("{at}.parts"), self.parts, wire::Part::read),
            metadata: decode_object(check, format_args!("{at}.metadata"), self.metadata.as_ref()),
            extensions: check.lines(format_args!("{at}.extensions"), list(self.extensions)),
            reference_task_ids: check.ids(format_args!("{at}.referenceTaskIds"), list(references)),
        }
    }
}

impl wire::Part {
    pub(super) fn write(part: &Part, fields: &mut Fields<'_>) {
        match &part.content {
            PartContent::Text(text) => fields.present_text(Self::TEXT, text),
            PartContent::Raw(bytes) => fields.present_bytes(Self::RAW, bytes),
            PartContent::Url(url) => fields.present_text(Self::URL, url),
            PartContent::Data(data) => fields.present_bytes(Self::DATA, &encode_value(data).0),
        }
        fields.object(Self::METADATA, part.metadata());
        fields.text(Self::FILENAME, part.filename().unwrap_or_default());
        fields.text(Self::MEDIA_TYPE, part.media_type().unwrap_or_default());
    }

    pub(super) fn read(self, check: &mut Check<'_>, at: Arguments<'_>) -> Part {
        let content = match self.content {
            Some(Content::Text(text)) => PartContent::Text(text),
            Some(Content::Raw(bytes)) => PartContent::Raw(bytes),
            Some(Content::Url(url)) => {
                check.line(format_args!("{at}.url"), &url, usize::MAX);
                PartContent::Url(url)
            }
            Some(Content::Data(data)) => PartContent::Data(decode_value(check, format_args!("{at}.data"), &data)),
            None => {
                check.violation(at, "needs one of text, raw, url and data");
                PartContent::Text(String::new())
            }
        };
        Part::new(content).with_details(PartDetails {
            metadata: decode_object(check, format_args!("{at}.metadata"), self.metadata.as_ref()),
            filename: optional(self.filename),
            media_type: check.optional_line(format_args!("{at}.mediaType"), Some(self.media_type)),
        })
    }
}
