//! What some versions cannot say of this conversation, as `docs/dialects` has it.

use std::sync::Arc;

use switchboard_core::lifecycle::{Event, Inbound};
use switchboard_core::model::{Dialect, Message, Part, PartContent};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Loss {
    /// File name and media type of text and data parts.
    Names,
    /// The tasks a message refers to.
    References,
}

/// The event as it is stored when it was said in a dialect, which a task remembers, and this was lost on the way in. The
/// agent gives back what it got, so its parts lose the same.
pub(super) fn said_in(dialect: Dialect, event: Event, losses: &[Loss]) -> Event {
    match event {
        Event::Opened { inbound, context_id, at } => {
            Event::Opened { inbound: lossy_inbound(dialect, &inbound, losses), context_id, at }
        }
        Event::MessageAdded { inbound } => Event::MessageAdded { inbound: lossy_inbound(dialect, &inbound, losses) },
        Event::ArtifactWritten { artifact, append, last_chunk, metadata, attempt } => {
            let mut artifact = Arc::unwrap_or_clone(artifact);
            artifact.parts.iter_mut().for_each(|part| lossy_part(part, losses));
            Event::ArtifactWritten { artifact: Arc::new(artifact), append, last_chunk, metadata, attempt }
        }
        other @ (Event::Received { .. }
        | Event::TurnBegan { .. }
        | Event::TurnEnded
        | Event::StatusChanged { .. }
        | Event::Replied { .. }
        | Event::CancelRequested { .. }
        | Event::Claimed { .. }
        | Event::Checkpoint { .. }) => other,
    }
}

fn lossy_inbound(dialect: Dialect, inbound: &Inbound, losses: &[Loss]) -> Arc<Inbound> {
    let mut message = Message::clone(&inbound.message);
    message.parts.iter_mut().for_each(|part| lossy_part(part, losses));
    if losses.contains(&Loss::References) {
        message.reference_task_ids.clear();
    }
    Arc::new(Inbound { message: Arc::new(message), dialect, ..inbound.clone() })
}

fn lossy_part(part: &mut Part, losses: &[Loss]) {
    let has_no_name = matches!(part.content, PartContent::Text(_) | PartContent::Data(_));
    if has_no_name && losses.contains(&Loss::Names) {
        (part.filename, part.media_type) = (None, None);
    }
}
