//! GetTask: the task as it is now.

use switchboard_core::call::{Caller, Reply};
use switchboard_core::error::ProtocolError;
use switchboard_core::model::{TaskId, TaskView};

use crate::house::{House, Registered};

pub(crate) async fn get_task(
    house: &House,
    agent: &Registered,
    caller: &Caller,
    id: &TaskId,
    history_length: Option<u32>,
) -> Result<Reply, ProtocolError> {
    let scope = house.scope(caller, agent);
    let stored = house.live_task(&scope, id).await?;
    let view = TaskView { history_length, ..TaskView::whole(stored.folded.task.clone()) };
    Ok(Reply::Task(house.fitted(&scope, view, house.reply_bytes_max(caller))))
}
