//! SubscribeToTask: a snapshot, then every update after it. With `Last-Event-ID` the stream resumes: it has no snapshot
//! and shows exactly the updates after that number, also for a task that has ended.

use std::collections::VecDeque;
use std::sync::Arc;

use switchboard_core::call::{Caller, Reply};
use switchboard_core::error::ProtocolError;
use switchboard_core::lifecycle::StreamKind;
use switchboard_core::model::TaskId;

use crate::engine_state::{EngineState, Registered};
use crate::watching::{Following, follow, resume, snapshot};

pub(crate) async fn subscribe(
    engine: &Arc<EngineState>,
    agent: &Registered,
    caller: &Caller,
    id: &TaskId,
) -> Result<Reply, ProtocolError> {
    agent.require_streaming(caller.dialect)?;
    let scope = engine.scope(caller, agent);
    let stored = engine.live_task(&scope, id).await?;
    if let Some(cursor) = &caller.last_event_id {
        return resume(engine, scope, &stored, StreamKind::Subscribe, cursor).await;
    }
    if stored.head.state.is_terminal() {
        let reason = format!(
            "Task {id} is {} and has no more updates; read it with {}, or resume with Last-Event-ID",
            stored.head.state.word(),
            caller.dialect.rules().words.get_task
        );
        return Err(ProtocolError::unsupported(reason));
    }
    let first = VecDeque::from([snapshot(engine, &scope, &stored, None)]);
    let cursor = stored.head.seq;
    follow(engine, Following::of(scope, &stored), StreamKind::Subscribe, first, cursor).await
}
