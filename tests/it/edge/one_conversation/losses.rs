//! What some cannot say of this conversation, each loss under the words that `docs/dialects` has for it.

use std::sync::Arc;

use switchboard_core::lifecycle::{Event, Inbound};
use switchboard_core::model::{ContextId, Dialect, Json, Message, MessageId, Part, PartContent, TaskState};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Loss {
    /// File name and media type of text and data parts.
    Names,
    PartMetadata,
    /// All parts but texts.
    OtherParts,
    MessageIds,
    MessageMetadata,
    /// The context a message is in.
    Contexts,
    /// The tasks a message refers to.
    References,
    RequestMetadata,
    OutputModes,
    /// That a message belongs to a task, so that questions stay without an answer.
    Answers,
    /// A send is not waited for by those who say so.
    Immediacy,
    Streams,
    Cancels,
}

impl Loss {
    /// The rows that the page of a dialect has for it.
    pub(super) fn rows(self) -> &'static [&'static str] {
        match self {
            Self::Names => &["file name and media type of a text part", "file name and media type of a data part"],
            Self::PartMetadata => &["metadata of a part"],
            Self::OtherParts => &["parts that are no texts"],
            Self::MessageIds => &["the id of a message"],
            Self::MessageMetadata => &["metadata of a message"],
            Self::Contexts => &["the context of a message"],
            Self::References => &["the tasks a message refers to"],
            Self::RequestMetadata => &["metadata of a request"],
            Self::OutputModes => &["the media types that are accepted"],
            Self::Answers => &["the task that a message goes on with"],
            Self::Immediacy => &["that a send returns at once"],
            Self::Streams => &["streams"],
            Self::Cancels => &["a cancel"],
        }
    }

    /// Whether it is about how something is asked for, of which nothing is stored.
    pub(super) fn leaves_no_trace(self) -> bool {
        matches!(self, Self::Immediacy | Self::Streams)
    }
}

/// Whether this comes of something that cannot be said; then nothing follows either.
pub(super) fn is_unsaid(event: &Event, losses: &[Loss]) -> bool {
    match event {
        Event::MessageAdded { .. } => losses.contains(&Loss::Answers),
        Event::CancelRequested { .. } | Event::StatusChanged { state: TaskState::Canceled, .. } => {
            losses.contains(&Loss::Cancels)
        }
        _ => false,
    }
}

/// The event as it is stored when it was said in a dialect, which a task remembers, and this was lost on the way in. The
/// agent gives back what it got, so its parts lose the same.
pub(super) fn said_in(dialect: Dialect, event: Event, losses: &[Loss]) -> Event {
    match event {
        Event::Opened { inbound, context_id, at } => {
            let context_id = lossy_context(context_id, losses);
            Event::Opened { inbound: lossy_inbound(dialect, &inbound, losses), context_id, at }
        }
        Event::MessageAdded { inbound } => Event::MessageAdded { inbound: lossy_inbound(dialect, &inbound, losses) },
        Event::ArtifactWritten { artifact, append, last_chunk, metadata, attempt } => {
            let mut artifact = Arc::unwrap_or_clone(artifact);
            lose_of_parts(&mut artifact.parts, losses);
            Event::ArtifactWritten { artifact: Arc::new(artifact), append, last_chunk, metadata, attempt }
        }
        other @ (Event::Received { .. }
        | Event::TurnBegan { .. }
        | Event::TurnEnded
        | Event::StatusChanged { .. }
        | Event::Noted { .. }
        | Event::Replied { .. }
        | Event::CancelRequested { .. }
        | Event::Claimed { .. }
        | Event::Checkpoint { .. }) => other,
    }
}

fn lossy_inbound(dialect: Dialect, inbound: &Inbound, losses: &[Loss]) -> Arc<Inbound> {
    let loses = |loss: Loss| losses.contains(&loss);
    let (mut inbound, mut message) = (Inbound { dialect, ..inbound.clone() }, Message::clone(&inbound.message));
    lose_of_parts(&mut message.parts, losses);
    message.context_id = message.context_id.map(|context_id| lossy_context(context_id, losses));
    if loses(Loss::MessageIds) {
        // One is made instead, for each message another.
        let number = message.message_id.as_str().strip_prefix("m-").expect("messages are numbered");
        message.message_id = MessageId::from(format!("00000000-0000-0000-0000-00000000000{number}"));
    }
    if loses(Loss::MessageMetadata) {
        message.metadata = None;
    }
    if loses(Loss::References) {
        message.reference_task_ids.clear();
    }
    if loses(Loss::RequestMetadata) {
        inbound.metadata = own_metadata(dialect);
    }
    if loses(Loss::OutputModes) {
        inbound.accepted_output_modes.clear();
    }
    Arc::new(Inbound { message: Arc::new(message), ..inbound })
}

/// What a dialect itself puts into the metadata of a request.
fn own_metadata(dialect: Dialect) -> Option<Json> {
    (dialect == Dialect::Corvid).then(|| Json::from_trusted(r#"{"switchboard.runTimeoutSeconds":300,"depth":1}"#))
}

/// A context that a client named is another one, made by the server.
fn lossy_context(context_id: ContextId, losses: &[Loss]) -> ContextId {
    if losses.contains(&Loss::Contexts) && context_id.as_str() == super::CONTEXT {
        return ContextId::from("ffffffff-ffff-ffff-ffff-ffffffffffff");
    }
    context_id
}

fn lose_of_parts(parts: &mut Vec<Part>, losses: &[Loss]) {
    let loses = |loss: Loss| losses.contains(&loss);
    if loses(Loss::OtherParts) {
        parts.retain(|part| part.as_text().is_some());
    }
    for part in parts {
        let has_no_name = matches!(part.content, PartContent::Text(_) | PartContent::Data(_));
        if has_no_name && loses(Loss::Names) {
            part.change_details(|details| (details.filename, details.media_type) = (None, None));
        }
        if loses(Loss::PartMetadata) {
            part.change_details(|details| details.metadata = None);
        }
    }
}
