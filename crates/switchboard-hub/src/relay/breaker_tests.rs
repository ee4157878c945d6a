//! The circuit breaker and the rate limiter, over time that the tests choose.

use std::time::Duration;

use tokio::time::Instant;

use super::{Breaker, BreakerState, FAILURES_MAX, OPEN_FIRST, OPEN_MAX, PROBE_MAX, Rate};

/// A breaker that has just opened.
fn opened(now: Instant) -> Breaker {
    let mut breaker = Breaker::default();
    let opened: Vec<bool> = (0..FAILURES_MAX).map(|_| breaker.failed(now)).collect();
    assert_eq!(opened, [false, false, false, false, true]);
    breaker
}

#[tokio::test]
async fn a_breaker_opens_after_failures_in_a_row_and_an_answer_between_them_counts() {
    let now = Instant::now();
    let mut breaker = Breaker::default();
    for _ in 1..FAILURES_MAX {
        assert!(!breaker.failed(now));
    }
    assert!(!breaker.answered(), "it was closed");
    for _ in 1..FAILURES_MAX {
        assert!(!breaker.failed(now));
    }
    assert_eq!(breaker.admit(now), Ok(()));
    assert!(breaker.failed(now));
    assert_eq!(breaker.admit(now), Err(OPEN_FIRST));
}

#[tokio::test]
async fn one_probe_at_a_time_is_let_through_and_its_answer_closes_the_breaker() {
    let now = Instant::now();
    let mut breaker = opened(now);
    let later = now + OPEN_FIRST;
    assert_eq!(breaker.admit(later), Ok(()), "the probe");
    assert_eq!(breaker.admit(later), Err(OPEN_FIRST), "another call waits for it");
    assert_eq!(breaker.admit(later + PROBE_MAX), Ok(()), "a probe that never reports is replaced");
    assert!(breaker.answered() && breaker.state(now) == BreakerState::Closed);
    assert_eq!(breaker.admit(later), Ok(()));
}

#[tokio::test]
async fn each_failed_probe_doubles_the_pause_up_to_the_longest() {
    let mut now = Instant::now();
    let mut breaker = opened(now);
    assert!(!breaker.failed(now), "a call that began before it opened");
    let mut pauses = Vec::new();
    for _ in 0..7 {
        let pause = breaker.admit(now).unwrap_err();
        pauses.push(pause.as_secs());
        now += pause;
        assert_eq!(breaker.admit(now), Ok(()));
        assert!(!breaker.failed(now), "it is open already");
    }
    assert_eq!(pauses, [1, 2, 4, 8, 16, OPEN_MAX.as_secs(), OPEN_MAX.as_secs()]);
}

#[tokio::test]
async fn a_rate_lets_one_second_worth_through_at_once_and_then_one_at_a_time() {
    let now = Instant::now();
    let mut rate = Rate::new(4, now);
    assert!((0..4).all(|_| rate.take(now).is_ok()));
    assert_eq!(rate.take(now), Err(Duration::from_millis(250)));
    let later = now + Duration::from_millis(250);
    assert_eq!((rate.take(later), rate.take(later).is_err()), (Ok(()), true));
    let much_later = later + Duration::from_secs(100);
    assert_eq!((0..10).filter(|_| rate.take(much_later).is_ok()).count(), 4);
}
