//! "Look again." A hint tells other processes that a task has come further; it may come twice, late, or never. Losing one
//! costs latency, never data, because whoever is told reads the log.
//!
//! What this process commits reaches its own followers without a hint.

use std::sync::Arc;

use switchboard_core::model::TaskId;

/// How far a task has come. A record that was closed by a direct reply, without ever being a task, is hinted at with 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hint<'a> {
    pub task: &'a TaskId,
    /// The number of its newest visible event.
    pub seq: u64,
}

pub trait Hints: Send + Sync {
    /// Tells all processes that share the store. The one that tells may be told, too.
    fn notify(&self, hint: Hint<'_>);
    /// Where hints are to go; called once, at start.
    fn listen(&self, sink: Arc<dyn HintSink>);
}

pub trait HintSink: Send + Sync {
    fn hint(&self, hint: Hint<'_>);
}
