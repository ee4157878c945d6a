//! A stream of one task as its reader sees it: each update, and the task that they make up so far.

use std::fmt;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use futures_core::Stream;
use switchboard_core::call::Frame;
use switchboard_core::model::{ContextId, Dialect, Message, Task, TaskId, TaskState, TaskStatus, Timestamp, Update};

use crate::call_agent::{FrameStream, Sent};
use crate::call_error::{CallError, CallErrorKind};

/// What comes of a message, or of a task that is followed: the updates one by one, and the task as they leave it.
///
/// The stream ends when the agent has nothing more to say: the task has ended or waits for its user. If it ends before that and
/// cannot be resumed, its last item is an error of the kind [`CallErrorKind::StreamEndedEarly`]. Dropping it does not cancel the task.
#[cfg_attr(
    feature = "server",
    doc = r#"
```
use switchboard::{AgentBuilder, Server, TaskState, Turn};

# tokio::runtime::Runtime::new().unwrap().block_on(async {
let echo = AgentBuilder::from_fn("Echo", |turn: Turn| async move { Ok(turn.answer(turn.text()).await?) });
let server = Server::builder().agent(echo).build().unwrap();
let mut stream = server.local("echo").unwrap().stream_text("hello").await.unwrap();
while let Some(frame) = stream.next().await {
    println!("{:?}", frame.unwrap().update.update);
}
let task = stream.task().unwrap();
assert_eq!((task.state(), task.artifacts[0].text().as_str()), (TaskState::Completed, "hello"));
# });
```
"#
)]
pub struct TaskStream {
    frames: FrameStream,
    seen: Seen,
    is_over: bool,
}

/// What the updates of a stream make up so far.
#[derive(Clone, Debug, Default)]
pub(crate) struct Seen {
    task: Option<Arc<Task>>,
    message: Option<Arc<Message>>,
}

impl Seen {
    pub(crate) fn take(&mut self, update: &Update) {
        match update {
            Update::Task(view) => self.task = Some(view.task.clone()),
            Update::Message(message) => self.message = Some(message.clone()),
            Update::Status(update) => {
                let task = self.task.get_or_insert_with(|| begun(&update.task_id, &update.context_id));
                Arc::make_mut(task).take_status(update.status.clone());
            }
            Update::Artifact(update) => {
                let task = self.task.get_or_insert_with(|| begun(&update.task_id, &update.context_id));
                Arc::make_mut(task).take_artifact(&update.artifact, update.append);
            }
        }
    }

    pub(crate) fn task(&self) -> Option<&Arc<Task>> {
        self.task.as_ref()
    }

    /// Whether nothing more can come.
    pub(crate) fn has_ended(&self) -> bool {
        self.message.is_some() || self.task.as_ref().is_some_and(|task| task.state().is_terminal())
    }

    /// Whether there is nothing more to wait for.
    pub(crate) fn is_settled(&self) -> bool {
        self.message.is_some() || self.task.as_ref().is_some_and(|task| task.state().is_settled())
    }
}

/// A task of which nothing is known but its name: some agents begin a stream with a change of it.
fn begun(id: &TaskId, context_id: &ContextId) -> Arc<Task> {
    Arc::new(Task {
        id: id.clone(),
        context_id: context_id.clone(),
        status: TaskStatus { state: TaskState::Working, message: None, timestamp: Timestamp::default() },
        artifacts: Vec::new(),
        history: Vec::new(),
        metadata: None,
        created_at: Timestamp::default(),
        dialect: Dialect::V1_0,
    })
}

impl TaskStream {
    pub(crate) fn new(frames: FrameStream) -> Self {
        Self { frames, seen: Seen::default(), is_over: false }
    }

    /// The next update; none when the stream is over.
    pub async fn next(&mut self) -> Option<Result<Frame, CallError>> {
        poll_fn(|cx| Pin::new(&mut *self).poll_next(cx)).await
    }

    /// The task as the updates so far leave it, artifacts put together; none before the first, and for a direct answer.
    #[must_use]
    pub fn task(&self) -> Option<&Arc<Task>> {
        self.seen.task()
    }

    /// Whether the task has ended or waits for its user, or was answered directly.
    #[must_use]
    pub fn is_settled(&self) -> bool {
        self.seen.is_settled()
    }

    /// Whether the task has ended or was answered directly.
    pub(crate) fn has_ended(&self) -> bool {
        self.seen.has_ended()
    }

    /// What the updates so far amount to: the direct answer, or the task.
    #[must_use]
    pub fn take_sent(&mut self) -> Option<Sent> {
        let Seen { task, message } = std::mem::take(&mut self.seen);
        message.map(Sent::Message).or(task.map(Sent::Task))
    }
}

impl Stream for TaskStream {
    type Item = Result<Frame, CallError>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if self.is_over {
            return Poll::Ready(None);
        }
        match self.frames.as_mut().poll_next(cx) {
            Poll::Pending => Poll::Pending,
            Poll::Ready(Some(Ok(frame))) => {
                self.seen.take(&frame.update.update);
                Poll::Ready(Some(Ok(frame)))
            }
            Poll::Ready(Some(Err(error))) => {
                self.is_over = true;
                Poll::Ready(Some(Err(error)))
            }
            Poll::Ready(None) => {
                self.is_over = true;
                // A stream that followed from a later point on may not have seen the task at all.
                let has_more = self.seen.task().is_some_and(|task| !task.state().is_settled());
                Poll::Ready(has_more.then(|| {
                    let error = CallError::new(CallErrorKind::StreamEndedEarly, "the stream ended before the task did");
                    Err(error.about_task(self.seen.task().map(|task| &task.id)))
                }))
            }
        }
    }
}

impl fmt::Debug for TaskStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let task = self.seen.task().map(|task| (&task.id, task.state()));
        f.debug_struct("TaskStream").field("task", &task).finish_non_exhaustive()
    }
}
