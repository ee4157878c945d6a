//! The waist. Everything that can answer an A2A call (the local engine, a remote agent, a gateway, a test double)
//! implements [`Endpoint`]; bindings sit above it, engines below. A call is a [`Caller`] and a [`Request`]; the answer
//! is a [`Reply`], one arm of which is a stream of numbered updates.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use futures_core::Stream;

use crate::error::ProtocolError;
use crate::model::redact::{redact_card, redact_message, redact_push_config, redact_update, redact_view};
use crate::model::{
    AgentCard, ConfigId, ContextId, Dialect, Json, Message, Package, Principal, PushConfig, TaskId, TaskState,
    TaskView, Tenant, Timestamp, Update,
};

pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Whoever can answer an A2A call.
pub trait Endpoint: Send + Sync {
    fn call(&self, caller: Caller, request: Request) -> BoxFuture<'_, Result<Reply, ProtocolError>>;

    /// The card shown to everyone. Interfaces are filled in by whoever knows the address it is served at.
    fn card(&self) -> Arc<AgentCard>;
}

/// Whose tasks a call may see. Both come from a verified credential, never from a body.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct Owner {
    pub tenant: Tenant,
    pub principal: Principal,
}

/// Who calls, and what the request said outside its body.
#[derive(Clone, Debug)]
pub struct Caller {
    pub owner: Owner,
    /// False for the one anonymous principal.
    pub authenticated: bool,
    /// The dialect the call came in; push configs remember it.
    pub dialect: Dialect,
    /// Extension URIs the client asked for.
    pub extensions: Vec<String>,
    pub idempotency_key: Option<String>,
    /// Where a stream is to go on from. Not a number is for the engine to refuse, so it is kept as text.
    pub last_event_id: Option<String>,
    /// W3C `traceparent`, stored with the turn so that later work joins the trace.
    pub trace_parent: Option<String>,
    /// Whether the reply travels as one message of bounded size, as over gRPC: then it must fit a frame.
    pub takes_frames: bool,
}

impl Caller {
    /// The anonymous caller of an open server.
    #[must_use]
    pub fn anonymous() -> Self {
        Self {
            owner: Owner::default(),
            authenticated: false,
            dialect: Dialect::V1_0,
            extensions: Vec::new(),
            idempotency_key: None,
            last_event_id: None,
            trace_parent: None,
            takes_frames: false,
        }
    }
}

/// What can be asked: the eleven operations. What is large is boxed, since a request is handed on through many rooms.
#[derive(Clone, Debug, PartialEq)]
pub enum Request {
    SendMessage(Box<SendMessage>),
    SendStreamingMessage(Box<SendMessage>),
    GetTask { id: TaskId, history_length: Option<u32> },
    ListTasks(ListTasks),
    CancelTask { id: TaskId, metadata: Option<Json> },
    SubscribeToTask { id: TaskId },
    CreatePushConfig(Box<PushConfig>),
    GetPushConfig { task_id: TaskId, id: ConfigId },
    ListPushConfigs { task_id: TaskId, page_size: Option<u32>, page_token: Option<String> },
    DeletePushConfig { task_id: TaskId, id: ConfigId },
    GetExtendedAgentCard,
}

impl Request {
    /// The operation's name in the spec, for logs and metrics.
    #[must_use]
    pub fn operation(&self) -> &'static str {
        match self {
            Self::SendMessage(_) => "SendMessage",
            Self::SendStreamingMessage(_) => "SendStreamingMessage",
            Self::GetTask { .. } => "GetTask",
            Self::ListTasks(_) => "ListTasks",
            Self::CancelTask { .. } => "CancelTask",
            Self::SubscribeToTask { .. } => "SubscribeToTask",
            Self::CreatePushConfig(_) => "CreateTaskPushNotificationConfig",
            Self::GetPushConfig { .. } => "GetTaskPushNotificationConfig",
            Self::ListPushConfigs { .. } => "ListTaskPushNotificationConfigs",
            Self::DeletePushConfig { .. } => "DeleteTaskPushNotificationConfig",
            Self::GetExtendedAgentCard => "GetExtendedAgentCard",
        }
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct SendMessage {
    pub message: Message,
    /// The id that a new task is to have, for dialects in which clients choose it; none is for the engine to choose. If
    /// it is taken, the message is refused.
    pub open_as: Option<TaskId>,
    pub accepted_output_modes: Vec<String>,
    pub push_config: Option<PushConfig>,
    pub history_length: Option<u32>,
    pub return_immediately: bool,
    pub metadata: Option<Json>,
}

#[derive(Clone, Debug, PartialEq, Default)]
pub struct ListTasks {
    pub context_id: Option<ContextId>,
    pub state: Option<TaskState>,
    pub page_size: Option<u32>,
    pub page_token: Option<String>,
    pub history_length: Option<u32>,
    /// Inclusive.
    pub status_since: Option<Timestamp>,
    pub include_artifacts: bool,
}

/// What can be answered.
pub enum Reply {
    Task(TaskView),
    /// A task in the envelope of a send, which can also be a message.
    SentTask(TaskView),
    SentMessage(Arc<Message>),
    Tasks(TaskPage),
    Stream(UpdateStream),
    PushConfig(PushConfig),
    PushConfigs(PushConfigPage),
    Deleted,
    Card(Arc<AgentCard>),
}

impl Reply {
    /// The reply as it may leave the server for a caller: see [`crate::model::redact`]. A stream stays as it is, because
    /// each of its updates is redacted where it is encoded, once for all who follow.
    #[must_use]
    pub fn redacted(self) -> Self {
        match self {
            Self::Task(view) => Self::Task(redact_view(view)),
            Self::SentTask(view) => Self::SentTask(redact_view(view)),
            Self::SentMessage(message) => Self::SentMessage(redact_message(message)),
            Self::Tasks(mut page) => {
                page.tasks = page.tasks.into_iter().map(redact_view).collect();
                Self::Tasks(page)
            }
            Self::PushConfig(config) => Self::PushConfig(redact_push_config(config)),
            Self::PushConfigs(mut page) => {
                page.configs = page.configs.into_iter().map(redact_push_config).collect();
                Self::PushConfigs(page)
            }
            Self::Card(card) => Self::Card(redact_card(card)),
            Self::Stream(updates) => Self::Stream(updates),
            Self::Deleted => Self::Deleted,
        }
    }
}

pub struct TaskPage {
    pub tasks: Vec<TaskView>,
    /// Empty on the last page.
    pub next_page_token: String,
    pub page_size: u32,
    pub total_size: u64,
}

pub struct PushConfigPage {
    pub configs: Vec<PushConfig>,
    pub next_page_token: String,
}

/// A stream of frames that ends when its reader has seen everything it may see.
pub type UpdateStream = Pin<Box<dyn Stream<Item = Result<Frame, ProtocolError>> + Send>>;

/// One frame of a stream.
#[derive(Clone)]
pub struct Frame {
    /// The number of the update; for a snapshot, the number it was taken at. None for a direct reply, which has no log.
    pub seq: Option<u64>,
    /// True for a snapshot that stands for updates which are no longer kept.
    pub truncated: bool,
    pub update: Arc<SharedUpdate>,
}

/// One update and its encoded forms: however many readers follow a task, each dialect encodes an update once. What is
/// encoded is what may leave the server ([`crate::model::redact`]); `update` itself is whole.
pub struct SharedUpdate {
    pub update: Update,
    /// The form that was asked for first, which is nearly always the only one.
    first: OnceLock<(usize, Bytes)>,
    others: OnceLock<Box<[OnceLock<Bytes>; FORMS]>>,
}

/// One for each dialect, then one for each package of gRPC.
const FORMS: usize = Dialect::COUNT + Package::COUNT;

impl SharedUpdate {
    #[must_use]
    pub fn new(update: Update) -> Arc<Self> {
        Arc::new(Self { update, first: OnceLock::new(), others: OnceLock::new() })
    }

    /// Writes the encoded form, made by the first who asks. The only holder of an update encodes it where it is wanted.
    pub fn write(self: &Arc<Self>, dialect: Dialect, out: &mut Vec<u8>, encode: impl FnOnce(&Update, &mut Vec<u8>)) {
        if Arc::strong_count(self) == 1 {
            return match redact_update(&self.update) {
                Some(redacted) => encode(&redacted, out),
                None => encode(&self.update, out),
            };
        }
        let encoded = self.form(dialect.index(), |update| {
            let mut bytes = Vec::with_capacity(512);
            encode(update, &mut bytes);
            bytes.into()
        });
        out.extend_from_slice(encoded);
    }

    /// The encoded form that gRPC carries, made by the first who asks.
    pub fn message(&self, package: Package, encode: impl FnOnce(&Update) -> Bytes) -> &Bytes {
        self.form(Dialect::COUNT + package.index(), encode)
    }

    fn form(&self, form: usize, encode: impl FnOnce(&Update) -> Bytes) -> &Bytes {
        let mut encode = Some(encode);
        let mut make = || {
            encode.take().map_or_else(Bytes::new, |encode| match redact_update(&self.update) {
                Some(redacted) => encode(&redacted),
                None => encode(&self.update),
            })
        };
        let (first, encoded) = self.first.get_or_init(|| (form, make()));
        if *first == form {
            return encoded;
        }
        self.others.get_or_init(Box::default)[form].get_or_init(make)
    }
}
