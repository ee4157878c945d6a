//! How many runs are at work is limited per process, and per agent if the agent limits it; the others wait, and owners take turns. A run
//! begins when it has a slot, and the store also knows whether it has begun.
//!
//! Runs hold, and count for their owner, a place among those that wait and the bytes of their message ([`RunHold`]). A message that would
//! hold too much is refused before it is stored. A run that is stored already is counted, whatever it comes to.

use std::sync::Arc;
use std::time::Duration;

use switchboard_core::call::Owner;
use switchboard_core::error::ProtocolError;
use switchboard_core::model::{Json, Measure, Message, Task, TaskState, content_bytes};
use tokio_util::sync::CancellationToken;

use super::agent::Registered;
use super::turn::Turn;
use crate::budget::{Budget, BudgetUse, Charge, OverBudget};
use crate::state::EngineState;
use crate::state::runs::{FairSlot, FairSlots};

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
