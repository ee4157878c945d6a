//! The stored form back into events. What cannot be read is corruption: the record was written by this crate.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;
use switchboard_core::lifecycle::{Event, Inbound};
use switchboard_core::model::{Artifact, Dialect, Json, Message, Part, PartContent, Role, TaskState, Timestamp};
use switchboard_engine::ports::store::StoreError;

use super::FORMAT;

/// Where chunks are read from.
pub(crate) trait ChunkSource {
    /// The bytes of `count` chunks, beginning with the one numbered `first`.
    fn read(&self, first: i64, count: i64) -> Result<Vec<u8>, StoreError>;
}

/// How much of a record is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Want {
    Everything,
    /// All but artifact writes, whose contents are then not read either.
    NoArtifacts,
}

pub(crate) fn decode(record: &str, want: Want, chunks: &dyn ChunkSource) -> Result<Vec<Event>, StoreError> {
    let stored = parse_commit(record)?;
    let wanted = |event: &StoredEvent| want == Want::Everything || !matches!(event, StoredEvent::Artifact { .. });
    stored.events.into_iter().filter(wanted).map(|event| event.into_event(chunks)).collect()
}

/// Whether a commit set the task's status, told without reading any contents.
pub(crate) fn sets_status(record: &str) -> Result<bool, StoreError> {
    // Most do not, and that can be seen without parsing them.
    if !record.contains("\"status\"") && !record.contains("\"opened\"") {
        return Ok(false);
    }
    let sets = |event: &StoredEvent| matches!(event, StoredEvent::Status { .. } | StoredEvent::Opened { .. });
    Ok(parse_commit(record)?.events.iter().any(sets))
}

/// Whether a commit that wrote a checkpoint did nothing else, except to artifacts. Told without parsing it, since this is asked
/// while a commit waits: as `encode` spells them, every other event begins with one of these. A content that looks like one
/// makes the answer no, which costs a reader one more commit to fold.
pub(crate) fn is_checkpoint_aside_from_artifacts(record: &str) -> bool {
    const OTHERS: [&str; 9] = [
        "{\"received\":{",
        "{\"opened\":{",
        "{\"message_added\":{",
        "{\"turn_began\":{",
        "{\"turn_ended\":{",
        "{\"status\":{",
        "{\"replied\":{",
        "{\"cancel_requested\":{",
        "{\"claimed\":{",
    ];
    record.contains("{\"checkpoint\":{") && !OTHERS.iter().any(|other| record.contains(other))
}

pub(super) fn parse_commit(record: &str) -> Result<StoredCommit, StoreError> {
    let stored: StoredCommit = serde_json::from_str(record).map_err(corrupt)?;
    if stored.format != FORMAT {
        return Err(corrupt(format!("format {} is not {FORMAT}, the only one known", stored.format)));
    }
    Ok(stored)
}

pub(super) fn corrupt(error: impl std::fmt::Display) -> StoreError {
    StoreError::Corrupt(format!("stored record: {error}"))
}

#[derive(Deserialize)]
pub(super) struct StoredCommit {
    format: u32,
    pub(super) events: Vec<StoredEvent>,
}

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum StoredEvent {
    Received {
        context: String,
        inbound: StoredInbound,
    },
    Opened {
        at: StoredTime,
        context: String,
        inbound: StoredInbound,
    },
    MessageAdded {
        inbound: StoredInbound,
    },
    TurnBegan {
        turn: u32,
        fence: u64,
    },
    TurnEnded {},
    Status {
        state: StoredState,
        at: StoredTime,
        message: Option<StoredMessage>,
        #[serde(default, deserialize_with = "present")]
        metadata: Option<Json>,
    },
    Artifact {
        append: bool,
        last_chunk: bool,
        attempt: u32,
        artifact: StoredArtifact,
        #[serde(default, deserialize_with = "present")]
        metadata: Option<Json>,
    },
    Noted {
        message: StoredMessage,
    },
    Replied {
        message: StoredMessage,
    },
    CancelRequested {
        at: StoredTime,
        #[serde(default, deserialize_with = "present")]
        metadata: Option<Json>,
    },
    Claimed {
        fence: u64,
        attempt: u32,
        at: StoredTime,
    },
    Checkpoint {
        #[serde(deserialize_with = "json")]
        value: Json,
    },
}

impl StoredEvent {
    fn into_event(self, chunks: &dyn ChunkSource) -> Result<Event, StoreError> {
        Ok(match self {
            Self::Received { context, inbound } => {
                Event::Received { inbound: inbound.into_inbound(chunks)?, context_id: context.into() }
            }
            Self::Opened { at, context, inbound } => {
                Event::Opened { inbound: inbound.into_inbound(chunks)?, context_id: context.into(), at: at.0 }
            }
            Self::MessageAdded { inbound } => Event::MessageAdded { inbound: inbound.into_inbound(chunks)? },
            Self::TurnBegan { turn, fence } => Event::TurnBegan { turn, fence },
            Self::TurnEnded {} => Event::TurnEnded,
            Self::Status { state, at, message, metadata } => {
                let message = message.map(|message| message.into_message(chunks)).transpose()?;
                Event::StatusChanged { state: state.0, message, metadata, at: at.0 }
            }
            Self::Artifact { append, last_chunk, attempt, artifact, metadata } => {
                let artifact = artifact.into_artifact(chunks)?;
                Event::ArtifactWritten { artifact, append, last_chunk, metadata, attempt }
            }
            Self::Noted { message } => Event::Noted { message: message.into_message(chunks)? },
            Self::Replied { message } => Event::Replied { message: message.into_message(chunks)? },
            Self::CancelRequested { at, metadata } => Event::CancelRequested { metadata, at: at.0 },
            Self::Claimed { fence, attempt, at } => Event::Claimed { fence, attempt, at: at.0 },
            Self::Checkpoint { value } => Event::Checkpoint { value },
        })
    }
}

#[derive(Deserialize)]
pub(super) struct StoredInbound {
    turn: u32,
    message: StoredMessage,
    #[serde(default)]
    dialect: StoredDialect,
    #[serde(default, deserialize_with = "present")]
    metadata: Option<Json>,
    #[serde(default)]
    accepted_output_modes: Vec<String>,
    #[serde(default)]
    extensions: Vec<String>,
    trace_parent: Option<String>,
}

impl StoredInbound {
    fn into_inbound(self, chunks: &dyn ChunkSource) -> Result<Arc<Inbound>, StoreError> {
        Ok(Arc::new(Inbound {
            turn: self.turn,
            message: self.message.into_message(chunks)?,
            dialect: self.dialect.0,
            metadata: self.metadata,
            accepted_output_modes: self.accepted_output_modes,
            extensions: self.extensions,
            trace_parent: self.trace_parent,
        }))
    }
}

#[derive(Deserialize)]
pub(super) struct StoredMessage {
    id: String,
    role: StoredRole,
    context: Option<String>,
    task: Option<String>,
    parts: Vec<StoredPart>,
    #[serde(default, deserialize_with = "present")]
    metadata: Option<Json>,
    #[serde(default)]
    extensions: Vec<String>,
    #[serde(default)]
    references: Vec<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum StoredRole {
    User,
    Agent,
}

impl StoredMessage {
    fn into_message(self, chunks: &dyn ChunkSource) -> Result<Arc<Message>, StoreError> {
        Ok(Arc::new(Message {
            message_id: self.id.into(),
            context_id: self.context.map(Into::into),
            task_id: self.task.map(Into::into),
            role: match self.role {
                StoredRole::User => Role::User,
                StoredRole::Agent => Role::Agent,
            },
            parts: into_parts(self.parts, chunks)?,
            metadata: self.metadata,
            extensions: self.extensions,
            reference_task_ids: self.references.into_iter().map(Into::into).collect(),
        }))
    }
}

#[derive(Deserialize)]
pub(super) struct StoredArtifact {
    pub(super) id: String,
    name: Option<String>,
    description: Option<String>,
    pub(super) parts: Vec<StoredPart>,
    #[serde(default, deserialize_with = "present")]
    metadata: Option<Json>,
    #[serde(default)]
    extensions: Vec<String>,
}

impl StoredArtifact {
    pub(super) fn into_artifact(self, chunks: &dyn ChunkSource) -> Result<Arc<Artifact>, StoreError> {
        Ok(Arc::new(Artifact {
            artifact_id: self.id.into(),
            name: self.name,
            description: self.description,
            parts: into_parts(self.parts, chunks)?,
            metadata: self.metadata,
            extensions: self.extensions,
        }))
    }
}

#[derive(Deserialize)]
pub(crate) struct StoredPart {
    pub(super) text: Option<String>,
    pub(super) url: Option<String>,
    pub(super) raw: Option<String>,
    #[serde(default, deserialize_with = "present")]
    pub(super) data: Option<Json>,
    pub(super) chunks: Option<StoredChunks>,
    pub(super) filename: Option<String>,
    pub(super) media_type: Option<String>,
    #[serde(default, deserialize_with = "present")]
    pub(super) metadata: Option<Json>,
}

#[derive(Deserialize)]
pub(super) struct StoredChunks {
    pub(super) of: StoredKind,
    pub(super) first: i64,
    count: i64,
    pub(super) bytes: usize,
}

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum StoredKind {
    Text,
    Url,
    Raw,
    Data,
}

fn into_parts(parts: Vec<StoredPart>, chunks: &dyn ChunkSource) -> Result<Vec<Part>, StoreError> {
    parts.into_iter().map(|part| part.into_part(chunks)).collect()
}

impl StoredPart {
    pub(super) fn into_part(self, chunks: &dyn ChunkSource) -> Result<Part, StoreError> {
        let content = match self {
            Self { text: Some(text), .. } => PartContent::Text(text),
            Self { url: Some(url), .. } => PartContent::Url(url),
            Self { data: Some(data), .. } => PartContent::Data(data),
            Self { raw: Some(raw), .. } => PartContent::Raw(STANDARD.decode(raw).map_err(corrupt)?.into()),
            Self { chunks: Some(stored), .. } => stored.into_content(chunks)?,
            Self { .. } => return Err(corrupt("a part without content")),
        };
        Ok(Part { content, metadata: self.metadata, filename: self.filename, media_type: self.media_type })
    }
}

impl StoredChunks {
    fn into_content(self, chunks: &dyn ChunkSource) -> Result<PartContent, StoreError> {
        let bytes = chunks.read(self.first, self.count)?;
        if bytes.len() != self.bytes {
            return Err(corrupt(format!("{} bytes in chunks where {} were written", bytes.len(), self.bytes)));
        }
        let text = |bytes| String::from_utf8(bytes).map_err(corrupt);
        Ok(match self.of {
            StoredKind::Text => PartContent::Text(text(bytes)?),
            StoredKind::Url => PartContent::Url(text(bytes)?),
            StoredKind::Raw => PartContent::Raw(bytes.into()),
            StoredKind::Data => PartContent::Data(Json::from_trusted(text(bytes)?)),
        })
    }
}

pub(super) struct StoredTime(Timestamp);

impl<'de> Deserialize<'de> for StoredTime {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = <&str>::deserialize(deserializer)?;
        let time = Timestamp::parse_rfc3339(text);
        time.map(Self).ok_or_else(|| serde::de::Error::custom(format_args!("`{text}` is not a time")))
    }
}

/// Not stored for the dialect that most speak.
struct StoredDialect(Dialect);

impl Default for StoredDialect {
    fn default() -> Self {
        Self(Dialect::V1_0)
    }
}

impl<'de> Deserialize<'de> for StoredDialect {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let name = <&str>::deserialize(deserializer)?;
        let dialect = Dialect::from_name(name);
        dialect.map(Self).ok_or_else(|| serde::de::Error::custom(format_args!("`{name}` is not a dialect")))
    }
}

pub(super) struct StoredState(TaskState);

impl<'de> Deserialize<'de> for StoredState {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let word = <&str>::deserialize(deserializer)?;
        let state = TaskState::from_word(word);
        state.map(Self).ok_or_else(|| serde::de::Error::custom(format_args!("`{word}` is not a task state")))
    }
}

fn json<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Json, D::Error> {
    let raw = <&RawValue>::deserialize(deserializer)?;
    Ok(Json::from_trusted(raw.get()))
}

/// A field that is there counts, even as `null`: that is a value too.
fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Json>, D::Error> {
    json(deserializer).map(Some)
}
