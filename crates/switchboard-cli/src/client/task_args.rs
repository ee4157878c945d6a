//! Which task a command is about, for all commands that are about one.

use clap::Args;
use switchboard::TaskId;

use super::error::ClientError;
use super::options::Flags;
use super::session::Session;

/// Which task.
#[derive(Args, Clone, Debug)]
pub(crate) struct TaskArgs {
    /// The task [default: A2ACLI_TASK_ID]
    #[arg(value_name = "TASK_ID")]
    id: Option<String>,
    /// The same, by name
    #[arg(long, value_name = "ID")]
    task_id: Option<String>,
}

impl TaskArgs {
    pub(crate) fn add_to(&self, flags: Flags) -> Flags {
        flags.text("task-id", self.task_id.as_ref())
    }

    /// # Errors
    /// When no task is named, or two that differ.
    pub(crate) fn task(&self, session: &Session) -> Result<TaskId, ClientError> {
        let named = self.task_id.as_deref();
        match (self.id.as_deref(), named, session.settings.text("task-id")) {
            (Some(id), Some(other), _) if id != other => {
                Err(ClientError::usage(format!("two tasks are named: {id} and {other}")))
            }
            (Some(id), ..) | (None, _, Some(id)) => Ok(id.into()),
            (None, _, None) => {
                Err(ClientError::usage("no task is named").with_hint("Give its id, as printed when it began"))
            }
        }
    }
}
