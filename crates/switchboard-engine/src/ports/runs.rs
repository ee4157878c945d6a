//! Runs that should be at work, and the leases on them. A run is taken over by a commit
//! ([`LeaseChange::Claim`](super::commit::LeaseChange::Claim)); the methods here only read, or change leases, which are
//! not part of a task's history.

use switchboard_core::call::BoxFuture;
use switchboard_core::model::AgentName;

use super::common::{StoreError, TaskKey};
use super::task_log::StoredHead;

/// The port for runs and leases, one of the four ports of a store.
pub trait Runs: Send + Sync {
    /// Runs of these agents that no process holds: their lease has run out, was released and is due, or belonged to a
    /// process that is provably gone. At most `limit` are listed, and listing claims none of them. A run whose task
    /// cannot be read goes into quarantine, and the others are listed.
    fn due_runs<'a>(&'a self, agents: &'a [AgentName], limit: usize) -> BoxFuture<'a, Result<Vec<DueRun>, StoreError>>;

    /// The same for all other agents, in the order of their keys, after this key: runs that wait for a process that
    /// serves their agent. This may read all of them, so call it rarely.
    fn due_runs_of_others<'a>(
        &'a self,
        agents: &'a [AgentName],
        after: Option<TaskKey>,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<DueRun>, StoreError>>;

    /// Records that runs begin now which were claimed, or committed as waiting; returns those that this process has
    /// lost. The record is durable before a run has any effect. If the holder dies before it, the run was not
    /// interrupted, and the next claim is not another attempt.
    fn begin_runs(&self, begun: Vec<(TaskKey, u64)>) -> BoxFuture<'_, Result<Vec<TaskKey>, StoreError>>;

    /// Extends the leases that this process holds and returns those that it has lost. An expired lease that no other
    /// process has claimed can be renewed, so that a laptop that slept loses nothing.
    fn renew_leases(&self, held: Vec<(TaskKey, u64)>, lease_ms: u32)
    -> BoxFuture<'_, Result<Vec<TaskKey>, StoreError>>;

    /// Releases leases. This is not a failure of the runs: the next claim is not another attempt. A run whose
    /// cancellation was requested, before or after this, is due at once.
    fn release_leases(&self, released: Vec<Release>) -> BoxFuture<'_, Result<(), StoreError>>;

    /// Runs at work whose cancellation was requested. The process that recorded the request may be another one, or may
    /// have died before it could tell the run.
    fn canceled_runs(&self) -> BoxFuture<'_, Result<Vec<TaskKey>, StoreError>>;
}

/// A run that no process holds.
#[derive(Clone, Debug)]
pub struct DueRun {
    pub stored: StoredHead,
    /// Whether the run had begun when the process that held it died or stopped renewing. If not, the run was released
    /// or had not begun.
    pub interrupted: bool,
}

/// A released lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Release {
    pub key: TaskKey,
    pub fence: u64,
    /// How long no process may claim the run. It is a duration by the store's clock, because the clocks of processes
    /// differ.
    pub pause_ms: i64,
}
