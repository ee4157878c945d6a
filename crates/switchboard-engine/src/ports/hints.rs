//! "Look again." A hint says that a task has new commits; it may come twice, late, or never. Losing one costs latency,
//! never data, because readers read the log.

use std::sync::Arc;

use switchboard_core::lifecycle::Event;
use switchboard_core::model::{ContextId, TaskId};

/// One commit, as told to whoever follows the task. The events ride along so that a follower that has everything
/// before `first_seq` need not read them back.
#[derive(Clone, Copy)]
pub struct Hint<'a> {
    pub task_id: &'a TaskId,
    pub context_id: &'a ContextId,
    /// The number of the first visible event in `events`.
    pub first_seq: u64,
    pub events: &'a [Event],
}

pub trait Hints: Send + Sync {
    fn notify(&self, hint: Hint<'_>);
    /// Where hints are to go; called once, at start.
    fn listen(&self, sink: Arc<dyn HintSink>);
}

pub trait HintSink: Send + Sync {
    fn hint(&self, hint: Hint<'_>);
}
