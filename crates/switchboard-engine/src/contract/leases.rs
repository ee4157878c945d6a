//! Behaviours of leases: a run has one owner, and an owner that is gone is replaced.

use std::sync::Arc;

use switchboard_core::lifecycle::Event;
use switchboard_core::model::TaskState;

use super::Subject;
use super::given::{LEASE_MS, Pen, anyone, chunk, inbound, now, status};
use crate::ports::store::{ClaimRuns, ClaimedRun, CommitError, Release, TaskKey};

async fn claim_as(subject: &dyn Subject, at_work: &[(TaskKey, u64)], limit: usize) -> Vec<ClaimedRun> {
    let at_work = at_work.to_vec();
    let at_work = Arc::new(move |key, fence| at_work.contains(&(key, fence)));
    let claim = ClaimRuns { limit, lease_ms: LEASE_MS, at_work };
    subject.store().claim_runs(claim).await.expect("runs are claimed")
}

/// Claims for a process that is at work on nothing.
async fn claim(subject: &dyn Subject) -> Vec<ClaimedRun> {
    claim_as(subject, &[], 10).await
}

/// Claims what there is, which must be this record, left by somebody who died, and tells the pen.
async fn claim_only(subject: &dyn Subject, pen: &mut Pen) {
    claimed_only(subject, pen, false).await;
}

/// The same for a record that was given back.
async fn claim_released(subject: &dyn Subject, pen: &mut Pen) {
    claimed_only(subject, pen, true).await;
}

async fn claimed_only(subject: &dyn Subject, pen: &mut Pen, was_released: bool) {
    let mut claimed = claim(subject).await;
    assert_eq!(claimed.iter().map(|run| run.stored.key).collect::<Vec<_>>(), [pen.key()]);
    let ClaimedRun { stored, was_released: said } = claimed.remove(0);
    assert_eq!((&stored.scope, said), (&pen.scope, was_released));
    let (fence, attempt) = (pen.head.fence + 1, pen.head.attempt + u32::from(!was_released));
    let event = Event::Claimed { fence, attempt, at: now(subject) };
    let mut expected = pen.head.clone();
    Arc::make_mut(&mut expected).apply_commit(std::slice::from_ref(&event));
    assert_eq!(stored.head, expected);
    pen.saw(expected, [event].into(), stored.head.seq + 1);
    assert_eq!(begin(subject, pen).await, []);
}

/// Says that the run of a record begins; what comes back is lost.
async fn begin(subject: &dyn Subject, pen: &Pen) -> Vec<TaskKey> {
    subject.store().begin_runs(vec![(pen.key(), pen.head.fence)]).await.expect("runs begin")
}

async fn renew(subject: &dyn Subject, held: &[(TaskKey, u64)]) -> Vec<TaskKey> {
    subject.store().renew_leases(held.to_vec(), LEASE_MS).await.expect("leases are renewed")
}

pub async fn a_lease_taken_in_a_commit_holds_until_it_runs_out(subject: &mut dyn Subject) {
    let mut pen = Pen::opened(subject, "t1").await;
    assert_eq!(claim(subject).await.len(), 0);
    subject.clock().advance_ms(i64::from(LEASE_MS) - 1);
    assert_eq!(claim(subject).await.len(), 0);
    subject.clock().advance_ms(1);
    claim_only(subject, &mut pen).await;
    assert_eq!(claim(subject).await.len(), 0, "a claim is a lease too");
    subject.clock().advance_ms(i64::from(LEASE_MS));
    claim_only(subject, &mut pen).await;
    pen.check(subject).await;
}

pub async fn a_run_that_begins_without_a_lease_is_due_at_once(subject: &mut dyn Subject) {
    let mut pen = Pen::new(anyone(), "t1", "c1");
    let opening = pen.opening(subject, "hello");
    pen.append(subject, vec![opening]).await;
    claim_released(subject, &mut pen).await;
    pen.append(subject, vec![status(subject, TaskState::InputRequired, None)]).await;
    assert_eq!(claim(subject).await.len(), 0);
    let fence = pen.head.fence + 1;
    pen.append(subject, vec![Event::MessageAdded { inbound: inbound(2, "x") }, Event::TurnBegan { turn: 2, fence }])
        .await;
    claim_released(subject, &mut pen).await;
    pen.check(subject).await;
}

pub async fn a_claim_raises_fence_and_attempt_and_is_in_the_log(subject: &mut dyn Subject) {
    let mut pen = Pen::opened(subject, "t1").await;
    pen.append(subject, vec![chunk("a", "x", false)]).await;
    let mut old_run = pen.clone();
    subject.clock().advance_ms(i64::from(LEASE_MS));
    claim_only(subject, &mut pen).await;
    assert_eq!((pen.head.fence, pen.head.attempt), (2, 2));
    let mut commit = old_run.commit(subject, vec![chunk("a", "y", true)]);
    commit.fence = Some(old_run.head.fence);
    let refused = old_run.try_write(subject, commit).await;
    assert!(matches!(refused, Err(CommitError::Fenced)), "{refused:?}");
    let mut commit = pen.commit(subject, vec![chunk("a", "z", false)]);
    commit.fence = Some(pen.head.fence);
    pen.write(subject, commit).await;
    pen.check(subject).await;
}

pub async fn a_run_that_ended_cannot_be_claimed(subject: &mut dyn Subject) {
    let mut done = Pen::opened(subject, "t1").await;
    done.append(subject, vec![status(subject, TaskState::Completed, None)]).await;
    let mut paused = Pen::opened(subject, "t2").await;
    paused.append(subject, vec![status(subject, TaskState::InputRequired, Some("?"))]).await;
    Pen::completed(subject, "t3").await;
    subject.clock().advance_ms(i64::from(LEASE_MS) * 10);
    assert_eq!(claim(subject).await.len(), 0);
    subject.restart();
    assert_eq!(claim(subject).await.len(), 0);
    assert_eq!(renew(subject, &[(done.key(), 1)]).await, [done.key()]);
}

pub async fn a_cancel_that_was_asked_for_is_found_while_its_run_is_at_work(subject: &mut dyn Subject) {
    let mut asked = Pen::opened(subject, "t1").await;
    let left_alone = Pen::opened(subject, "t2").await;
    let canceled = async |subject: &mut dyn Subject| subject.store().canceled_runs().await.expect("it is read");
    assert_eq!(canceled(subject).await, []);
    let at = now(subject);
    asked.append(subject, vec![Event::CancelRequested { metadata: None, at }]).await;
    assert_eq!(canceled(subject).await, [asked.key()]);
    assert_ne!(asked.key(), left_alone.key());
    asked.append(subject, vec![status(subject, TaskState::Canceled, None)]).await;
    assert_eq!(canceled(subject).await, []);
}

pub async fn a_renewed_lease_holds_longer_even_if_it_had_run_out(subject: &mut dyn Subject) {
    let mut pen = Pen::opened(subject, "t1").await;
    for wait in [1, 0, -1, 100_000] {
        subject.clock().advance_ms(i64::from(LEASE_MS) + wait);
        assert_eq!(renew(subject, &[(pen.key(), pen.head.fence)]).await, []);
        assert_eq!(claim(subject).await.len(), 0);
    }
    subject.clock().advance_ms(i64::from(LEASE_MS));
    claim_only(subject, &mut pen).await;
}

pub async fn a_lease_that_was_claimed_is_lost_to_its_holder(subject: &mut dyn Subject) {
    let mut pen = Pen::opened(subject, "t1").await;
    let mut other = Pen::opened(subject, "t2").await;
    let old_fence = pen.head.fence;
    subject.clock().advance_ms(1000);
    assert_eq!(renew(subject, &[(other.key(), 1)]).await, []);
    subject.clock().advance_ms(i64::from(LEASE_MS) - 1000);
    claim_only(subject, &mut pen).await;
    let held = [(pen.key(), old_fence), (other.key(), 1), (TaskKey(pen.key().0 + 1000), 1)];
    assert_eq!(renew(subject, &held).await, [pen.key(), TaskKey(pen.key().0 + 1000)]);
    assert_eq!(renew(subject, &[(pen.key(), pen.head.fence)]).await, []);
    // Nor can the old holder give away what is no longer its own.
    release(subject, &[(pen.key(), old_fence)], 0).await;
    assert_eq!(claim(subject).await.len(), 0);
    other.append(subject, vec![status(subject, TaskState::Working, None)]).await;
    other.check(subject).await;
    pen.check(subject).await;
}

pub async fn a_released_run_is_claimed_when_it_is_due(subject: &mut dyn Subject) {
    let mut pen = Pen::opened(subject, "t1").await;
    let held = vec![(pen.key(), pen.head.fence)];
    release(subject, &held, 5000).await;
    assert_eq!(renew(subject, &held).await, [pen.key()], "released is given up");
    subject.clock().advance_ms(4999);
    assert_eq!(claim(subject).await.len(), 0);
    subject.clock().advance_ms(1);
    claim_released(subject, &mut pen).await;
    pen.check(subject).await;
}

pub async fn leases_of_a_process_that_is_gone_are_void_at_once(subject: &mut dyn Subject) {
    let mut pen = Pen::opened(subject, "t1").await;
    let fence = pen.head.fence;
    subject.restart();
    assert_eq!(renew(subject, &[(pen.key(), fence)]).await, [pen.key()]);
    claim_only(subject, &mut pen).await;
    assert_eq!((pen.head.fence, pen.head.attempt), (2, 2));
    assert_eq!(claim(subject).await.len(), 0);
    subject.restart();
    claim_only(subject, &mut pen).await;
    pen.check(subject).await;
}

pub async fn a_released_run_keeps_its_due_time_over_a_restart(subject: &mut dyn Subject) {
    let mut pen = Pen::opened(subject, "t1").await;
    let held = vec![(pen.key(), pen.head.fence)];
    release(subject, &held, 5000).await;
    subject.restart();
    assert_eq!(claim(subject).await.len(), 0);
    subject.clock().advance_ms(5000);
    claim_released(subject, &mut pen).await;
}

pub async fn a_run_that_waits_and_is_canceled_is_due_at_once(subject: &mut dyn Subject) {
    let asks = |subject: &dyn Subject| Event::CancelRequested { metadata: None, at: now(subject) };
    // Asked while it waits, and asked before it was given back.
    for asked_first in [false, true] {
        let mut pen = Pen::opened(subject, if asked_first { "t1" } else { "t2" }).await;
        if asked_first {
            pen.append(subject, vec![asks(subject)]).await;
        }
        let held = [(pen.key(), pen.head.fence)];
        release(subject, &held, 5000).await;
        if !asked_first {
            assert_eq!(claim(subject).await.len(), 0);
            pen.append(subject, vec![asks(subject)]).await;
        }
        claim_released(subject, &mut pen).await;
        pen.check(subject).await;
    }
}

/// However often it is given back and taken again; a death counts, before and after.
pub async fn a_run_given_back_in_order_has_not_been_tried_once_more(subject: &mut dyn Subject) {
    let mut pen = Pen::opened(subject, "t1").await;
    for _ in 0..3 {
        let held = vec![(pen.key(), pen.head.fence)];
        release(subject, &held, 0).await;
        subject.restart();
        claim_released(subject, &mut pen).await;
        assert_eq!(pen.head.attempt, 1);
    }
    subject.restart();
    claim_only(subject, &mut pen).await;
    let held = vec![(pen.key(), pen.head.fence)];
    release(subject, &held, 0).await;
    claim_released(subject, &mut pen).await;
    assert_eq!((pen.head.fence, pen.head.attempt), (6, 2));
    pen.check(subject).await;
}

/// A run begins when it has its place, and only then can a death interrupt it.
pub async fn a_run_that_has_not_begun_was_not_interrupted(subject: &mut dyn Subject) {
    let mut pen = Pen::new(anyone(), "t1", "ctx");
    let opening = pen.opening(subject, "hello");
    let mut commit = pen.commit(subject, vec![opening]);
    (commit.lease_ms, commit.waits) = (Some(LEASE_MS), true);
    pen.write(subject, commit).await;
    assert_eq!(claim(subject).await.len(), 0, "one that waits is held like one at work");
    let claim_unbegun = async |subject: &mut dyn Subject, pen: &mut Pen| {
        let mut claimed = claim(subject).await;
        let ClaimedRun { stored, was_released } = claimed.remove(0);
        assert_eq!((claimed.len(), stored.key, was_released), (0, pen.key(), true));
        assert_eq!((stored.head.fence, stored.head.attempt), (pen.head.fence + 1, pen.head.attempt));
        let (fence, attempt) = (stored.head.fence, stored.head.attempt);
        let event = Event::Claimed { fence, attempt, at: now(subject) };
        pen.saw(stored.head.clone(), [event].into(), stored.head.seq + 1);
    };
    // However often the process dies, or falls silent, while the run waits.
    for _ in 0..3 {
        subject.restart();
        claim_unbegun(subject, &mut pen).await;
        subject.clock().advance_ms(LEASE_MS.into());
        claim_unbegun(subject, &mut pen).await;
    }
    // Something that a caller does meanwhile does not begin it either.
    pen.append(subject, vec![Event::MessageAdded { inbound: inbound(2, "x") }]).await;
    subject.restart();
    claim_unbegun(subject, &mut pen).await;
    assert_eq!(pen.head.attempt, 1);

    assert_eq!(begin(subject, &pen).await, []);
    subject.restart();
    claim_only(subject, &mut pen).await;
    assert_eq!(pen.head.attempt, 2, "it had begun");
    // A run that was replaced does not begin.
    subject.clock().advance_ms(LEASE_MS.into());
    let late = pen.clone();
    claim_only(subject, &mut pen).await;
    assert_eq!(begin(subject, &late).await, [pen.key()]);
    pen.check(subject).await;
}

pub async fn a_process_does_not_claim_what_it_is_at_work_on(subject: &mut dyn Subject) {
    let alive = Pen::opened(subject, "t1").await;
    let mut silent = Pen::opened(subject, "t2").await;
    let at_work = [(alive.key(), alive.head.fence)];
    subject.clock().advance_ms(i64::from(LEASE_MS) * 3);
    let claimed = claim_as(subject, &at_work, 10).await;
    assert_eq!(claimed.iter().map(|run| run.stored.key).collect::<Vec<_>>(), [silent.key()]);
    silent.head = claimed[0].stored.head.clone();
    // It has been renewed, so nobody else can have it either; and one that is at work on an older fence is not meant.
    assert_eq!(claim(subject).await.len(), 0);
    assert_eq!(renew(subject, &at_work).await, []);
    subject.clock().advance_ms(i64::from(LEASE_MS));
    let claimed = claim_as(subject, &[(alive.key(), alive.head.fence), (silent.key(), 1)], 10).await;
    assert_eq!(claimed.iter().map(|run| run.stored.key).collect::<Vec<_>>(), [silent.key()]);
    // At a restart nobody is at work, whatever is said.
    subject.restart();
    assert_eq!(claim_as(subject, &at_work, 10).await.len(), 2);
}

pub async fn a_commit_of_the_run_leaves_its_lease_alone(subject: &mut dyn Subject) {
    let mut pen = Pen::opened(subject, "t1").await;
    subject.clock().advance_ms(20_000);
    assert_eq!(renew(subject, &[(pen.key(), 1)]).await, []);
    pen.append(subject, vec![status(subject, TaskState::Working, None)]).await;
    subject.clock().advance_ms(i64::from(LEASE_MS) - 1);
    assert_eq!(claim(subject).await.len(), 0, "a renewal outlives a commit");
    // A turn that follows at once has a new fence, and the lease goes with it.
    let fence = pen.head.fence + 1;
    pen.append(subject, vec![Event::MessageAdded { inbound: inbound(2, "x") }, Event::TurnBegan { turn: 2, fence }])
        .await;
    assert_eq!(renew(subject, &[(pen.key(), fence)]).await, []);
    let mut commit = pen.commit(subject, vec![chunk("a", "x", false)]);
    commit.lease_ms = Some(1000);
    pen.write(subject, commit).await;
    subject.clock().advance_ms(1000);
    claim_only(subject, &mut pen).await;
    pen.check(subject).await;
}

pub async fn a_claim_takes_no_more_than_it_was_asked_for(subject: &mut dyn Subject) {
    let mut pens = Vec::new();
    for number in 0..7 {
        pens.push(Pen::opened(subject, &format!("t{number}")).await);
    }
    subject.restart();
    let mut claimed = Vec::new();
    loop {
        let some = claim_as(subject, &[], 3).await;
        assert!(some.len() <= 3);
        if some.is_empty() {
            break;
        }
        claimed.extend(some.into_iter().map(|run| run.stored.key));
    }
    claimed.sort();
    assert_eq!(claimed, pens.iter().map(Pen::key).collect::<Vec<_>>());
}

async fn release(subject: &mut dyn Subject, held: &[(TaskKey, u64)], pause_ms: i64) {
    let released = held.iter().map(|&(key, fence)| Release { key, fence, pause_ms }).collect();
    subject.store().release_leases(released).await.expect("answers");
}
