//! GetTask: the task as it is now.

use switchboard_core::call::{Caller, Reply};
use switchboard_core::error::ProtocolError;
use switchboard_core::model::{ArtifactView, TaskId, TaskView};

use crate::house::{House, Registered};

pub(crate) async fn get_task(
    house: &House,
    agent: &Registered,
    caller: &Caller,
    id: &TaskId,
    history_length: Option<u32>,
) -> Result<Reply, ProtocolError> {
    let stored = house.live_task(&house.scope(caller, agent), id).await?;
    let task = stored.folded.task.clone();
    Ok(Reply::Task(TaskView { task, history_length, artifacts: ArtifactView::Shown }))
}
