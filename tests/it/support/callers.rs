//! Callers of an agent in this process, and what they say.

use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use switchboard_core::call::{
    Caller, Endpoint, ListTasks, Owner, PushConfigPage, Reply, Request, SendMessage, TaskPage, UpdateStream,
};
use switchboard_core::error::ProtocolError;
use switchboard_core::model::{Message, Part, PushConfig, Role, Task, TaskId, TaskState, TraceContext, Update};

use super::pictures::words;

/// A caller of one agent.
#[derive(Clone)]
pub(crate) struct Client {
    endpoint: Arc<dyn Endpoint>,
    pub(crate) caller: Caller,
}

impl Client {
    pub(crate) fn new(endpoint: Arc<dyn Endpoint>, caller: Caller) -> Self {
        Self { endpoint, caller }
    }

    /// The same agent, called by an authenticated caller.
    pub(crate) fn user(&self, principal: &str) -> Self {
        self.user_of("", principal)
    }

    pub(crate) fn user_of(&self, tenant: &str, principal: &str) -> Self {
        self.with(|caller| {
            caller.owner = Owner { tenant: tenant.into(), principal: principal.into() };
            caller.authenticated = true;
        })
    }

    pub(crate) fn with(&self, change: impl FnOnce(&mut Caller)) -> Self {
        let mut client = self.clone();
        change(&mut client.caller);
        client
    }

    /// With the header `Last-Event-ID`.
    pub(crate) fn after(&self, last_event_id: impl ToString) -> Self {
        self.with(|caller| caller.last_event_id = Some(last_event_id.to_string()))
    }

    /// With the header `Idempotency-Key`.
    pub(crate) fn keyed(&self, key: &str) -> Self {
        self.with(|caller| caller.idempotency_key = Some(key.to_owned()))
    }

    pub(crate) async fn call(&self, request: Request) -> Result<Reply, ProtocolError> {
        self.endpoint.call(self.caller.clone(), request).await
    }

    /// Sends and waits for the task; a direct reply is a mistake of the test.
    pub(crate) async fn send(&self, send: SendMessage) -> Result<Arc<Task>, ProtocolError> {
        match self.call(Request::SendMessage(send.into())).await? {
            Reply::SentTask(view) => Ok(view.task),
            Reply::SentMessage(message) => panic!("a task was expected, not the message {message:?}"),
            _ => panic!("a send answers with a task or a message"),
        }
    }

    /// Sends in the background.
    pub(crate) fn sending(&self, send: SendMessage) -> tokio::task::JoinHandle<Result<Arc<Task>, ProtocolError>> {
        let client = self.clone();
        tokio::spawn(async move { client.send(send).await })
    }

    /// Sends, and answers as soon as the task exists.
    pub(crate) async fn start(&self, text: &str) -> Arc<Task> {
        self.send(at_once(say(text))).await.unwrap()
    }

    pub(crate) async fn stream(&self, send: SendMessage) -> Result<UpdateStream, ProtocolError> {
        self.streaming(Request::SendStreamingMessage(send.into())).await
    }

    pub(crate) async fn subscribe(&self, id: &TaskId) -> Result<UpdateStream, ProtocolError> {
        self.streaming(Request::SubscribeToTask { id: id.clone() }).await
    }

    async fn streaming(&self, request: Request) -> Result<UpdateStream, ProtocolError> {
        match self.call(request).await? {
            Reply::Stream(updates) => Ok(updates),
            _ => panic!("a stream was expected"),
        }
    }

    pub(crate) async fn task(&self, id: &TaskId) -> Result<Arc<Task>, ProtocolError> {
        match self.call(Request::GetTask { id: id.clone(), history_length: None }).await? {
            Reply::Task(view) => Ok(view.task),
            _ => panic!("GetTask answers with a task"),
        }
    }

    /// The task, once it has come to this state.
    pub(crate) async fn task_in(&self, id: &TaskId, state: TaskState) -> Arc<Task> {
        let mut updates = self.after(0).subscribe(id).await.unwrap();
        soon(async {
            while let Some(frame) = updates.next().await {
                if let Update::Status(update) = &frame.unwrap().update.update
                    && update.status.state == state
                {
                    return;
                }
            }
            panic!("task {id} never was {}", state.word());
        })
        .await;
        self.task(id).await.unwrap()
    }

    pub(crate) async fn cancel(&self, id: &TaskId) -> Result<Arc<Task>, ProtocolError> {
        match self.call(Request::CancelTask { id: id.clone(), metadata: None }).await? {
            Reply::Task(view) => Ok(view.task),
            _ => panic!("CancelTask answers with a task"),
        }
    }

    pub(crate) async fn list(&self, list: ListTasks) -> Result<TaskPage, ProtocolError> {
        match self.call(Request::ListTasks(list)).await? {
            Reply::Tasks(page) => Ok(page),
            _ => panic!("ListTasks answers with a page"),
        }
    }

    /// The words of the listed tasks' first messages, in the order of the list.
    pub(crate) async fn listed(&self, list: ListTasks) -> Vec<String> {
        let page = self.list(list).await.unwrap();
        page.tasks.iter().map(|view| words(&view.task.history[0])).collect()
    }

    pub(crate) async fn register(&self, config: PushConfig) -> Result<PushConfig, ProtocolError> {
        match self.call(Request::CreatePushConfig(config.into())).await? {
            Reply::PushConfig(config) => Ok(config),
            _ => panic!("a config was expected"),
        }
    }

    pub(crate) async fn configs(&self, task_id: &TaskId) -> Result<PushConfigPage, ProtocolError> {
        let request = Request::ListPushConfigs { task_id: task_id.clone(), page_size: None, page_token: None };
        match self.call(request).await? {
            Reply::PushConfigs(page) => Ok(page),
            _ => panic!("configs were expected"),
        }
    }
}

/// A trace of another system.
pub(crate) fn trace() -> Arc<TraceContext> {
    let parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    Arc::new(TraceContext::of_texts(Some(parent), Some("congo=t61rcWkgMzE")).unwrap())
}

/// A message of one text part. Its id is made from the text, so the same text is the same message.
pub(crate) fn say(text: &str) -> SendMessage {
    SendMessage {
        open_as: None,
        message: Message::new(Role::User, format!("m-{text}"), vec![Part::text(text)]),
        accepted_output_modes: Vec::new(),
        push_config: None,
        history_length: None,
        return_immediately: false,
        metadata: None,
    }
}

/// The next message of a task.
pub(crate) fn reply_to(id: &TaskId, text: &str) -> SendMessage {
    let mut send = say(text);
    send.message.task_id = Some(id.clone());
    send
}

pub(crate) fn at_once(send: SendMessage) -> SendMessage {
    SendMessage { return_immediately: true, ..send }
}

/// A webhook of a task.
pub(crate) fn hook(task_id: &str, id: &str) -> PushConfig {
    PushConfig {
        id: id.into(),
        task_id: task_id.into(),
        url: "https://hooks.example/in".to_owned(),
        token: None,
        authentication: None,
    }
}

/// Fails the test instead of waiting for ever.
pub(crate) async fn soon<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(3600), future).await.expect("this should have happened long ago")
}

/// Lets everything that can happen without the clock happen, and says whether the future still waits.
pub(crate) async fn still_waits<F: Future + Unpin>(future: &mut F) -> bool {
    tokio::time::timeout(Duration::from_millis(1), future).await.is_err()
}
