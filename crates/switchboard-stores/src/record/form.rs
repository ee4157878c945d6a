//! The form of a commit in the file: each object has one definition, by which it is both written and read. The names of
//! events and of their members are part of the format and change only with its number. An event is an object with one
//! member, named after it; what is absent is left out. Contents that are too large are outside the record (`chunking`).

use std::borrow::Cow;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;
use switchboard_core::dialect::json::{Base64, Raw, Text, Time};
use switchboard_core::lifecycle::{Event, Inbound};
use switchboard_core::model::{
    Artifact, ArtifactDetails, Dialect, Json, Message, Part, PartContent, PartDetails, Role, TaskState, Timestamp,
    TraceContext,
};
use switchboard_engine::ports::store::StoreError;

use super::chunking::{ChunkSource, Chunker, ContentPosition, StoredChunks};
use super::corrupt;

#[derive(Deserialize, Serialize)]
pub(super) struct StoredCommit<'a> {
    pub(super) format: u32,
    #[serde(borrow)]
    pub(super) events: Vec<StoredEvent<'a>>,
}

#[derive(Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum StoredEvent<'a> {
    Received {
        #[serde(borrow)]
        context: Text<'a>,
        #[serde(borrow)]
        inbound: StoredInbound<'a>,
    },
    Opened {
        at: StoredTime,
        #[serde(borrow)]
        context: Text<'a>,
        #[serde(borrow)]
        inbound: StoredInbound<'a>,
    },
    MessageAdded {
        #[serde(borrow)]
        inbound: StoredInbound<'a>,
    },
    TurnBegan {
        turn: u32,
        fence: u64,
    },
    TurnEnded {},
    Status {
        state: StoredState,
        at: StoredTime,
        #[serde(borrow)]
        message: Option<StoredMessage<'a>>,
        #[serde(borrow, default, deserialize_with = "present")]
        metadata: Option<Raw<'a>>,
    },
    Artifact {
        append: bool,
        last_chunk: bool,
        attempt: u32,
        #[serde(borrow)]
        artifact: StoredArtifact<'a>,
        #[serde(borrow, default, deserialize_with = "present")]
        metadata: Option<Raw<'a>>,
    },
    Noted {
        #[serde(borrow)]
        message: StoredMessage<'a>,
    },
    Replied {
        #[serde(borrow)]
        message: StoredMessage<'a>,
    },
    CancelRequested {
        at: StoredTime,
        #[serde(borrow, default, deserialize_with = "present")]
        metadata: Option<Raw<'a>>,
    },
    Claimed {
        fence: u64,
        attempt: u32,
        at: StoredTime,
    },
    Checkpoint {
        #[serde(borrow)]
        value: Raw<'a>,
    },
}

#[derive(Deserialize, Serialize)]
pub(super) struct StoredInbound<'a> {
    turn: u32,
    #[serde(borrow)]
    message: StoredMessage<'a>,
    /// The most common dialect is left out.
    dialect: Option<StoredDialect>,
    #[serde(borrow, default, deserialize_with = "present")]
    metadata: Option<Raw<'a>>,
    #[serde(borrow)]
    accepted_output_modes: Option<Vec<Text<'a>>>,
    #[serde(borrow)]
    extensions: Option<Vec<Text<'a>>>,
    #[serde(borrow)]
    trace_parent: Option<Text<'a>>,
    #[serde(borrow)]
    trace_state: Option<Text<'a>>,
}

#[derive(Deserialize, Serialize)]
pub(super) struct StoredMessage<'a> {
    #[serde(borrow)]
    id: Text<'a>,
    role: StoredRole,
    #[serde(borrow)]
    context: Option<Text<'a>>,
    #[serde(borrow)]
    task: Option<Text<'a>>,
    #[serde(borrow)]
    pub(super) parts: Vec<StoredPart<'a>>,
    #[serde(borrow, default, deserialize_with = "present")]
    metadata: Option<Raw<'a>>,
    #[serde(borrow)]
    extensions: Option<Vec<Text<'a>>>,
    #[serde(borrow)]
    references: Option<Vec<Text<'a>>>,
}

#[derive(Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
enum StoredRole {
    User,
    Agent,
}

#[derive(Deserialize, Serialize)]
pub(super) struct StoredArtifact<'a> {
    #[serde(borrow)]
    pub(super) id: Text<'a>,
    #[serde(borrow)]
    name: Option<Text<'a>>,
    #[serde(borrow)]
    description: Option<Text<'a>>,
    #[serde(borrow)]
    pub(super) parts: Vec<StoredPart<'a>>,
    #[serde(borrow, default, deserialize_with = "present")]
    metadata: Option<Raw<'a>>,
    #[serde(borrow)]
    extensions: Option<Vec<Text<'a>>>,
}

/// Exactly one of the first five fields is set.
#[derive(Default, Deserialize, Serialize)]
pub(crate) struct StoredPart<'a> {
    #[serde(borrow)]
    pub(super) text: Option<Text<'a>>,
    #[serde(borrow)]
    pub(super) url: Option<Text<'a>>,
    #[serde(borrow)]
    pub(super) raw: Option<Base64<'a>>,
    #[serde(borrow, default, deserialize_with = "present")]
    pub(super) data: Option<Raw<'a>>,
    pub(super) chunks: Option<StoredChunks>,
    #[serde(borrow)]
    pub(super) filename: Option<Text<'a>>,
    #[serde(borrow)]
    pub(super) media_type: Option<Text<'a>>,
    #[serde(borrow, default, deserialize_with = "present")]
    pub(super) metadata: Option<Raw<'a>>,
}

impl<'a> StoredEvent<'a> {
    /// `written_before` tells how many parts and bytes the artifact held before this write.
    pub(super) fn of(event: &'a Event, chunker: &mut Chunker<'_>, written_before: impl FnOnce() -> (u64, u64)) -> Self {
        match event {
            Event::Received { inbound, context_id } => Self::Received {
                context: Text::from(context_id.as_str()),
                inbound: StoredInbound::of(inbound, chunker),
            },
            Event::Opened { inbound, context_id, at } => Self::Opened {
                at: StoredTime(*at),
                context: Text::from(context_id.as_str()),
                inbound: StoredInbound::of(inbound, chunker),
            },
            Event::MessageAdded { inbound } => Self::MessageAdded { inbound: StoredInbound::of(inbound, chunker) },
            Event::TurnBegan { turn, fence } => Self::TurnBegan { turn: *turn, fence: *fence },
            Event::TurnEnded => Self::TurnEnded {},
            Event::StatusChanged { state, message, metadata, at } => Self::Status {
                state: StoredState(*state),
                at: StoredTime(*at),
                message: message.as_deref().map(|message| StoredMessage::of(message, chunker)),
                metadata: metadata.as_ref().map(Raw::from),
            },
            Event::ArtifactWritten { artifact, append, last_chunk, metadata, attempt } => Self::Artifact {
                append: *append,
                last_chunk: *last_chunk,
                attempt: *attempt,
                artifact: StoredArtifact::of(artifact, chunker, written_before),
                metadata: metadata.as_ref().map(Raw::from),
            },
            Event::Noted { message } => Self::Noted { message: StoredMessage::of(message, chunker) },
            Event::Replied { message } => Self::Replied { message: StoredMessage::of(message, chunker) },
            Event::CancelRequested { metadata, at } => {
                Self::CancelRequested { at: StoredTime(*at), metadata: metadata.as_ref().map(Raw::from) }
            }
            Event::Claimed { fence, attempt, at } => {
                Self::Claimed { fence: *fence, attempt: *attempt, at: StoredTime(*at) }
            }
            Event::Checkpoint { value } => Self::Checkpoint { value: Raw::from(value) },
        }
    }

    /// The message that the event adds to the history or the status. A direct reply is the whole answer, and is not one of these.
    pub(super) fn message(&self) -> Option<&StoredMessage<'a>> {
        match self {
            Self::Received { inbound, .. } | Self::Opened { inbound, .. } | Self::MessageAdded { inbound } => {
                Some(&inbound.message)
            }
            Self::Status { message, .. } => message.as_ref(),
            Self::Noted { message } => Some(message),
            _ => None,
        }
    }

    pub(super) fn message_mut(&mut self) -> Option<&mut StoredMessage<'a>> {
        match self {
            Self::Received { inbound, .. } | Self::Opened { inbound, .. } | Self::MessageAdded { inbound } => {
                Some(&mut inbound.message)
            }
            Self::Status { message, .. } => message.as_mut(),
            Self::Noted { message } => Some(message),
            _ => None,
        }
    }

    /// The turn that the message of the event began.
    pub(super) fn turn(&self) -> Option<u32> {
        match self {
            Self::Received { inbound, .. } | Self::Opened { inbound, .. } | Self::MessageAdded { inbound } => {
                Some(inbound.turn)
            }
            _ => None,
        }
    }

    pub(super) fn into_event(self, chunks: &dyn ChunkSource) -> Result<Event, StoreError> {
        Ok(match self {
            Self::Received { context, inbound } => {
                Event::Received { inbound: inbound.into_inbound(chunks)?, context_id: (&*context.0).into() }
            }
            Self::Opened { at, context, inbound } => {
                Event::Opened { inbound: inbound.into_inbound(chunks)?, context_id: (&*context.0).into(), at: at.0 }
            }
            Self::MessageAdded { inbound } => Event::MessageAdded { inbound: inbound.into_inbound(chunks)? },
            Self::TurnBegan { turn, fence } => Event::TurnBegan { turn, fence },
            Self::TurnEnded {} => Event::TurnEnded,
            Self::Status { state, at, message, metadata } => {
                let message = message.map(|message| message.into_message(chunks)).transpose()?;
                Event::StatusChanged { state: state.0, message, metadata: metadata.map(json), at: at.0 }
            }
            Self::Artifact { append, last_chunk, attempt, artifact, metadata } => {
                let artifact = artifact.into_artifact(chunks)?;
                Event::ArtifactWritten { artifact, append, last_chunk, metadata: metadata.map(json), attempt }
            }
            Self::Noted { message } => Event::Noted { message: message.into_message(chunks)? },
            Self::Replied { message } => Event::Replied { message: message.into_message(chunks)? },
            Self::CancelRequested { at, metadata } => Event::CancelRequested { metadata: metadata.map(json), at: at.0 },
            Self::Claimed { fence, attempt, at } => Event::Claimed { fence, attempt, at: at.0 },
            Self::Checkpoint { value } => Event::Checkpoint { value: json(value) },
        })
    }
}

impl<'a> StoredInbound<'a> {
    fn of(inbound: &'a Inbound, chunker: &mut Chunker<'_>) -> Self {
        Self {
            turn: inbound.turn,
            message: StoredMessage::of(&inbound.message, chunker),
            dialect: (inbound.dialect != Dialect::V1_0).then_some(StoredDialect(inbound.dialect)),
            metadata: inbound.metadata.as_ref().map(Raw::from),
            accepted_output_modes: texts(inbound.accepted_output_modes.iter().map(String::as_str)),
            extensions: texts(inbound.extensions.iter().map(String::as_str)),
            trace_parent: inbound.trace.as_ref().map(|trace| Text(Cow::Owned(trace.trace_parent()))),
            trace_state: inbound.trace.as_ref().and_then(|trace| trace.trace_state()).map(Text::from),
        }
    }

    fn into_inbound(self, chunks: &dyn ChunkSource) -> Result<Arc<Inbound>, StoreError> {
        Ok(Arc::new(Inbound {
            turn: self.turn,
            message: self.message.into_message(chunks)?,
            dialect: self.dialect.map_or(Dialect::V1_0, |dialect| dialect.0),
            metadata: self.metadata.map(json),
            accepted_output_modes: strings(self.accepted_output_modes),
            extensions: strings(self.extensions),
            trace: TraceContext::of_texts(text_of(&self.trace_parent), text_of(&self.trace_state)).map(Arc::new),
        }))
    }
}

fn text_of<'t>(text: &'t Option<Text<'_>>) -> Option<&'t str> {
    text.as_ref().map(|text| &*text.0)
}

impl<'a> StoredMessage<'a> {
    /// About how many bytes its contents have.
    pub(super) fn content_bytes(&self) -> usize {
        let length = |part: &StoredPart<'_>| match part {
            StoredPart { chunks: Some(chunks), .. } => chunks.bytes,
            StoredPart { text: Some(text), .. } | StoredPart { url: Some(text), .. } => text.0.len(),
            StoredPart { raw: Some(Base64::Encoded(text)), .. } => text.len() / 4 * 3,
            StoredPart { raw: Some(Base64::Bytes(bytes)), .. } => bytes.len(),
            StoredPart { data: Some(data), .. } => data.0.len(),
            StoredPart { .. } => 0,
        };
        self.parts.iter().map(length).sum()
    }

    fn of(message: &'a Message, chunker: &mut Chunker<'_>) -> Self {
        let parts = message.parts.iter().zip(0..);
        Self {
            id: Text::from(message.message_id.as_str()),
            role: match message.role {
                Role::User => StoredRole::User,
                Role::Agent => StoredRole::Agent,
            },
            context: message.context_id.as_ref().map(|id| Text::from(id.as_str())),
            task: message.task_id.as_ref().map(|id| Text::from(id.as_str())),
            parts: parts.map(|(part, number)| StoredPart::of(part, &mut chunker.at(None, number, 0))).collect(),
            metadata: message.metadata.as_ref().map(Raw::from),
            extensions: texts(message.extensions.iter().map(String::as_str)),
            references: texts(message.reference_task_ids.iter().map(|id| id.as_str())),
        }
    }

    fn into_message(self, chunks: &dyn ChunkSource) -> Result<Arc<Message>, StoreError> {
        Ok(Arc::new(Message {
            message_id: (&*self.id.0).into(),
            context_id: self.context.map(|id| (&*id.0).into()),
            task_id: self.task.map(|id| (&*id.0).into()),
            role: match self.role {
                StoredRole::User => Role::User,
                StoredRole::Agent => Role::Agent,
            },
            parts: into_parts(self.parts, chunks)?,
            metadata: self.metadata.map(json),
            extensions: strings(self.extensions),
            reference_task_ids: self.references.unwrap_or_default().iter().map(|id| (&*id.0).into()).collect(),
        }))
    }
}

impl<'a> StoredArtifact<'a> {
    fn of(artifact: &'a Artifact, chunker: &mut Chunker<'_>, written_before: impl FnOnce() -> (u64, u64)) -> Self {
        let is_large = artifact.parts.iter().any(Chunker::is_large);
        let (mut number, mut start) = if is_large { written_before() } else { (0, 0) };
        let mut parts = Vec::with_capacity(artifact.parts.len());
        for part in &artifact.parts {
            parts.push(StoredPart::of(part, &mut chunker.at(Some(&artifact.artifact_id), number, start)));
            number += 1;
            start += part.content_bytes() as u64;
        }
        Self {
            id: Text::from(artifact.artifact_id.as_str()),
            name: artifact.name().map(Text::from),
            description: artifact.description().map(Text::from),
            parts,
            metadata: artifact.metadata().map(Raw::from),
            extensions: texts(artifact.extensions().iter().map(String::as_str)),
        }
    }

    pub(super) fn into_artifact(self, chunks: &dyn ChunkSource) -> Result<Arc<Artifact>, StoreError> {
        let details = ArtifactDetails {
            name: self.name.map(String::from),
            description: self.description.map(String::from),
            metadata: self.metadata.map(json),
            extensions: strings(self.extensions),
        };
        Ok(Arc::new(Artifact::new(&*self.id.0, into_parts(self.parts, chunks)?).with_details(details)))
    }
}

impl<'a> StoredPart<'a> {
    fn of(part: &'a Part, place: &mut ContentPosition<'_, '_>) -> Self {
        let mut stored = Self {
            filename: part.filename().map(Text::from),
            media_type: part.media_type().map(Text::from),
            metadata: part.metadata().map(Raw::from),
            ..Self::default()
        };
        if Chunker::is_large(part) {
            stored.chunks = Some(place.chunked(&part.content));
            return stored;
        }
        match &part.content {
            PartContent::Text(text) => stored.text = Some(Text::from(text.as_str())),
            PartContent::Url(url) => stored.url = Some(Text::from(url.as_str())),
            PartContent::Data(json) => stored.data = Some(Raw::from(json)),
            PartContent::Raw(bytes) => stored.raw = Some(Base64::Bytes(bytes)),
        }
        stored
    }

    pub(super) fn into_part(self, chunks: &dyn ChunkSource) -> Result<Part, StoreError> {
        let content = match self {
            Self { text: Some(text), .. } => PartContent::Text(text.into()),
            Self { url: Some(url), .. } => PartContent::Url(url.into()),
            Self { data: Some(data), .. } => PartContent::Data(json(data)),
            Self { raw: Some(raw), .. } => PartContent::Raw(bytes_of(&raw)?.into_owned().into()),
            Self { chunks: Some(stored), .. } => stored.into_content(chunks)?,
            Self { .. } => return Err(corrupt("a part without content")),
        };
        Ok(Part::new(content).with_details(PartDetails {
            metadata: self.metadata.map(json),
            filename: self.filename.map(String::from),
            media_type: self.media_type.map(String::from),
        }))
    }
}

fn into_parts(parts: Vec<StoredPart<'_>>, chunks: &dyn ChunkSource) -> Result<Vec<Part>, StoreError> {
    parts.into_iter().map(|part| part.into_part(chunks)).collect()
}

/// Reads bytes that are written as base64. Only the standard form is accepted.
pub(super) fn bytes_of<'r>(raw: &'r Base64<'_>) -> Result<Cow<'r, [u8]>, StoreError> {
    match raw {
        Base64::Encoded(text) => STANDARD.decode(&**text).map(Cow::Owned).map_err(corrupt),
        Base64::Bytes(bytes) => Ok(Cow::Borrowed(bytes)),
    }
}

/// A list that is left out if it is empty.
fn texts<'a>(texts: impl ExactSizeIterator<Item = &'a str>) -> Option<Vec<Text<'a>>> {
    (texts.len() > 0).then(|| texts.map(Text::from).collect())
}

fn strings(texts: Option<Vec<Text<'_>>>) -> Vec<String> {
    texts.unwrap_or_default().into_iter().map(String::from).collect()
}

fn json(raw: Raw<'_>) -> Json {
    Json::from_trusted(raw.0)
}

/// Reads a value that is written as one word.
fn word<'de, D: Deserializer<'de>, T>(
    deserializer: D,
    read: impl FnOnce(&str) -> Option<T>,
    what: &str,
) -> Result<T, D::Error> {
    let word = <&str>::deserialize(deserializer)?;
    read(word).ok_or_else(|| serde::de::Error::custom(format_args!("`{word}` is not {what}")))
}

pub(super) struct StoredTime(Timestamp);

impl Serialize for StoredTime {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        Time(self.0).serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for StoredTime {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        word(deserializer, Timestamp::parse_rfc3339, "a time").map(Self)
    }
}

struct StoredDialect(Dialect);

impl Serialize for StoredDialect {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.0.name())
    }
}

impl<'de> Deserialize<'de> for StoredDialect {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        word(deserializer, Dialect::from_name, "a dialect").map(Self)
    }
}

pub(super) struct StoredState(TaskState);

impl Serialize for StoredState {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.0.word())
    }
}

impl<'de> Deserialize<'de> for StoredState {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        word(deserializer, TaskState::from_word, "a task state").map(Self)
    }
}

/// A member that is present counts, even if it is `null`, because `null` is a value.
fn present<'de: 'a, 'a, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Raw<'a>>, D::Error> {
    <&RawValue>::deserialize(deserializer).map(|raw| Some(Raw::from(raw)))
}
