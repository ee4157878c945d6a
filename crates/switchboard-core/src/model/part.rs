//! The smallest piece of content: text, bytes, a link or JSON.

use bytes::Bytes;
use serde::Serialize;

use super::json::{Json, JsonError};

/// One piece of a message or an artifact.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// The content itself.
    pub content: PartContent,
    /// In a box of its own and never empty, because most parts have none: a streamed answer has thousands of them.
    details: Option<Box<PartDetails>>,
}

/// What a part says about its content.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PartDetails {
    /// Free-form JSON about it, an object.
    pub metadata: Option<Json>,
    /// The name of the file that it is.
    pub filename: Option<String>,
    /// The media type, such as `image/png`; see [`Part::effective_media_type`] for none.
    pub media_type: Option<String>,
}

/// What a part holds. Exactly one of these, never none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PartContent {
    /// Plain text.
    Text(String),
    /// Bytes, which JSON carries in base64.
    Raw(Bytes),
    /// Where the content is to be fetched.
    Url(String),
    /// Any JSON value.
    Data(Json),
}

impl Part {
    /// A part without name, media type or metadata.
    #[must_use]
    pub fn new(content: PartContent) -> Self {
        Self { content, details: None }
    }

    /// A text part.
    #[must_use]
    pub fn text(text: impl Into<String>) -> Self {
        Self::new(PartContent::Text(text.into()))
    }

    /// A part with bytes of a file. Name its media type with [`Part::with_media_type`].
    #[must_use]
    pub fn raw(bytes: impl Into<Bytes>) -> Self {
        Self::new(PartContent::Raw(bytes.into()))
    }

    /// A link to content that is elsewhere.
    #[must_use]
    pub fn url(url: impl Into<String>) -> Self {
        Self::new(PartContent::Url(url.into()))
    }

    /// A data part that holds JSON as it is.
    #[must_use]
    pub fn json(json: Json) -> Self {
        Self::new(PartContent::Data(json))
    }

    /// A data part with a value of yours.
    ///
    /// # Errors
    /// As [`Json::from_serialize`].
    pub fn data<T: Serialize + ?Sized>(value: &T) -> Result<Self, JsonError> {
        Json::from_serialize(value).map(Self::json)
    }

    /// Names the file that the part is.
    #[must_use]
    pub fn with_filename(mut self, filename: impl Into<String>) -> Self {
        self.change_details(|details| details.filename = Some(filename.into()));
        self
    }

    /// Says the media type, such as `image/png`.
    #[must_use]
    pub fn with_media_type(mut self, media_type: impl Into<String>) -> Self {
        self.change_details(|details| details.media_type = Some(media_type.into()));
        self
    }

    /// Adds free-form JSON about the part, which has to be an object, or with `None` removes it.
    #[must_use]
    pub fn with_metadata(mut self, metadata: impl Into<Option<Json>>) -> Self {
        let metadata = metadata.into();
        if self.details.is_some() || metadata.is_some() {
            self.change_details(|details| details.metadata = metadata);
        }
        self
    }

    /// Says all this about the content, and nothing else.
    #[must_use]
    pub fn with_details(mut self, details: PartDetails) -> Self {
        self.details = (details != PartDetails::default()).then(|| Box::new(details));
        self
    }

    /// The same about another content.
    #[must_use]
    pub fn with_content(self, content: PartContent) -> Self {
        Self { content, ..self }
    }

    /// Changes what is said about the content.
    pub fn change_details(&mut self, change: impl FnOnce(&mut PartDetails)) {
        change(self.details.get_or_insert_default());
        self.details.take_if(|details| **details == PartDetails::default());
    }

    /// All that is said about the content.
    #[must_use]
    pub fn details(&self) -> Option<&PartDetails> {
        self.details.as_deref()
    }

    /// Free-form JSON about the part, an object.
    #[must_use]
    pub fn metadata(&self) -> Option<&Json> {
        self.details()?.metadata.as_ref()
    }

    /// The name of the file that the part is.
    #[must_use]
    pub fn filename(&self) -> Option<&str> {
        self.details()?.filename.as_deref()
    }

    /// The media type, such as `image/png`; see [`Part::effective_media_type`] for none.
    #[must_use]
    pub fn media_type(&self) -> Option<&str> {
        self.details()?.media_type.as_deref()
    }

    /// The text of a text part.
    #[must_use]
    pub fn as_text(&self) -> Option<&str> {
        match &self.content {
            PartContent::Text(text) => Some(text),
            PartContent::Raw(_) | PartContent::Url(_) | PartContent::Data(_) => None,
        }
    }

    /// Bytes of content, the figure that limits count.
    #[must_use]
    pub fn content_bytes(&self) -> usize {
        self.content_as_bytes().len()
    }

    /// The content as a download has it: a text as UTF-8, bytes as they are, data as its JSON, a link as its URL.
    #[must_use]
    pub fn content_as_bytes(&self) -> &[u8] {
        match &self.content {
            PartContent::Text(text) | PartContent::Url(text) => text.as_bytes(),
            PartContent::Raw(bytes) => bytes,
            PartContent::Data(json) => json.as_str().as_bytes(),
        }
    }

    /// The media type this part has when it does not say one.
    #[must_use]
    pub fn effective_media_type(&self) -> &str {
        match (self.media_type(), &self.content) {
            (Some(named), _) => named,
            (None, PartContent::Text(_)) => "text/plain",
            (None, PartContent::Data(_)) => "application/json",
            (None, PartContent::Raw(_) | PartContent::Url(_)) => "application/octet-stream",
        }
    }
}
