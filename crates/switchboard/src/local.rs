//! Calling an agent of this process: no socket, no encoding, the same engine. For tests, and for programs whose agents
//! talk to each other.

use std::fmt;
use std::sync::Arc;

use switchboard_core::call::{Caller, Endpoint, ListTasks, Owner, Reply, Request, SendMessage, TaskPage, UpdateStream};
use switchboard_core::error::ProtocolError;
use switchboard_core::model::{Message, Part, Role, Task, TaskId};
use switchboard_engine::ports::{Clock, Ids};
use switchboard_engine::system::{RandomIds, SystemClock};

/// An agent in this process. Replies are whole: what does not leave the server for other callers
/// ([`model::redact`](crate::model::redact)) is there, so a program that passes them on redacts them first.
///
/// ```
/// use switchboard::{AgentBuilder, Server, Turn};
///
/// # tokio::runtime::Runtime::new().unwrap().block_on(async {
/// let echo = AgentBuilder::from_fn("Echo", |turn: Turn| async move { Ok(turn.answer(turn.text()).await?) });
/// let server = Server::builder().agent(echo).build().unwrap();
/// let echo = server.local("echo").unwrap();
/// let task = echo.send_text("hello").await.unwrap().into_task().unwrap();
/// assert_eq!(task.artifacts[0].text(), "hello");
/// # });
/// ```
#[derive(Clone)]
pub struct Local {
    endpoint: Arc<dyn Endpoint>,
    caller: Caller,
}

impl fmt::Debug for Local {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Local").field("owner", &self.caller.owner).finish_non_exhaustive()
    }
}

/// What an agent answered.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Sent {
    /// The task that the message opened or went on with, once it has settled.
    Task(Arc<Task>),
    /// A direct answer, for which there is no task.
    Message(Arc<Message>),
}

impl Sent {
    /// The task, if the answer was one.
    #[must_use]
    pub fn into_task(self) -> Option<Arc<Task>> {
        match self {
            Self::Task(task) => Some(task),
            Self::Message(_) => None,
        }
    }

    /// The message, if the answer was a direct one.
    #[must_use]
    pub fn into_message(self) -> Option<Arc<Message>> {
        match self {
            Self::Message(message) => Some(message),
            Self::Task(_) => None,
        }
    }
}

impl Local {
    /// A client of any endpoint, calling as the anonymous principal.
    #[must_use]
    pub fn new(endpoint: Arc<dyn Endpoint>) -> Self {
        Self { endpoint, caller: Caller::anonymous() }
    }

    /// The same agent, called by this tenant and principal.
    #[must_use]
    pub fn as_caller(mut self, tenant: &str, principal: &str) -> Self {
        self.caller.owner = Owner { tenant: tenant.into(), principal: principal.into() };
        self.caller.authenticated = true;
        self
    }

    /// The same agent, with anything about the caller changed (`Last-Event-ID`, extensions, idempotency key).
    #[must_use]
    pub fn with_caller(mut self, change: impl FnOnce(&mut Caller)) -> Self {
        change(&mut self.caller);
        self
    }

    /// Any operation.
    ///
    /// # Errors
    /// The error that the agent's server answers with.
    pub async fn call(&self, request: Request) -> Result<Reply, ProtocolError> {
        self.endpoint.call(self.caller.clone(), request).await
    }

    /// Sends a text and waits for the answer.
    ///
    /// # Errors
    /// As [`Local::call`].
    pub async fn send_text(&self, text: &str) -> Result<Sent, ProtocolError> {
        self.send(text_message(text, None)).await
    }

    /// Sends the next message of a task and waits for the answer.
    ///
    /// # Errors
    /// As [`Local::call`].
    pub async fn reply_text(&self, task: &TaskId, text: &str) -> Result<Sent, ProtocolError> {
        self.send(text_message(text, Some(task))).await
    }

    /// Sends a message and waits for the answer.
    ///
    /// # Errors
    /// As [`Local::call`].
    pub async fn send(&self, message: Message) -> Result<Sent, ProtocolError> {
        match self.call(Request::SendMessage(request(message).into())).await? {
            Reply::SentTask(view) => Ok(Sent::Task(view.task)),
            Reply::SentMessage(message) => Ok(Sent::Message(message)),
            _ => Err(unexpected()),
        }
    }

    /// Sends a text and streams what comes of it.
    ///
    /// # Errors
    /// As [`Local::call`].
    pub async fn stream_text(&self, text: &str) -> Result<UpdateStream, ProtocolError> {
        self.stream(Request::SendStreamingMessage(request(text_message(text, None)).into())).await
    }

    /// Follows a task.
    ///
    /// # Errors
    /// As [`Local::call`].
    pub async fn subscribe(&self, id: &TaskId) -> Result<UpdateStream, ProtocolError> {
        self.stream(Request::SubscribeToTask { id: id.clone() }).await
    }

    async fn stream(&self, request: Request) -> Result<UpdateStream, ProtocolError> {
        match self.call(request).await? {
            Reply::Stream(updates) => Ok(updates),
            _ => Err(unexpected()),
        }
    }

    /// Reads a task.
    ///
    /// # Errors
    /// As [`Local::call`].
    pub async fn task(&self, id: &TaskId) -> Result<Arc<Task>, ProtocolError> {
        match self.call(Request::GetTask { id: id.clone(), history_length: None }).await? {
            Reply::Task(view) => Ok(view.task),
            _ => Err(unexpected()),
        }
    }

    /// Lists tasks, newest status first.
    ///
    /// # Errors
    /// As [`Local::call`].
    pub async fn tasks(&self, list: ListTasks) -> Result<TaskPage, ProtocolError> {
        match self.call(Request::ListTasks(list)).await? {
            Reply::Tasks(page) => Ok(page),
            _ => Err(unexpected()),
        }
    }

    /// Cancels a task.
    ///
    /// # Errors
    /// As [`Local::call`].
    pub async fn cancel(&self, id: &TaskId) -> Result<Arc<Task>, ProtocolError> {
        match self.call(Request::CancelTask { id: id.clone(), metadata: None }).await? {
            Reply::Task(view) => Ok(view.task),
            _ => Err(unexpected()),
        }
    }
}

fn text_message(text: &str, task: Option<&TaskId>) -> Message {
    let mut message = Message::new(Role::User, RandomIds.uuid(SystemClock.now()), vec![Part::text(text)]);
    message.task_id = task.cloned();
    message
}

fn request(message: Message) -> SendMessage {
    SendMessage {
        open_as: None,
        message,
        accepted_output_modes: Vec::new(),
        push_config: None,
        history_length: None,
        return_immediately: false,
        metadata: None,
    }
}

fn unexpected() -> ProtocolError {
    ProtocolError::InvalidAgentResponse { reason: "an answer of another kind than was asked for".to_owned() }
}
