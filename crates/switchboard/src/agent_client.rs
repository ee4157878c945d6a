//! The calls of a client, typed, and the same for every agent: one in this process, which is called without a socket, and a
//! remote one (`client`). How a call reaches the agent is behind [`CallAgent`].

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use futures_core::Stream;
use switchboard_core::call::{
    BoxFuture, Caller, Endpoint, Frame, ListTasks, Owner, PushConfigPage, Reply, Request, SendMessage, TaskPage,
    UpdateStream,
};
use switchboard_core::error::ProtocolError;
use switchboard_core::model::{AgentCard, ConfigId, Message, Part, PushConfig, Role, Task, TaskId, Update};
use tokio::time::{Instant, sleep, timeout_at};

#[cfg(feature = "client")]
use crate::call_agent::Spoken;
use crate::call_agent::{Answer, CallAgent, CallOptions, FrameStream, Sent};
use crate::call_error::{CallError, CallErrorKind};
use crate::random;
use crate::task_stream::TaskStream;

/// How long [`AgentClient::send_and_wait`] waits unless a deadline is set.
const WAIT_DEFAULT: Duration = Duration::from_secs(300);
/// The pauses between looks at a task whose agent has no streams: the first, each twice the one before, and the longest.
const POLL_FIRST: Duration = Duration::from_millis(250);
const POLL_LONGEST: Duration = Duration::from_secs(5);

/// An agent to call: one in this process (`Server::local`, or [`AgentClient::new`] for any
/// [`Endpoint`]), or a remote one (`client::Client::agent`). It is itself an [`Endpoint`], so a server can mount it.
///
/// The API is in beta: it may change in a minor version.
///
/// Replies of an agent in this process are whole: what does not leave the server for other callers
/// ([`model::redact`](crate::model::redact)) is there, so a program that passes them on redacts them first.
#[cfg_attr(
    feature = "server",
    doc = r#"
```
use switchboard::{AgentBuilder, Server, Turn};

# tokio::runtime::Runtime::new().unwrap().block_on(async {
let echo = AgentBuilder::from_fn("Echo", |turn: Turn| async move { Ok(turn.answer(turn.text()).await?) });
let server = Server::builder().agent(echo).build().unwrap();
let echo = server.local("echo").unwrap();
let task = echo.send_text("hello").await.unwrap().into_task().unwrap();
assert_eq!(task.artifacts[0].text(), "hello");
# });
```
"#
)]
#[derive(Clone)]
pub struct AgentClient {
    agent: Arc<dyn CallAgent>,
    caller: Caller,
    options: CallOptions,
}

/// An endpoint in this process.
struct InProcess(Arc<dyn Endpoint>);

impl CallAgent for InProcess {
    fn call<'a>(
        &'a self,
        caller: Caller,
        request: Request,
        options: &'a CallOptions,
    ) -> BoxFuture<'a, Result<Answer, CallError>> {
        Box::pin(async move {
            let calling = self.0.call(caller, request);
            let reply = match options.deadline {
                Some(limit) => {
                    timeout_at(Instant::now() + limit, calling).await.map_err(|_| CallError::timed_out(limit))?
                }
                None => calling.await,
            };
            match reply? {
                Reply::Stream(updates) => {
                    Ok(Answer::Stream(Box::pin(MapErrors { frames: updates, convert: CallError::from })))
                }
                reply => Ok(Answer::Reply(reply)),
            }
        })
    }

    fn card(&self) -> Arc<AgentCard> {
        self.0.card()
    }
}

/// A stream whose errors are those of its reader.
struct MapErrors<E, F> {
    frames: Pin<Box<dyn Stream<Item = Result<Frame, E>> + Send>>,
    convert: fn(E) -> F,
}

impl<E, F> Stream for MapErrors<E, F> {
    type Item = Result<Frame, F>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let convert = self.convert;
        self.frames.as_mut().poll_next(cx).map(|next| next.map(|frame| frame.map_err(convert)))
    }
}

impl fmt::Debug for AgentClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AgentClient")
            .field("agent", &self.agent.card().name)
            .field("owner", &self.caller.owner)
            .finish_non_exhaustive()
    }
}

impl AgentClient {
    /// A client of any endpoint in this process, calling as the anonymous principal.
    #[must_use]
    pub fn new(endpoint: Arc<dyn Endpoint>) -> Self {
        Self::of(Arc::new(InProcess(endpoint)), CallOptions::default())
    }

    pub(crate) fn of(agent: Arc<dyn CallAgent>, options: CallOptions) -> Self {
        Self { agent, caller: Caller::anonymous(), options }
    }

    /// The same agent, called by this tenant and principal. Only an agent in this process believes it: to a remote one, credentials
    /// say who calls.
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

    /// The same agent, whose calls have a result within this time or fail with [`CallErrorKind::TimedOut`], attempts and pauses
    /// included. For a stream it is the time until it begins.
    #[must_use]
    pub fn with_deadline(mut self, deadline: Duration) -> Self {
        self.options.deadline = Some(deadline);
        self
    }

    /// The same agent, called with other options of one kind of agent (`CallOptions::extensions`).
    #[cfg(feature = "client")]
    pub(crate) fn with_extension<T>(mut self, change: impl FnOnce(&mut T)) -> Self
    where
        T: Clone + Default + Send + Sync + 'static,
    {
        change(self.options.extensions.get_or_insert_default());
        self
    }

    /// The agent's card: the extended one once [`AgentClient::extended_card`] has been answered.
    #[must_use]
    pub fn card(&self) -> Arc<AgentCard> {
        self.agent.card()
    }

    /// How a remote agent is called: the interface of its card that was chosen, or the place that answered. None for an agent in
    /// this process.
    #[cfg(feature = "client")]
    #[must_use]
    pub fn spoken(&self) -> Option<Spoken> {
        self.agent.spoken()
    }

    /// Any operation.
    ///
    /// # Errors
    /// What the agent refuses with, and for a remote agent everything that can go wrong on the way.
    pub async fn call(&self, request: Request) -> Result<Reply, CallError> {
        match self.answer(request).await? {
            Answer::Reply(reply) => Ok(reply),
            Answer::Stream(frames) => Ok(Reply::Stream(updates(frames))),
        }
    }

    async fn answer(&self, request: Request) -> Result<Answer, CallError> {
        self.agent.call(self.caller.clone(), request, &self.options).await
    }

    async fn reply(&self, request: Request) -> Result<Reply, CallError> {
        match self.answer(request).await? {
            Answer::Reply(reply) => Ok(reply),
            Answer::Stream(_) => Err(unexpected()),
        }
    }

    /// Sends a text and waits for the answer, as [`AgentClient::send`].
    ///
    /// # Errors
    /// As [`AgentClient::call`].
    pub async fn send_text(&self, text: &str) -> Result<Sent, CallError> {
        self.send(text_message(text, None)).await
    }

    /// Sends the next message of a task and waits for the answer, as [`AgentClient::send`].
    ///
    /// # Errors
    /// As [`AgentClient::call`].
    pub async fn reply_text(&self, task: &TaskId, text: &str) -> Result<Sent, CallError> {
        self.send(text_message(text, Some(task))).await
    }

    /// Sends a message and returns what the agent answers. Agents answer when the task has settled, but some answer sooner, with
    /// a task that is still being worked on: [`AgentClient::send_and_wait`] waits for its end.
    ///
    /// # Errors
    /// As [`AgentClient::call`].
    pub async fn send(&self, message: Message) -> Result<Sent, CallError> {
        self.send_with(SendMessage::new(message)).await
    }

    /// Sends a message with all that can be said about how it is to be answered.
    ///
    /// # Errors
    /// As [`AgentClient::call`].
    pub async fn send_with(&self, send: SendMessage) -> Result<Sent, CallError> {
        sent(self.reply(Request::SendMessage(send.into())).await?)
    }

    /// Sends a message and waits until the task has settled: it has ended, or waits for input. If the agent streams, the stream is
    /// read, and resumed when it breaks; otherwise the task is asked for again and again. The wait ends after five minutes
    /// unless a deadline is set; the error then has the id of the task, which goes on.
    ///
    /// # Errors
    /// As [`AgentClient::call`].
    pub async fn send_and_wait(&self, message: Message) -> Result<Sent, CallError> {
        let limit = self.options.deadline.unwrap_or(WAIT_DEFAULT);
        let (until, mut known) = (Instant::now() + limit, message.task_id.clone());
        let waiting = self.settled(message, &mut known);
        match timeout_at(until, waiting).await {
            Ok(outcome) => outcome,
            Err(_) => Err(CallError::timed_out(limit).about_task(known.as_ref())),
        }
    }

    async fn settled(&self, message: Message, known: &mut Option<TaskId>) -> Result<Sent, CallError> {
        if self.agent.card().capabilities.streaming != Some(true) {
            return self.settled_by_asking(self.send(message).await?, known).await;
        }
        let mut stream = match self.stream(message.clone()).await {
            Ok(stream) => stream,
            // The card promises streams, and the agent has none. Nothing has happened yet.
            Err(error) if is_without_streams(&error) => {
                return self.settled_by_asking(self.send(message).await?, known).await;
            }
            Err(error) => return Err(error),
        };
        while let Some(frame) = stream.next().await {
            *known = stream.task().map(|task| task.id.clone()).or(known.take());
            match frame {
                // A snapshot at the beginning may still show the question that this message answers, also while artifacts come.
                Ok(frame) => match frame.update.update {
                    Update::Task(_) | Update::Artifact(_) if !stream.has_ended() => {}
                    Update::Task(_) | Update::Artifact(_) | Update::Status(_) | Update::Message(_) => {
                        if stream.is_settled() {
                            break;
                        }
                    }
                },
                // A stream that ended early at a question has not shown what became of the message.
                Err(error) => match stream.take_sent() {
                    Some(Sent::Task(task))
                        if error.kind() == CallErrorKind::StreamEndedEarly && !task.state().is_settled() =>
                    {
                        return self.settled_by_asking(Sent::Task(task), known).await;
                    }
                    Some(_) | None => return Err(error.about_task(known.as_ref())),
                },
            }
        }
        stream.take_sent().ok_or_else(|| CallError::new(CallErrorKind::StreamEndedEarly, "the stream said nothing"))
    }

    async fn settled_by_asking(&self, sent: Sent, known: &mut Option<TaskId>) -> Result<Sent, CallError> {
        let mut task = match sent {
            Sent::Task(task) => task,
            Sent::Message(message) => return Ok(Sent::Message(message)),
        };
        *known = Some(task.id.clone());
        let mut pause = POLL_FIRST;
        while !task.state().is_settled() {
            sleep(pause).await;
            pause = (pause * 2).min(POLL_LONGEST);
            task = match self.task(&task.id).await {
                Ok(task) => task,
                // The task goes on whatever becomes of one look at it.
                Err(error) if error.is_retryable() => continue,
                Err(error) => return Err(error.about_task(known.as_ref())),
            };
        }
        Ok(Sent::Task(task))
    }

    /// Sends a text and streams what comes of it.
    ///
    /// # Errors
    /// As [`AgentClient::call`].
    pub async fn stream_text(&self, text: &str) -> Result<TaskStream, CallError> {
        self.stream(text_message(text, None)).await
    }

    /// Sends a message and streams what comes of it. Dropping the stream does not cancel the task.
    ///
    /// # Errors
    /// As [`AgentClient::call`].
    pub async fn stream(&self, message: Message) -> Result<TaskStream, CallError> {
        self.stream_with(SendMessage::new(message)).await
    }

    /// Sends a message with all that can be said about how it is to be answered, and streams what comes of it.
    ///
    /// # Errors
    /// As [`AgentClient::call`].
    pub async fn stream_with(&self, send: SendMessage) -> Result<TaskStream, CallError> {
        self.frames(Request::SendStreamingMessage(send.into())).await
    }

    /// Follows a task. Dropping the stream does not cancel the task.
    ///
    /// # Errors
    /// As [`AgentClient::call`].
    pub async fn subscribe(&self, id: &TaskId) -> Result<TaskStream, CallError> {
        self.frames(Request::SubscribeToTask { id: id.clone() }).await
    }

    async fn frames(&self, request: Request) -> Result<TaskStream, CallError> {
        match self.answer(request).await? {
            Answer::Stream(frames) => Ok(TaskStream::new(frames)),
            Answer::Reply(_) => Err(unexpected()),
        }
    }

    /// Reads a task.
    ///
    /// # Errors
    /// As [`AgentClient::call`].
    pub async fn task(&self, id: &TaskId) -> Result<Arc<Task>, CallError> {
        task(self.reply(Request::GetTask { id: id.clone(), history_length: None }).await?)
    }

    /// Lists tasks, newest status first.
    ///
    /// # Errors
    /// As [`AgentClient::call`].
    pub async fn tasks(&self, list: ListTasks) -> Result<TaskPage, CallError> {
        match self.reply(Request::ListTasks(list)).await? {
            Reply::Tasks(page) => Ok(page),
            _ => Err(unexpected()),
        }
    }

    /// Cancels a task.
    ///
    /// # Errors
    /// As [`AgentClient::call`].
    pub async fn cancel(&self, id: &TaskId) -> Result<Arc<Task>, CallError> {
        task(self.reply(Request::CancelTask { id: id.clone(), metadata: None }).await?)
    }

    /// Registers a webhook of a task, or replaces the one of the same id.
    ///
    /// # Errors
    /// As [`AgentClient::call`].
    pub async fn set_push_config(&self, config: PushConfig) -> Result<PushConfig, CallError> {
        match self.reply(Request::CreatePushConfig(config.into())).await? {
            Reply::PushConfig(config) => Ok(config),
            _ => Err(unexpected()),
        }
    }

    /// Reads a webhook of a task.
    ///
    /// # Errors
    /// As [`AgentClient::call`].
    pub async fn push_config(&self, task: &TaskId, id: &ConfigId) -> Result<PushConfig, CallError> {
        match self.reply(Request::GetPushConfig { task_id: task.clone(), id: id.clone() }).await? {
            Reply::PushConfig(config) => Ok(config),
            _ => Err(unexpected()),
        }
    }

    /// Lists the webhooks of a task; `page_token` is where the page before ended.
    ///
    /// # Errors
    /// As [`AgentClient::call`].
    pub async fn push_configs(&self, task: &TaskId, page_token: Option<&str>) -> Result<PushConfigPage, CallError> {
        let page_token = page_token.map(str::to_owned);
        let request = Request::ListPushConfigs { task_id: task.clone(), page_size: None, page_token };
        match self.reply(request).await? {
            Reply::PushConfigs(page) => Ok(page),
            _ => Err(unexpected()),
        }
    }

    /// Removes a webhook of a task.
    ///
    /// # Errors
    /// As [`AgentClient::call`].
    pub async fn delete_push_config(&self, task: &TaskId, id: &ConfigId) -> Result<(), CallError> {
        match self.reply(Request::DeletePushConfig { task_id: task.clone(), id: id.clone() }).await? {
            Reply::Deleted => Ok(()),
            _ => Err(unexpected()),
        }
    }

    /// The card with what only authenticated callers may read. From then on [`AgentClient::card`] returns it.
    ///
    /// # Errors
    /// As [`AgentClient::call`].
    pub async fn extended_card(&self) -> Result<Arc<AgentCard>, CallError> {
        match self.reply(Request::GetExtendedAgentCard).await? {
            Reply::Card(card) => Ok(card),
            _ => Err(unexpected()),
        }
    }
}

/// The agent behind a server that mounts it: calls come with their own callers.
impl Endpoint for AgentClient {
    fn call(&self, caller: Caller, request: Request) -> BoxFuture<'_, Result<Reply, ProtocolError>> {
        Box::pin(async move {
            match self.agent.call(caller, request, &self.options).await? {
                Answer::Reply(reply) => Ok(reply),
                Answer::Stream(frames) => Ok(Reply::Stream(updates(frames))),
            }
        })
    }

    fn card(&self) -> Arc<AgentCard> {
        self.agent.public_card()
    }
}

fn updates(frames: FrameStream) -> UpdateStream {
    Box::pin(MapErrors { frames, convert: ProtocolError::from })
}

fn is_without_streams(error: &CallError) -> bool {
    matches!(
        error.protocol_error(),
        Some(ProtocolError::UnsupportedOperation { .. } | ProtocolError::MethodNotFound { .. })
    )
}

fn sent(reply: Reply) -> Result<Sent, CallError> {
    match reply {
        Reply::SentTask(view) => Ok(Sent::Task(view.task)),
        Reply::SentMessage(message) => Ok(Sent::Message(message)),
        _ => Err(unexpected()),
    }
}

fn task(reply: Reply) -> Result<Arc<Task>, CallError> {
    match reply {
        Reply::Task(view) => Ok(view.task),
        _ => Err(unexpected()),
    }
}

fn text_message(text: &str, task: Option<&TaskId>) -> Message {
    let mut message = Message::new(Role::User, random::uuid(), vec![Part::text(text)]);
    message.task_id = task.cloned();
    message
}

pub(crate) fn unexpected() -> CallError {
    CallError::new(CallErrorKind::InvalidAnswer, "an answer of another kind than was asked for")
}
