//! The interface between protocol and engine. Everything that can answer an A2A call (the local engine, a remote agent,
//! a gateway, a test double) implements [`Endpoint`]; bindings call it, engines implement it. A call is a [`Caller`]
//! and a [`Request`]; the answer is a [`Reply`], one arm of which is a stream of numbered updates.
#![warn(missing_docs, missing_debug_implementations)]

use std::fmt;
use std::future::Future;
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use futures_core::Stream;

use crate::error::ProtocolError;
use crate::model::redact::{redact_card, redact_message, redact_push_config, redact_update, redact_view};
use crate::model::{
    AgentCard, ConfigId, ContextId, Dialect, Json, Message, Package, Principal, PushConfig, TaskId, TaskState,
    TaskView, Tenant, Timestamp, TraceContext, Update,
};

/// A boxed future that may move between threads: what object-safe traits such as [`Endpoint`] return.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Anything that can answer an A2A call.
pub trait Endpoint: Send + Sync {
    /// Answers one request. The endpoint checks the caller's rights: a task of another owner is answered as one that
    /// does not exist.
    fn call(&self, caller: Caller, request: Request) -> BoxFuture<'_, Result<Reply, ProtocolError>>;

    /// The card shown to everyone. The server fills in the interfaces, because it knows the address.
    fn card(&self) -> Arc<AgentCard>;
}

/// The owner of tasks: a call sees only those of its owner. Both parts come from a verified credential, never from a
/// body.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct Owner {
    /// The tenant the credential belongs to; empty on a server without tenants.
    pub tenant: Tenant,
    /// Who the credential was given to; empty for the anonymous caller.
    pub principal: Principal,
}

/// Who calls, and what the request said outside its body.
#[derive(Clone, Debug)]
pub struct Caller {
    /// Whose tasks the call may see and change.
    pub owner: Owner,
    /// False for the one anonymous principal.
    pub authenticated: bool,
    /// Where the call comes from, as far as the server knows: the other end of its connection, which may be a proxy.
    pub address: Option<IpAddr>,
    /// What the credential was issued for. Endpoints decide what a scope allows; the engine asks for none.
    pub scopes: Arc<[String]>,
    /// The dialect the call came in; push configs remember it.
    pub dialect: Dialect,
    /// Extension URIs the client asked for.
    pub extensions: Vec<String>,
    /// The `Idempotency-Key` header: a send with a key that was seen before is answered with the task of the first one.
    pub idempotency_key: Option<String>,
    /// The `Last-Event-ID` header: where a stream continues. It is kept as text, because the engine refuses what is not
    /// a number.
    pub last_event_id: Option<String>,
    /// The trace that the call is part of, stored with the turn so that later work joins it.
    pub trace: Option<Arc<TraceContext>>,
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
            address: None,
            scopes: Arc::default(),
            dialect: Dialect::V1_0,
            extensions: Vec::new(),
            idempotency_key: None,
            last_event_id: None,
            trace: None,
            takes_frames: false,
        }
    }
}

/// What can be asked: the eleven operations. Large variants are boxed, because a request is moved through many
/// functions.
#[derive(Clone, Debug, PartialEq)]
pub enum Request {
    /// `SendMessage`: opens a task or goes on with one, and waits until it has settled unless
    /// [`SendMessage::return_immediately`].
    SendMessage(Box<SendMessage>),
    /// `SendStreamingMessage`: the same, answered with [`Reply::Stream`].
    SendStreamingMessage(Box<SendMessage>),
    /// `GetTask`: the task as it stands.
    GetTask {
        /// The task; one that is not the caller's is not found.
        id: TaskId,
        /// At most this many of the most recent messages; none is all of them, 0 leaves the history out.
        history_length: Option<u32>,
    },
    /// `ListTasks`: the caller's tasks, most recently updated first.
    ListTasks(ListTasks),
    /// `CancelTask`: asks the run to stop. Refused if the task has ended.
    CancelTask {
        /// The task; one that is not the caller's is not found.
        id: TaskId,
        /// The request's own metadata.
        metadata: Option<Json>,
    },
    /// `SubscribeToTask`: follows a task that is under way, from [`Caller::last_event_id`] on.
    SubscribeToTask {
        /// The task; one that is not the caller's is not found.
        id: TaskId,
    },
    /// `CreateTaskPushNotificationConfig`: adds a webhook to a task, or replaces the one of the same id.
    CreatePushConfig(Box<PushConfig>),
    /// `GetTaskPushNotificationConfig`: one webhook of a task.
    GetPushConfig {
        /// The task the webhook belongs to.
        task_id: TaskId,
        /// The webhook; empty, for older versions that may name none, is the one whose id sorts first.
        id: ConfigId,
    },
    /// `ListTaskPushNotificationConfigs`: the webhooks of a task.
    ListPushConfigs {
        /// The task whose webhooks are listed.
        task_id: TaskId,
        /// How many to list at most; none is the server's default.
        page_size: Option<u32>,
        /// Where the page before ended ([`PushConfigPage::next_page_token`]); none begins at the first.
        page_token: Option<String>,
    },
    /// `DeleteTaskPushNotificationConfig`: removes a webhook of a task.
    DeletePushConfig {
        /// The task the webhook belongs to.
        task_id: TaskId,
        /// The webhook to remove.
        id: ConfigId,
    },
    /// `GetExtendedAgentCard`: the card with what only authenticated callers may read.
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

/// What a send carries.
#[derive(Clone, Debug, PartialEq)]
pub struct SendMessage {
    /// What is said. Its `task_id` names the task to go on with; without one a task is opened.
    pub message: Message,
    /// The id that a new task is to have, for dialects in which clients choose it; none is for the engine to choose. If
    /// it is taken, the message is refused.
    pub open_as: Option<TaskId>,
    /// Media types the client can read; empty is anything.
    pub accepted_output_modes: Vec<String>,
    /// A webhook for the task, added in the same commit as the message.
    pub push_config: Option<PushConfig>,
    /// At most this many messages of history in the answer; none is all of them.
    pub history_length: Option<u32>,
    /// Whether to answer at once with the task as it is, instead of waiting until it has settled.
    pub return_immediately: bool,
    /// The request's own metadata, beside the message's. The agent reads it with `Turn::metadata`.
    pub metadata: Option<Json>,
}

impl SendMessage {
    /// A message, and nothing said about how it is to be answered.
    #[must_use]
    pub fn new(message: Message) -> Self {
        Self {
            message,
            open_as: None,
            accepted_output_modes: Vec::new(),
            push_config: None,
            history_length: None,
            return_immediately: false,
            metadata: None,
        }
    }
}

/// Which tasks to list. The default is a first page of all of them, without artifacts.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct ListTasks {
    /// Only tasks of this context.
    pub context_id: Option<ContextId>,
    /// Only tasks in this state.
    pub state: Option<TaskState>,
    /// How many to list at most; none is the server's default, and more than its maximum is refused.
    pub page_size: Option<u32>,
    /// Where the page before ended ([`TaskPage::next_page_token`]); none begins at the first.
    pub page_token: Option<String>,
    /// At most this many messages of history in each task; none is all of them.
    pub history_length: Option<u32>,
    /// Inclusive.
    pub status_since: Option<Timestamp>,
    /// Whether artifacts are listed, too.
    pub include_artifacts: bool,
}

/// What can be answered.
pub enum Reply {
    /// The task of a `GetTask` or `CancelTask`.
    Task(TaskView),
    /// A task in the envelope of a send, which can also be a message.
    SentTask(TaskView),
    /// An agent's direct answer to a send, for which there is no task.
    SentMessage(Arc<Message>),
    /// One page of a `ListTasks`.
    Tasks(TaskPage),
    /// The updates of a `SendStreamingMessage` or `SubscribeToTask`.
    Stream(UpdateStream),
    /// A webhook as it was stored, with the id the server gave it.
    PushConfig(PushConfig),
    /// One page of a `ListTaskPushNotificationConfigs`.
    PushConfigs(PushConfigPage),
    /// The webhook was removed.
    Deleted,
    /// The extended agent card.
    Card(Arc<AgentCard>),
}

// By hand because a stream has nothing to show: reading it would take its updates away.
impl fmt::Debug for Reply {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Task(view) => f.debug_tuple("Task").field(view).finish(),
            Self::SentTask(view) => f.debug_tuple("SentTask").field(view).finish(),
            Self::SentMessage(message) => f.debug_tuple("SentMessage").field(message).finish(),
            Self::Tasks(page) => f.debug_tuple("Tasks").field(page).finish(),
            Self::Stream(_) => f.write_str("Stream(..)"),
            Self::PushConfig(config) => f.debug_tuple("PushConfig").field(config).finish(),
            Self::PushConfigs(page) => f.debug_tuple("PushConfigs").field(page).finish(),
            Self::Deleted => f.write_str("Deleted"),
            Self::Card(card) => f.debug_tuple("Card").field(card).finish(),
        }
    }
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

/// One page of tasks.
#[derive(Debug)]
pub struct TaskPage {
    /// The tasks, most recently updated first.
    pub tasks: Vec<TaskView>,
    /// Empty on the last page.
    pub next_page_token: String,
    /// How many tasks a page holds at most, as the server decided.
    pub page_size: u32,
    /// How many tasks match on all pages together.
    pub total_size: u64,
}

/// One page of the webhooks of a task.
#[derive(Debug)]
pub struct PushConfigPage {
    /// The webhooks, with their secrets: see [`Reply::redacted`].
    pub configs: Vec<PushConfig>,
    /// What to ask for the next page with; empty on the last page.
    pub next_page_token: String,
}

/// A stream of frames that ends when its reader has seen everything it may see.
pub type UpdateStream = Pin<Box<dyn Stream<Item = Result<Frame, ProtocolError>> + Send>>;

/// One frame of a stream.
#[derive(Clone, Debug)]
pub struct Frame {
    /// The number of the update; for a snapshot, the number it was taken at. None for a direct reply, which has no log.
    pub seq: Option<u64>,
    /// True for a snapshot that stands for updates which are no longer kept.
    pub truncated: bool,
    /// What the reader is shown, with its encoded forms.
    pub update: Arc<SharedUpdate>,
}

/// One update and its encoded forms: however many readers follow a task, each dialect encodes an update once. What is
/// encoded is what may leave the server ([`crate::model::redact`]); `update` itself is whole.
pub struct SharedUpdate {
    /// The update as it happened, with everything that must not leave the server.
    pub update: Update,
    /// The form that was asked for first, which is nearly always the only one.
    first: OnceLock<(usize, Bytes)>,
    others: OnceLock<Box<[OnceLock<Bytes>; FORMS]>>,
}

/// One for each dialect, then one for each package of gRPC.
const FORMS: usize = Dialect::COUNT + Package::COUNT;

// The encoded forms are left out, because they hold the same content again, as bytes.
impl fmt::Debug for SharedUpdate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("SharedUpdate").field(&self.update).finish()
    }
}

impl SharedUpdate {
    /// An update that no reader has asked to see in any dialect yet.
    #[must_use]
    pub fn new(update: Update) -> Arc<Self> {
        Arc::new(Self { update, first: OnceLock::new(), others: OnceLock::new() })
    }

    /// Writes the encoded form. The first reader that asks for it makes it; if there is only one holder of the update,
    /// it encodes straight into `out`.
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

    /// The encoded form that gRPC carries. The first reader that asks for it makes it.
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
