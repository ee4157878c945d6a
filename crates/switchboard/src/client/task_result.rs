//! What came of a message, at a glance: the state, the text, the error and the JSON.

use switchboard_core::model::{Role, Task, TaskId, TaskState};

use crate::call_agent::Sent;
use crate::json;

/// What came of a message, at a glance.
///
#[cfg_attr(
    feature = "server",
    doc = r##"
```
use switchboard::{AgentBuilder, Server, TaskState, Turn};

# tokio::runtime::Runtime::new().unwrap().block_on(async {
let echo = AgentBuilder::from_fn("Echo", |turn: Turn| async move { Ok(turn.answer(turn.text()).await?) });
let server = Server::builder().agent(echo).build().unwrap();
let result = server.local("echo").unwrap().send_text("hello").await.unwrap().result();
assert_eq!((result.state, result.text.as_str(), result.error), (TaskState::Completed, "hello", None));
assert!(result.json.contains(r#""state":"TASK_STATE_COMPLETED""#));
# });
```
"##
)]
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TaskResult {
    /// The task; none for a direct answer.
    pub task_id: Option<TaskId>,
    /// Where the task stands; a direct answer is completed.
    pub state: TaskState,
    /// What the agent said, as [`Sent::text`]; if that is nothing, its last message.
    pub text: String,
    /// Why there is no result, for a task that failed, was rejected or was canceled.
    pub error: Option<String>,
    /// The task, or the direct answer, as JSON of A2A 1.0, in whatever version it came.
    pub json: String,
}

impl Sent {
    /// The answer at a glance.
    #[must_use]
    pub fn result(&self) -> TaskResult {
        let text = said(self);
        let (task_id, state, json) = match self {
            Self::Task(task) => (Some(task.id.clone()), task.state(), json::task(task)),
            Self::Message(message) => (None, TaskState::Completed, json::message(message)),
        };
        let untold = match state {
            TaskState::Failed => Some("the task failed"),
            TaskState::Rejected => Some("the task was rejected"),
            TaskState::Canceled => Some("the task was canceled"),
            TaskState::Submitted
            | TaskState::Working
            | TaskState::Completed
            | TaskState::InputRequired
            | TaskState::AuthRequired
            | TaskState::Unspecified => None,
        };
        let told = match self {
            Self::Task(task) => status_text(task),
            Self::Message(_) => None,
        };
        let error = untold.map(|untold| told.unwrap_or_else(|| untold.to_owned()));
        TaskResult { task_id, state, text, error, json: String::from_utf8_lossy(&json).into_owned() }
    }
}

/// What the agent said: its answer, else its last message.
pub(super) fn said(sent: &Sent) -> String {
    let text = sent.text();
    match sent {
        Sent::Task(task) if text.is_empty() => last_message(task).unwrap_or_default(),
        Sent::Task(_) | Sent::Message(_) => text,
    }
}

/// What the status says in words.
pub(super) fn status_text(task: &Task) -> Option<String> {
    task.status.message.as_ref().map(|message| message.text()).filter(|text| !text.is_empty())
}

fn last_message(task: &Task) -> Option<String> {
    let mut said = task.history.iter().rev().filter(|message| message.role == Role::Agent);
    said.find_map(|message| Some(message.text()).filter(|text| !text.is_empty()))
}
