//! What an agent is told about a task that was canceled while no run was at work on it.

use std::fmt;
use std::sync::Arc;

use switchboard_core::call::Owner;
use switchboard_core::model::Json;

use crate::ports::{Callee, CalleeError, Callees};

/// What the runs of a task have left, for [`Agent::cancel_left_over`](super::Agent::cancel_left_over).
pub struct LeftOver {
    pub(crate) checkpoint: Json,
    pub(crate) owner: Owner,
    pub(crate) callees: Arc<dyn Callees>,
}

impl fmt::Debug for LeftOver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LeftOver").finish_non_exhaustive()
    }
}

impl LeftOver {
    /// The last value that a run of the task kept with [`Turn::checkpoint`](super::Turn::checkpoint).
    #[must_use]
    pub fn checkpoint(&self) -> &Json {
        &self.checkpoint
    }

    /// Whose task it is.
    #[must_use]
    pub fn owner(&self) -> &Owner {
        &self.owner
    }

    /// The agent of this name, to be called for the owner of the task, as [`Turn::callee`](super::Turn::callee) finds it.
    ///
    /// # Errors
    /// When there is no such agent, or it cannot be called now.
    pub async fn callee(&self, agent: &str) -> Result<Callee, CalleeError> {
        self.callees.find(&self.owner, agent).await
    }
}
