//! How runs end. [`AgentError`] is what an agent returns if it fails: it has two texts, one for the agent's author, which
//! stays in the log, and one that the client reads. [`RunEnd`] is the closed set of endings, because they are a label in
//! `/metrics` and the reason in the log line of an ended task. Ends and durations are counted without a lock.

use std::error::Error;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use switchboard_core::error::ProtocolError;
use switchboard_core::lifecycle::{Head, Phase};
use switchboard_core::model::{FAILED_UNTOLD, Json, JsonError, Message, Task, TaskState};

use super::AgentCallError;

type Cause = Box<dyn Error + Send + Sync>;

/// How much the client reads of a failure that the agent did not choose: an error it returned, a panic, the end of a
/// command. Texts that an agent chose for the client, with [`Turn::fail`](super::Turn::fail), [`Turn::reject`](super::Turn::reject) or [`AgentError::told`],
/// are always shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ErrorDetails {
    /// A short reason and an incident id. The log has the cause under that id.
    #[default]
    Incident,
    /// The whole text, which may hold paths and secrets of the server.
    Full,
}

/// Why an agent's run failed.
///
/// Everything that converts into a boxed error converts into this type with `?` or `.into()`: any
/// [`std::error::Error`], a boxed one, an `anyhow::Error`, a text. The text goes to the log. The client reads that the
/// agent failed, and an incident id by which the operator finds the log line. Three constructors say more:
///
/// - [`AgentError::told`]: the client reads the whole text;
/// - [`AgentError::with_details`]: the client reads a summary and an incident id, the details go to the log;
/// - [`AgentError::timed_out`]: the client reads the text, and the run counts as one that took too long.
///
/// An [`AgentCallError`] is told as it is.
///
/// An agent that declares [`ErrorDetails::Full`] shows clients everything.
pub struct AgentError {
    kind: Kind,
    /// What the client may read.
    told: Option<String>,
    /// What only the log may contain.
    cause: Option<Cause>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Told,
    TimedOut,
    Hidden,
}

/// A chain of causes longer than this is a loop.
const CAUSES_MAX: usize = 16;

impl AgentError {
    /// A failure with a reason for the client.
    pub fn told(reason: impl Into<String>) -> Self {
        Self { kind: Kind::Told, told: Some(reason.into()), cause: None }
    }

    /// A failure that the agent did not choose. The client reads the summary and an incident id; the details, which may
    /// hold paths or secrets, go to the log under that id.
    pub fn with_details(summary: impl Into<String>, details: impl Into<Cause>) -> Self {
        Self { kind: Kind::Hidden, told: Some(summary.into()), cause: Some(details.into()) }
    }

    /// An end because time ran out, with a reason for the client.
    pub fn timed_out(reason: impl Into<String>) -> Self {
        Self { kind: Kind::TimedOut, told: Some(reason.into()), cause: None }
    }

    /// Adds details that only the log may contain.
    #[must_use]
    pub fn caused_by(mut self, cause: impl Into<Cause>) -> Self {
        self.cause = Some(cause.into());
        self
    }

    /// What the client may read.
    #[must_use]
    pub fn client_text(&self) -> &str {
        self.told.as_deref().unwrap_or(FAILED_UNTOLD)
    }

    /// Whether there is something to log besides what the client reads.
    pub(crate) fn is_incident(&self) -> bool {
        self.kind == Kind::Hidden || self.cause.is_some()
    }

    /// What the client reads of this failure.
    pub(crate) fn text_for_client(&self, details: ErrorDetails, incident: &str) -> String {
        let told = self.client_text();
        match (self.kind, details) {
            (Kind::Told | Kind::TimedOut, _) => told.to_owned(),
            (Kind::Hidden, ErrorDetails::Incident) => format!("{told} (incident {incident})"),
            (Kind::Hidden, ErrorDetails::Full) => match (&self.told, self.cause_text()) {
                (_, None) => told.to_owned(),
                (None, Some(cause)) => cause,
                (Some(summary), Some(details)) => format!("{summary}:\n{details}"),
            },
        }
    }

    /// The chain of causes as text, for the log.
    pub(crate) fn cause_text(&self) -> Option<String> {
        let mut text = String::new();
        for cause in self.causes() {
            let more = cause.to_string();
            // Many errors end with the text of their source.
            if text.ends_with(&more) {
                continue;
            }
            if !text.is_empty() {
                text.push_str(": ");
            }
            text.push_str(&more);
        }
        Some(text).filter(|text| !text.is_empty())
    }

    /// The ending under which a run with this error is counted.
    pub(crate) fn run_end(&self) -> RunEnd {
        let refused = |cause: &(dyn Error + 'static)| matches!(cause.downcast_ref(), Some(TurnError::Refused(_)));
        match self.kind {
            _ if self.causes().any(refused) => RunEnd::InvalidResponse,
            Kind::Told => RunEnd::Failed,
            Kind::TimedOut => RunEnd::TimedOut,
            Kind::Hidden => RunEnd::Error,
        }
    }

    /// The chain of causes, outermost first.
    fn causes(&self) -> impl Iterator<Item = &(dyn Error + 'static)> {
        let mut next = self.cause.as_deref().map(|cause| -> &(dyn Error + 'static) { cause });
        let one = move || {
            let cause = next?;
            next = cause.source();
            Some(cause)
        };
        std::iter::from_fn(one).take(CAUSES_MAX)
    }
}

// Bounded by `Into`, not by `Error`, because neither a text, nor a boxed error, nor `anyhow::Error` is an `Error` itself.
impl<E: Into<Cause>> From<E> for AgentError {
    fn from(error: E) -> Self {
        let cause: Cause = error.into();
        // What went wrong with a call to another agent is made for the client.
        match cause.downcast_ref::<AgentCallError>().map(ToString::to_string) {
            Some(told) => Self { kind: Kind::Told, told: Some(told), cause: None },
            None => Self { kind: Kind::Hidden, told: None, cause: Some(cause) },
        }
    }
}

impl fmt::Debug for AgentError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.cause_text() {
            Some(cause) => write!(f, "{}: {cause}", self.client_text()),
            None => f.write_str(self.client_text()),
        }
    }
}

/// Why a turn could not write.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum TurnError {
    /// The task has ended, or another run has taken over: stop working.
    Stopped,
    /// What was written makes no sense here, or exceeds a limit.
    Refused(ProtocolError),
    /// The checkpoint cannot be written as JSON, such as a map whose keys are not texts; nothing was written.
    Checkpoint(JsonError),
    /// The store failed; whether the write was recorded is not known.
    Unavailable,
}

impl fmt::Display for TurnError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Stopped => f.write_str("the task has ended or moved to another run"),
            Self::Refused(error) => fmt::Display::fmt(error, f),
            Self::Checkpoint(error) => write!(f, "the checkpoint cannot be written as JSON: {error}"),
            Self::Unavailable => f.write_str("the store is unavailable"),
        }
    }
}

impl Error for TurnError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Checkpoint(error) => Some(error),
            Self::Refused(error) => error.source(),
            Self::Stopped | Self::Unavailable => None,
        }
    }
}

/// The key in the metadata of a failure's message that says how the agent's answer broke the protocol.
const INVALID_RESPONSE: &str = "switchboard.invalidAgentResponse";

/// Marks the message of a failure whose cause is that the agent broke the protocol.
pub(super) fn mark_invalid_response(mut message: Arc<Message>, error: &AgentError) -> Arc<Message> {
    let cause = error.cause.as_ref().and_then(|cause| cause.downcast_ref::<TurnError>());
    if let Some(TurnError::Refused(ProtocolError::InvalidAgentResponse { reason })) = cause {
        let mark = serde_json::json!({ INVALID_RESPONSE: reason });
        Arc::make_mut(&mut message).metadata = Some(Json::from_trusted(mark.to_string()));
    }
    message
}

/// How the agent of a failed task broke the protocol, if that is why the task failed.
pub(crate) fn invalid_response(task: &Task) -> Option<ProtocolError> {
    let metadata = task.status.message.as_ref().filter(|_| task.state() == TaskState::Failed)?.metadata.as_ref()?;
    if !metadata.as_str().contains(INVALID_RESPONSE) {
        return None;
    }
    let parsed: serde_json::Value = serde_json::from_str(metadata.as_str()).ok()?;
    let reason = parsed.get(INVALID_RESPONSE)?.as_str()?.to_owned();
    Some(ProtocolError::InvalidAgentResponse { reason })
}

/// How one run of an agent ended. A run is the work on one message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum RunEnd {
    /// The task is completed.
    Completed,
    /// The agent answered with a message and no task.
    Replied,
    /// The task waits for input or for an authorization.
    Paused,
    /// The next message had arrived already, so the task continues with that one.
    Continued,
    /// The agent declined the task.
    Rejected,
    /// The agent failed the task on purpose, with a text of its own.
    Failed,
    /// The agent returned an error, or a command exited with a failure or could not be started.
    Error,
    /// The agent panicked.
    Panicked,
    /// The agent wrote something that the protocol or a limit forbids, and returned the resulting error.
    InvalidResponse,
    /// The run took longer than it may.
    TimedOut,
    /// The run was not started within the time that a task may wait.
    NotStarted,
    /// The task was canceled.
    Canceled,
    /// The store has no room for what the run wrote: a limit of stored bytes was reached.
    StorageFull,
    /// The run was interrupted and is not tried again.
    Interrupted,
    /// The task's agent has not been served here for too long.
    Unserved,
    /// Another process has taken the run over, or its turn was ended without it.
    Superseded,
    /// The store did not take what the run wrote. The run is tried again when its lease has run out.
    StoreFailed,
    /// The server stopped while the run was at work. The next process resumes it.
    Stopped,
}

impl RunEnd {
    /// All endings, each at the index of its counter.
    pub const ALL: [Self; 18] = [
        Self::Completed,
        Self::Replied,
        Self::Paused,
        Self::Continued,
        Self::Rejected,
        Self::Failed,
        Self::Error,
        Self::Panicked,
        Self::InvalidResponse,
        Self::TimedOut,
        Self::NotStarted,
        Self::Canceled,
        Self::StorageFull,
        Self::Interrupted,
        Self::Unserved,
        Self::Superseded,
        Self::StoreFailed,
        Self::Stopped,
    ];

    /// The word for logs and metrics.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Completed => "completed",
            Self::Replied => "replied",
            Self::Paused => "paused",
            Self::Continued => "continued",
            Self::Rejected => "rejected",
            Self::Failed => "failed",
            Self::Error => "error",
            Self::Panicked => "panicked",
            Self::InvalidResponse => "invalid_response",
            Self::TimedOut => "timed_out",
            Self::NotStarted => "not_started",
            Self::Canceled => "canceled",
            Self::StorageFull => "storage_full",
            Self::Interrupted => "interrupted",
            Self::Unserved => "unserved",
            Self::Superseded => "superseded",
            Self::StoreFailed => "store_failed",
            Self::Stopped => "stopped",
        }
    }

    /// Whether the run counts as failed: it left its task failed, other than by taking too long.
    #[must_use]
    pub fn is_failure(self) -> bool {
        match self {
            Self::Failed
            | Self::Error
            | Self::Panicked
            | Self::InvalidResponse
            | Self::StorageFull
            | Self::Interrupted
            | Self::Unserved => true,
            Self::Completed
            | Self::Replied
            | Self::Paused
            | Self::Continued
            | Self::Rejected
            | Self::TimedOut
            | Self::NotStarted
            | Self::Canceled
            | Self::Superseded
            | Self::StoreFailed
            | Self::Stopped => false,
        }
    }

    /// How the run for a turn ended, as its task shows.
    pub(crate) fn shown_by(head: &Head, turn: u32) -> Self {
        match (head.phase, head.state) {
            (Phase::Replied, _) => Self::Replied,
            (Phase::Unborn, _) => Self::Superseded,
            (Phase::Live, _) if head.turn > turn => Self::Continued,
            (Phase::Live, TaskState::Completed) => Self::Completed,
            (Phase::Live, TaskState::Failed) => Self::Failed,
            (Phase::Live, TaskState::Canceled) => Self::Canceled,
            (Phase::Live, TaskState::Rejected) => Self::Rejected,
            (Phase::Live, TaskState::InputRequired | TaskState::AuthRequired) => Self::Paused,
            (Phase::Live, TaskState::Submitted | TaskState::Working | TaskState::Unspecified) => Self::Superseded,
        }
    }
}

/// What is counted about the runs of one agent since the start of the process.
#[derive(Debug, Default)]
pub struct RunCounters {
    started: AtomicU64,
    recovered: AtomicU64,
    ended: [AtomicU64; RunEnd::ALL.len()],
    seconds: Histogram,
}

impl RunCounters {
    pub(crate) fn start(&self) {
        self.started.fetch_add(1, Relaxed);
    }

    pub(crate) fn recover(&self) {
        self.recovered.fetch_add(1, Relaxed);
    }

    /// Counts the end of a run that was at work for this long.
    pub(crate) fn end(&self, how: RunEnd, worked: Duration) {
        self.end_unstarted(how);
        self.seconds.observe(worked);
    }

    /// Counts the end of a run whose agent was not started in this process.
    pub(crate) fn end_unstarted(&self, how: RunEnd) {
        self.ended[how as usize].fetch_add(1, Relaxed);
    }

    /// Runs started.
    #[must_use]
    pub fn started(&self) -> u64 {
        self.started.load(Relaxed)
    }

    /// Runs resumed after an interruption.
    #[must_use]
    pub fn recovered(&self) -> u64 {
        self.recovered.load(Relaxed)
    }

    /// Runs that ended like this.
    #[must_use]
    pub fn ended(&self, how: RunEnd) -> u64 {
        self.ended[how as usize].load(Relaxed)
    }

    /// Runs that left their task failed, other than by taking too long.
    #[must_use]
    pub fn failed(&self) -> u64 {
        RunEnd::ALL.into_iter().filter(|how| how.is_failure()).map(|how| self.ended(how)).sum()
    }

    /// Runs that took too long, or waited too long to be started.
    #[must_use]
    pub fn timed_out(&self) -> u64 {
        self.ended(RunEnd::TimedOut) + self.ended(RunEnd::NotStarted)
    }

    /// How long runs were at work.
    #[must_use]
    pub fn seconds(&self) -> &Histogram {
        &self.seconds
    }
}

/// Upper bounds of the buckets, in microseconds, from an answer from memory to a run of ten minutes.
pub const MICROS_BOUNDS: [u64; 17] = [
    100,
    250,
    500,
    1_000,
    2_500,
    5_000,
    10_000,
    25_000,
    50_000,
    100_000,
    250_000,
    500_000,
    1_000_000,
    5_000_000,
    30_000_000,
    120_000_000,
    600_000_000,
];

/// A histogram of durations without a lock: each observation adds to one bucket and to the sum.
#[derive(Debug, Default)]
pub struct Histogram {
    /// The last bucket counts values above all bounds.
    buckets: [AtomicU64; MICROS_BOUNDS.len() + 1],
    nanos_sum: AtomicU64,
}

impl Histogram {
    /// Counts one duration.
    pub fn observe(&self, took: Duration) {
        let nanos = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX);
        let bucket = MICROS_BOUNDS.partition_point(|bound| bound * 1_000 < nanos);
        self.buckets[bucket].fetch_add(1, Relaxed);
        self.nanos_sum.fetch_add(nanos, Relaxed);
    }

    /// The observations in each bucket; the counts are not cumulative.
    #[must_use]
    pub fn buckets(&self) -> [u64; MICROS_BOUNDS.len() + 1] {
        std::array::from_fn(|bucket| self.buckets[bucket].load(Relaxed))
    }

    /// All durations together.
    #[must_use]
    pub fn seconds_sum(&self) -> f64 {
        self.nanos_sum.load(Relaxed) as f64 / 1e9
    }
}

#[cfg(test)]
#[path = "ending_tests.rs"]
mod tests;
