//! The task that most operations begin with.

use switchboard_core::error::ProtocolError;
use switchboard_core::lifecycle::Phase;
use switchboard_core::model::TaskId;

use crate::commit::WriteError;
use crate::ports::store::{Scope, StoredTask};
use crate::state::EngineState;

impl EngineState {
    /// A task that the caller may see. An unknown task, another owner's task and a record that is not a task yet get
    /// the same error.
    pub(crate) async fn live_task(&self, scope: &Scope, id: &TaskId) -> Result<StoredTask, ProtocolError> {
        self.live_task_view(scope, id, None).await
    }

    /// The same for a reader that shows at most so many messages and starts no run: older messages are not read.
    pub(crate) async fn live_task_view(
        &self,
        scope: &Scope,
        id: &TaskId,
        history_max: Option<u32>,
    ) -> Result<StoredTask, ProtocolError> {
        let bytes_max = self.limits.reply_bytes_max;
        let found = match history_max {
            Some(history_max) => self.store.task_view(scope, id, bytes_max, history_max).await,
            None => self.store.task(scope, id, bytes_max).await,
        };
        match found.map(|found| found.map(|stored| self.with_links(scope, stored))) {
            Ok(Some(stored)) if stored.head.phase == Phase::Live => {
                if !self.has_paused_too_long(scope, &stored.folded.task) {
                    return Ok(stored);
                }
                self.end_pause(scope, &stored).await.map_err(WriteError::into_protocol)?;
                let ended = self.stored_task(scope, id).await.map_err(|error| self.store_failed(&error))?;
                ended.ok_or_else(|| ProtocolError::task_not_found(id))
            }
            Ok(_) => Err(ProtocolError::task_not_found(id)),
            Err(error) => Err(self.store_failed(&error)),
        }
    }
}
