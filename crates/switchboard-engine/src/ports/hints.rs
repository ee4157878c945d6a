//! Hints tell other processes that a task has changed. A hint may arrive twice, late, or never. A lost hint costs
//! latency but no data, because the process that gets a hint reads the log.
//!
//! Commits of this process reach its own followers without a hint.

use std::sync::Arc;

use switchboard_core::model::TaskId;

/// The newest event of a task. For a record that was closed by a direct reply, and never became a task, the number is
/// 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hint<'a> {
    pub task: &'a TaskId,
    /// The number of its newest visible event.
    pub seq: u64,
}

pub trait Hints: Send + Sync {
    /// Tells all processes that share the store. The sender may receive its own hint.
    fn notify(&self, hint: Hint<'_>);
    /// Sets the receiver of hints; called once, at start.
    fn listen(&self, sink: Arc<dyn HintSink>);
}

pub trait HintSink: Send + Sync {
    fn hint(&self, hint: Hint<'_>);
}
