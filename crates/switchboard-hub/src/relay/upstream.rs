//! What all turns of a relay share: the client and the card of the upstream, whether it may be called now, and what was counted.

use std::path::Path;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use switchboard::client::{CardReference, Client, ClientBuilder, ClientLimits, DiscoveredCard, RetryPolicy};
use switchboard::model::AgentCard;
use switchboard::{AgentClient, CallError, CallErrorKind, IDEMPOTENT_SENDS, LiveCard, ProtocolError};
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::time::{Instant, timeout};

use super::breaker::{Breaker, Rate};
use super::card::take_over;
use super::counters::RelayCounters;
use super::pin::card_changes;
use super::{AcceptedCard, CardChanges, RelayError, RelayOptions, Resend};

/// How long a card is used before the client is asked for it again. The client itself keeps it for as long as HTTP allows.
pub(super) const CARD_LOOK: Duration = Duration::from_secs(60);
/// How long a turn waits for a newer card while there is an older one.
const CARD_LOOK_MAX: Duration = Duration::from_secs(5);

pub(super) struct Upstream {
    url: String,
    way: Way,
    options: RelayOptions,
    known: Mutex<Option<Known>>,
    breaker: Mutex<Breaker>,
    rate: Option<Mutex<Rate>>,
    counters: RelayCounters,
    /// The card of the relay, and what its configuration changes on it.
    live: LiveCard,
    shown: ShownCard,
    /// The last card, as it came, and where it was written to.
    kept: Mutex<Option<Arc<DiscoveredCard>>>,
    /// The changes of the card that are not accepted.
    refused: Mutex<Option<String>>,
    in_flight: AtomicU64,
    /// One permit for each task that may be at work at the upstream, whether it is the relay's own or was dispatched.
    calls: Semaphore,
    streams: Semaphore,
}

/// How the upstream is called.
enum Way {
    Remote {
        reference: CardReference,
        client: Client,
    },
    /// It is an agent of this server, and called for the owner of one task.
    Here(Box<AgentClient>),
}

/// What the configuration of a relay says about its card in place of the upstream.
pub(super) type ShownCard = Box<dyn Fn(&mut AgentCard) + Send + Sync>;

/// One turn that is counted.
pub(super) struct InFlight<'a>(&'a AtomicU64);

impl Drop for InFlight<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Relaxed);
    }
}

/// The upstream as its card has it.
#[derive(Clone)]
struct Known {
    agent: AgentClient,
    looked: Instant,
}

impl Upstream {
    pub(super) fn new(
        url: &str,
        client: ClientBuilder,
        options: RelayOptions,
        shown: ShownCard,
    ) -> Result<Self, RelayError> {
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
        Ok(Self::over(url, Way::Remote { reference, client }, options, shown))
    }

    /// An agent of this server.
    pub(super) fn here(name: &str, agent: AgentClient, options: RelayOptions) -> Self {
        Self::over(name, Way::Here(Box::new(agent)), options, Box::new(|_| ()))
    }

    fn over(url: &str, way: Way, options: RelayOptions, shown: ShownCard) -> Self {
        let rate = options.sends_per_second_max.map(|per_second| Mutex::new(Rate::new(per_second, Instant::now())));
        let calls = Semaphore::new(options.calls_max.clamp(1, Semaphore::MAX_PERMITS));
        let streams = Semaphore::new(options.streams_max.min(Semaphore::MAX_PERMITS));
        Self {
            url: url.to_owned(),
            way,
            options,
            live: LiveCard::default(),
            shown,
            kept: Mutex::default(),
            refused: Mutex::default(),
            in_flight: AtomicU64::default(),
            calls,
            streams,
            known: Mutex::default(),
            breaker: Mutex::default(),
            rate,
            counters: RelayCounters::default(),
        }
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
        if let Way::Here(agent) = &self.way {
            return Ok((**agent).clone());
        }
        let known = {
            let mut known = lock(&self.known);
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

    /// Asks for the card, which the client may have, and makes it that of the relay.
    pub(super) async fn look(&self) -> Result<AgentClient, CallError> {
        let (reference, client) = match &self.way {
            Way::Here(agent) => return Ok((**agent).clone()),
            Way::Remote { reference, client } => (reference, client),
        };
        let found = client.discover_at(reference).await?;
        self.compare(&found)?;
        let agent = match self.options.dialect {
            Some(dialect) => client.agent_in(&self.url, dialect).await?,
            None => client.agent_at(reference).await?,
        };
        *lock(&self.known) = Some(Known { agent: agent.clone(), looked: Instant::now() });
        self.show(found.card());
        self.keep(found).await;
        Ok(agent)
    }

    /// Compares a card with the one that was accepted.
    fn compare(&self, found: &DiscoveredCard) -> Result<(), CallError> {
        let accepted = self.options.accepted_card.as_ref().and_then(AcceptedCard::read);
        let changes = accepted.map(|accepted| card_changes(&accepted, found.card())).unwrap_or_default();
        let told = changes.join("; ");
        let is_refused = !changes.is_empty() && self.options.card_changes == CardChanges::Refuse;
        let mut refused = lock(&self.refused);
        if !changes.is_empty() && refused.as_ref() != Some(&told) {
            tracing::warn!(upstream = self.url, changes = told, is_refused, "the card differs from the accepted one");
        }
        *refused = is_refused.then(|| told.clone());
        match is_refused {
            true => {
                drop(refused);
                self.accepts_card().map_err(CallError::from)
            }
            false => Ok(()),
        }
    }

    fn show(&self, upstream: &AgentCard) {
        self.live.change(|card| {
            take_over(card, upstream);
            (self.shown)(card);
        });
    }

    /// Writes the card down, if it is another one than before. It is only for a start while the upstream is down, so a failure
    /// is told and nothing more.
    async fn keep(&self, found: Arc<DiscoveredCard>) {
        let before = lock(&self.kept).replace(found.clone());
        let Some(file) = &self.options.card_file else { return };
        if before.is_some_and(|before| before.json() == found.json()) {
            return;
        }
        if let Err(error) = write_whole(file, found.json()).await {
            tracing::warn!(file = %file.display(), %error, "the card of an upstream could not be written down");
        }
    }

    /// Shows the card that an earlier process has written down, or else the accepted one.
    pub(super) async fn restore_card(&self) {
        if let Some(accepted) = self.options.accepted_card.as_ref().and_then(AcceptedCard::read) {
            self.show(&accepted);
        }
        let (Some(file), Way::Remote { client, .. }) = (&self.options.card_file, &self.way) else { return };
        match client.discover_at(&CardReference::File(file.clone())).await {
            Ok(found) => {
                self.show(found.card());
                *lock(&self.kept) = Some(found);
            }
            Err(error) => tracing::debug!(file = %file.display(), %error, "no earlier card of an upstream"),
        }
    }

    pub(super) fn live_card(&self) -> &LiveCard {
        &self.live
    }

    pub(super) fn card(&self) -> Option<Arc<AgentCard>> {
        lock(&self.known).as_ref().map(|known| known.agent.card())
    }

    pub(super) fn refused_card(&self) -> Option<String> {
        lock(&self.refused).clone()
    }

    /// Whether the card of the upstream is one that it may be sent messages by.
    pub(super) fn accepts_card(&self) -> Result<(), ProtocolError> {
        let retry_after_s = u32::try_from(CARD_LOOK.as_secs()).unwrap_or(u32::MAX);
        match self.refused_card() {
            Some(changes) => Err(ProtocolError::Unavailable { reason: not_accepted(&changes), retry_after_s }),
            None => Ok(()),
        }
    }

    /// Whether a message may be accepted now: not if it could only fail.
    pub(super) fn accepts(&self) -> Result<(), ProtocolError> {
        let refuse = |reason: String, wait: Duration| {
            self.counters.count_refused();
            let retry_after_s = u32::try_from(wait.as_secs()).unwrap_or(u32::MAX).max(1);
            Err(ProtocolError::Unavailable { reason, retry_after_s })
        };
        if let Err(refused) = self.accepts_card() {
            self.counters.count_refused();
            return Err(refused);
        }
        if !self.options.down_max.is_zero() {
            return Ok(());
        }
        match self.breaker().wait(Instant::now()) {
            Some(wait) => refuse("the agent behind this one cannot be reached".to_owned(), wait),
            None => Ok(()),
        }
    }

    /// Waits for the right to one more task at the upstream. None never comes, because the semaphore is not closed.
    pub(super) async fn call_permit(&self) -> Option<SemaphorePermit<'_>> {
        self.calls.acquire().await.ok()
    }

    /// Counts a turn until what is returned is dropped.
    pub(super) fn begin_turn(&self) -> InFlight<'_> {
        self.in_flight.fetch_add(1, Relaxed);
        InFlight(&self.in_flight)
    }

    pub(super) fn in_flight(&self) -> u64 {
        self.in_flight.load(Relaxed)
    }

    /// The right to one more stream; without one the task is asked for from time to time.
    pub(super) fn stream_permit(&self) -> Option<SemaphorePermit<'_>> {
        self.streams.try_acquire().ok()
    }

    pub(super) fn streams_open(&self) -> u64 {
        let all = self.options.streams_max.min(Semaphore::MAX_PERMITS);
        all.saturating_sub(self.streams.available_permits()) as u64
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
            lock(rate).take(Instant::now()).map_err(Admission::Rate)?;
        }
        self.admit().map_err(Admission::Down)?;
        self.counters.count_send();
        Ok(())
    }

    /// Notes how a call went.
    pub(super) fn note<T>(&self, result: &Result<T, CallError>) {
        self.counters.count_call();
        match result {
            Err(error) if is_failure_of_the_way(error) => {
                self.counters.count_failure();
                if self.breaker().failed(Instant::now()) {
                    self.counters.count_opened();
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

    pub(super) fn breaker(&self) -> MutexGuard<'_, Breaker> {
        lock(&self.breaker)
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

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn not_accepted(changes: &str) -> String {
    format!("the agent behind this one has changed, and the change was not accepted yet ({changes})")
}

/// Writes a file so that a reader finds the old content or the new one.
async fn write_whole(file: &Path, content: &[u8]) -> std::io::Result<()> {
    if let Some(folder) = file.parent() {
        tokio::fs::create_dir_all(folder).await?;
    }
    let new = file.with_extension("new");
    tokio::fs::write(&new, content).await?;
    tokio::fs::rename(&new, file).await
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;
    use switchboard::client::Client;

    use super::super::RelayOptions;
    use super::{Admission, Upstream};

    #[tokio::test]
    async fn tasks_beyond_the_limit_wait() {
        let options = RelayOptions { calls_max: 1, ..RelayOptions::default() };
        let upstream = Upstream::new("http://127.0.0.1:1", Client::builder(), options, Box::new(|_| ())).unwrap();
        let first = upstream.call_permit().await;
        assert!(first.is_some() && upstream.call_permit().now_or_never().is_none());
        drop(first);
        assert!(upstream.call_permit().now_or_never().is_some());
    }

    #[tokio::test(start_paused = true)]
    async fn messages_beyond_the_rate_wait() {
        let options = RelayOptions { sends_per_second_max: Some(2), ..RelayOptions::default() };
        let upstream = Upstream::new("http://127.0.0.1:1", Client::builder(), options, Box::new(|_| ())).unwrap();
        assert!(upstream.admit_send().is_ok() && upstream.admit_send().is_ok());
        let Err(Admission::Rate(wait)) = upstream.admit_send() else { panic!("the third is too much") };
        tokio::time::advance(wait).await;
        assert!(upstream.admit_send().is_ok());
        assert_eq!(upstream.counters().sends(), 3);
    }
}
