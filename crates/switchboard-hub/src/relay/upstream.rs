//! What all turns of a relay share: the client and the card of the upstream, whether it may be called now, and what was counted.

use std::fmt;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use switchboard::client::{CardReference, Client, ClientBuilder, ClientLimits, RetryPolicy};
use switchboard::model::AgentCard;
use switchboard::{AgentClient, CallError, CallErrorKind, IDEMPOTENT_SENDS};
use tokio::time::{Instant, timeout};

use super::breaker::{Breaker, Rate};
use super::{RelayError, RelayOptions, Resend};

/// How long a card is used before the client is asked for it again. The client itself keeps it for as long as HTTP allows.
const CARD_LOOK: Duration = Duration::from_secs(60);
/// How long a turn waits for a newer card while there is an older one.
const CARD_LOOK_MAX: Duration = Duration::from_secs(5);

pub(super) struct Upstream {
    url: String,
    reference: CardReference,
    client: Client,
    options: RelayOptions,
    known: Mutex<Option<Known>>,
    breaker: Mutex<Breaker>,
    rate: Option<Mutex<Rate>>,
    counters: RelayCounters,
}

/// The upstream as its card has it.
#[derive(Clone)]
struct Known {
    agent: AgentClient,
    looked: Instant,
}

/// What has been counted about the calls of a relay since the start of the process.
#[derive(Debug, Default)]
pub struct RelayCounters {
    sends: AtomicU64,
    retries: AtomicU64,
    failures: AtomicU64,
    bridged: AtomicU64,
    outcomes_unknown: AtomicU64,
    opened: AtomicU64,
}

impl RelayCounters {
    /// Messages that the upstream was sent, each try counted.
    #[must_use]
    pub fn sends(&self) -> u64 {
        self.sends.load(Relaxed)
    }

    /// Tries after the first.
    #[must_use]
    pub fn retries(&self) -> u64 {
        self.retries.load(Relaxed)
    }

    /// Calls that failed on the way.
    #[must_use]
    pub fn failures(&self) -> u64 {
        self.failures.load(Relaxed)
    }

    /// Streams that broke, or whose gateway died, and were gone on with.
    #[must_use]
    pub fn bridged(&self) -> u64 {
        self.bridged.load(Relaxed)
    }

    /// Messages of which is not known whether they arrived, and which were not sent again.
    #[must_use]
    pub fn outcomes_unknown(&self) -> u64 {
        self.outcomes_unknown.load(Relaxed)
    }

    /// How often the circuit breaker opened.
    #[must_use]
    pub fn opened(&self) -> u64 {
        self.opened.load(Relaxed)
    }

    pub(super) fn count_retry(&self) {
        self.retries.fetch_add(1, Relaxed);
    }

    pub(super) fn count_bridged(&self) {
        self.bridged.fetch_add(1, Relaxed);
    }

    pub(super) fn count_outcome_unknown(&self) {
        self.outcomes_unknown.fetch_add(1, Relaxed);
    }
}

impl Upstream {
    pub(super) fn new(url: &str, client: ClientBuilder, options: RelayOptions) -> Result<Self, RelayError> {
        let reference = CardReference::parse(url)?;
        let mut limits = ClientLimits::default();
        limits.call = options.first_sign_max;
        limits.send = options.answer_max;
        limits.reply_bytes_max = options.answer_bytes_max;
        limits.event_bytes_max = usize::try_from(options.answer_bytes_max).unwrap_or(usize::MAX);
        // The relay itself decides what is tried again, because it knows what was passed on, and keeps it.
        let mut retry = RetryPolicy::never();
        retry.attempts_max = 0;
        let client = client.limits(limits).retry(retry).build().map_err(|error| RelayError(error.to_string()))?;
        let rate = options.sends_per_second_max.map(|per_second| Mutex::new(Rate::new(per_second, Instant::now())));
        Ok(Self {
            url: url.to_owned(),
            reference,
            client,
            options,
            known: Mutex::default(),
            breaker: Mutex::default(),
            rate,
            counters: RelayCounters::default(),
        })
    }

    pub(super) fn url(&self) -> &str {
        &self.url
    }

    pub(super) fn options(&self) -> &RelayOptions {
        &self.options
    }

    pub(super) fn counters(&self) -> &RelayCounters {
        &self.counters
    }

    /// The upstream, as its newest card has it. Where that cannot be had, the last known card counts.
    pub(super) async fn agent(&self) -> Result<AgentClient, CallError> {
        let known = {
            let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
            match &mut *known {
                Some(known) if known.looked.elapsed() < CARD_LOOK => return Ok(known.agent.clone()),
                Some(known) => {
                    // This caller looks; the others go on with what there is.
                    known.looked = Instant::now();
                    Some(known.agent.clone())
                }
                None => None,
            }
        };
        let Some(known) = known else { return self.look().await };
        match timeout(CARD_LOOK_MAX, self.look()).await {
            Ok(Ok(agent)) => Ok(agent),
            Ok(Err(error)) => {
                tracing::warn!(upstream = self.url, %error, "card could not be read again; the last known one is used");
                Ok(known)
            }
            Err(_) => Ok(known),
        }
    }

    /// Asks for the card, which the client may have.
    pub(super) async fn look(&self) -> Result<AgentClient, CallError> {
        let agent = match self.options.dialect {
            Some(dialect) => self.client.agent_in(&self.url, dialect).await?,
            None => self.client.agent_at(&self.reference).await?,
        };
        let known = Known { agent: agent.clone(), looked: Instant::now() };
        *self.known.lock().unwrap_or_else(PoisonError::into_inner) = Some(known);
        Ok(agent)
    }

    pub(super) fn card(&self) -> Option<Arc<AgentCard>> {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.as_ref().map(|known| known.agent.card())
    }

    /// Whether a message that may have arrived may be sent again.
    pub(super) fn may_resend(&self, agent: &AgentClient) -> bool {
        match self.options.resend {
            Resend::Always => true,
            Resend::IfRecognised => recognises_repeats(agent),
        }
    }

    /// Whether the upstream may be called now; otherwise how long to wait.
    pub(super) fn admit(&self) -> Result<(), Duration> {
        self.breaker().admit(Instant::now())
    }

    /// The same for one more message.
    pub(super) fn admit_send(&self) -> Result<(), Admission> {
        if let Some(rate) = &self.rate {
            let mut rate = rate.lock().unwrap_or_else(PoisonError::into_inner);
            rate.take(Instant::now()).map_err(Admission::Rate)?;
        }
        self.admit().map_err(Admission::Down)?;
        self.counters.sends.fetch_add(1, Relaxed);
        Ok(())
    }

    /// Notes how a call went.
    pub(super) fn note<T>(&self, result: &Result<T, CallError>) {
        match result {
            Err(error) if is_failure_of_the_way(error) => {
                self.counters.failures.fetch_add(1, Relaxed);
                if self.breaker().failed(Instant::now()) {
                    self.counters.opened.fetch_add(1, Relaxed);
                    tracing::warn!(upstream = self.url, %error, "upstream is down; calls to it wait");
                }
            }
            Ok(_) | Err(_) => {
                if self.breaker().answered() {
                    tracing::info!(upstream = self.url, "upstream answers again");
                }
            }
        }
    }

    fn breaker(&self) -> std::sync::MutexGuard<'_, Breaker> {
        self.breaker.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Why a message is not sent now, and how long to wait.
pub(super) enum Admission {
    Rate(Duration),
    Down(Duration),
}

pub(super) fn recognises_repeats(agent: &AgentClient) -> bool {
    agent.card().capabilities.extensions.iter().any(|extension| extension.uri == IDEMPOTENT_SENDS)
}

/// Whether the upstream did not answer. A refusal is an answer, unless a gateway in between gives it.
pub(super) fn is_failure_of_the_way(error: &CallError) -> bool {
    match error.kind() {
        CallErrorKind::Unreachable
        | CallErrorKind::TimedOut
        | CallErrorKind::Broken
        | CallErrorKind::OutcomeUnknown
        | CallErrorKind::StreamEndedEarly => true,
        CallErrorKind::Refused => matches!(error.http_status(), Some(502..=504)),
        _ => false,
    }
}

/// What operators see of a relay.
#[derive(Clone)]
pub struct RelayHandle {
    upstream: Arc<Upstream>,
}

impl fmt::Debug for RelayHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RelayHandle").field("upstream", &self.upstream.url).finish_non_exhaustive()
    }
}

impl RelayHandle {
    pub(super) fn new(upstream: Arc<Upstream>) -> Self {
        Self { upstream }
    }

    /// Where the upstream is.
    #[must_use]
    pub fn url(&self) -> &str {
        self.upstream.url()
    }

    /// The last known card of the upstream; none before it was read once.
    #[must_use]
    pub fn card(&self) -> Option<Arc<AgentCard>> {
        self.upstream.card()
    }

    /// Reads the card of the upstream, unless the client may still use the one it has.
    ///
    /// # Errors
    /// When there is no card, or it names no interface that can be called.
    pub async fn refresh(&self) -> Result<Arc<AgentCard>, CallError> {
        self.upstream.look().await.map(|agent| agent.card())
    }

    /// Whether the upstream counts as down: its circuit breaker is open, and calls wait.
    #[must_use]
    pub fn is_down(&self) -> bool {
        self.upstream.breaker().is_open()
    }

    /// What has been counted since the start of the process.
    #[must_use]
    pub fn counters(&self) -> &RelayCounters {
        self.upstream.counters()
    }
}
