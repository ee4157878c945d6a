//! What is counted of a relay.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

/// What has been counted about the calls of a relay since the start of the process.
#[derive(Debug, Default)]
pub struct RelayCounters {
    calls: AtomicU64,
    sends: AtomicU64,
    retries: AtomicU64,
    failures: AtomicU64,
    bridged: AtomicU64,
    outcomes_unknown: AtomicU64,
    opened: AtomicU64,
    refused: AtomicU64,
}

impl RelayCounters {
    /// Calls to the upstream, each try counted.
    #[must_use]
    pub fn calls(&self) -> u64 {
        self.calls.load(Relaxed)
    }

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

    /// Messages that were refused because the upstream was down, or its card was not accepted.
    #[must_use]
    pub fn refused(&self) -> u64 {
        self.refused.load(Relaxed)
    }

    pub(super) fn count_call(&self) {
        self.calls.fetch_add(1, Relaxed);
    }

    pub(super) fn count_send(&self) {
        self.sends.fetch_add(1, Relaxed);
    }

    pub(super) fn count_failure(&self) {
        self.failures.fetch_add(1, Relaxed);
    }

    pub(super) fn count_opened(&self) {
        self.opened.fetch_add(1, Relaxed);
    }

    pub(super) fn count_refused(&self) {
        self.refused.fetch_add(1, Relaxed);
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
