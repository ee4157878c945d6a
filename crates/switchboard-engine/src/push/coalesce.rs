//! The newest state instead of a long backlog, for receivers far behind. Off unless the operator wants it.

use switchboard_core::model::{TaskView, Update};

use super::payload::{Payload, encode};
use crate::engine_state::EngineState;
use crate::ports::store::{Delivery, StoreError};

/// A task larger than this is delivered update by update: its newest state is no less work than its backlog.
const STATE_BYTES_MAX: u64 = 1 << 20;

/// The whole task as it is now, under the number of its newest update; none if the receiver is not that far behind, the
/// setting is off, or the task is too large.
pub(super) async fn newest_state(engine: &EngineState, delivery: &Delivery) -> Result<Option<Payload>, StoreError> {
    let after = u64::from(engine.limits.delivery_coalesce_after);
    if after == 0 || delivery.task_seq.saturating_sub(delivery.delivered_seq) <= after {
        return Ok(None);
    }
    let Some(stored) = engine.store.head(&delivery.scope, &delivery.task_id).await? else { return Ok(None) };
    // Asked of the head first, so that a large task is not even read.
    if stored.head.artifacts.iter().map(|artifact| artifact.bytes).sum::<u64>() > STATE_BYTES_MAX {
        return Ok(None);
    }
    let Some(stored) = engine.stored_task(&delivery.scope, &delivery.task_id).await? else { return Ok(None) };
    let seq = stored.head.seq;
    let body = encode(delivery.dialect, &Update::Task(TaskView::whole(stored.folded.task.clone())));
    if seq <= delivery.delivered_seq || body.len() as u64 > 2 * STATE_BYTES_MAX {
        return Ok(None);
    }
    let skipped = seq - delivery.delivered_seq - 1;
    Ok(Some(Payload { seq, skipped, body }))
}
