//! The trait that an agent's author implements, and what the agent may declare about itself.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use switchboard_core::call::{BoxFuture, Owner};
use switchboard_core::error::ProtocolError;
use switchboard_core::model::Json;

use super::fair_slots::FairSlots;
use super::{AgentError, RunCounters, Turn};
use crate::ports::{Callee, CalleeError, Callees};

/// An agent: it is given one message at a time and works on it.
///
/// Returning `Ok(())` completes the task unless the turn has set another outcome (asked, rejected, replied directly).
/// Returning an error, or panicking, fails it. The work does not depend on the client's connection: a client that
/// disconnects changes nothing. After a crash the same message is given again, with [`Turn::attempt`] one higher; after
/// an orderly restart that cut it off, too, and then the attempt stays the same.
pub trait Agent: Send + Sync + 'static {
    /// Works on one message. The trait's documentation says what returning, failing and being called again mean.
    fn run(&self, turn: Turn) -> impl Future<Output = Result<(), AgentError>> + Send;

    /// Cleans up what a run that died may have left outside, such as a process that still works for it. `checkpoint` is
    /// the last value that the run kept with [`Turn::checkpoint`]; without one this is not called. It is called before
    /// the next attempt, and also when there will be none.
    fn clean_up_after(&self, checkpoint: Json) -> impl Future<Output = ()> + Send {
        drop(checkpoint);
        std::future::ready(())
    }

    /// Ends what a run has left at work outside, because its task was canceled while no run was at work on it: the task was paused,
    /// or its run had died. Without a [checkpoint](Turn::checkpoint) this is not called. A run that is at work is told by
    /// [`Turn::cancelled`] instead.
    fn cancel_left_over(&self, left: LeftOver) -> impl Future<Output = ()> + Send {
        drop(left);
        std::future::ready(())
    }

    /// Whether the agent takes a message now, asked before it is accepted. An error is the answer to the message, of which nothing
    /// is stored: for an agent that knows that it could only fail, such as one whose work is done elsewhere. It must not block.
    ///
    /// # Errors
    /// What the client is told.
    fn admit(&self) -> Result<(), ProtocolError> {
        Ok(())
    }

    /// What the engine may assume about this agent.
    fn traits(&self) -> Traits {
        Traits::default()
    }
}

/// What an agent declares about itself. Every default is the cautious one.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Traits {
    /// Whether a run does something outside its task, which must not happen for a message that is refused.
    pub effects: Effects,
    /// Whether it answers with tasks, direct messages or either.
    pub replies: Replies,
    /// What happens to a run whose process died.
    pub recovery: Recovery,
    /// When a repeated message counts as the same; none means the default that [`Idempotency`] gives for each kind of
    /// caller.
    pub idempotency: Option<Idempotency>,
    /// How long one run may take; none means the engine's default.
    pub run_max: Option<Duration>,
    /// The longest run that a call may ask for; none means `run_max`.
    pub run_max_per_call: Option<Duration>,
    /// How much longer the engine waits for a run that is out of time, for agents that end by themselves then.
    pub wind_down: Duration,
    /// How much of an error the client reads.
    pub error_details: ErrorDetails,
    /// How many messages of earlier tasks in the same context the agent is given ([`Turn::context`]). 0, the default,
    /// gives none.
    pub context_messages_max: usize,
    /// How many runs of this agent may be at work in this process at once; none means no limit but the engine's. A run
    /// that waits for its slot has not begun: its time does not count, and a crash does not interrupt it.
    pub runs_max: Option<usize>,
    /// Refuses a message whose client accepts none of the media types on the card. Otherwise the agent answers with what
    /// it writes, and the reply says so in a header.
    pub strict_output_modes: bool,
}

impl Default for Traits {
    fn default() -> Self {
        Self {
            effects: Effects::Possible,
            replies: Replies::Task,
            recovery: Recovery::retry(),
            idempotency: None,
            run_max: None,
            run_max_per_call: None,
            wind_down: Duration::ZERO,
            error_details: ErrorDetails::Incident,
            context_messages_max: 0,
            runs_max: None,
            strict_output_modes: false,
        }
    }
}

impl Traits {
    /// Traits for an agent that only computes an answer: running it twice, or in vain, does no harm.
    #[must_use]
    pub fn pure() -> Self {
        Self { effects: Effects::Never, ..Self::default() }
    }

    /// Sets whether a run does something outside its task.
    #[must_use]
    pub fn with_effects(mut self, effects: Effects) -> Self {
        self.effects = effects;
        self
    }

    /// Sets what the agent answers with.
    #[must_use]
    pub fn with_replies(mut self, replies: Replies) -> Self {
        self.replies = replies;
        self
    }

    /// Sets what happens to a run whose process died.
    #[must_use]
    pub fn with_recovery(mut self, recovery: Recovery) -> Self {
        self.recovery = recovery;
        self
    }

    /// Sets when a repeated message counts as the same, for every caller.
    #[must_use]
    pub fn with_idempotency(mut self, idempotency: Idempotency) -> Self {
        self.idempotency = Some(idempotency);
        self
    }

    /// Limits the time of one run; paused time does not count.
    #[must_use]
    pub fn with_run_max(mut self, run_max: Duration) -> Self {
        self.run_max = Some(run_max);
        self
    }

    /// Lets a call ask for a longer run than the default, up to this.
    #[must_use]
    pub fn with_run_max_per_call(mut self, run_max: Duration) -> Self {
        self.run_max_per_call = Some(run_max);
        self
    }

    /// Waits this much longer for a run that is out of time and ends by itself.
    #[must_use]
    pub fn with_wind_down(mut self, wind_down: Duration) -> Self {
        self.wind_down = wind_down;
        self
    }

    /// Limits how many runs of this agent may be at work at once; at least one may.
    #[must_use]
    pub fn with_runs_max(mut self, runs_max: usize) -> Self {
        self.runs_max = Some(runs_max.max(1));
        self
    }

    /// Gives the agent at most this many messages of earlier tasks in the same context.
    #[must_use]
    pub fn with_context_messages_max(mut self, messages_max: usize) -> Self {
        self.context_messages_max = messages_max;
        self
    }

    /// Refuses messages whose client accepts none of the media types on the card.
    #[must_use]
    pub fn with_strict_output_modes(mut self, strict: bool) -> Self {
        self.strict_output_modes = strict;
        self
    }

    /// Sets how much of an error the client reads.
    #[must_use]
    pub fn with_error_details(mut self, details: ErrorDetails) -> Self {
        self.error_details = details;
        self
    }
}

/// How much the client reads of a failure that the agent did not choose: an error it returned, a panic, the end of a
/// command. Texts that an agent chose for the client, with [`Turn::fail`], [`Turn::reject`] or [`AgentError::told`],
/// are always shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ErrorDetails {
    /// A short reason and an incident id. The log has the cause under that id.
    #[default]
    Incident,
    /// The whole text, which may hold paths and secrets of the server.
    Full,
}

/// Whether a run has effects outside its task: writes, calls, payments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Effects {
    /// It may have effects: the engine never starts it before its message is durably accepted.
    Possible,
    /// It only computes an answer: accepting the message and recording the answer may be one commit, and a run whose
    /// message turns out to be a duplicate is discarded.
    Never,
}

/// What an agent answers with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Replies {
    /// Always a task. This is the default.
    Task,
    /// Always a direct message.
    Message,
    /// Either; it is a task from its first status or artifact on.
    Either,
}

/// What happens to a run whose process died.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Recovery {
    /// Run it again, up to this many attempts in all, with pauses between them.
    Retry {
        /// Attempts in all; none means the engine's default.
        attempts_max: Option<u32>,
        /// The pauses between them; none means the engine's default.
        backoff: Option<Backoff>,
    },
    /// Fail the task, with this reason for the client.
    Fail {
        /// What the client reads in the status message.
        reason: String,
    },
}

impl Recovery {
    /// Run it again, as the engine does by default.
    #[must_use]
    pub fn retry() -> Self {
        Self::Retry { attempts_max: None, backoff: None }
    }
}

/// The pauses between attempts. The second attempt comes at once, since a single death is rarely the task's own fault;
/// the third after `min`, each later one after twice the pause before, up to `max`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Backoff {
    /// The pause before the third attempt.
    pub min: Duration,
    /// The longest pause.
    pub max: Duration,
}

/// When a repeated message counts as the same message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Idempotency {
    /// By message id and content. The default for authenticated callers.
    MessageId,
    /// Only by an `Idempotency-Key` header. The default for anonymous callers, who have no identity to key on.
    Key,
    /// Only by an `Idempotency-Key` header, for all callers.
    Off,
}

/// A started agent.
pub type AgentFuture = Pin<Box<dyn Future<Output = Result<(), AgentError>> + Send>>;

type Start = Arc<dyn Fn(Turn) -> AgentFuture + Send + Sync>;
type CleanUp = Arc<dyn Fn(Json) -> BoxFuture<'static, ()> + Send + Sync>;
type CancelLeftOver = Arc<dyn Fn(LeftOver) -> BoxFuture<'static, ()> + Send + Sync>;
type Admit = Arc<dyn Fn() -> Result<(), ProtocolError> + Send + Sync>;

/// What an agent does, behind closures.
#[derive(Clone)]
struct Work {
    start: Start,
    clean_up: CleanUp,
    cancel_left_over: CancelLeftOver,
    admit: Admit,
}

/// Where the agent for a turn comes from.
#[derive(Clone)]
pub struct AgentSource {
    work: Work,
    traits: Traits,
    runs: Arc<RunCounters>,
    /// One permit for each run that may be at work at once, if that is limited.
    slots: Option<FairSlots>,
}

// The agent itself is behind closures, which have no `Debug`.
impl fmt::Debug for AgentSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AgentSource").field("traits", &self.traits).finish_non_exhaustive()
    }
}

impl AgentSource {
    /// One instance for all turns.
    pub fn shared(agent: impl Agent) -> Self {
        let traits = agent.traits();
        let agent = Arc::new(agent);
        let (cleaner, canceler, doorkeeper) = (agent.clone(), agent.clone(), agent.clone());
        let start = move |turn| -> AgentFuture {
            let agent = agent.clone();
            Box::pin(async move { agent.run(turn).await })
        };
        let clean_up = move |checkpoint| -> BoxFuture<'static, ()> {
            let agent = cleaner.clone();
            Box::pin(async move { agent.clean_up_after(checkpoint).await })
        };
        let cancel_left_over = move |left| -> BoxFuture<'static, ()> {
            let agent = canceler.clone();
            Box::pin(async move { agent.cancel_left_over(left).await })
        };
        let admit = move || doorkeeper.admit();
        let work = Work {
            start: Arc::new(start),
            clean_up: Arc::new(clean_up),
            cancel_left_over: Arc::new(cancel_left_over),
            admit: Arc::new(admit),
        };
        Self::new(work, traits)
    }

    /// A fresh instance for each turn. The factory is called once at the beginning to read the traits.
    pub fn factory<A: Agent>(make: impl Fn() -> A + Send + Sync + 'static) -> Self {
        // The first one says what all of them declare, and which messages they take.
        let first = make();
        let traits = first.traits();
        let make = Arc::new(make);
        let (cleaner, canceler) = (make.clone(), make.clone());
        // Made inside the run, so that a factory that panics fails its task and nothing else.
        let start = move |turn| -> AgentFuture {
            let make = make.clone();
            Box::pin(async move { make().run(turn).await })
        };
        let clean_up = move |checkpoint| -> BoxFuture<'static, ()> {
            let make = cleaner.clone();
            Box::pin(async move { make().clean_up_after(checkpoint).await })
        };
        let cancel_left_over = move |left| -> BoxFuture<'static, ()> {
            let make = canceler.clone();
            Box::pin(async move { make().cancel_left_over(left).await })
        };
        let admit = move || first.admit();
        let work = Work {
            start: Arc::new(start),
            clean_up: Arc::new(clean_up),
            cancel_left_over: Arc::new(cancel_left_over),
            admit: Arc::new(admit),
        };
        Self::new(work, traits)
    }

    /// What the agent declares about itself.
    #[must_use]
    pub fn traits(&self) -> &Traits {
        &self.traits
    }

    /// What has been counted about this agent's runs.
    #[must_use]
    pub fn runs(&self) -> &RunCounters {
        &self.runs
    }

    /// The same agent with new counters, for one more engine.
    pub(crate) fn counted_anew(mut self) -> Self {
        self.runs = Arc::default();
        self
    }

    /// Overrides what the agent declares.
    #[must_use]
    pub fn with_traits(self, change: impl FnOnce(Traits) -> Traits) -> Self {
        Self::new(self.work, change(self.traits))
    }

    fn new(work: Work, traits: Traits) -> Self {
        let slots = traits.runs_max.map(|max| FairSlots::new(max.max(1)));
        Self { work, traits, runs: Arc::default(), slots }
    }

    pub(crate) fn slots(&self) -> Option<&FairSlots> {
        self.slots.as_ref()
    }

    /// Whether the agent takes a message now.
    pub(crate) fn admit(&self) -> Result<(), ProtocolError> {
        (self.work.admit)()
    }

    pub(crate) fn start(&self, turn: Turn) -> AgentFuture {
        (self.work.start)(turn)
    }

    pub(crate) fn clean_up_after(&self, checkpoint: Json) -> BoxFuture<'static, ()> {
        (self.work.clean_up)(checkpoint)
    }

    pub(crate) fn cancel_left_over(&self, left: LeftOver) -> BoxFuture<'static, ()> {
        (self.work.cancel_left_over)(left)
    }
}

/// What the runs of a task have left that was canceled while none of them was at work, for [`Agent::cancel_left_over`](super::Agent::cancel_left_over).
pub struct LeftOver {
    pub(crate) checkpoint: Json,
    pub(crate) owner: Owner,
    pub(crate) callees: Arc<dyn Callees>,
}

impl fmt::Debug for LeftOver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LeftOver").finish_non_exhaustive()
    }
}

impl LeftOver {
    /// The last value that a run of the task kept with [`Turn::checkpoint`](super::Turn::checkpoint).
    #[must_use]
    pub fn checkpoint(&self) -> &Json {
        &self.checkpoint
    }

    /// Whose task it is.
    #[must_use]
    pub fn owner(&self) -> &Owner {
        &self.owner
    }

    /// The agent of this name, to be called for the owner of the task, as [`Turn::callee`](super::Turn::callee) finds it.
    ///
    /// # Errors
    /// When there is no such agent, or it cannot be called now.
    pub async fn callee(&self, agent: &str) -> Result<Callee, CalleeError> {
        self.callees.find(&self.owner, agent).await
    }
}
