//! The trait that an agent's author implements, where the agent for a turn comes from, and the agents of this process, each with
//! its name and its card.

use std::collections::HashMap;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use switchboard_core::call::{BoxFuture, Caller, Owner};
use switchboard_core::error::ProtocolError;
use switchboard_core::model::{AgentCard, AgentName, Dialect, Json, Vocabulary};

use super::agent_error::AgentError;
use super::turn::Turn;
use crate::ports::store::Scope;
use crate::ports::{Callee, CalleeError, Callees};
use crate::state::runs::{FairSlots, RunCounters, Traits};
use crate::state::{CurrentCard, EngineState};

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

/// All agents of a process, by name.
pub(crate) type Agents = HashMap<AgentName, Arc<Registered>>;

/// One agent of this process.
#[derive(Debug)]
pub struct Registered {
    /// What it is called.
    pub name: AgentName,
    /// Where the agent for a turn comes from.
    pub source: AgentSource,
    /// What its card says now.
    pub card: Arc<CurrentCard>,
    /// The extended card, if there is one.
    pub extended_card: Option<Arc<AgentCard>>,
    /// Spec 13.3 requires authentication for the extended card; a server without authentication can opt out.
    pub extended_card_for_anyone: bool,
}

impl Registered {
    /// Checked before the task is looked up, so that an agent without push gives the same error for every task.
    pub(crate) fn require_push(&self) -> Result<(), ProtocolError> {
        match self.card.get().capabilities.push_notifications {
            Some(true) => Ok(()),
            Some(false) | None => Err(ProtocolError::PushNotificationNotSupported),
        }
    }

    pub(crate) fn require_streaming(&self, dialect: Dialect) -> Result<(), ProtocolError> {
        match self.card.get().capabilities.streaming {
            Some(true) => Ok(()),
            Some(false) | None => {
                let Vocabulary { send_message, get_task, .. } = &dialect.rules().words;
                let reason = format!("This agent does not stream; use {send_message} and {get_task}");
                Err(ProtocolError::unsupported(reason))
            }
        }
    }
}

impl EngineState {
    pub(crate) fn scope(&self, caller: &Caller, agent: &Registered) -> Scope {
        self.scope_of(&caller.owner, agent)
    }

    pub(crate) fn scope_of(&self, owner: &Owner, agent: &Registered) -> Scope {
        Scope { owner: owner.clone(), agent: agent.name.clone() }
    }
}
