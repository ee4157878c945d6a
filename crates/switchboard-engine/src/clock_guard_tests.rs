//! Jumps and gaps under paused time.

use std::time::Duration;

use switchboard_core::model::Timestamp;

use super::{ClockGuard, ClockRecord};

const BEGAN: Timestamp = Timestamp::from_ms(1_767_225_600_000);
const HOUR_MS: i64 = 3_600_000;

/// Advances the monotonic clock by `passed_s`, and compares it with the wall time `wall`.
async fn advance_and_compare(guard: &ClockGuard, passed_s: u64, wall: Timestamp) {
    tokio::time::advance(Duration::from_secs(passed_s)).await;
    guard.compare(wall);
}

#[tokio::test(start_paused = true)]
async fn a_clock_that_goes_with_time_is_trusted_however_long_nobody_looked() {
    let guard = ClockGuard::default();
    guard.compare(BEGAN);
    advance_and_compare(&guard, 40 * 86_400, BEGAN.plus_ms(40 * 24 * HOUR_MS)).await;
    assert_eq!((guard.is_held(), guard.notice()), (false, None));
    // A jump of a day or less is not suspicious either.
    advance_and_compare(&guard, 5, BEGAN.plus_ms(41 * 24 * HOUR_MS)).await;
    assert!(!guard.is_held());
}

#[tokio::test(start_paused = true)]
async fn a_jump_of_more_than_a_day_holds_for_a_day_and_says_so() {
    for (way, jump_ms) in [("ahead", 25 * HOUR_MS), ("back", -25 * HOUR_MS)] {
        let guard = ClockGuard::default();
        guard.compare(BEGAN);
        let wall = BEGAN.plus_ms(jump_ms);
        advance_and_compare(&guard, 5, wall.plus_ms(5_000)).await;
        let notice = guard.notice().expect("it is held");
        assert!(notice.starts_with(&format!("The wall clock jumped {way} by 25 h, to 20")), "{notice}");
        assert_eq!(guard.unrecorded(), Some(wall.plus_ms(5_000 + 24 * HOUR_MS)));
        guard.recorded(wall.plus_ms(5_000 + 24 * HOUR_MS));
        assert_eq!(guard.unrecorded(), None);
        advance_and_compare(&guard, 86_399, wall.plus_ms(5_000 + 24 * HOUR_MS - 1_000)).await;
        assert!(guard.is_held());
        advance_and_compare(&guard, 1, wall.plus_ms(5_000 + 24 * HOUR_MS)).await;
        assert!(!guard.is_held());
    }
}

#[tokio::test(start_paused = true)]
async fn a_gap_between_two_processes_holds_in_either_direction() {
    for gap_ms in [25 * HOUR_MS, -25 * HOUR_MS] {
        let guard = ClockGuard::default();
        guard.begin(ClockRecord { last_seen: Some(BEGAN), held_until: None }, BEGAN.plus_ms(gap_ms));
        assert!(guard.is_held(), "{gap_ms}");
    }
    for last_seen in [None, Some(BEGAN.plus_ms(-24 * HOUR_MS)), Some(BEGAN.plus_ms(HOUR_MS))] {
        let guard = ClockGuard::default();
        guard.begin(ClockRecord { last_seen, held_until: None }, BEGAN);
        assert!(!guard.is_held(), "{last_seen:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_hold_outlasts_its_process_and_is_not_begun_anew() {
    let guard = ClockGuard::default();
    let held_until = Some(BEGAN.plus_ms(HOUR_MS));
    guard.begin(ClockRecord { last_seen: Some(BEGAN.plus_ms(-30 * 24 * HOUR_MS)), held_until }, BEGAN);
    assert!(guard.is_held());
    advance_and_compare(&guard, 3_600, BEGAN.plus_ms(HOUR_MS)).await;
    assert!(!guard.is_held(), "the stored hold had an hour left");
    // A clock that was set back meanwhile does not prolong the hold.
    let guard = ClockGuard::default();
    guard.begin(ClockRecord { last_seen: Some(BEGAN), held_until: Some(BEGAN.plus_ms(90 * 24 * HOUR_MS)) }, BEGAN);
    advance_and_compare(&guard, 86_400, BEGAN.plus_ms(24 * HOUR_MS)).await;
    assert!(!guard.is_held());
}
