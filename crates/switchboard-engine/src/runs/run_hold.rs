//! What runs hold and count for their owner: a place among those that wait, and the bytes of their message. A message that would
//! hold too much is refused before it is stored. A run that is stored already is counted, whatever it comes to.

use switchboard_core::call::Owner;
use switchboard_core::error::ProtocolError;
use switchboard_core::model::{Json, Measure, Message, Task, content_bytes};

use crate::budget::{Budget, BudgetUse, Charge, OverBudget};
use crate::engine_state::EngineState;

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
