//! Makes a task fit a reply. The store has left out what cannot fit by its size alone; here it is weighed as it will be
//! written. Artifacts that are too much become links, the largest first; then history is shortened to its newest part.

use std::cmp::Reverse;
use std::sync::Arc;

use switchboard_core::model::{ArtifactView, Message, Task, TaskView};

use crate::ports::Room;
use crate::ports::room::{Outline, estimate};
use crate::ports::store::Scope;

/// A character is at most so many in JSON.
const ESCAPED_MAX: u64 = 6;

/// A view of a task that fits.
pub(crate) fn fit(room: &Room, scope: &Scope, view: TaskView) -> TaskView {
    if is_surely_light(&view, room.bytes_max) || weight(&view) <= room.bytes_max {
        return view;
    }
    let base = base_weight(&view.task);
    let history: u64 = view.history().iter().map(|message| message.weight()).sum();
    // Artifacts leave half the room to the conversation, if that needs it.
    let for_artifacts = room.bytes_max.saturating_sub(base + history.min(room.bytes_max / 2));
    let (task, artifacts) = match view.artifacts {
        ArtifactView::Omitted => (view.task.clone(), 0),
        ArtifactView::Shown | ArtifactView::AlwaysListed => fit_artifacts(room, scope, &view.task, for_artifacts),
    };
    let mut left = room.bytes_max.saturating_sub(base + artifacts);
    let fits = |message: &&Arc<Message>| {
        let weight = message.weight();
        let fits = weight <= left;
        left = left.saturating_sub(weight);
        fits
    };
    let shown = view.history().iter().rev().take_while(fits).count();
    TaskView { task, history_length: Some(u32::try_from(shown).unwrap_or(u32::MAX)), ..view }
}

/// What a view weighs in a reply.
pub(crate) fn weight(view: &TaskView) -> u64 {
    let artifacts: u64 = match view.artifacts {
        ArtifactView::Omitted => 0,
        ArtifactView::Shown | ArtifactView::AlwaysListed => view.task.artifacts.iter().map(|made| made.weight()).sum(),
    };
    base_weight(&view.task) + artifacts + view.history().iter().map(|message| message.weight()).sum::<u64>()
}

/// Whether a view fits without being weighed, as nearly all do.
pub(crate) fn is_surely_light(view: &TaskView, bytes_max: u64) -> bool {
    let artifacts = view.artifacts != ArtifactView::Omitted;
    estimate(&view.task, artifacts).saturating_mul(ESCAPED_MAX) <= bytes_max
}

fn base_weight(task: &Task) -> u64 {
    const FRAME_BYTES: u64 = 512;
    let metadata = task.metadata.as_ref().map_or(0, |json| json.as_str().len() as u64);
    FRAME_BYTES + metadata + task.status.message.as_ref().map_or(0, |message| message.weight())
}

/// The task with as few links as will do, and what its artifacts weigh then.
fn fit_artifacts(room: &Room, scope: &Scope, task: &Arc<Task>, bytes_max: u64) -> (Arc<Task>, u64) {
    let mut weighed: Vec<(usize, u64)> = task.artifacts.iter().map(|made| made.weight()).enumerate().collect();
    let mut total: u64 = weighed.iter().map(|(_, weight)| weight).sum();
    weighed.sort_by_key(|(_, weight)| Reverse(*weight));
    let mut task = task.clone();
    for (place, weight) in weighed {
        if total <= bytes_max {
            break;
        }
        let linked = Outline::of(&task.artifacts[place]).linked(room, scope, &task.id);
        let lighter = linked.weight();
        if lighter < weight {
            total = total - weight + lighter;
            Arc::make_mut(&mut task).artifacts[place] = linked.into();
        }
    }
    (task, total)
}

#[cfg(test)]
#[path = "fitting_tests.rs"]
mod tests;
