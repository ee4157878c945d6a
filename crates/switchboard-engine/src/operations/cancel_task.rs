//! CancelTask: records the request, tells the run to stop, and replies with the task once the run has stopped. A run
//! that does not stop in time is fenced off: its later writes are refused.

use std::sync::Arc;
use std::time::Duration;

use switchboard_core::call::{Caller, Reply};
use switchboard_core::error::ProtocolError;
use switchboard_core::lifecycle::{Command, Refusal};
use switchboard_core::model::{Json, TaskId, TaskState, TaskView};
use tokio::time::Instant;

use crate::commit::WriteError;
use crate::ports::store::{Scope, StoredHead};
use crate::runs::{Registered, cancel_left_over};
use crate::state::EngineState;
use crate::state::record::Record;
use crate::watching::{Until, wait_until};

const TELL_AGAIN: Duration = Duration::from_millis(50);

pub(crate) async fn cancel_task(
    engine: &Arc<EngineState>,
    agent: &Arc<Registered>,
    caller: &Caller,
    id: &TaskId,
    metadata: Option<Json>,
) -> Result<Reply, ProtocolError> {
    if !caller.dialect.rules().cancels_again {
        let stored = engine.live_task(&engine.scope(caller, agent), id).await?;
        if stored.head.state == TaskState::Canceled {
            return Err(ProtocolError::TaskNotCancelable { id: id.clone(), state: TaskState::Canceled });
        }
    }
    // If the caller disconnects, the work goes on, so that a recorded request always reaches its run.
    let bytes_max = engine.reply_bytes_max(caller);
    let scope = engine.scope(caller, agent);
    let work = cancel(engine.clone(), agent.clone(), scope, id.clone(), metadata, bytes_max);
    engine.supervisor.unbroken(Box::pin(work)).await
}

async fn cancel(
    engine: Arc<EngineState>,
    agent: Arc<Registered>,
    scope: Scope,
    id: TaskId,
    metadata: Option<Json>,
    bytes_max: u64,
) -> Result<Reply, ProtocolError> {
    let (engine, id) = (&engine, &id);
    let stored = engine.live_task(&scope, id).await?;
    let was_canceled = stored.head.state == TaskState::Canceled;
    let head = StoredHead { key: stored.key, scope: scope.clone(), head: stored.head.clone() };
    let record = Record::stored(head);
    record.trace.set(stored.folded.open_turns.first().and_then(|inbound| inbound.trace.as_ref()));
    engine.write(&record, Command::RequestCancel { metadata }).await.map_err(WriteError::into_protocol)?;
    let running = record.with_head(|head| head.running);
    if !running && !was_canceled {
        cancel_left_over(engine, &agent, &scope.owner, &stored).await;
    }
    if running && !tell_and_wait(engine, &record).await? && !engine.supervisor.is_draining() {
        engine.reload(&record).await.map_err(WriteError::into_protocol)?;
        let Some(inbound) = stored.folded.open_turns.first().cloned() else {
            return Err(ProtocolError::task_not_found(id));
        };
        match engine.write(&record, Command::Revoke { inbound, state: TaskState::Canceled, message: None }).await {
            Ok(_) | Err(WriteError::Refused(Refusal::Closed { .. })) => {}
            Err(error) => return Err(error.into_protocol()),
        }
    }
    let stored = engine.live_task(&scope, id).await?;
    match stored.head.state {
        // The task can still be submitted or working only if the process is shutting down. The request is recorded, and
        // the next process carries it out.
        TaskState::Canceled | TaskState::Submitted | TaskState::Working => {
            Ok(Reply::Task(engine.fitted(&scope, TaskView::whole(stored.folded.task.clone()), bytes_max)))
        }
        state => Err(ProtocolError::TaskNotCancelable { id: id.clone(), state }),
    }
}

/// Tells the run to stop and waits until it has; false if it has not stopped in time. A run that is about to begin is
/// not registered yet, so it is told repeatedly. A run that waits for its next attempt is due now, and the sweeper ends
/// it.
async fn tell_and_wait(engine: &EngineState, record: &Record) -> Result<bool, ProtocolError> {
    // The runner ends a run after the grace period. A run in a process that does not answer is fenced off here.
    let until = Instant::now() + Duration::from_millis(u64::from(engine.limits.cancel_grace_ms) + 1_000);
    loop {
        let told = record.key().is_some_and(|key| engine.runs.cancel(key));
        if !told {
            engine.runs_due.notify_one();
        }
        let left = until.saturating_duration_since(Instant::now());
        let patience = if told { left } else { left.min(TELL_AGAIN) };
        if wait_until(engine, record, Until::Ended, patience).await? {
            return Ok(true);
        }
        if told || left <= patience || engine.supervisor.is_draining() {
            return Ok(false);
        }
    }
}
