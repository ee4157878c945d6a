//! What an agent may declare about itself.

use std::time::Duration;

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
    /// How many messages of earlier tasks in the same context the agent is given ([`Turn::context`](crate::runs::Turn::context)). 0, the default,
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

/// How much the client reads of a failure that the agent did not choose: an error it returned, a panic, the end of a
/// command. Texts that an agent chose for the client, with [`Turn::fail`](crate::runs::Turn::fail), [`Turn::reject`](crate::runs::Turn::reject) or
/// [`AgentError::told`](crate::runs::AgentError::told), are always shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ErrorDetails {
    /// A short reason and an incident id. The log has the cause under that id.
    #[default]
    Incident,
    /// The whole text, which may hold paths and secrets of the server.
    Full,
}
