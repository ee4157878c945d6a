//! A relay: an agent of this server whose work is done by an agent elsewhere, the upstream.
//!
//! Its callers have what every agent of a Switchboard has: durable tasks, streams that can be resumed, every version, binding and
//! dialect, webhooks and owners. The upstream is called through the client of `switchboard` and needs to know nothing of it.
//!
//! A turn goes: the message is accepted and stored; it is sent to the upstream (`session`); the id of the upstream's task is kept
//! as a checkpoint before anything is waited for; updates that arrive together are passed on in one commit, with the checkpoint that names
//! the last of them. After a crash the next attempt reads the checkpoint and goes on with the same task: by the number of the last
//! event, else with a snapshot of which only the new part is written (`progress`), else by asking for the task from time to time.
//!
//! `upstream` has what all turns share: the client, the card, the circuit breaker (`breaker`), limits and counters.
//!
//! ```
//! use switchboard::client::Client;
//! use switchboard::{AgentBuilder, Server, Turn};
//! use switchboard_hub::relay::{Relay, RelayOptions};
//!
//! # tokio::runtime::Runtime::new().unwrap().block_on(async {
//! // An agent of somebody else; any A2A agent will do.
//! let echo = AgentBuilder::from_fn("Echo", |turn: Turn| async move { Ok(turn.answer(turn.text()).await?) });
//! let upstream = Server::builder().agent(echo).build().unwrap().bind(([127, 0, 0, 1], 0).into()).await.unwrap();
//! let url = format!("http://{}", upstream.local_addr());
//! tokio::spawn(upstream.run_until(std::future::pending(), std::time::Duration::ZERO));
//!
//! let relay = Relay::new(&url, Client::builder(), RelayOptions::default()).unwrap();
//! let gateway = Server::builder().agent(AgentBuilder::new("Echo", relay)).build().unwrap();
//! let answer = gateway.local("echo").unwrap().send_text("hello").await.unwrap();
//! assert_eq!(answer.text(), "hello");
//! # });
//! ```

mod breaker;
mod card;
mod counters;
mod handle;
mod metrics;
mod pieces;
mod pin;
mod progress;
mod session;
mod upstream;

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use switchboard::call::Owner;
use switchboard::client::{ClientBuilder, Credentials};
use switchboard::model::AgentCard;
use switchboard::{
    Agent, AgentBuilder, AgentClient, AgentError, Backoff, CallError, Callee, Dialect, Json, LeftOver, ProtocolError,
    Recovery, Replies, Traits, Turn,
};

pub use breaker::BreakerState;
use card::ANY_MODE;
pub use counters::RelayCounters;
pub use handle::RelayHandle;
pub use metrics::write_metrics;
pub use pin::{PinnedAgent, card_changes};
use progress::Progress;
pub(crate) use session::ChosenUpstream;
use session::Session;
use upstream::Upstream;

/// How long a run of a relay may take if nothing is set: a year, which timers can still hold.
const RUN_MAX: Duration = Duration::from_secs(365 * 86_400);
/// How often a turn is taken up again after crashes of the gateway: each time the run goes on with the same task.
const ATTEMPTS_MAX: u32 = 1_000;
/// The pauses between these attempts.
const ATTEMPT_PAUSE: Backoff = Backoff { min: Duration::from_secs(1), max: Duration::from_secs(30) };

/// How a relay treats its upstream.
///
/// ```
/// use std::time::Duration;
/// use switchboard_hub::relay::{RelayOptions, Resend};
///
/// let mut options = RelayOptions::default();
/// options.resend = Resend::Always;
/// options.down_max = Duration::from_secs(60);
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct RelayOptions {
    /// What the upstream speaks, if its card does not tell.
    pub dialect: Option<Dialect>,
    /// Whether a message is sent again of which is not known whether it arrived.
    pub resend: Resend,
    /// How often a message is tried, the first time included, before the upstream counts as down.
    pub tries_max: u32,
    /// The pause after the first try; each later one is twice as long.
    pub pause_first: Duration,
    /// The longest pause between tries.
    pub pause_max: Duration,
    /// How long the upstream has for the first sign of life, connecting included: the head of an answer.
    pub first_sign_max: Duration,
    /// How long an upstream that does not stream may take for its answer to a message, if it answers only at the end.
    pub answer_max: Duration,
    /// How long a message that has not left waits for an upstream that is down, after its tries. With zero, messages are refused while
    /// the upstream is known to be down, and what was accepted before that fails after its tries.
    pub down_max: Duration,
    /// How long an upstream that is at work on a task may be away before the task is failed.
    pub lost_max: Duration,
    /// How long one run may take; none is no limit.
    pub run_max: Option<Duration>,
    /// How many tasks may be at work at the upstream at once, each with at most one stream; further ones wait.
    pub calls_max: usize,
    /// How many streams of the upstream may be open at once; further tasks are asked for from time to time.
    pub streams_max: usize,
    /// How many messages the upstream is sent within a second; further ones wait. None is no limit.
    pub sends_per_second_max: Option<u32>,
    /// The size of one answer and of one event.
    pub answer_bytes_max: u64,
    /// A name that no other gateway in front of the same upstream has, such as the public URL: contexts of two gateways with one
    /// name and one caller would be one context at the upstream.
    pub namespace: String,
    /// Where the last known card of the upstream is written down, for a start while the upstream is down.
    pub card_file: Option<PathBuf>,
    /// The card of the upstream as an operator has accepted it; none accepts every card.
    pub accepted_card: Option<AcceptedCard>,
    /// What happens when the card of the upstream differs from the accepted one.
    pub card_changes: CardChanges,
}

/// Defaults of [`RelayOptions`].
const TRIES_MAX_DEFAULT: u32 = 3;
const PAUSE_FIRST_DEFAULT: Duration = Duration::from_secs(1);
const PAUSE_MAX_DEFAULT: Duration = Duration::from_secs(4);
const FIRST_SIGN_MAX_DEFAULT: Duration = Duration::from_secs(30);
const ANSWER_MAX_DEFAULT: Duration = Duration::from_secs(3_600);
const DOWN_MAX_DEFAULT: Duration = Duration::from_secs(300);
const LOST_MAX_DEFAULT: Duration = Duration::from_secs(600);
const CALLS_MAX_DEFAULT: usize = 1_000;
const STREAMS_MAX_DEFAULT: usize = 1_000;
const ANSWER_BYTES_MAX_DEFAULT: u64 = 32 << 20;

impl Default for RelayOptions {
    fn default() -> Self {
        Self {
            dialect: None,
            resend: Resend::IfRecognised,
            tries_max: TRIES_MAX_DEFAULT,
            pause_first: PAUSE_FIRST_DEFAULT,
            pause_max: PAUSE_MAX_DEFAULT,
            first_sign_max: FIRST_SIGN_MAX_DEFAULT,
            answer_max: ANSWER_MAX_DEFAULT,
            down_max: DOWN_MAX_DEFAULT,
            lost_max: LOST_MAX_DEFAULT,
            run_max: None,
            calls_max: CALLS_MAX_DEFAULT,
            streams_max: STREAMS_MAX_DEFAULT,
            sends_per_second_max: None,
            answer_bytes_max: ANSWER_BYTES_MAX_DEFAULT,
            namespace: String::new(),
            card_file: None,
            accepted_card: None,
            card_changes: CardChanges::default(),
        }
    }
}

/// Whether a message is sent again of which is not known whether it arrived. It always has the same `messageId` and the same
/// `Idempotency-Key`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Resend {
    /// Only to an upstream whose card says that it recognises the repeat
    /// ([`IDEMPOTENT_SENDS`](switchboard::IDEMPOTENT_SENDS)). Otherwise the task fails, and its reason says that the outcome is not known.
    #[default]
    IfRecognised,
    /// Always: the work may be done twice.
    Always,
}

/// Where the card of an upstream is that an operator has accepted. It is asked for whenever the card of the upstream is looked at, about
/// once a minute.
#[derive(Clone)]
pub struct AcceptedCard(Arc<dyn Fn() -> Option<Arc<AgentCard>> + Send + Sync>);

impl AcceptedCard {
    /// `read` gives the accepted card, or none if there is none (yet).
    pub fn new(read: impl Fn() -> Option<Arc<AgentCard>> + Send + Sync + 'static) -> Self {
        Self(Arc::new(read))
    }

    fn read(&self) -> Option<Arc<AgentCard>> {
        (self.0)()
    }
}

impl fmt::Debug for AcceptedCard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AcceptedCard").finish_non_exhaustive()
    }
}

/// What happens when the card of an upstream differs from the accepted one ([`card_changes`]).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum CardChanges {
    /// The log says so.
    #[default]
    Show,
    /// The same, and messages are refused until an operator accepts the new card. What is at work goes on.
    Refuse,
}

/// An agent elsewhere, as an agent of this server. The module's documentation has an example.
#[derive(Clone)]
pub struct Relay {
    upstream: Arc<Upstream>,
}

impl fmt::Debug for Relay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Relay").field("upstream", &self.upstream.url()).finish_non_exhaustive()
    }
}

/// Why there is no relay.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RelayError(String);

impl fmt::Display for RelayError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for RelayError {}

impl From<CallError> for RelayError {
    fn from(error: CallError) -> Self {
        Self(error.to_string())
    }
}

impl Relay {
    /// A relay to the agent at `url`, which is named as for [`Client::agent`](switchboard::client::Client::agent). `client` says with which
    /// credentials, certificates and addresses; its limits and its policy for retries are those of the options. Nothing is called yet.
    ///
    /// # Errors
    /// When `url` is none, or the client cannot be built.
    pub fn new(url: &str, client: ClientBuilder, options: RelayOptions) -> Result<Self, RelayError> {
        Self::showing(url, client, options, |_| ())
    }

    /// The same, with `change` made to the card after that of the upstream was taken over: what the relay says about itself in
    /// other words.
    ///
    /// # Errors
    /// As of [`Relay::new`].
    pub fn showing(
        url: &str,
        client: ClientBuilder,
        options: RelayOptions,
        change: impl Fn(&mut AgentCard) + Send + Sync + 'static,
    ) -> Result<Self, RelayError> {
        Ok(Self { upstream: Arc::new(Upstream::new(url, client, options, Box::new(change))?) })
    }

    /// The relay as an agent to serve, with the card of the upstream. Until that is known ([`RelayHandle::begin`] reads it,
    /// [`RelayHandle::keep_card_fresh`] follows its changes), the card has this name and promises nothing.
    #[must_use]
    pub fn agent(self, name: impl Into<String>) -> AgentBuilder {
        let live = self.upstream.live_card().clone();
        let agent = AgentBuilder::new(name, self);
        // Some cards of older systems have the version of this program unless one is given.
        agent.version("0").input_modes([ANY_MODE]).output_modes([ANY_MODE]).live_card(&live)
    }

    /// The relay's view of its upstream, for operators: its card, whether it answers, what was counted.
    #[must_use]
    pub fn handle(&self) -> RelayHandle {
        RelayHandle::new(self.upstream.clone())
    }

    /// Has the upstream, which was chosen for this turn, work on it.
    pub(crate) async fn pass_on(&self, turn: &Turn, chosen: ChosenUpstream<'_>) -> Result<(), AgentError> {
        Box::pin(Session::run(&self.upstream, turn, Some(chosen))).await
    }

    /// Cancels what a canceled task has left at the upstream.
    pub(crate) async fn cancel_passed_on(&self, checkpoint: &Json, credentials: Option<&Credentials>) {
        if let Ok(progress) = checkpoint.deserialize::<Progress>() {
            session::cancel_left_over(&self.upstream, &progress, credentials).await;
        }
    }
}

/// Has an agent of this server work on a turn, for the owner of its task: as a relay does, without a socket in between.
pub(crate) async fn pass_on_here(
    turn: &Turn,
    callee: &Callee,
    options: RelayOptions,
    metadata: Json,
) -> Result<(), AgentError> {
    let upstream = Upstream::here(&callee.id, called_for(turn.owner(), callee), options);
    let chosen = ChosenUpstream { target: &callee.id, metadata, credentials: None };
    Box::pin(Session::run(&upstream, turn, Some(chosen))).await
}

/// Cancels what a canceled task has left at an agent of this server.
pub(crate) async fn cancel_passed_on_here(owner: &Owner, callee: &Callee, checkpoint: &Json) {
    if let Ok(progress) = checkpoint.deserialize::<Progress>() {
        let upstream = Upstream::here(&callee.id, called_for(owner, callee), RelayOptions::default());
        session::cancel_left_over(&upstream, &progress, None).await;
    }
}

/// The name under which the agent was chosen that a task was passed on to.
pub(crate) fn passed_on_to(checkpoint: &Json) -> Option<String> {
    checkpoint.deserialize::<Progress>().ok()?.target
}

fn called_for(owner: &Owner, callee: &Callee) -> AgentClient {
    AgentClient::new(callee.endpoint.clone()).with_caller(|caller| {
        caller.authenticated = *owner != Owner::default();
        caller.owner = owner.clone();
    })
}

impl Agent for Relay {
    async fn run(&self, turn: Turn) -> Result<(), AgentError> {
        // Boxed, because the future of an agent is moved when it is started.
        Box::pin(Session::run(&self.upstream, &turn, None)).await
    }

    async fn cancel_left_over(&self, left: LeftOver) {
        self.cancel_passed_on(left.checkpoint(), None).await;
    }

    fn admit(&self) -> Result<(), ProtocolError> {
        self.upstream.accepts()
    }

    fn traits(&self) -> Traits {
        let options = self.upstream.options();
        options.traits().with_replies(Replies::Either).with_runs_max(options.calls_max)
    }
}

impl RelayOptions {
    /// What the engine may assume about runs that are passed on.
    pub(crate) fn traits(&self) -> Traits {
        Traits::default()
            .with_recovery(Recovery::Retry { attempts_max: Some(ATTEMPTS_MAX), backoff: Some(ATTEMPT_PAUSE) })
            .with_run_max(self.run_max.unwrap_or(RUN_MAX))
    }
}
