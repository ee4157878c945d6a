//! What receivers of older dialects are sent: not what happened, but the task as it stands.

use bytes::Bytes;
use switchboard_core::model::TaskView;
use switchboard_core::model::redact::redact_view;

use crate::engine_state::EngineState;
use crate::ports::store::{Delivery, StoreError};

/// The task as it stands and the number of its newest update; none if it is no longer kept.
pub(super) async fn whole_task(engine: &EngineState, delivery: &Delivery) -> Result<Option<(u64, Bytes)>, StoreError> {
    let Some(stored) = engine.stored_task(&delivery.scope, &delivery.task_id).await? else { return Ok(None) };
    let mut body = Vec::with_capacity(1024);
    let view =
        engine.fitted(&delivery.scope, TaskView::whole(stored.folded.task.clone()), engine.limits.reply_bytes_max);
    delivery.dialect.write_pushed_task(&redact_view(view), &mut body);
    Ok(Some((stored.head.seq, body.into())))
}
