//! What `judge` decides about claimed runs.

use std::time::Duration;

use switchboard_core::lifecycle::Head;
use switchboard_core::model::{TaskState, Timestamp};

use super::{End, Verdict, judge, judge_unserved, pause_ms};
use crate::limits::Limits;
use crate::state::runs::{Backoff, Recovery};

const NOW: Timestamp = Timestamp::from_ms(1_000_000_000);

/// A head at this attempt whose status is this old.
fn head(attempt: u32, age_ms: i64) -> Head {
    let mut head = Head::unopened("task".into(), "context".into(), "agent".into());
    (head.attempt, head.running, head.status_at) = (attempt, true, NOW.plus_ms(-age_ms));
    head
}

fn failed(reason: &str) -> Verdict {
    Verdict::End(End::Failed(reason.to_owned()))
}

fn limits() -> Limits {
    Limits { queued_s_max: Some(180), ..Limits::default() }
}

#[test]
fn a_run_is_tried_again_with_growing_pauses_until_it_has_had_its_attempts() {
    let backoff = Some(Backoff { min: Duration::from_secs(2), max: Duration::from_secs(7) });
    let policy = Recovery::Retry { attempts_max: Some(6), backoff };
    let judge = |attempt, was_released: bool| judge(&head(attempt, 0), !was_released, &policy, &limits(), NOW);
    assert_eq!(judge(2, false), Verdict::Run, "a single death is no reason to wait");
    for (attempt, longest) in [(3, 2_000), (4, 4_000), (5, 7_000), (6, 7_000)] {
        let Verdict::Wait { ms } = judge(attempt, false) else { panic!("attempt {attempt}") };
        assert!((longest / 2..=longest).contains(&ms), "attempt {attempt}: {ms}");
        assert_eq!(judge(attempt, true), Verdict::Run, "a released run has had its pause");
    }
    let reason = "The agent was interrupted 6 times and is not tried again";
    assert_eq!(judge(7, false), failed(reason));
    assert_eq!(judge(7, true), failed(reason));
}

#[test]
fn a_run_that_may_not_be_started_twice_fails_unless_nobody_died_over_it() {
    let policy = Recovery::Fail { reason: "not twice".to_owned() };
    let judge = |attempt, was_released: bool| judge(&head(attempt, 0), !was_released, &policy, &limits(), NOW);
    assert_eq!(judge(2, false), failed("not twice"));
    assert_eq!(judge(1, true), Verdict::Run);
    assert_eq!(judge(2, true), failed("not twice"), "it died, and was given back after that");
}

#[test]
fn an_intended_cancel_comes_before_everything_and_a_lifetime_next() {
    let mut late = head(9, 0);
    late.deadline = Some(NOW);
    let policy = Recovery::retry();
    let judge = |head: &Head| judge(head, true, &policy, &limits(), NOW);
    assert_eq!(judge(&late), failed("Task timed out"));
    late.cancel_requested = true;
    assert_eq!(judge(&late), Verdict::End(End::Canceled));
    let mut paused = head(2, 0);
    (paused.deadline, paused.state) = (Some(NOW), TaskState::AuthRequired);
    assert_eq!(judge(&paused), Verdict::Run, "time spent waiting for authorization does not count");
}

#[test]
fn tasks_that_died_together_are_spread() {
    let pause = |id: &str| pause_ms(&Head { id: id.into(), ..head(8, 0) }, (1_000, 300_000));
    let pauses: std::collections::BTreeSet<i64> = (0..50).map(|n| pause(&format!("task-{n}"))).collect();
    assert!(pauses.len() > 40, "{pauses:?}");
    assert_eq!(pause("a"), pause("a"));
}

#[test]
fn a_task_whose_agent_is_not_served_waits_and_not_for_ever() {
    let now = Timestamp::from_ms(1_000_000_000);
    let limits = Limits { queued_s_max: Some(180), ..Limits::default() };
    let judge = |attempt, state, age_s: i64, ages_count| {
        let mut head = Head::unopened("task".into(), "context".into(), "agent".into());
        (head.attempt, head.running, head.state) = (attempt, true, state);
        head.status_at = now.plus_ms(-age_s * 1000);
        judge_unserved(&head, &limits, ages_count, now)
    };
    let failed = |reason: &str| Some(End::Failed(reason.to_owned()));
    let (submitted, working) = (TaskState::Submitted, TaskState::Working);
    assert_eq!(judge(1, submitted, 179, true), None);
    assert_eq!(judge(1, submitted, 180, true), failed("Task timed out: it was not started within 180 s"));
    assert_eq!(judge(1, submitted, 180, false), None, "the clock has jumped");
    assert_eq!(judge(1, working, 180, true), None);
    assert_eq!(judge(2, submitted, 400, true), None);
    assert_eq!(judge(2, working, 7 * 86_400 - 1, true), None);
    assert_eq!(judge(2, working, 7 * 86_400, true), failed("The agent agent is not served here any more"));
}
