//! Behaviours of leases: a run has one holder, and a holder that died is replaced.

use std::sync::Arc;

use switchboard_core::lifecycle::Event;
use switchboard_core::model::{AgentName, TaskState};

use super::Subject;
use super::given::{self, LEASE_MS, RecordWriter, anyone, chunk, due, inbound, now, scope, status, try_claim};
use crate::ports::store::{CommitError, DueRun, LeaseChange, Release, StoredHead, TaskKey};

/// Claims all runs that are due.
async fn claim(subject: &dyn Subject) -> Vec<DueRun> {
    given::claim(subject, 10).await
}

/// Claims the only due run, which must be this record's and interrupted by the death of its holder, and tells the
/// writer.
async fn claim_only(subject: &dyn Subject, writer: &mut RecordWriter) {
    claimed_only(subject, writer, true).await;
}

/// The same for a run that was released.
async fn claim_released(subject: &dyn Subject, writer: &mut RecordWriter) {
    claimed_only(subject, writer, false).await;
}

async fn claimed_only(subject: &dyn Subject, writer: &mut RecordWriter, interrupted: bool) {
    let mut claimed = claim(subject).await;
    assert_eq!(claimed.iter().map(|run| run.stored.key).collect::<Vec<_>>(), [writer.key()]);
    let DueRun { stored, interrupted: said } = claimed.remove(0);
    assert_eq!((&stored.scope, said), (&writer.scope, interrupted));
    let (fence, attempt) = (writer.head.fence + 1, writer.head.attempt + u32::from(interrupted));
    let event = Event::Claimed { fence, attempt, at: now(subject) };
    let mut expected = writer.head.clone();
    Arc::make_mut(&mut expected).apply_commit(std::slice::from_ref(&event));
    assert_eq!(stored.head, expected);
    writer.remember(expected, [event].into(), stored.head.seq + 1);
    assert_eq!(begin(subject, writer).await, []);
}

/// Records that the run of a record begins; returns the runs that are lost.
async fn begin(subject: &dyn Subject, writer: &RecordWriter) -> Vec<TaskKey> {
    subject.store().begin_runs(vec![(writer.key(), writer.head.fence)]).await.expect("runs begin")
}

async fn renew(subject: &dyn Subject, held: &[(TaskKey, u64)]) -> Vec<TaskKey> {
    subject.store().renew_leases(held.to_vec(), LEASE_MS).await.expect("leases are renewed")
}

pub async fn a_lease_taken_in_a_commit_holds_until_it_runs_out(subject: &mut dyn Subject) {
    let mut writer = RecordWriter::opened(subject, "t1").await;
    assert_eq!(claim(subject).await.len(), 0);
    subject.clock().advance_ms(i64::from(LEASE_MS) - 1);
    assert_eq!(claim(subject).await.len(), 0);
    subject.clock().advance_ms(1);
    claim_only(subject, &mut writer).await;
    assert_eq!(claim(subject).await.len(), 0, "a claim is a lease, too");
    subject.clock().advance_ms(i64::from(LEASE_MS));
    claim_only(subject, &mut writer).await;
    writer.check(subject).await;
}

pub async fn a_run_that_begins_without_a_lease_is_due_at_once(subject: &mut dyn Subject) {
    let mut writer = RecordWriter::new(anyone(), "t1", "c1");
    let opening = writer.opening(subject, "hello");
    writer.append(subject, vec![opening]).await;
    claim_released(subject, &mut writer).await;
    writer.append(subject, vec![status(subject, TaskState::InputRequired, None)]).await;
    assert_eq!(claim(subject).await.len(), 0);
    let fence = writer.head.fence + 1;
    writer
        .append(subject, vec![Event::MessageAdded { inbound: inbound(2, "x") }, Event::TurnBegan { turn: 2, fence }])
        .await;
    claim_released(subject, &mut writer).await;
    writer.check(subject).await;
}

pub async fn a_claim_raises_fence_and_attempt_and_is_in_the_log(subject: &mut dyn Subject) {
    let mut writer = RecordWriter::opened(subject, "t1").await;
    writer.append(subject, vec![chunk("a", "x", false)]).await;
    let mut old_run = writer.clone();
    subject.clock().advance_ms(i64::from(LEASE_MS));
    claim_only(subject, &mut writer).await;
    assert_eq!((writer.head.fence, writer.head.attempt), (2, 2));
    let mut commit = old_run.commit(subject, vec![chunk("a", "y", true)]);
    commit.fence = Some(old_run.head.fence);
    let refused = old_run.try_write(subject, commit).await;
    assert!(matches!(refused, Err(CommitError::Fenced)), "{refused:?}");
    let mut commit = writer.commit(subject, vec![chunk("a", "z", false)]);
    commit.fence = Some(writer.head.fence);
    writer.write(subject, commit).await;
    writer.check(subject).await;
}

pub async fn a_run_that_ended_cannot_be_claimed(subject: &mut dyn Subject) {
    let mut done = RecordWriter::opened(subject, "t1").await;
    done.append(subject, vec![status(subject, TaskState::Completed, None)]).await;
    let mut paused = RecordWriter::opened(subject, "t2").await;
    paused.append(subject, vec![status(subject, TaskState::InputRequired, Some("?"))]).await;
    RecordWriter::completed(subject, "t3").await;
    subject.clock().advance_ms(i64::from(LEASE_MS) * 10);
    assert_eq!(claim(subject).await.len(), 0);
    subject.restart();
    assert_eq!(claim(subject).await.len(), 0);
    assert_eq!(renew(subject, &[(done.key(), 1)]).await, [done.key()]);
}

pub async fn a_cancel_that_was_asked_for_is_found_while_its_run_is_at_work(subject: &mut dyn Subject) {
    let mut asked = RecordWriter::opened(subject, "t1").await;
    let left_alone = RecordWriter::opened(subject, "t2").await;
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
    let mut writer = RecordWriter::opened(subject, "t1").await;
    for wait in [1, 0, -1, 100_000] {
        subject.clock().advance_ms(i64::from(LEASE_MS) + wait);
        assert_eq!(renew(subject, &[(writer.key(), writer.head.fence)]).await, []);
        assert_eq!(claim(subject).await.len(), 0);
    }
    subject.clock().advance_ms(i64::from(LEASE_MS));
    claim_only(subject, &mut writer).await;
}

pub async fn a_lease_that_was_claimed_is_lost_to_its_holder(subject: &mut dyn Subject) {
    let mut writer = RecordWriter::opened(subject, "t1").await;
    let mut other = RecordWriter::opened(subject, "t2").await;
    let old_fence = writer.head.fence;
    subject.clock().advance_ms(1000);
    assert_eq!(renew(subject, &[(other.key(), 1)]).await, []);
    subject.clock().advance_ms(i64::from(LEASE_MS) - 1000);
    claim_only(subject, &mut writer).await;
    let held = [(writer.key(), old_fence), (other.key(), 1), (TaskKey(writer.key().0 + 1000), 1)];
    assert_eq!(renew(subject, &held).await, [writer.key(), TaskKey(writer.key().0 + 1000)]);
    assert_eq!(renew(subject, &[(writer.key(), writer.head.fence)]).await, []);
    // The old holder cannot release the lease either.
    release(subject, &[(writer.key(), old_fence)], 0).await;
    assert_eq!(claim(subject).await.len(), 0);
    other.append(subject, vec![status(subject, TaskState::Working, None)]).await;
    other.check(subject).await;
    writer.check(subject).await;
}

pub async fn a_released_run_is_claimed_when_it_is_due(subject: &mut dyn Subject) {
    let mut writer = RecordWriter::opened(subject, "t1").await;
    let held = vec![(writer.key(), writer.head.fence)];
    release(subject, &held, 5000).await;
    assert_eq!(renew(subject, &held).await, [writer.key()], "a released lease is no longer held");
    subject.clock().advance_ms(4999);
    assert_eq!(claim(subject).await.len(), 0);
    subject.clock().advance_ms(1);
    claim_released(subject, &mut writer).await;
    writer.check(subject).await;
}

pub async fn leases_of_a_process_that_is_gone_are_void_at_once(subject: &mut dyn Subject) {
    let mut writer = RecordWriter::opened(subject, "t1").await;
    let fence = writer.head.fence;
    subject.restart();
    assert_eq!(renew(subject, &[(writer.key(), fence)]).await, [writer.key()]);
    claim_only(subject, &mut writer).await;
    assert_eq!((writer.head.fence, writer.head.attempt), (2, 2));
    assert_eq!(claim(subject).await.len(), 0);
    subject.restart();
    claim_only(subject, &mut writer).await;
    writer.check(subject).await;
}

pub async fn a_released_run_keeps_its_due_time_over_a_restart(subject: &mut dyn Subject) {
    let mut writer = RecordWriter::opened(subject, "t1").await;
    let held = vec![(writer.key(), writer.head.fence)];
    release(subject, &held, 5000).await;
    subject.restart();
    assert_eq!(claim(subject).await.len(), 0);
    subject.clock().advance_ms(5000);
    claim_released(subject, &mut writer).await;
}

pub async fn a_run_that_waits_and_is_canceled_is_due_at_once(subject: &mut dyn Subject) {
    let asks = |subject: &dyn Subject| Event::CancelRequested { metadata: None, at: now(subject) };
    // Cancellation is requested while the run waits, and before it is released.
    for asked_first in [false, true] {
        let mut writer = RecordWriter::opened(subject, if asked_first { "t1" } else { "t2" }).await;
        if asked_first {
            writer.append(subject, vec![asks(subject)]).await;
        }
        let held = [(writer.key(), writer.head.fence)];
        release(subject, &held, 5000).await;
        if !asked_first {
            assert_eq!(claim(subject).await.len(), 0);
            writer.append(subject, vec![asks(subject)]).await;
        }
        claim_released(subject, &mut writer).await;
        writer.check(subject).await;
    }
}

/// Releases and claims do not count as attempts, however many there are; a death counts, before and after them.
pub async fn a_run_given_back_in_order_has_not_been_tried_once_more(subject: &mut dyn Subject) {
    let mut writer = RecordWriter::opened(subject, "t1").await;
    for _ in 0..3 {
        let held = vec![(writer.key(), writer.head.fence)];
        release(subject, &held, 0).await;
        subject.restart();
        claim_released(subject, &mut writer).await;
        assert_eq!(writer.head.attempt, 1);
    }
    subject.restart();
    claim_only(subject, &mut writer).await;
    let held = vec![(writer.key(), writer.head.fence)];
    release(subject, &held, 0).await;
    claim_released(subject, &mut writer).await;
    assert_eq!((writer.head.fence, writer.head.attempt), (6, 2));
    writer.check(subject).await;
}

/// A run begins when it has its slot, and only then can a death interrupt it.
pub async fn a_run_that_has_not_begun_was_not_interrupted(subject: &mut dyn Subject) {
    let mut writer = RecordWriter::new(anyone(), "t1", "ctx");
    let opening = writer.opening(subject, "hello");
    let mut commit = writer.commit(subject, vec![opening]);
    commit.lease = LeaseChange::Take { lease_ms: LEASE_MS, waits: true };
    writer.write(subject, commit).await;
    assert_eq!(claim(subject).await.len(), 0, "a waiting run holds a lease like a run at work");
    let claim_unbegun = async |subject: &mut dyn Subject, writer: &mut RecordWriter| {
        let mut claimed = claim(subject).await;
        let DueRun { stored, interrupted } = claimed.remove(0);
        assert_eq!((claimed.len(), stored.key, interrupted), (0, writer.key(), false));
        assert_eq!((stored.head.fence, stored.head.attempt), (writer.head.fence + 1, writer.head.attempt));
        let (fence, attempt) = (stored.head.fence, stored.head.attempt);
        let event = Event::Claimed { fence, attempt, at: now(subject) };
        writer.remember(stored.head.clone(), [event].into(), stored.head.seq + 1);
    };
    // The process may die or stop renewing many times while the run waits.
    for _ in 0..3 {
        subject.restart();
        claim_unbegun(subject, &mut writer).await;
        subject.clock().advance_ms(LEASE_MS.into());
        claim_unbegun(subject, &mut writer).await;
    }
    // A caller's commit meanwhile does not begin the run either.
    writer.append(subject, vec![Event::MessageAdded { inbound: inbound(2, "x") }]).await;
    subject.restart();
    claim_unbegun(subject, &mut writer).await;
    assert_eq!(writer.head.attempt, 1);

    assert_eq!(begin(subject, &writer).await, []);
    subject.restart();
    claim_only(subject, &mut writer).await;
    assert_eq!(writer.head.attempt, 2, "it had begun");
    // A run that was replaced does not begin.
    subject.clock().advance_ms(LEASE_MS.into());
    let late = writer.clone();
    claim_only(subject, &mut writer).await;
    assert_eq!(begin(subject, &late).await, [writer.key()]);
    writer.check(subject).await;
}

/// A renewal does not change the version, so the claim itself must check the lease.
pub async fn a_run_whose_holder_came_back_after_it_was_listed_is_not_claimed(subject: &mut dyn Subject) {
    let mut writer = RecordWriter::opened(subject, "t1").await;
    subject.clock().advance_ms(i64::from(LEASE_MS) * 3);
    let listed = due(subject.store(), 10).await.remove(0);
    assert_eq!(renew(subject, &[(writer.key(), writer.head.fence)]).await, []);
    let refused = try_claim(subject.store(), now(subject), &listed).await;
    assert!(matches!(refused, Err(CommitError::Conflict)), "{refused:?}");
    writer.check(subject).await;
    assert_eq!(claim(subject).await.len(), 0);
    subject.clock().advance_ms(i64::from(LEASE_MS));
    claim_only(subject, &mut writer).await;
    // A claimed run cannot be claimed again, neither from an earlier list nor from a new one.
    let refused = try_claim(subject.store(), now(subject), &listed).await;
    assert!(matches!(refused, Err(CommitError::Conflict)), "{refused:?}");
    let unlisted = DueRun { stored: subject_head(subject, &writer).await, interrupted: true };
    let refused = try_claim(subject.store(), now(subject), &unlisted).await;
    assert!(matches!(refused, Err(CommitError::Conflict)), "{refused:?}");
    writer.check(subject).await;
}

async fn subject_head(subject: &dyn Subject, writer: &RecordWriter) -> StoredHead {
    subject.store().head(&writer.scope, &writer.head.id).await.expect("heads are read").expect("it is there")
}

/// The beginning of a run is no new version either, and it decides whether the claim is another attempt.
pub async fn a_run_that_began_after_it_was_listed_is_not_claimed_as_one_that_had_not(subject: &mut dyn Subject) {
    let mut writer = RecordWriter::new(anyone(), "t1", "ctx");
    let opening = writer.opening(subject, "hello");
    let mut commit = writer.commit(subject, vec![opening]);
    commit.lease = LeaseChange::Take { lease_ms: LEASE_MS, waits: true };
    writer.write(subject, commit).await;
    subject.clock().advance_ms(LEASE_MS.into());
    let listed = due(subject.store(), 10).await.remove(0);
    assert!(!listed.interrupted, "it waits for its place");
    assert_eq!(begin(subject, &writer).await, []);
    let refused = try_claim(subject.store(), now(subject), &listed).await;
    assert!(matches!(refused, Err(CommitError::Conflict)), "{refused:?}");
    claim_only(subject, &mut writer).await;
    assert_eq!(writer.head.attempt, 2);
    writer.check(subject).await;
}

/// A process must not claim or postpone runs of agents that only other processes serve.
pub async fn runs_of_agents_that_are_not_asked_for_are_not_listed(subject: &mut dyn Subject) {
    let mut others = Vec::new();
    for number in 0..5 {
        let mut writer =
            RecordWriter::new(scope("", "", &format!("other-{}", number % 2)), &format!("o{number}"), "ctx");
        let opening = writer.opening(subject, "hello");
        let mut commit = writer.commit(subject, vec![opening]);
        commit.lease = given::TAKEN;
        writer.write(subject, commit).await;
        others.push(writer);
    }
    release(subject, &[(others[0].key(), 1), (others[1].key(), 1)], 0).await;
    let mut own = RecordWriter::opened(subject, "t1").await;
    for restarted in [false, true] {
        if restarted {
            subject.restart();
        } else {
            subject.clock().advance_ms(LEASE_MS.into());
        }
        // Many waiting runs of other agents do not crowd out the runs that are asked for.
        let listed = due(subject.store(), 1).await;
        assert_eq!(listed.iter().map(|run| run.stored.key).collect::<Vec<_>>(), [own.key()]);
        let store = subject.store();
        let of_others = async |after, limit| -> Vec<TaskKey> {
            let echo = [AgentName::from("echo")];
            let found = store.due_runs_of_others(&echo, after, limit).await.expect("due runs are listed");
            found.into_iter().map(|run| run.stored.key).collect()
        };
        let keys: Vec<TaskKey> = others.iter().map(RecordWriter::key).collect();
        assert_eq!(of_others(None, 10).await, keys);
        assert_eq!(of_others(None, 2).await, keys[..2]);
        assert_eq!(of_others(Some(keys[1]), 2).await, keys[2..4]);
        assert_eq!(of_others(Some(keys[4]), 2).await, []);
        let both = [AgentName::from("other-0"), AgentName::from("echo")];
        let found = store.due_runs(&both, 10).await.expect("due runs are listed");
        assert_eq!(found.len(), 4);
        assert!(found.iter().all(|run| both.contains(&run.stored.scope.agent)));
        assert_eq!(store.due_runs(&[], 10).await.expect("due runs are listed").len(), 0);
        claim_only(subject, &mut own).await;
    }
    for writer in &others {
        writer.check(subject).await;
    }
}

pub async fn a_commit_of_the_run_leaves_its_lease_alone(subject: &mut dyn Subject) {
    let mut writer = RecordWriter::opened(subject, "t1").await;
    subject.clock().advance_ms(20_000);
    assert_eq!(renew(subject, &[(writer.key(), 1)]).await, []);
    writer.append(subject, vec![status(subject, TaskState::Working, None)]).await;
    subject.clock().advance_ms(i64::from(LEASE_MS) - 1);
    assert_eq!(claim(subject).await.len(), 0, "a renewal outlives a commit");
    // A turn that follows at once has a new fence and keeps the lease.
    let fence = writer.head.fence + 1;
    writer
        .append(subject, vec![Event::MessageAdded { inbound: inbound(2, "x") }, Event::TurnBegan { turn: 2, fence }])
        .await;
    assert_eq!(renew(subject, &[(writer.key(), fence)]).await, []);
    let mut commit = writer.commit(subject, vec![chunk("a", "x", false)]);
    commit.lease = LeaseChange::Take { lease_ms: 1000, waits: false };
    writer.write(subject, commit).await;
    subject.clock().advance_ms(1000);
    claim_only(subject, &mut writer).await;
    writer.check(subject).await;
}

pub async fn a_claim_takes_no_more_than_it_was_asked_for(subject: &mut dyn Subject) {
    let mut writers = Vec::new();
    for number in 0..7 {
        writers.push(RecordWriter::opened(subject, &format!("t{number}")).await);
    }
    subject.restart();
    let mut claimed = Vec::new();
    loop {
        let some = given::claim(subject, 3).await;
        assert!(some.len() <= 3);
        if some.is_empty() {
            break;
        }
        claimed.extend(some.into_iter().map(|run| run.stored.key));
    }
    claimed.sort();
    assert_eq!(claimed, writers.iter().map(RecordWriter::key).collect::<Vec<_>>());
}

async fn release(subject: &mut dyn Subject, held: &[(TaskKey, u64)], pause_ms: i64) {
    let released = held.iter().map(|&(key, fence)| Release { key, fence, pause_ms }).collect();
    subject.store().release_leases(released).await.expect("answers");
}
