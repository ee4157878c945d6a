//! GetTask: the task as it is now.

use switchboard_core::call::{Caller, Reply};
use switchboard_core::error::ProtocolError;
use switchboard_core::model::{TaskId, TaskView};

use crate::engine_state::{EngineState, Registered};

pub(crate) async fn get_task(
    engine: &EngineState,
    agent: &Registered,
    caller: &Caller,
    id: &TaskId,
    history_length: Option<u32>,
) -> Result<Reply, ProtocolError> {
    let scope = engine.scope(caller, agent);
    let stored = engine.live_task(&scope, id).await?;
    let view = TaskView { history_length, ..TaskView::whole(stored.folded.task.clone()) };
    Ok(Reply::Task(engine.fitted(&scope, view, engine.reply_bytes_max(caller))))
}
