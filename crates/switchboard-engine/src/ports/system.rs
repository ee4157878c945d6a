//! What the engine takes from the world beside its store: the time, randomness for ids, hints from other processes, and a
//! client that posts to webhooks. They are ports, so that a simulation can repeat a run exactly.
//!
//! A hint tells other processes that a task has changed. It may arrive twice, late, or never, and a stranger who can publish may have forged it. A
//! lost hint costs latency but no data, and a forged one a read, because the process that gets a hint asks the store. Commits of
//! this process reach its own followers without a hint.

use std::sync::Arc;

use bytes::Bytes;
use switchboard_core::call::BoxFuture;
use switchboard_core::model::{TaskId, Timestamp};

/// The wall clock that stamps events. A store decides about leases by its own clock.
pub trait Clock: Send + Sync {
    fn now(&self) -> Timestamp;
}

/// What a store records about the wall clock, so that a process can tell whether the clock was set while no process
/// ran.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClockRecord {
    /// A time shortly before the last process ended.
    pub last_seen: Option<Timestamp>,
    /// Until when an earlier process ignored ages, see [`Upkeep::hold_until`](super::Upkeep::hold_until).
    pub held_until: Option<Timestamp>,
}

/// A clock that goes back by less than this between two readings was corrected, not set. Waiting times are not shifted
/// then.
pub const SET_BACK_MS_MIN: i64 = 1_000;

/// The source of new task, context and message ids, and of chance.
pub trait Ids: Send + Sync {
    /// A new UUID of version 7 (it begins with the time) as text. Task and context ids must not be guessable, so an
    /// adapter for production fills the rest from the system's random number generator.
    fn uuid(&self, now: Timestamp) -> Arc<str>;

    /// Any number, all alike probable. Processes use it to do things at different times, so nothing depends on that it cannot be guessed.
    fn any(&self) -> u64;
}

/// Something that has happened to a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hint<'a> {
    pub task: &'a TaskId,
    pub news: News,
}

/// What a hint is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum News {
    /// The number of the newest visible event.
    Event(u64),
    /// The record was closed by a direct reply, and never became a task.
    Replied,
    /// A client has asked to cancel this task. The process that runs it asks the store whether that is so.
    CancelRequested,
    /// A process that stops has given runs back, that of this task among them. Others look for them.
    RunsReleased,
}

/// Posts to the server's own processor route, so that a run is started by a request of its own. Used only by servers that say so.
pub trait Dispatch: Send + Sync {
    /// Asks for the run of this task. The future ends with the answer, or when there is none; what came of it is logged by the
    /// adapter. A post may be lost, or arrive twice.
    fn post(&self, task: &TaskId) -> BoxFuture<'static, ()>;

    /// Asks in the same way for a look at this call, which its run no longer waits for.
    fn post_call(&self, call: &str) -> BoxFuture<'static, ()> {
        let _ = call;
        Box::pin(std::future::ready(()))
    }
}

pub trait Hints: Send + Sync {
    /// Tells all processes that share the store. The sender may receive its own hint.
    fn notify(&self, hint: Hint<'_>);
    /// Sets the receiver of hints; called once, at start.
    fn listen(&self, sink: Arc<dyn HintSink>);
    /// What was counted since the start; nothing if there is no other process.
    fn stats(&self) -> HintStats {
        HintStats::default()
    }
}

/// Counters of hints, for `/metrics`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HintStats {
    /// Payloads that arrived, by the time since the first hint in them was given: below each bound of `COMMIT_MICROS_BOUNDS`, and
    /// above all of them. The sender stamps them by its own clock.
    pub seconds: [u64; 10],
    pub micros_sum: u64,
    /// Hints that were not sent because too many waited.
    pub dropped: u64,
}

pub trait HintSink: Send + Sync {
    fn hint(&self, hint: Hint<'_>);
}

pub trait Webhook: Send + Sync {
    /// Checks whether a URL may be posted to, as far as possible without a DNS lookup. The reason is shown to the
    /// client that registers it.
    fn check(&self, url: &str) -> Result<(), String>;

    /// Asks the receiver whether it wants webhooks; a config is stored only if it does. None if the adapter does not ask. The
    /// reason is shown to the client that registers the webhook.
    fn challenge<'a>(&'a self, url: &'a str) -> Option<BoxFuture<'a, Result<(), String>>> {
        let _ = url;
        None
    }

    /// Posts once. `Ok` is the receiver's answer; the caller decides whether it counts as delivered.
    fn post(&self, call: WebhookCall) -> BoxFuture<'_, Result<WebhookAnswer, WebhookError>>;

    /// Called periodically: frees what is no longer used, such as idle connections.
    fn tidy(&self) {}
}

pub struct WebhookCall {
    pub url: String,
    /// The same in every attempt. It is in the headers, too, and repeated here for adapters that sign what they post.
    pub delivery_id: String,
    /// Names and values contain no control characters, because they were checked when the config was accepted.
    pub headers: Vec<(&'static str, String)>,
    pub body: Bytes,
    /// The task that the call is about.
    pub task_id: TaskId,
    /// The scheme that the receiver wants in `Authorization`, if no credentials were registered for it. An adapter that can prove
    /// who this server is adds the header.
    pub scheme_without_credentials: Option<String>,
}

/// The answer of a receiver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WebhookAnswer {
    pub status: u16,
    /// How long the receiver wants no further calls, if it said so.
    pub retry_after_ms: Option<u64>,
}

/// An answer that has only a status.
impl From<u16> for WebhookAnswer {
    fn from(status: u16) -> Self {
        Self { status, retry_after_ms: None }
    }
}

/// Why nothing was posted. The text is for operators and never shown to a client.
#[derive(Debug, Clone)]
pub enum WebhookError {
    /// The address is not allowed; trying again will not help until the configuration changes.
    Refused(String),
    Failed(String),
}
