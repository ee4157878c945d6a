//! Builds an engine from its ports and limits: the only place where an [`EngineState`] is made.
#![warn(missing_docs, missing_debug_implementations)]

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, OnceLock, Weak};

use switchboard_core::call::{BoxFuture, Owner};
use switchboard_core::model::AgentName;
use tokio::sync::Notify;

use crate::auditor::{AuditLevel, Auditor};
use crate::budget::Budget;
use crate::clock_guard::ClockGuard;
use crate::engine::{AgentEndpoint, Engine};
use crate::health::Health;
use crate::limits::Limits;
use crate::ports::{
    Callee, CalleeError, Callees, Clock, Dispatch, Hints, Ids, Store, Tracer, Webhook, WebhookAnswer, WebhookCall,
    WebhookError,
};
use crate::runs::{Agents, Registered};
use crate::state::runs::{FairSlots, RunRegistry, SelfFire, StreamedRuns};
use crate::state::tail::Tails;
use crate::state::webhooks::{WebhookTraces, endpoint_queues};
use crate::state::{Counters, EngineState, KnownAgent};
use crate::supervisor::Supervisor;
use crate::system::{NoHints, RandomIds, SystemClock};
use crate::watching::Listener;

/// Builds an engine. Only the store has no default.
pub struct EngineBuilder {
    store: Arc<dyn Store>,
    hints: Arc<dyn Hints>,
    clock: Arc<dyn Clock>,
    ids: Arc<dyn Ids>,
    webhook: Arc<dyn Webhook>,
    dispatch: Option<Arc<dyn Dispatch>>,
    callees: Option<Arc<dyn Callees>>,
    tracer: Option<Arc<dyn Tracer>>,
    limits: Limits,
    agents: HashMap<AgentName, Arc<Registered>>,
    logs_completed: bool,
    audit: AuditLevel,
}

impl fmt::Debug for EngineBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EngineBuilder").field("agents", &self.agents.keys()).finish_non_exhaustive()
    }
}

impl Engine {
    /// An engine that keeps its tasks in this store.
    #[must_use]
    pub fn builder(store: Arc<dyn Store>) -> EngineBuilder {
        EngineBuilder {
            store,
            hints: Arc::new(NoHints),
            clock: Arc::new(SystemClock),
            ids: Arc::new(RandomIds),
            webhook: Arc::new(NoWebhook),
            dispatch: None,
            callees: None,
            tracer: None,
            limits: Limits::default(),
            agents: HashMap::new(),
            logs_completed: true,
            audit: AuditLevel::default(),
        }
    }
}

impl EngineBuilder {
    /// The channel by which processes that share the store tell each other that a task has changed. The default is for
    /// one process and sends nothing.
    #[must_use]
    pub fn hints(mut self, hints: Arc<dyn Hints>) -> Self {
        self.hints = hints;
        self
    }

    /// Where the time comes from; the system's clock by default.
    #[must_use]
    pub fn clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.clock = clock;
        self
    }

    /// Where ids and random numbers come from; the system's random number generator by default.
    #[must_use]
    pub fn ids(mut self, ids: Arc<dyn Ids>) -> Self {
        self.ids = ids;
        self
    }

    /// The client that posts updates to webhooks. Without one, webhooks are refused.
    #[must_use]
    pub fn webhook(mut self, webhook: Arc<dyn Webhook>) -> Self {
        self.webhook = webhook;
        self
    }

    /// Starts the runs of asynchronous sends by posts of the server to itself: such a send only enqueues, and only
    /// [`Engine::process`] starts the run. Without it they are started at once.
    #[must_use]
    pub fn self_fire(mut self, dispatch: Arc<dyn Dispatch>) -> Self {
        self.dispatch = Some(dispatch);
        self
    }

    /// Where agents find the agents outside this process that they call
    /// ([`Turn::call`](crate::runs::Turn::call)). Without it they can call each other.
    #[must_use]
    pub fn callees(mut self, callees: Arc<dyn Callees>) -> Self {
        self.callees = Some(callees);
        self
    }

    /// Takes the spans of what the engine does, in traces that are recorded. Without it a trace is only passed on.
    #[must_use]
    pub fn tracer(mut self, tracer: Arc<dyn Tracer>) -> Self {
        self.tracer = Some(tracer);
        self
    }

    /// What the engine allows; see [`Limits`] for the defaults.
    #[must_use]
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// Adds an agent; a later one of the same name takes its place.
    #[must_use]
    pub fn agent(mut self, mut agent: Registered) -> Self {
        agent.source = agent.source.counted_anew();
        self.agents.insert(agent.name.clone(), Arc::new(agent));
        self
    }

    /// Whether a line is logged for each completed task. Tasks that end in another state are always logged.
    #[must_use]
    pub fn log_completed_tasks(mut self, on: bool) -> Self {
        self.logs_completed = on;
        self
    }

    /// What is written to the audit log of the store.
    #[must_use]
    pub fn audit(mut self, level: AuditLevel) -> Self {
        self.audit = level;
        self
    }

    /// Builds the engine. It answers calls at once; [`Engine::start`] starts its background loops.
    #[must_use]
    pub fn build(self) -> Engine {
        let Self { store, hints, clock, ids, webhook, dispatch, callees, tracer, limits, .. } = self;
        let (agents, logs_completed, audit) = (self.agents, self.logs_completed, self.audit);
        let tails = Tails::new(limits.tail_updates_max, limits.tail_bytes_max);
        let (runs, cancels_due, runs_released) =
            (RunRegistry::default(), Arc::<Notify>::default(), Arc::<Notify>::default());
        hints.listen(Arc::new(Listener {
            tails: tails.clone(),
            runs: runs.clone(),
            cancels_due: cancels_due.clone(),
            runs_released: runs_released.clone(),
        }));
        let agents = Arc::new(agents);
        let known = |agent: &Registered| KnownAgent { card: agent.card.clone(), traits: agent.source.traits().clone() };
        let known_agents = agents.iter().map(|(name, agent)| (name.clone(), known(agent))).collect();
        let mut served: Vec<_> = agents.keys().cloned().collect();
        served.sort();
        let engine = Arc::new_cyclic(|engine: &Weak<EngineState>| EngineState {
            callees: Arc::new(OwnCallees { engine: engine.clone(), agents: agents.clone(), further: callees }),
            queued_runs: Budget::new(limits.runs_queued_max, limits.runs_queued_per_owner_max).shared(store.share()),
            store,
            hints,
            clock,
            ids,
            webhook,
            tracer,
            self_fire: dispatch.map(SelfFire::new),
            known_agents,
            served: served.into(),
            tails,
            runs,
            streamed_runs: StreamedRuns::default(),
            run_slots: FairSlots::new(limits.runs_max.max(1)),
            run_bytes: Budget::new(limits.run_message_bytes_max, limits.run_message_bytes_per_owner_max),
            endpoint_queues: endpoint_queues(&limits),
            limits,
            supervisor: Supervisor::new(),
            counters: Counters::default(),
            health: Health::recovering(),
            audit: Auditor::new(audit),
            logs_completed,
            clock_guard: ClockGuard::default(),
            links: OnceLock::new(),
            webhook_traces: WebhookTraces::default(),
            deliveries_due: Notify::new(),
            runs_due: Notify::new(),
            runs_released,
            cancels_due,
            calls_due: Notify::new(),
            prune_due: Notify::new(),
        });
        Engine::of(engine, agents)
    }
}

/// The agents of this process, and those that a port finds.
struct OwnCallees {
    /// The engine holds this, so it is not held in turn.
    engine: Weak<EngineState>,
    agents: Arc<Agents>,
    further: Option<Arc<dyn Callees>>,
}

impl OwnCallees {
    fn own(&self, name: &str) -> Option<Callee> {
        let engine = self.engine.upgrade()?;
        let name = name.trim();
        let is_named = |agent: &&Arc<Registered>| agent.name.as_str().eq_ignore_ascii_case(name);
        let agent = self.agents.get(name).or_else(|| self.agents.values().find(is_named))?.clone();
        let id = agent.name.as_str().to_owned();
        let endpoint = Arc::new(AgentEndpoint { engine, agent });
        Some(Callee { id, endpoint, recognises_repeats: true, is_local: true })
    }
}

impl Callees for OwnCallees {
    fn find<'a>(&'a self, owner: &'a Owner, name: &'a str) -> BoxFuture<'a, Result<Callee, CalleeError>> {
        match (self.own(name), &self.further) {
            (Some(own), _) => Box::pin(std::future::ready(Ok(own))),
            (None, Some(further)) => further.find(owner, name),
            (None, None) => Box::pin(std::future::ready(Err(CalleeError::Unknown))),
        }
    }

    fn names(&self) -> Vec<String> {
        let engine = self.engine.upgrade();
        let own = engine.iter().flat_map(|engine| engine.served.iter().map(ToString::to_string));
        own.chain(self.further.iter().flat_map(|further| further.names())).collect()
    }
}

/// Used when no webhook adapter was given.
struct NoWebhook;

impl Webhook for NoWebhook {
    fn check(&self, _: &str) -> Result<(), String> {
        Ok(())
    }

    fn post(&self, _: WebhookCall) -> BoxFuture<'_, Result<WebhookAnswer, WebhookError>> {
        let refused = WebhookError::Refused("this process has no webhook client".to_owned());
        Box::pin(std::future::ready(Err(refused)))
    }
}
