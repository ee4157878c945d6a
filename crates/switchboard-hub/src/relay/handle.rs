//! What operators see of a relay, and what looks after its card.

use std::convert::Infallible;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use switchboard::CallError;
use switchboard::model::AgentCard;
use tokio::time::{Instant, sleep, timeout};

use super::breaker::BreakerState;
use super::counters::RelayCounters;
use super::upstream::{CARD_LOOK, Upstream};

/// How long the start of a server waits for the card of an upstream.
const CARD_BEGIN_MAX: Duration = Duration::from_secs(3);
/// The pause before the first look at the card of an upstream that has shown none; each is twice the one before.
const CARD_RETRY_FIRST: Duration = Duration::from_secs(1);

/// What operators see of a relay.
#[derive(Clone)]
pub struct RelayHandle {
    upstream: Arc<Upstream>,
}

impl fmt::Debug for RelayHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RelayHandle").field("upstream", &self.upstream.url()).finish_non_exhaustive()
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

    /// Makes the last known card of an earlier process that of the relay, and reads that of the upstream if it answers in time.
    /// Once, before the relay is served, so that its first callers find the right card.
    pub async fn begin(&self) {
        self.upstream.restore_card().await;
        match timeout(CARD_BEGIN_MAX, self.upstream.look()).await {
            Ok(Ok(_)) => {}
            Ok(Err(error)) => tracing::warn!(upstream = self.url(), %error, "upstream shows no card yet"),
            Err(_) => tracing::warn!(upstream = self.url(), "upstream has not shown its card in time"),
        }
    }

    /// Looks after the card of the relay for as long as it is polled: asks for that of the upstream from time to time, and the client
    /// for as long as HTTP allows has it already.
    pub async fn keep_card_fresh(&self) -> Infallible {
        let mut pause = CARD_RETRY_FIRST;
        loop {
            sleep(pause).await;
            pause = match self.upstream.look().await {
                Ok(_) => CARD_LOOK,
                // A relay that has never seen a card looks more often.
                Err(_) if self.card().is_none() => (pause * 2).min(CARD_LOOK),
                Err(error) => {
                    tracing::debug!(upstream = self.url(), %error, "card could not be read again");
                    CARD_LOOK
                }
            };
        }
    }

    /// Why the card of the upstream is not accepted: in what it differs from the one that an operator accepted. None if it is.
    #[must_use]
    pub fn refused_card(&self) -> Option<String> {
        self.upstream.refused_card()
    }

    /// Whether the upstream counts as down: its circuit breaker is open, and calls wait.
    #[must_use]
    pub fn is_down(&self) -> bool {
        self.breaker() != BreakerState::Closed
    }

    /// Whether the upstream is called.
    #[must_use]
    pub fn breaker(&self) -> BreakerState {
        self.upstream.breaker().state(Instant::now())
    }

    /// Turns at work at the upstream, or waiting for it.
    #[must_use]
    pub fn in_flight(&self) -> u64 {
        self.upstream.in_flight()
    }

    /// Streams of the upstream that are open.
    #[must_use]
    pub fn streams_open(&self) -> u64 {
        self.upstream.streams_open()
    }

    /// What has been counted since the start of the process.
    #[must_use]
    pub fn counters(&self) -> &RelayCounters {
        self.upstream.counters()
    }
}
