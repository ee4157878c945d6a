//! Whether an upstream is called at the moment. Pure: time is an argument.
//!
//! The circuit breaker opens after several failures in a row. While it is open nothing is sent. When its pause is over, one call at
//! a time is let through as a probe; a probe that gets an answer closes it, one that fails opens it again for twice as long.
//!
//! The rate limiter is a token bucket that holds what may be sent within one second.

use std::time::Duration;

use tokio::time::Instant;

/// Failures in a row after which nothing is sent for a while.
pub(super) const FAILURES_MAX: u32 = 5;
/// How long nothing is sent then, the first time, and at most.
pub(super) const OPEN_FIRST: Duration = Duration::from_secs(1);
pub(super) const OPEN_MAX: Duration = Duration::from_secs(30);
/// How long a probe keeps others waiting; one whose run was dropped never reports.
const PROBE_MAX: Duration = Duration::from_secs(30);

/// Whether an upstream is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum BreakerState {
    /// It is.
    Closed,
    /// One call at a time, to see whether it answers again.
    HalfOpen,
    /// It is not.
    Open,
}

/// The state of the way to one upstream.
#[derive(Debug, Default)]
pub(super) struct Breaker {
    failures: u32,
    open: Option<Open>,
}

#[derive(Clone, Copy, Debug)]
struct Open {
    until: Instant,
    pause: Duration,
    probe_since: Option<Instant>,
}

impl Breaker {
    /// Whether a call may be made now; otherwise how long to wait before asking again.
    pub(super) fn admit(&mut self, now: Instant) -> Result<(), Duration> {
        let Some(open) = &mut self.open else { return Ok(()) };
        if now < open.until {
            return Err(open.until - now);
        }
        match open.probe_since.map(|since| now.duration_since(since)) {
            Some(under_way) if under_way < PROBE_MAX => Err((PROBE_MAX - under_way).min(OPEN_FIRST)),
            Some(_) | None => {
                open.probe_since = Some(now);
                Ok(())
            }
        }
    }

    /// The upstream answered, whatever it said. True if the breaker was open.
    pub(super) fn answered(&mut self) -> bool {
        self.failures = 0;
        self.open.take().is_some()
    }

    /// The upstream could not be reached, or broke off. True if the breaker opens with it.
    pub(super) fn failed(&mut self, now: Instant) -> bool {
        self.failures = self.failures.saturating_add(1);
        let pause = match self.open {
            // A call that began before the breaker opened says nothing new.
            Some(open) if open.probe_since.is_none() => return false,
            Some(open) => (open.pause * 2).min(OPEN_MAX),
            None if self.failures < FAILURES_MAX => return false,
            None => OPEN_FIRST,
        };
        let opens = self.open.is_none();
        self.open = Some(Open { until: now + pause, pause, probe_since: None });
        opens
    }

    /// How long a call would have to wait now. Unlike [`Self::admit`] this is no call: no probe begins with it.
    pub(super) fn wait(&self, now: Instant) -> Option<Duration> {
        let open = self.open?;
        if now < open.until {
            return Some(open.until - now);
        }
        let under_way = now.duration_since(open.probe_since?);
        (under_way < PROBE_MAX).then(|| PROBE_MAX - under_way)
    }

    pub(super) fn state(&self, now: Instant) -> BreakerState {
        match self.open {
            None => BreakerState::Closed,
            Some(open) if now < open.until => BreakerState::Open,
            Some(_) => BreakerState::HalfOpen,
        }
    }
}

/// How many messages an upstream is sent within a second.
#[derive(Debug)]
pub(super) struct Rate {
    per_second: u32,
    left: f64,
    since: Instant,
}

impl Rate {
    pub(super) fn new(per_second: u32, now: Instant) -> Self {
        let per_second = per_second.max(1);
        Self { per_second, left: f64::from(per_second), since: now }
    }

    /// Takes one; otherwise says how long to wait before asking again.
    pub(super) fn take(&mut self, now: Instant) -> Result<(), Duration> {
        let per_second = f64::from(self.per_second);
        let came = now.duration_since(self.since).as_secs_f64() * per_second;
        (self.left, self.since) = ((self.left + came).min(per_second), now);
        if self.left < 1.0 {
            return Err(Duration::from_secs_f64((1.0 - self.left) / per_second));
        }
        self.left -= 1.0;
        Ok(())
    }
}

#[cfg(test)]
#[path = "breaker_tests.rs"]
mod tests;
