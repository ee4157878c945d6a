//! What a relay keeps between attempts, and which part of a snapshot is new. Pure.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use switchboard::call::Owner;
use switchboard::model::{Artifact, ArtifactUpdate, ContextId, Part, PartContent, Task, TaskId};

/// How far a turn has come at the upstream. It is the checkpoint of the turn, written in the same commit as each update that is
/// passed on, and what the next turn of the task reads as its earlier checkpoint.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Progress {
    /// Whether the message may have left. Written before it does, to an upstream that does not recognise repeats.
    #[serde(default, skip_serializing_if = "is_false")]
    pub(super) sent: bool,
    /// The task at the upstream.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) task: Option<String>,
    /// The context of that task.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) context: Option<String>,
    /// The number of the last event that was passed on, where the upstream numbers its events.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) cursor: Option<u64>,
    /// The name under which the upstream was chosen, where it was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) target: Option<String>,
    /// Whether the task at the upstream has ended: it takes no more messages.
    #[serde(default, skip_serializing_if = "is_false")]
    pub(super) ended: bool,
}

fn is_false(value: &bool) -> bool {
    !*value
}

impl Progress {
    pub(super) fn task_id(&self) -> Option<TaskId> {
        self.task.as_deref().map(TaskId::from)
    }
}

/// The context that an owner's context is at the upstream: always the same, and another one for each owner and each gateway. The
/// upstream keeps an id that it does not know (A2A 1.0, 3.4.1), so nothing needs to be stored.
pub(super) fn upstream_context(namespace: &str, owner: &Owner, context: &ContextId) -> String {
    let mut hash = Sha256::new();
    let parts = ["switchboard relay", namespace, owner.tenant.as_str(), owner.principal.as_str(), context.as_str()];
    for part in parts {
        // With its length, so that no two lists of parts are written alike.
        hash.update((part.len() as u64).to_be_bytes());
        hash.update(part.as_bytes());
    }
    let hex: String = hash.finalize().iter().take(16).map(|byte| format!("{byte:02x}")).collect();
    // As a UUID of version 8, because many agents expect one.
    format!("{}-{}-8{}-a{}-{}", &hex[..8], &hex[8..12], &hex[13..16], &hex[17..20], &hex[20..32])
}

/// What of an artifact in a snapshot was not passed on yet. `held` is how many parts and bytes of it our task holds.
pub(super) fn unseen(task: &Task, artifact: &Arc<Artifact>, held: Option<(u64, u64)>) -> Option<ArtifactUpdate> {
    let update = |artifact: Arc<Artifact>, append| ArtifactUpdate {
        task_id: task.id.clone(),
        context_id: task.context_id.clone(),
        artifact,
        append,
        last_chunk: false,
        metadata: None,
    };
    let whole = || Some(update(artifact.clone(), false)).filter(|update| !update.artifact.parts.is_empty());
    let Some((parts, bytes)) = held else { return whole() };
    // What was passed on in pieces has more parts here, and what the upstream put together has fewer there.
    if content_bytes(&artifact.parts) == bytes {
        return None;
    }
    let parts = usize::try_from(parts).unwrap_or(usize::MAX);
    let rest = match artifact.parts.get(..parts) {
        Some(known) if content_bytes(known) == bytes => artifact.parts[parts..].to_vec(),
        // The upstream may put the texts of chunks together.
        Some(_) | None => match text_after(&artifact.parts, bytes) {
            Some(rest) => rest,
            None => return whole(),
        },
    };
    (!rest.is_empty()).then(|| update(Arc::new(Artifact::new(artifact.artifact_id.clone(), rest)), true))
}

fn content_bytes(parts: &[Part]) -> u64 {
    parts.iter().map(|part| part.content_bytes() as u64).sum()
}

/// The text behind so many bytes; none if the parts are not all plain text, or are shorter.
fn text_after(parts: &[Part], bytes: u64) -> Option<Vec<Part>> {
    let mut skip = usize::try_from(bytes).ok()?;
    let mut rest = String::new();
    for part in parts {
        let PartContent::Text(text) = &part.content else { return None };
        let skipped = skip.min(text.len());
        skip -= skipped;
        rest.push_str(text.get(skipped..)?);
    }
    let is_shorter = skip > 0;
    (!is_shorter).then(|| if rest.is_empty() { Vec::new() } else { vec![Part::text(rest)] })
}

#[cfg(test)]
#[path = "progress_tests.rs"]
mod tests;
