//! Makes a task fit into a reply, and an update into a frame of its stream. The store has already left out contents
//! that cannot fit by their size alone; here sizes are measured as they will be written. Artifacts that do not fit
//! become links, the largest first; then the history is shortened to its newest messages. A status keeps its message,
//! because a message has no address to link to.

use std::cmp::Reverse;
use std::sync::Arc;

use switchboard_core::model::{
    Artifact, ArtifactUpdate, ArtifactView, Measure, Message, Part, Task, TaskId, TaskView, Update, WEIGHT_PER_BYTE_MAX,
};

use crate::ports::Links;
use crate::ports::outline::Outline;
use crate::ports::store::Scope;

/// How many bytes a reader can take, and the addresses for the rest.
pub(crate) struct ReplyBudget {
    pub(crate) bytes_max: u64,
    pub(crate) links: Arc<dyn Links>,
}

impl ReplyBudget {
    /// An artifact with links in the place of contents.
    fn linked(&self, scope: &Scope, task: &TaskId, outline: Outline) -> Artifact {
        let id = outline.bare().artifact_id.clone();
        outline.linked_by(|part| self.links.artifact(scope, task, &id, part))
    }
}

/// Puts links in the place of the contents that a store has left out of a task.
pub(crate) fn put_links(budget: &ReplyBudget, scope: &Scope, task: &mut Arc<Task>, outlined: Vec<Outline>) {
    let task = Arc::make_mut(task);
    for outline in outlined {
        let place = task.artifacts.iter().position(|made| made.artifact_id == outline.bare().artifact_id);
        if let Some(place) = place {
            task.artifacts[place] = budget.linked(scope, &task.id, outline).into();
        }
    }
}

/// The bytes around the contents of a reply or a frame: ids, states, the envelope.
const ENVELOPE_BYTES: u64 = 2048;

/// A view of a task that fits.
pub(crate) fn fit(budget: &ReplyBudget, scope: &Scope, view: TaskView) -> TaskView {
    if is_surely_light(&view, budget.bytes_max) || weight(&view) <= budget.bytes_max {
        return view;
    }
    let base = base_weight(&view.task);
    let history: u64 = view.history().iter().map(|message| message.weight()).sum();
    // Artifacts leave half of the budget to the history, if the history needs it.
    let for_artifacts = budget.bytes_max.saturating_sub(base + history.min(budget.bytes_max / 2));
    let (task, artifacts) = match view.artifacts {
        ArtifactView::Omitted => (view.task.clone(), 0),
        ArtifactView::Shown | ArtifactView::AlwaysListed => fit_artifacts(budget, scope, &view.task, for_artifacts),
    };
    let mut left = budget.bytes_max.saturating_sub(base + artifacts);
    let fits = |message: &&Arc<Message>| {
        let weight = message.weight();
        let fits = weight <= left;
        left = left.saturating_sub(weight);
        fits
    };
    let shown = view.history().iter().rev().take_while(fits).count();
    TaskView { task, history_length: Some(u32::try_from(shown).unwrap_or(u32::MAX)), ..view }
}

/// The size of a view in a reply.
pub(crate) fn weight(view: &TaskView) -> u64 {
    let artifacts: u64 = match view.artifacts {
        ArtifactView::Omitted => 0,
        ArtifactView::Shown | ArtifactView::AlwaysListed => view.task.artifacts.iter().map(|made| made.weight()).sum(),
    };
    base_weight(&view.task) + artifacts + view.history().iter().map(|message| message.weight()).sum::<u64>()
}

/// A fast estimate whether a view fits, which spares nearly all views the exact measurement.
pub(crate) fn is_surely_light(view: &TaskView, bytes_max: u64) -> bool {
    let artifacts = view.artifacts != ArtifactView::Omitted;
    Measure::ABOUT.task(&view.task, artifacts).saturating_add(ENVELOPE_BYTES).saturating_mul(WEIGHT_PER_BYTE_MAX)
        <= bytes_max
}

/// A replacement for an update that does not fit into a frame; none if it fits as it is. `seq` is its number, by which
/// its contents can be downloaded.
pub(crate) fn fit_update(budget: &ReplyBudget, scope: &Scope, seq: Option<u64>, update: &Update) -> Option<Update> {
    match update {
        Update::Task(view) => (weight(view) > budget.bytes_max).then(|| Update::Task(fit(budget, scope, view.clone()))),
        Update::Artifact(update) => {
            let left = budget.bytes_max.saturating_sub(around(update));
            let weight: u64 = update.artifact.parts.iter().map(Part::weight).sum();
            (weight > left).then(|| Update::Artifact(linked(budget, scope, seq, update)))
        }
        Update::Status(_) | Update::Message(_) => None,
    }
}

/// A fast estimate whether an update fits, which spares nearly all updates the exact measurement.
pub(crate) fn is_surely_light_update(update: &Update, bytes_max: u64) -> bool {
    match update {
        Update::Task(view) => is_surely_light(view, bytes_max),
        Update::Artifact(update) => {
            let left = bytes_max.saturating_sub(around(update)) / WEIGHT_PER_BYTE_MAX;
            Measure::ABOUT.parts(&update.artifact.parts) <= left
        }
        Update::Status(_) | Update::Message(_) => true,
    }
}

/// The size of an update without the parts of its artifact.
fn around(update: &ArtifactUpdate) -> u64 {
    let ArtifactUpdate { artifact, metadata, .. } = update;
    let texts = [artifact.name(), artifact.description()].into_iter().flatten().map(str::len);
    let metadata = [metadata.as_ref(), artifact.metadata()].into_iter().flatten().map(|json| json.as_str().len());
    let bytes = texts.chain(metadata).chain(artifact.extensions().iter().map(String::len)).sum::<usize>() as u64;
    ENVELOPE_BYTES + bytes * WEIGHT_PER_BYTE_MAX
}

/// An update with links instead of contents. The first write of an artifact that is complete has the address of the
/// artifact. Any other has the address of what this one update wrote, so that a client which joins the pieces gets none
/// twice.
fn linked(budget: &ReplyBudget, scope: &Scope, seq: Option<u64>, update: &ArtifactUpdate) -> ArtifactUpdate {
    let ArtifactUpdate { task_id, artifact, append, last_chunk, .. } = update;
    let is_whole = !append && *last_chunk;
    let outline = Outline::of(artifact);
    let artifact = match seq.filter(|_| !is_whole) {
        None => budget.linked(scope, task_id, outline),
        Some(seq) => {
            let id = artifact.artifact_id.clone();
            outline.linked_by(|part| budget.links.update(scope, task_id, &id, seq, part))
        }
    };
    ArtifactUpdate { artifact: artifact.into(), ..update.clone() }
}

fn base_weight(task: &Task) -> u64 {
    let metadata = task.metadata.as_ref().map_or(0, |json| json.as_str().len() as u64 * WEIGHT_PER_BYTE_MAX);
    ENVELOPE_BYTES + metadata + task.status.message.as_ref().map_or(0, |message| message.weight())
}

/// The task with as few links as possible, and the size of its artifacts then.
fn fit_artifacts(budget: &ReplyBudget, scope: &Scope, task: &Arc<Task>, bytes_max: u64) -> (Arc<Task>, u64) {
    let mut weighed: Vec<(usize, u64)> = task.artifacts.iter().map(|made| made.weight()).enumerate().collect();
    let mut total: u64 = weighed.iter().map(|(_, weight)| weight).sum();
    weighed.sort_by_key(|(_, weight)| Reverse(*weight));
    let mut task = task.clone();
    for (place, weight) in weighed {
        if total <= bytes_max {
            break;
        }
        let linked = budget.linked(scope, &task.id, Outline::of(&task.artifacts[place]));
        let lighter = linked.weight();
        if lighter < weight {
            total = total - weight + lighter;
            Arc::make_mut(&mut task).artifacts[place] = linked.into();
        }
    }
    (task, total)
}

#[cfg(test)]
#[path = "reply_size_tests.rs"]
mod tests;
