//! The end of calls. When a run ends, its open calls end with it ([`Turn::end_calls`]): they are canceled if the run failed or was
//! canceled, and become continuations if the task waits for somebody. If the process dies before that, the loop that looks after
//! continuations ends them ([`end_left_over`]).

use std::sync::Arc;
use std::time::Duration;

use switchboard_core::call::{Owner, Request};
use switchboard_core::error::ProtocolError;
use switchboard_core::model::{TaskId, TraceContext};
use tokio::time::timeout;

use super::callees::{caller, find_callee};
use super::turn::Turn;
use crate::ports::Callee;
use crate::ports::calls::{CallRow, CallStep};
use crate::ports::store::{StoreError, TaskKey};
use crate::state::EngineState;
use crate::state::runs::RunEnd;
use crate::supervisor::Kind;

/// How long an agent that was called has to answer a cancellation. Within the engine's own patience with a canceled run.
pub(super) const CALL_CANCEL_MAX: Duration = Duration::from_secs(4);
/// How long a message may be under way whose run has ended, before the call counts as lost.
const CALL_UNANSWERED_MS_MAX: i64 = 600_000;

impl Turn {
    /// Ends the calls that nobody has the answer of, as the run has ended.
    pub(super) fn end_calls(&self, how: RunEnd) {
        let Some(calls) = self.calls_made() else { return };
        let open = {
            let mut state = calls.lock();
            state.ended = Some(how);
            std::mem::take(&mut state.open)
        };
        let Some(ending) = CallEnding::of(how).filter(|_| !open.is_empty()) else { return };
        let engine = self.engine_arc().clone();
        let task = self.record().id.clone();
        engine.clone().supervisor.spawn(Kind::Delivery, async move {
            let Some(calls) = engine.store.calls() else { return };
            for id in open {
                match calls.call(&id).await {
                    Ok(Some(row)) => end_call(&engine, row, ending).await,
                    Ok(None) => {}
                    Err(error) => tracing::warn!(%task, call = id, ?error, "an open call could not be ended"),
                }
            }
        });
    }
}

/// What happens to the open calls of a run that has ended.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum CallEnding {
    Cancel,
    HandOver,
    Leave,
}

impl CallEnding {
    /// None if the run goes on in another process, or later.
    pub(super) fn of(how: RunEnd) -> Option<Self> {
        match how {
            RunEnd::Completed | RunEnd::Replied => Some(Self::Leave),
            RunEnd::Paused | RunEnd::Continued => Some(Self::HandOver),
            RunEnd::Rejected
            | RunEnd::Failed
            | RunEnd::Error
            | RunEnd::Panicked
            | RunEnd::InvalidResponse
            | RunEnd::TimedOut
            | RunEnd::NotStarted
            | RunEnd::Canceled
            | RunEnd::StorageFull
            | RunEnd::Interrupted
            | RunEnd::Unserved => Some(Self::Cancel),
            RunEnd::Superseded | RunEnd::StoreFailed | RunEnd::Stopped => None,
        }
    }
}

/// Makes a call a continuation.
pub(super) fn hand_over(engine: &EngineState, deliver_to: Option<String>) -> CallStep {
    let give_up_ms = i64::from(engine.limits.continuation_s_max) * 1000;
    CallStep::HandOver { wait_ms: 0, give_up_ms, deliver_to }
}

pub(super) async fn end_call(engine: &Arc<EngineState>, row: CallRow, ending: CallEnding) {
    let Some(calls) = engine.store.calls() else { return };
    let step = match ending {
        CallEnding::Cancel => return cancel_call(engine, row).await,
        CallEnding::Leave => CallStep::Used,
        CallEnding::HandOver => hand_over(engine, None),
    };
    match calls.change_call(&row.id, step).await {
        Ok(_) if ending == CallEnding::HandOver => engine.look_later(&row.id),
        Ok(_) => {}
        Err(error) => tracing::warn!(call = row.id, ?error, "an open call could not be ended"),
    }
}

/// Ends a call that the run left open which made it, because its process died between the end of the run and the end of the call.
/// False if the run is still at work.
pub(crate) async fn end_left_over(engine: &Arc<EngineState>, row: &CallRow) -> Result<bool, StoreError> {
    // The calls of a task that is gone are gone with it.
    let Some(stored) = engine.store.head(&row.scope, &row.parent_id).await? else { return Ok(true) };
    let head = &stored.head;
    let is_at_work = head.running && head.turn == row.turn;
    let Some(ending) = CallEnding::of(RunEnd::shown_by(head, row.turn)).filter(|_| !is_at_work) else {
        return Ok(false);
    };
    if row.remote_task.is_none() {
        // The message may be under way, sent by a run that has ended meanwhile.
        if engine.now().ms_since(row.created_at) < CALL_UNANSWERED_MS_MAX {
            return Ok(false);
        }
        cancel_call(engine, row.clone()).await;
        return Ok(true);
    }
    end_call(engine, row.clone(), ending).await;
    Ok(true)
}

/// Cancels the calls of a task that are still open, because the task has ended without its run.
pub(crate) fn cancel_calls(engine: &Arc<EngineState>, parent: TaskKey) {
    let engine = engine.clone();
    engine.clone().supervisor.spawn(Kind::Delivery, async move {
        let Some(calls) = engine.store.calls() else { return };
        match calls.calls_of(parent).await {
            Ok(rows) => {
                for row in rows.into_iter().filter(|row| !row.status.is_over()) {
                    cancel_call(&engine, row).await;
                }
            }
            Err(error) => tracing::warn!(?error, "the open calls of a task that has ended could not be read"),
        }
    });
}

async fn cancel_call(engine: &Arc<EngineState>, row: CallRow) {
    let Some(calls) = engine.store.calls() else { return };
    let CallRow { id, scope, agent, remote_task, parent_id, trace, .. } = row;
    if let Some(task) = &remote_task {
        let canceling = async {
            let callee = find_callee(engine, &scope.owner, &agent).await.map_err(|error| error.to_string())?;
            cancel_remote(&callee, &scope.owner, task, trace.as_ref()).await.map_err(|error| error.to_string())
        };
        match timeout(CALL_CANCEL_MAX, canceling).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::warn!(task = %parent_id, agent, remote = %task, error, "call was not canceled"),
            Err(_) => tracing::warn!(task = %parent_id, agent, remote = %task, "call was not canceled in time"),
        }
    }
    let error = "its task ended without it".to_owned();
    if let Err(error) = calls.change_call(&id, CallStep::Failed { error }).await {
        tracing::warn!(task = %parent_id, call = id, ?error, "an open call could not be ended");
    }
}

pub(super) async fn cancel_remote(
    callee: &Callee,
    owner: &Owner,
    task: &TaskId,
    trace: Option<&Arc<TraceContext>>,
) -> Result<(), ProtocolError> {
    let request = Request::CancelTask { id: task.clone(), metadata: None };
    match callee.endpoint.call(caller(owner, trace), request).await {
        // It has ended by itself.
        Ok(_) | Err(ProtocolError::TaskNotCancelable { .. }) => Ok(()),
        Err(error) => Err(error),
    }
}
