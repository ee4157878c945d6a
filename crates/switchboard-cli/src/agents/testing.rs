//! An engine in the test's own process, with one agent and a store in memory.

use std::sync::Arc;
use std::time::Duration;

use switchboard_core::call::{Caller, Endpoint, Reply, Request, SendMessage};
use switchboard_core::error::ProtocolError;
use switchboard_core::model::{
    AgentCapabilities, AgentCard, Json, Message, Part, Role, Task, TaskId, TaskState, TaskView, Update,
};
use switchboard_engine::limits::Limits;
use switchboard_engine::memory::MemoryStore;
use switchboard_engine::runs::{Agent, AgentSource, RunCounters, Traits};
use switchboard_engine::system::SystemClock;
use switchboard_engine::{Engine, Registered};

pub(crate) struct TestEngine {
    pub(crate) engine: Engine,
    endpoint: Arc<dyn Endpoint>,
    agent: Arc<Registered>,
}

impl TestEngine {
    pub(crate) fn of(agent: impl Agent) -> Self {
        Self::with_limits(agent, Limits::default())
    }

    pub(crate) fn with_limits(agent: impl Agent, limits: Limits) -> Self {
        Self::build(AgentSource::shared(agent), limits)
    }

    pub(crate) fn with_traits(agent: impl Agent, change: impl FnOnce(Traits) -> Traits) -> Self {
        Self::build(AgentSource::shared(agent).with_traits(change), Limits::default())
    }

    fn build(source: AgentSource, limits: Limits) -> Self {
        let capabilities = AgentCapabilities { streaming: Some(true), ..AgentCapabilities::default() };
        let agent = Registered {
            name: "agent".into(),
            source,
            card: Arc::new(AgentCard { capabilities, ..AgentCard::default() }.into()),
            extended_card: None,
            extended_card_for_anyone: false,
        };
        let store = Arc::new(MemoryStore::new(Arc::new(SystemClock), 100));
        let engine = Engine::builder(store).limits(limits).agent(agent).build();
        let endpoint = engine.endpoint("agent").unwrap();
        let agent = engine.agents().remove(0);
        Self { engine, endpoint, agent }
    }

    /// What was counted about the agent's runs.
    pub(crate) fn runs(&self) -> &RunCounters {
        self.agent.source.runs()
    }

    pub(crate) async fn call(&self, request: Request) -> Result<Reply, ProtocolError> {
        self.endpoint.call(Caller::anonymous(), request).await
    }

    /// Sends a message and waits for its task to settle.
    pub(crate) async fn send(&self, message: Message) -> Arc<Task> {
        self.send_with(message, None).await
    }

    /// The same with metadata of the request.
    pub(crate) async fn send_with(&self, message: Message, metadata: Option<Json>) -> Arc<Task> {
        let send = SendMessage { metadata, ..sending(message, false) };
        match self.call(Request::SendMessage(send.into())).await.unwrap() {
            Reply::SentTask(view) => view.task,
            _ => panic!("a send is answered with a task"),
        }
    }

    pub(crate) async fn say(&self, text: &str) -> Arc<Task> {
        self.send(user(vec![Part::text(text)])).await
    }

    /// Sends a message and does not wait.
    pub(crate) async fn begin(&self, text: &str) -> TaskId {
        let message = user(vec![Part::text(text)]);
        match self.call(Request::SendMessage(sending(message, true).into())).await.unwrap() {
            Reply::SentTask(view) => view.task.id.clone(),
            _ => panic!("a send is answered with a task"),
        }
    }

    /// Every update of a streamed send, up to the end of the stream.
    pub(crate) async fn stream(&self, text: &str) -> Vec<Update> {
        let message = user(vec![Part::text(text)]);
        let Reply::Stream(mut stream) =
            self.call(Request::SendStreamingMessage(sending(message, false).into())).await.unwrap()
        else {
            panic!("a streamed send is answered with a stream")
        };
        let mut updates = Vec::new();
        while let Some(frame) = std::future::poll_fn(|cx| stream.as_mut().poll_next(cx)).await {
            updates.push(frame.unwrap().update.update.clone());
        }
        updates
    }

    pub(crate) async fn task(&self, id: &TaskId) -> Arc<Task> {
        match self.call(Request::GetTask { id: id.clone(), history_length: None }).await.unwrap() {
            Reply::Task(TaskView { task, .. }) => task,
            _ => panic!("a task is asked for"),
        }
    }

    pub(crate) async fn cancel(&self, id: &TaskId) -> Arc<Task> {
        match self.call(Request::CancelTask { id: id.clone(), metadata: None }).await.unwrap() {
            Reply::Task(TaskView { task, .. }) => task,
            _ => panic!("a cancel is answered with the task"),
        }
    }
}

pub(crate) fn user(parts: Vec<Part>) -> Message {
    Message::new(Role::User, "message-1", parts)
}

fn sending(message: Message, return_immediately: bool) -> SendMessage {
    SendMessage {
        open_as: None,
        message,
        accepted_output_modes: Vec::new(),
        push_config: None,
        history_length: None,
        return_immediately,
        metadata: None,
    }
}

/// The state of a task and the text of its status.
pub(crate) fn status(task: &Arc<Task>) -> (TaskState, String) {
    (task.state(), task.status.message.as_ref().map(|message| message.text()).unwrap_or_default())
}

/// Looks again until there is something to see.
pub(crate) async fn eventually<T>(what: &str, mut look: impl AsyncFnMut() -> Option<T>) -> T {
    for _ in 0..2_000 {
        if let Some(seen) = look().await {
            return seen;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    panic!("never happened: {what}")
}
