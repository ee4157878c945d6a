//! CancelTask: the intent is recorded, the run is told, and the answer is the task once it has stopped. A run that does
//! not stop in time is fenced off.

use std::time::Duration;

use switchboard_core::call::{Caller, Reply};
use switchboard_core::error::ProtocolError;
use switchboard_core::lifecycle::{Command, Refusal};
use switchboard_core::model::{Json, TaskId, TaskState, TaskView};

use crate::commit::{Record, WriteError};
use crate::house::{House, Registered};
use crate::ports::store::StoredHead;
use crate::watching::{Until, wait_until};

pub(crate) async fn cancel_task(
    house: &House,
    agent: &Registered,
    caller: &Caller,
    id: &TaskId,
    metadata: Option<Json>,
) -> Result<Reply, ProtocolError> {
    let scope = house.scope(caller, agent);
    let stored = house.live_task(&scope, id).await?;
    let record = Record::stored(StoredHead { key: stored.key, scope: scope.clone(), head: stored.head });
    house.write(&record, Command::RequestCancel { metadata }).await.map_err(WriteError::into_protocol)?;
    if record.with_head(|head| head.running) {
        house.runs.cancel(id);
        // The runner cuts a run off after the grace period; a run on a node that does not answer is cut off from here.
        let patience = Duration::from_millis(u64::from(house.limits.cancel_grace_ms) + 1_000);
        let settled = wait_until(house, &record, Until::Settled, patience).await?;
        if !settled && !house.supervisor.is_draining() {
            house.reload(&record).await.map_err(WriteError::into_protocol)?;
            let Some(inbound) = stored.folded.open_turns.first().cloned() else {
                return Err(ProtocolError::task_not_found(id));
            };
            match house.write(&record, Command::Revoke { inbound, state: TaskState::Canceled, message: None }).await {
                Ok(_) | Err(WriteError::Refused(Refusal::Closed { .. })) => {}
                Err(error) => return Err(error.into_protocol()),
            }
        }
    }
    let stored = house.live_task(&scope, id).await?;
    match stored.head.state {
        // Still submitted or working only when the process is going down: the intent is recorded and will be obeyed.
        TaskState::Canceled | TaskState::Submitted | TaskState::Working => {
            Ok(Reply::Task(TaskView::whole(stored.folded.task.clone())))
        }
        state => Err(ProtocolError::TaskNotCancelable { id: id.clone(), state }),
    }
}
