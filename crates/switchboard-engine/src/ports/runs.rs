//! Runs that ought to be at work, and who holds them. A run is taken over by a commit
//! ([`LeaseChange::Claim`](super::commit::LeaseChange::Claim)); everything here reads, or moves leases, which are no part of
//! a task's history.

use switchboard_core::call::BoxFuture;
use switchboard_core::model::AgentName;

use super::store_types::StoreError;
use super::store_types::TaskKey;
use super::task_log::StoredHead;

/// The second of the four ports of a store.
pub trait Runs: Send + Sync {
    /// Runs of these agents that nobody holds: their lease has run out, was released and is due, or belonged to a process
    /// that is provably gone. At most `limit`, and none of them is claimed by this. A run whose task cannot be read goes
    /// into quarantine, and the others are listed.
    fn due_runs<'a>(&'a self, agents: &'a [AgentName], limit: usize) -> BoxFuture<'a, Result<Vec<DueRun>, StoreError>>;

    /// The same of all other agents, in the order of their keys, after this one: runs that wait for a process that serves
    /// their agent. It may look at all of them, so it is to be asked seldom.
    fn due_runs_of_others<'a>(
        &'a self,
        agents: &'a [AgentName],
        after: Option<TaskKey>,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<DueRun>, StoreError>>;

    /// Records that claimed runs, and those committed as waiting, begin now; says which of them this process has lost.
    /// It is durable before a run has any effect: if the holder dies before, the run was not interrupted, and the next
    /// claim is no further attempt.
    fn begin_runs(&self, begun: Vec<(TaskKey, u64)>) -> BoxFuture<'_, Result<Vec<TaskKey>, StoreError>>;

    /// Extends the leases this process holds and says which it has lost. Renewing an expired lease that nobody claimed
    /// is allowed: a laptop that slept has lost nothing.
    fn renew_leases(&self, held: Vec<(TaskKey, u64)>, lease_ms: u32)
    -> BoxFuture<'_, Result<Vec<TaskKey>, StoreError>>;

    /// Gives leases back. It is no failure of the runs: the claim that follows is not another attempt. One that somebody has
    /// asked to cancel, before or after this, waits for nothing: it is due at once.
    fn release_leases(&self, released: Vec<Release>) -> BoxFuture<'_, Result<(), StoreError>>;

    /// Runs at work that somebody has asked to cancel. Whoever recorded the intent may have died, or be another process,
    /// before it could tell the run.
    fn canceled_runs(&self) -> BoxFuture<'_, Result<Vec<TaskKey>, StoreError>>;
}

/// A run that nobody holds.
#[derive(Clone, Debug)]
pub struct DueRun {
    pub stored: StoredHead,
    /// Whether it had begun, and the process that held it died or fell silent. If not, it was given back in order or had
    /// not begun.
    pub interrupted: bool,
}

/// A lease given back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Release {
    pub key: TaskKey,
    pub fence: u64,
    /// How long nobody is to claim the run, by the store's clock: processes do not agree on the time of day.
    pub pause_ms: i64,
}
