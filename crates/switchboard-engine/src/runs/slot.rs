//! Slots for runs. The number of runs at work is limited per process, and per agent if the agent limits it; the others
//! wait in order. A run begins when it has a slot. The store also knows whether it has begun.

use std::sync::Arc;
use std::time::Duration;

use switchboard_core::model::TaskState;
use tokio::sync::OwnedSemaphorePermit;
use tokio_util::sync::CancellationToken;

use super::Turn;
use crate::engine_state::{EngineState, Registered};

/// A slot among the runs of this process and of its agent, until it is dropped.
pub(crate) struct RunSlot {
    _of_process: OwnedSemaphorePermit,
    _of_agent: Option<OwnedSemaphorePermit>,
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
            Some(slots) => Some(slots.clone().try_acquire_owned().ok()?),
            None => None,
        };
        let of_process = self.run_slots.clone().try_acquire_owned().ok()?;
        Some(RunSlot { _of_process: of_process, _of_agent: of_agent })
    }

    /// Whether other runs may be waiting for the slot that a run of this agent has.
    pub(super) fn is_crowded(&self, agent: &Registered) -> bool {
        let none_left = agent.source.slots().is_some_and(|slots| slots.available_permits() == 0);
        none_left || self.run_slots.available_permits() == 0
    }

    async fn next_slot(&self, agent: &Registered) -> Option<RunSlot> {
        let of_agent = match agent.source.slots() {
            Some(slots) => Some(slots.clone().acquire_owned().await.ok()?),
            None => None,
        };
        let of_process = self.run_slots.clone().acquire_owned().await.ok()?;
        Some(RunSlot { _of_process: of_process, _of_agent: of_agent })
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
            slot = self.next_slot(agent) => slot.map_or(Waited::LetGo, Waited::HasSlot),
            max_s = too_late => Waited::TooLate { max_s },
        }
    }
}
