//! When a call is made again. Pure: time and chance are arguments.

use std::time::Duration;

use switchboard_core::call::Request;
use switchboard_core::dialect::codes;

use crate::call_error::{CallError, CallErrorKind};

/// How often a call is attempted, and how long is waited in between: twice as long each time, up to a longest pause, of which a
/// random half is left out so that clients that failed together do not come back together. A pause that the agent asks for
/// (`Retry-After`) is kept, within the deadline of the call.
///
/// Only a call that may be repeated is attempted again. A message that may have arrived is sent again only to an agent whose card says
/// that it recognises the repeat (the extension [`IDEMPOTENT_SENDS`](crate::IDEMPOTENT_SENDS), which agents of Switchboard have), or
/// to any agent with [`repeat_sends`](Self::repeat_sends).
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RetryPolicy {
    /// How often a call is attempted, the first time included.
    pub attempts_max: u32,
    /// The pause after the first attempt.
    pub pause_first: Duration,
    /// The longest pause.
    pub pause_max: Duration,
    /// Whether a message that may have arrived is sent again to every agent, with the same message id and the same `Idempotency-Key`.
    /// For agents that recognise the repeat and do not say so on their card; others would do the work twice.
    pub repeat_sends: bool,
}

/// Defaults of [`RetryPolicy`].
const PAUSE_FIRST_DEFAULT: Duration = Duration::from_millis(250);
const PAUSE_MAX_DEFAULT: Duration = Duration::from_secs(10);
const ATTEMPTS_MAX_DEFAULT: u32 = 4;

impl Default for RetryPolicy {
    fn default() -> Self {
        Self {
            attempts_max: ATTEMPTS_MAX_DEFAULT,
            pause_first: PAUSE_FIRST_DEFAULT,
            pause_max: PAUSE_MAX_DEFAULT,
            repeat_sends: false,
        }
    }
}

impl RetryPolicy {
    /// One attempt and no more.
    #[must_use]
    pub fn never() -> Self {
        Self { attempts_max: 1, ..Self::default() }
    }

    /// Whether messages that may have arrived are sent again.
    #[must_use]
    pub fn repeating_sends(self, repeat_sends: bool) -> Self {
        Self { repeat_sends, ..self }
    }

    /// The pause after this attempt, counted from 1.
    pub(super) fn pause(&self, attempt: u32, asked: Option<Duration>, chance: u32) -> Duration {
        let doubled = self.pause_first.saturating_mul(1 << attempt.saturating_sub(1).min(20)).min(self.pause_max);
        let half = doubled / 2;
        let jittered = half + half.mul_f64(f64::from(chance) / f64::from(u32::MAX));
        jittered.max(asked.unwrap_or_default())
    }

    /// What to do about a failed call: whether it may be made again, or the error to report. `recognises_repeats` says whether the
    /// agent takes a message that is sent again for the one it was.
    pub(super) fn judge(&self, request: &Request, error: CallError, recognises_repeats: bool) -> Verdict {
        if leaves_open(request, &error) {
            return match self.repeat_sends || recognises_repeats {
                true => Verdict::Again(error),
                false => Verdict::Fail(error.outcome_unknown()),
            };
        }
        if error.is_retryable() { Verdict::Again(error) } else { Verdict::Fail(error) }
    }
}

/// Whether this failure leaves open if the agent is at work on a message.
pub(super) fn leaves_open(request: &Request, error: &CallError) -> bool {
    matches!(request, Request::SendMessage(_) | Request::SendStreamingMessage(_)) && may_have_begun(error)
}

/// What becomes of a failed call.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    Again(CallError),
    Fail(CallError),
}

/// Whether the agent may be at work on a message although no answer came.
fn may_have_begun(error: &CallError) -> bool {
    match error.kind() {
        CallErrorKind::Broken | CallErrorKind::TimedOut => error.may_have_arrived(),
        // A gateway says so when the agent behind it did not answer. 429 and 503 are said instead of taking the message.
        CallErrorKind::Refused => match (error.http_status(), error.wire_code()) {
            (Some(502 | 504), None) => true,
            // gRPC says so of a deadline that passed on the way.
            (None, Some(code)) => code == i64::from(codes::DEADLINE_EXCEEDED),
            (_, _) => false,
        },
        CallErrorKind::InvalidRequest
        | CallErrorKind::NoCard
        | CallErrorKind::NotAllowed
        | CallErrorKind::Unreachable
        | CallErrorKind::OutcomeUnknown
        | CallErrorKind::InvalidAnswer
        | CallErrorKind::StreamEndedEarly
        | CallErrorKind::NotCompleted => false,
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::RetryPolicy;

    #[test]
    fn pauses_double_up_to_the_longest_and_are_never_shorter_than_asked() {
        let policy = RetryPolicy::default();
        let ms = |attempt, chance| policy.pause(attempt, None, chance).as_millis();
        assert_eq!([1, 2, 3, 4].map(|attempt| ms(attempt, u32::MAX)), [250, 500, 1_000, 2_000]);
        assert_eq!([1, 2, 3, 4].map(|attempt| ms(attempt, 0)), [125, 250, 500, 1_000]);
        assert_eq!((ms(99, u32::MAX), ms(u32::MAX, 0)), (10_000, 5_000));
        assert_eq!(policy.pause(1, Some(Duration::from_secs(7)), 0), Duration::from_secs(7));
        assert_eq!(policy.pause(9, Some(Duration::from_secs(7)), u32::MAX), Duration::from_secs(10));
    }
}
