//! The runs at work in this process: cancel finds them here, and the sweeper renews their leases. Their number is
//! limited per process, and per agent if the agent limits it; the others wait, and owners take turns. A run begins when it has a slot,
//! and the store also knows whether it has begun.
//!
//! Runs hold, and count for their owner, a place among those that wait and the bytes of their message ([`RunHold`]). A message that would
//! hold too much is refused before it is stored. A run that is stored already is counted, whatever it comes to.

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use switchboard_core::call::Owner;
use switchboard_core::error::ProtocolError;
use switchboard_core::model::{Json, Measure, Message, Task, TaskId, TaskState, content_bytes};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::Turn;
use super::fair_slots::{FairSlot, FairSlots};
use crate::budget::{Budget, BudgetUse, Charge, OverBudget};
use crate::commit::Record;
use crate::engine_state::{EngineState, Registered};
use crate::id_hash::SeededHash;
use crate::ports::store::TaskKey;

#[derive(Clone, Default)]
pub(crate) struct RunRegistry {
    runs: Arc<Mutex<Entries>>,
}

#[derive(Default)]
struct Entries {
    /// In order of keys, so that a simulation takes the same steps every time.
    by_key: BTreeMap<TaskKey, Entry>,
    /// For hints, which name a task by its id. Seeded: in some dialects clients choose ids.
    by_id: HashMap<TaskId, TaskKey, SeededHash>,
}

impl Entries {
    fn insert(&mut self, key: TaskKey, entry: Entry) {
        self.by_id.insert(entry.record.id.clone(), key);
        self.by_key.insert(key, entry);
    }

    fn remove(&mut self, key: TaskKey) {
        if let Some(entry) = self.by_key.remove(&key) {
            self.by_id.remove(&entry.record.id);
        }
    }
}

struct Entry {
    fence: u64,
    record: Arc<Record>,
    cancel: CancellationToken,
    /// Cancelled to drop the run at once, because its lease is lost.
    lost: CancellationToken,
    begun: Arc<AtomicBool>,
    since: Instant,
}

impl Entry {
    /// Whether the run still needs its lease. A run that has ended its turn by its own commit, and only cleans up, has
    /// no lease; it must not be treated as lost.
    fn holds_lease(&self) -> bool {
        self.record.with_head(|head| head.running && head.fence == self.fence)
    }
}

/// A run that has the lease on its task.
pub(crate) struct HeldRun {
    pub(crate) key: TaskKey,
    pub(crate) fence: u64,
    pub(crate) record: Arc<Record>,
    begun: Arc<AtomicBool>,
}

impl HeldRun {
    /// Whether its agent has been started by now; if not, the run waits for its slot.
    pub(crate) fn has_begun(&self) -> bool {
        self.begun.load(Ordering::Relaxed)
    }
}

impl RunRegistry {
    /// Registers a run until the guard is dropped. If the task is already at work under a later fence, the run is not
    /// registered.
    pub(crate) fn register(&self, record: Arc<Record>, key: TaskKey, fence: u64, cancel: CancellationToken) -> Guard {
        let (lost, begun) = (CancellationToken::new(), Arc::new(AtomicBool::new(false)));
        let mut runs = self.lock();
        if runs.by_key.get(&key).is_none_or(|entry| entry.fence <= fence) {
            let entry =
                Entry { fence, record, cancel, lost: lost.clone(), begun: begun.clone(), since: Instant::now() };
            runs.insert(key, entry);
        }
        drop(runs);
        Guard { registry: self.clone(), key, fence, lost, begun }
    }

    /// Tells the run of a task to stop; false if it is not in this process.
    pub(crate) fn cancel(&self, key: TaskKey) -> bool {
        let runs = self.lock();
        let entry = runs.by_key.get(&key);
        if let Some(entry) = entry {
            entry.cancel.cancel();
        }
        entry.is_some()
    }

    /// Whether a run of this task is in this process.
    pub(crate) fn has(&self, id: &TaskId) -> bool {
        self.lock().by_id.contains_key(id)
    }

    /// Tells those of these runs that are in this process to stop.
    pub(crate) fn cancel_all(&self, keys: &[TaskKey]) {
        let runs = self.lock();
        for entry in keys.iter().filter_map(|key| runs.by_key.get(key)) {
            entry.cancel.cancel();
        }
    }

    /// The leases this process holds.
    pub(crate) fn held(&self) -> Vec<(TaskKey, u64)> {
        let runs = self.lock();
        runs.by_key.iter().filter(|(_, entry)| entry.holds_lease()).map(|(key, entry)| (*key, entry.fence)).collect()
    }

    /// The same, with the state of each run.
    pub(crate) fn held_runs(&self) -> Vec<HeldRun> {
        let runs = self.lock();
        let held = runs.by_key.iter().filter(|(_, entry)| entry.holds_lease()).map(|(key, entry)| HeldRun {
            key: *key,
            fence: entry.fence,
            record: entry.record.clone(),
            begun: entry.begun.clone(),
        });
        held.collect()
    }

    /// Whether this process is at work on a task under this fence.
    pub(crate) fn is_at_work(&self, key: TaskKey, fence: u64) -> bool {
        self.lock().by_key.get(&key).is_some_and(|entry| entry.fence >= fence)
    }

    /// Drops those of the `held` runs whose lease is gone; their writes would be fenced off anyway. A later run of the
    /// same task that was registered meanwhile holds a lease of its own, and one that has ended its turn meanwhile needs
    /// none.
    pub(crate) fn drop_lost(&self, held: &[(TaskKey, u64)], lost: &[TaskKey]) {
        if lost.is_empty() {
            return;
        }
        let runs = self.lock();
        for (key, fence) in held.iter().filter(|(key, _)| lost.contains(key)) {
            let entry = runs.by_key.get(key).filter(|entry| entry.fence == *fence && entry.holds_lease());
            if let Some(entry) = entry {
                entry.lost.cancel();
            }
        }
    }

    /// How many runs wait to be started, and how long the oldest of them has waited.
    pub(crate) fn waiting(&self) -> (usize, Duration) {
        let runs = self.lock();
        let waiting = runs.by_key.values().filter(|entry| !entry.begun.load(Ordering::Relaxed));
        let (count, oldest) = waiting.fold((0, None), |(count, oldest): (usize, Option<Instant>), entry| {
            (count + 1, Some(oldest.map_or(entry.since, |oldest| oldest.min(entry.since))))
        });
        (count, oldest.map_or(Duration::ZERO, |oldest| oldest.elapsed()))
    }

    /// How many runs are at work.
    pub(crate) fn len(&self) -> usize {
        self.lock().by_key.len()
    }

    fn lock(&self) -> MutexGuard<'_, Entries> {
        self.runs.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Keeps a run registered until it is dropped.
pub(crate) struct Guard {
    registry: RunRegistry,
    key: TaskKey,
    fence: u64,
    lost: CancellationToken,
    begun: Arc<AtomicBool>,
}

impl Guard {
    pub(crate) fn lost(&self) -> &CancellationToken {
        &self.lost
    }

    /// Notes that the agent is at work from here on.
    pub(crate) fn begins(&self) {
        self.begun.store(true, Ordering::Relaxed);
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        let mut runs = self.registry.lock();
        // A later run of the same task may have been registered meanwhile.
        if runs.by_key.get(&self.key).is_some_and(|entry| entry.fence == self.fence) {
            runs.remove(self.key);
        }
    }
}

/// A slot among the runs of this process and of its agent, until it is dropped.
pub(crate) struct RunSlot {
    _of_process: FairSlot,
    _of_agent: Option<FairSlot>,
}

/// Whether the store knows that a run has begun.
pub(crate) enum Begun {
    /// Its commit recorded that. Most such runs had a slot then. A run that started before its message was stored, for
    /// an agent without a limit, may still have to wait for a slot of the process.
    Already(Option<RunSlot>),
    /// The run waits or was claimed. Its beginning is recorded when it has a slot.
    NotYet,
}

/// The result of waiting for a slot.
pub(super) enum Waited {
    HasSlot(RunSlot),
    /// The run was canceled before it began.
    Canceled,
    /// The run was not started within the time that a task may wait.
    TooLate {
        max_s: u32,
    },
    /// The run is no longer needed.
    LetGo,
}

impl EngineState {
    /// A slot for a run of this agent, if one is free now. None while other runs wait, because they come first.
    pub(crate) fn free_slot(&self, agent: &Registered) -> Option<RunSlot> {
        let of_agent = match agent.source.slots() {
            Some(slots) => Some(slots.try_take()?),
            None => None,
        };
        let of_process = self.run_slots.try_take()?;
        Some(RunSlot { _of_process: of_process, _of_agent: of_agent })
    }

    /// Whether other runs may be waiting for the slot that a run of this agent has.
    pub(super) fn is_crowded(&self, agent: &Registered) -> bool {
        agent.source.slots().is_some_and(FairSlots::is_full) || self.run_slots.is_full()
    }

    async fn next_slot(&self, agent: &Registered, owner: &Owner) -> RunSlot {
        let of_agent = match agent.source.slots() {
            Some(slots) => Some(slots.take(owner).await),
            None => None,
        };
        let of_process = self.run_slots.take(owner).await;
        RunSlot { _of_process: of_process, _of_agent: of_agent }
    }

    /// Waits for a slot.
    pub(super) async fn wait_for_slot(&self, agent: &Arc<Registered>, turn: &Turn, lost: &CancellationToken) -> Waited {
        let too_late = async {
            let Some(max_s) = self.limits.queued_s_max else { return std::future::pending().await };
            let waited_ms = turn.record().with_head(|head| match head.state {
                TaskState::Submitted => self.now().ms_since(head.status_at),
                _ => 0,
            });
            let waited = Duration::from_millis(u64::try_from(waited_ms).unwrap_or_default());
            tokio::time::sleep(Duration::from_secs(max_s.into()).saturating_sub(waited)).await;
            max_s
        };
        tokio::select! {
            biased;
            () = lost.cancelled() => Waited::LetGo,
            () = turn.cancel_token().cancelled() => Waited::Canceled,
            slot = self.next_slot(agent, &turn.record().scope.owner) => Waited::HasSlot(slot),
            max_s = too_late => Waited::TooLate { max_s },
        }
    }
}

/// A message of up to so many bytes is not counted: the number of runs bounds what they take together.
const UNCOUNTED_BYTES_MAX: u64 = 16 << 10;

/// How long a caller is asked to wait for its runs to end.
const RETRY_AFTER_S: u32 = 5;

/// What one run holds, until this is dropped.
#[derive(Debug, Default)]
pub(crate) struct RunHold {
    _bytes: Option<Charge<Owner>>,
    _task: Option<Charge<Owner>>,
    place: Option<Charge<Owner>>,
}

impl RunHold {
    /// The run waits no longer.
    pub(super) fn begins(&mut self) {
        self.place = None;
    }
}

/// What runs hold, for `/metrics`.
#[derive(Clone, Copy, Debug, Default)]
pub struct RunHoldUse {
    /// Runs that wait for a slot.
    pub queued: BudgetUse,
    /// Bytes of the messages that runs hold.
    pub message_bytes: BudgetUse,
}

impl EngineState {
    /// Counts the bytes of a message for as long as its run holds them.
    pub(crate) fn hold_message(&self, owner: &Owner, message: &Message) -> Result<RunHold, ProtocolError> {
        let bytes = held_bytes(message);
        let taken = (bytes > UNCOUNTED_BYTES_MAX).then(|| self.run_bytes.take(owner.clone(), bytes)).transpose();
        let bytes = taken.map_err(too_many_bytes)?;
        Ok(RunHold { _bytes: bytes, ..RunHold::default() })
    }

    /// Counts the bytes of a task whose run holds it, with its earlier messages and artifacts.
    pub(crate) fn hold_task(&self, owner: &Owner, task: &Task, hold: &mut RunHold) -> Result<(), ProtocolError> {
        let bytes = Measure::ABOUT.task(task, true);
        if bytes > UNCOUNTED_BYTES_MAX {
            hold._task = Some(self.run_bytes.take(owner.clone(), bytes).map_err(too_many_bytes)?);
        }
        Ok(())
    }

    /// Takes a place among the runs that wait for a slot.
    pub(crate) fn hold_queue_place(&self, owner: &Owner, hold: &mut RunHold) -> Result<(), ProtocolError> {
        let place = self.queued_runs.take(owner.clone(), 1).map_err(|over| {
            refusal(match over {
                OverBudget::Each(max) => {
                    format!("{max} of your tasks wait to be started, the most one caller may have")
                }
                OverBudget::All(max) => format!("{max} tasks wait to be started, the most that this server keeps"),
            })
        })?;
        hold.place = Some(place);
        Ok(())
    }

    /// What a run holds that cannot be refused, because its message was accepted before.
    pub(crate) fn hold_accepted(&self, owner: &Owner, task: &Task, waits: bool) -> RunHold {
        let taken = |budget: &Budget<Owner>, amount: u64| budget.take_anyway(owner.clone(), amount);
        let bytes = Measure::ABOUT.task(task, true);
        RunHold {
            _bytes: None,
            _task: (bytes > UNCOUNTED_BYTES_MAX).then(|| taken(&self.run_bytes, bytes)),
            place: waits.then(|| taken(&self.queued_runs, 1)),
        }
    }
}

fn held_bytes(message: &Message) -> u64 {
    content_bytes(&message.parts)
        + message.metadata.as_ref().map_or(0, |metadata: &Json| metadata.as_str().len() as u64)
}

fn too_many_bytes(over: OverBudget) -> ProtocolError {
    refusal(match over {
        OverBudget::Each(max) => format!("your tasks at work hold more than {max} bytes"),
        OverBudget::All(max) => format!("all tasks at work together hold more than {max} bytes"),
    })
}

fn refusal(reason: String) -> ProtocolError {
    ProtocolError::ResourceExhausted { reason, retry_after_s: RETRY_AFTER_S }
}

#[cfg(test)]
#[path = "registry_tests.rs"]
mod tests;
