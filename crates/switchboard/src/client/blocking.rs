//! The client for programs that are not asynchronous. A thread with a runtime of its own makes the calls, so it works inside a
//! runtime as well, where it blocks the thread that calls it.

use std::fmt;
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::thread::JoinHandle;
use std::time::Duration;

use switchboard_core::call::{Frame, ListTasks, PushConfigPage, SendMessage, TaskPage};
use switchboard_core::dialect::Dialect;
use switchboard_core::model::{AgentCard, ConfigId, Message, PushConfig, Task, TaskId};
use tokio::sync::mpsc as queue;

use super::call_text::CallTextOptions;
use super::credentials::Credentials;
use super::discovered_card::DiscoveredCard;
use super::invoke::{Invocation, InvokeOptions};
use crate::agent_client::AgentClient as AsyncAgentClient;
use crate::call_agent::{Sent, Spoken};
use crate::call_error::{CallError, CallErrorKind};
use crate::task_stream::TaskStream as AsyncTaskStream;

/// How many calls may wait for the thread to take them up. Each waits for one thread that called.
const CALLS_WAITING_MAX: usize = 64;

type Job = Pin<Box<dyn Future<Output = ()> + Send>>;

/// The thread that makes the calls. It ends with the last client, agent and stream that use it.
struct Worker {
    /// None while it ends.
    jobs: Option<queue::Sender<Job>>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl Worker {
    #[expect(clippy::disallowed_methods, reason = "the thread of the facade, which joins it, and the calls on it")]
    fn start() -> io::Result<Self> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let (jobs, mut waiting) = queue::channel::<Job>(CALLS_WAITING_MAX);
        let thread = std::thread::Builder::new().name("switchboard-client".to_owned()).spawn(move || {
            runtime.block_on(async {
                while let Some(job) = waiting.recv().await {
                    tokio::spawn(job);
                }
            });
        })?;
        Ok(Self { jobs: Some(jobs), thread: Mutex::new(Some(thread)) })
    }

    /// Runs something on the thread and waits for it.
    fn run<T: Send + 'static>(&self, work: impl Future<Output = T> + Send + 'static) -> Result<T, CallError> {
        let gone = || CallError::new(CallErrorKind::Broken, "the thread that makes the calls has ended");
        let (done, result) = mpsc::sync_channel(1);
        let mut job: Job = Box::pin(async move {
            let _ = done.send(work.await);
        });
        let jobs = self.jobs.as_ref().ok_or_else(gone)?;
        // `blocking_send` panics inside a runtime.
        loop {
            match jobs.try_send(job) {
                Ok(()) => break,
                Err(queue::error::TrySendError::Full(same)) => job = same,
                Err(queue::error::TrySendError::Closed(_)) => return Err(gone()),
            }
            std::thread::yield_now();
        }
        result.recv().map_err(|_| gone())
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        self.jobs = None;
        let thread = self.thread.get_mut().unwrap_or_else(PoisonError::into_inner).take();
        // An interceptor may hold the last client, and then it is the thread itself that drops it.
        if let Some(thread) = thread.filter(|thread| thread.thread().id() != std::thread::current().id()) {
            let _ = thread.join();
        }
    }
}

/// As [`client::Client`](super::Client), for programs that are not asynchronous. Clones share connections and cards. The API is in
/// beta.
#[cfg_attr(
    feature = "server",
    doc = r#"
```
use switchboard::client::{Client, blocking};
use switchboard::{AgentBuilder, Server, Turn};

# let runtime = tokio::runtime::Runtime::new().unwrap();
# let url = runtime.block_on(async {
# let echo = AgentBuilder::from_fn("Echo", |turn: Turn| async move { Ok(turn.answer(turn.text()).await?) });
# let bound = Server::builder().agent(echo).build().unwrap().bind(([127, 0, 0, 1], 0).into()).await.unwrap();
# let url = format!("http://{}", bound.local_addr());
# tokio::spawn(bound.run_until(std::future::pending(), std::time::Duration::ZERO));
# url
# });
let client = blocking::Client::new(Client::builder().build().unwrap()).unwrap();
let echo = client.agent(&url).unwrap();
assert_eq!(echo.send_text("hello").unwrap().text(), "hello");
for frame in echo.stream_text("hello").unwrap() {
    println!("{:?}", frame.unwrap().update.update);
}
```
"#
)]
#[derive(Clone)]
pub struct Client {
    client: super::Client,
    worker: Arc<Worker>,
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.client.fmt(f)
    }
}

impl Client {
    /// A client whose calls block the thread that makes them.
    ///
    /// # Errors
    /// When there is no thread to be had.
    pub fn new(client: super::Client) -> io::Result<Self> {
        Ok(Self { client, worker: Arc::new(Worker::start()?) })
    }

    fn run<T: Send + 'static, F>(&self, work: impl FnOnce(super::Client) -> F) -> Result<T, CallError>
    where
        F: Future<Output = Result<T, CallError>> + Send + 'static,
    {
        self.worker.run(work(self.client.clone()))?
    }

    /// As [`client::Client::agent`](super::Client::agent).
    ///
    /// # Errors
    /// As of the same.
    pub fn agent(&self, reference: &str) -> Result<AgentClient, CallError> {
        let reference = reference.to_owned();
        let agent = self.run(|client| async move { client.agent(&reference).await })?;
        Ok(AgentClient { agent, worker: self.worker.clone() })
    }

    /// As [`client::Client::agent_in`](super::Client::agent_in).
    ///
    /// # Errors
    /// As of the same.
    pub fn agent_in(&self, reference: &str, dialect: Dialect) -> Result<AgentClient, CallError> {
        let reference = reference.to_owned();
        let agent = self.run(|client| async move { client.agent_in(&reference, dialect).await })?;
        Ok(AgentClient { agent, worker: self.worker.clone() })
    }

    /// As [`client::Client::discover`](super::Client::discover).
    ///
    /// # Errors
    /// As of the same.
    pub fn discover(&self, reference: &str) -> Result<Arc<DiscoveredCard>, CallError> {
        let reference = reference.to_owned();
        self.run(|client| async move { client.discover(&reference).await })
    }

    /// As [`client::Client::try_discover`](super::Client::try_discover).
    #[must_use]
    pub fn try_discover(&self, reference: &str) -> Option<Arc<DiscoveredCard>> {
        self.discover(reference).ok()
    }

    /// As [`client::Client::forget_cards`](super::Client::forget_cards).
    pub fn forget_cards(&self) {
        self.client.forget_cards();
    }

    /// As [`client::Client::call_text_with`](super::Client::call_text_with).
    ///
    /// # Errors
    /// As of the same.
    pub fn call_text(&self, url: &str, text: &str, options: CallTextOptions) -> Result<String, CallError> {
        let (url, text) = (url.to_owned(), text.to_owned());
        self.run(|client| async move { client.call_text_with(&url, &text, &options).await })
    }

    /// As [`client::Client::invoke`](super::Client::invoke).
    ///
    /// # Errors
    /// Only when the thread that makes the calls is gone.
    pub fn invoke(&self, url: &str, text: &str, options: InvokeOptions) -> Result<Invocation, CallError> {
        let (url, text) = (url.to_owned(), text.to_owned());
        self.run(|client| async move { Ok(client.invoke(&url, &text, &options).await) })
    }
}

/// As [`AgentClient`](crate::AgentClient), for programs that are not asynchronous.
#[derive(Clone)]
pub struct AgentClient {
    agent: AsyncAgentClient,
    worker: Arc<Worker>,
}

impl fmt::Debug for AgentClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.agent.fmt(f)
    }
}

impl AgentClient {
    fn run<T: Send + 'static, F>(&self, work: impl FnOnce(AsyncAgentClient) -> F) -> Result<T, CallError>
    where
        F: Future<Output = Result<T, CallError>> + Send + 'static,
    {
        self.worker.run(work(self.agent.clone()))?
    }

    fn stream_of<F>(&self, work: impl FnOnce(AsyncAgentClient) -> F) -> Result<TaskStream, CallError>
    where
        F: Future<Output = Result<AsyncTaskStream, CallError>> + Send + 'static,
    {
        let stream = self.run(work)?;
        Ok(TaskStream { stream: Some(stream), worker: self.worker.clone() })
    }

    /// The same agent, whose calls have a result within this time.
    #[must_use]
    pub fn with_deadline(self, deadline: Duration) -> Self {
        Self { agent: self.agent.with_deadline(deadline), ..self }
    }

    /// The same agent, called with these credentials in place of the client's.
    #[must_use]
    pub fn with_credentials(self, credentials: Credentials) -> Self {
        Self { agent: self.agent.with_credentials(credentials), ..self }
    }

    /// The agent's card.
    #[must_use]
    pub fn card(&self) -> Arc<AgentCard> {
        self.agent.card()
    }

    /// How the agent is called.
    #[must_use]
    pub fn spoken(&self) -> Option<Spoken> {
        self.agent.spoken()
    }

    /// Sends a text and waits for the answer.
    ///
    /// # Errors
    /// As [`AgentClient::call`](crate::AgentClient::call), as all calls here.
    pub fn send_text(&self, text: &str) -> Result<Sent, CallError> {
        let text = text.to_owned();
        self.run(|agent| async move { agent.send_text(&text).await })
    }

    /// Sends the next message of a task and waits for the answer.
    ///
    /// # Errors
    /// As of [`AgentClient::send_text`].
    pub fn reply_text(&self, task: &TaskId, text: &str) -> Result<Sent, CallError> {
        let (task, text) = (task.clone(), text.to_owned());
        self.run(|agent| async move { agent.reply_text(&task, &text).await })
    }

    /// Sends a message.
    ///
    /// # Errors
    /// As of [`AgentClient::send_text`].
    pub fn send(&self, message: Message) -> Result<Sent, CallError> {
        self.run(|agent| async move { agent.send(message).await })
    }

    /// Sends a message with all that can be said about how it is to be answered.
    ///
    /// # Errors
    /// As of [`AgentClient::send_text`].
    pub fn send_with(&self, send: SendMessage) -> Result<Sent, CallError> {
        self.run(|agent| async move { agent.send_with(send).await })
    }

    /// Sends a message and waits until the task has settled.
    ///
    /// # Errors
    /// As of [`AgentClient::send_text`].
    pub fn send_and_wait(&self, message: Message) -> Result<Sent, CallError> {
        self.run(|agent| async move { agent.send_and_wait(message).await })
    }

    /// Sends a text and streams what comes of it.
    ///
    /// # Errors
    /// As of [`AgentClient::send_text`].
    pub fn stream_text(&self, text: &str) -> Result<TaskStream, CallError> {
        let text = text.to_owned();
        self.stream_of(|agent| async move { agent.stream_text(&text).await })
    }

    /// Sends a message and streams what comes of it.
    ///
    /// # Errors
    /// As of [`AgentClient::send_text`].
    pub fn stream(&self, message: Message) -> Result<TaskStream, CallError> {
        self.stream_of(|agent| async move { agent.stream(message).await })
    }

    /// Follows a task.
    ///
    /// # Errors
    /// As of [`AgentClient::send_text`].
    pub fn subscribe(&self, id: &TaskId) -> Result<TaskStream, CallError> {
        let id = id.clone();
        self.stream_of(|agent| async move { agent.subscribe(&id).await })
    }

    /// Reads a task.
    ///
    /// # Errors
    /// As of [`AgentClient::send_text`].
    pub fn task(&self, id: &TaskId) -> Result<Arc<Task>, CallError> {
        let id = id.clone();
        self.run(|agent| async move { agent.task(&id).await })
    }

    /// Lists tasks, newest status first.
    ///
    /// # Errors
    /// As of [`AgentClient::send_text`].
    pub fn tasks(&self, list: ListTasks) -> Result<TaskPage, CallError> {
        self.run(|agent| async move { agent.tasks(list).await })
    }

    /// Cancels a task.
    ///
    /// # Errors
    /// As of [`AgentClient::send_text`].
    pub fn cancel(&self, id: &TaskId) -> Result<Arc<Task>, CallError> {
        let id = id.clone();
        self.run(|agent| async move { agent.cancel(&id).await })
    }

    /// Registers a webhook of a task, or replaces the one of the same id.
    ///
    /// # Errors
    /// As of [`AgentClient::send_text`].
    pub fn set_push_config(&self, config: PushConfig) -> Result<PushConfig, CallError> {
        self.run(|agent| async move { agent.set_push_config(config).await })
    }

    /// Reads a webhook of a task.
    ///
    /// # Errors
    /// As of [`AgentClient::send_text`].
    pub fn push_config(&self, task: &TaskId, id: &ConfigId) -> Result<PushConfig, CallError> {
        let (task, id) = (task.clone(), id.clone());
        self.run(|agent| async move { agent.push_config(&task, &id).await })
    }

    /// Lists the webhooks of a task.
    ///
    /// # Errors
    /// As of [`AgentClient::send_text`].
    pub fn push_configs(&self, task: &TaskId, page_token: Option<&str>) -> Result<PushConfigPage, CallError> {
        let (task, page_token) = (task.clone(), page_token.map(str::to_owned));
        self.run(|agent| async move { agent.push_configs(&task, page_token.as_deref()).await })
    }

    /// Removes a webhook of a task.
    ///
    /// # Errors
    /// As of [`AgentClient::send_text`].
    pub fn delete_push_config(&self, task: &TaskId, id: &ConfigId) -> Result<(), CallError> {
        let (task, id) = (task.clone(), id.clone());
        self.run(|agent| async move { agent.delete_push_config(&task, &id).await })
    }

    /// The card with what only authenticated callers may read.
    ///
    /// # Errors
    /// As of [`AgentClient::send_text`].
    pub fn extended_card(&self) -> Result<Arc<AgentCard>, CallError> {
        self.run(|agent| async move { agent.extended_card().await })
    }
}

/// As [`TaskStream`](crate::TaskStream): an iterator over the updates, which waits for each. Dropping it does not cancel the task.
pub struct TaskStream {
    /// None while an update is waited for.
    stream: Option<AsyncTaskStream>,
    worker: Arc<Worker>,
}

impl fmt::Debug for TaskStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.stream.fmt(f)
    }
}

impl TaskStream {
    /// The task as the updates so far leave it; none before the first, and for a direct answer.
    #[must_use]
    pub fn task(&self) -> Option<&Arc<Task>> {
        self.stream.as_ref()?.task()
    }

    /// Whether the task has ended or waits for its user, or was answered directly.
    #[must_use]
    pub fn is_settled(&self) -> bool {
        self.stream.as_ref().is_some_and(AsyncTaskStream::is_settled)
    }

    /// What the updates so far amount to: the direct answer, or the task.
    #[must_use]
    pub fn take_sent(&mut self) -> Option<Sent> {
        self.stream.as_mut()?.take_sent()
    }
}

impl Iterator for TaskStream {
    type Item = Result<Frame, CallError>;

    fn next(&mut self) -> Option<Self::Item> {
        let mut stream = self.stream.take()?;
        let waited = self.worker.run(async move {
            let next = stream.next().await;
            (stream, next)
        });
        match waited {
            Ok((stream, next)) => {
                self.stream = Some(stream);
                next
            }
            Err(error) => Some(Err(error)),
        }
    }
}
