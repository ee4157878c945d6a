//! Behaviours of a store that two processes share, each through its own handle. A commit that one handle has been told
//! of is visible to the other; of two handles that compete, one wins.

use std::sync::Arc;

use switchboard_core::lifecycle::{Event, Head};
use switchboard_core::model::{AgentName, Dialect, TaskState};

use super::given::{
    LEASE_MS, RecordWriter, TAKEN, anyone, chunk, due, now, read_log, scope, status, try_claim, webhook,
};
use super::lists::everything;
use super::{SharedSubject, Subject};
use crate::memory::ManualClock;
use crate::ports::Store;
use crate::ports::store::{Accept, CommitError, DeliveryOutcome, DueRun, PushChange, Release};

/// The same data through the second handle.
struct Second<'a>(&'a dyn SharedSubject);

impl Subject for Second<'_> {
    fn store(&self) -> &dyn Store {
        self.0.second()
    }

    fn clock(&self) -> &ManualClock {
        self.0.clock()
    }

    fn restart(&mut self) {
        unreachable!("the data is restarted through its subject")
    }
}

/// Gives the lease of a run time to run out.
fn let_leases_run_out(subject: &dyn SharedSubject) {
    subject.clock().advance_ms(LEASE_MS.into());
}

/// Lists the one run that is due, through a handle.
async fn the_due_run(store: &dyn Store) -> DueRun {
    let mut listed = due(store, 10).await;
    assert_eq!(listed.len(), 1, "one run is due");
    listed.remove(0)
}

fn is_conflict<T: std::fmt::Debug>(outcome: &Result<T, CommitError>) -> bool {
    matches!(outcome, Err(CommitError::Conflict))
}

pub async fn each_handle_reads_what_the_other_wrote(subject: &mut dyn SharedSubject) {
    let subject = &*subject;
    let second = Second(subject);
    let mut writer = RecordWriter::opened(subject, "t1").await;
    for round in 0..4 {
        let handle: &dyn Subject = if round % 2 == 0 { &second } else { subject };
        writer.append(handle, vec![chunk("a", "x", round > 0), status(handle, TaskState::Working, Some("busy"))]).await;
        writer.check(subject).await;
        writer.check(&second).await;
    }
    let after = writer.head.seq - 1;
    writer.append(&second, vec![status(subject, TaskState::Completed, None)]).await;
    for store in [subject.store(), subject.second()] {
        let rest = read_log(store, writer.key(), after, 10).await.expect("the log is kept");
        assert_eq!(rest.len(), 2, "the remaining events of one commit, and the next commit");
        let page = store.list(&anyone(), &everything(10)).await.expect("lists are read");
        assert_eq!((page.total, &page.tasks[0].head), (1, &writer.head));
    }
}

pub async fn who_waited_for_a_version_is_not_told_an_earlier_one(subject: &mut dyn SharedSubject) {
    let subject = &*subject;
    let second = Second(subject);
    let mut writer = RecordWriter::opened(subject, "t1").await;
    writer.append(subject, vec![status(subject, TaskState::Working, Some("first"))]).await;
    let known = writer.head.version;
    writer.append(&second, vec![status(subject, TaskState::Completed, Some("second"))]).await;
    let (scope, id, newest) = (&writer.scope, &writer.head.id, writer.head.version);
    for (store, version) in [(subject.store(), known), (subject.store(), newest), (subject.second(), newest)] {
        let since = store.task_since(scope, id, version, u64::MAX).await.expect("tasks are read").expect("it is there");
        assert!(since.head.version >= version, "{} for {version}", since.head.version);
        assert_eq!(since.head.state, since.folded.task.status.state, "head and task are of one version");
    }
    // Other readers always see the newest.
    writer.check(subject).await;
    writer.check(&second).await;
}

pub async fn of_two_commits_on_the_same_version_one_is_a_conflict(subject: &mut dyn SharedSubject) {
    let subject = &*subject;
    let second = Second(subject);
    let mut writer = RecordWriter::opened(subject, "t1").await;
    let mut late = writer.clone();
    writer.append(&second, vec![status(subject, TaskState::Working, None)]).await;
    let commit = late.commit(subject, vec![status(subject, TaskState::Completed, None)]);
    assert!(is_conflict(&late.try_write(subject, commit).await));
    writer.check(subject).await;
    writer.check(&second).await;
}

pub async fn of_two_that_open_the_same_id_one_is_a_conflict(subject: &mut dyn SharedSubject) {
    let subject = &*subject;
    let writer = RecordWriter::opened(subject, "t1").await;
    let mut other = RecordWriter::new(anyone(), "t1", "elsewhere");
    let opening = other.opening(subject, "hello");
    let commit = other.commit(subject, vec![opening]);
    assert!(is_conflict(&other.try_write(&Second(subject), commit).await));
    writer.check(&Second(subject)).await;
}

pub async fn a_run_that_both_see_is_claimed_by_one(subject: &mut dyn SharedSubject) {
    let subject = &*subject;
    let mut writers = Vec::new();
    for number in 0..8 {
        writers.push(RecordWriter::opened(subject, &format!("t{number}")).await);
    }
    let_leases_run_out(subject);
    let (first, second) = (due(subject.store(), 10).await, due(subject.second(), 10).await);
    assert_eq!((first.len(), second.len()), (8, 8));
    let at = now(subject);
    let mut claimed = [0, 0];
    for (mine, yours) in first.iter().zip(&second) {
        let (mine, yours) = tokio::join!(try_claim(subject.store(), at, mine), try_claim(subject.second(), at, yours));
        assert!(mine.is_ok() != yours.is_ok(), "{mine:?} {yours:?}");
        assert!(is_conflict(&mine) || is_conflict(&yours), "{mine:?} {yours:?}");
        claimed[usize::from(yours.is_ok())] += 1;
    }
    assert_eq!(claimed.iter().sum::<i32>(), 8);
    assert_eq!((due(subject.store(), 10).await.len(), due(subject.second(), 10).await.len()), (0, 0));
    for writer in &writers {
        let stored = subject.second().head(&writer.scope, &writer.head.id).await.expect("heads are read");
        let head = stored.expect("it is there").head;
        assert_eq!((head.fence, head.attempt, head.version), (2, 2, 2), "claimed once");
    }
}

pub async fn a_lease_renewed_through_one_handle_is_not_claimed_through_the_other(subject: &mut dyn SharedSubject) {
    let subject = &*subject;
    let writer = RecordWriter::opened(subject, "t1").await;
    let_leases_run_out(subject);
    let listed = the_due_run(subject.second()).await;
    let held = vec![(writer.key(), writer.head.fence)];
    assert_eq!(subject.store().renew_leases(held, LEASE_MS).await.expect("leases are renewed"), []);
    assert!(is_conflict(&try_claim(subject.second(), now(subject), &listed).await));
    assert_eq!(due(subject.second(), 10).await.len(), 0);
    writer.check(&Second(subject)).await;
}

pub async fn a_run_released_through_one_handle_is_claimed_through_the_other(subject: &mut dyn SharedSubject) {
    let subject = &*subject;
    let writer = RecordWriter::opened(subject, "t1").await;
    assert_eq!(due(subject.second(), 10).await.len(), 0);
    let released = Release { key: writer.key(), fence: writer.head.fence, pause_ms: 5_000 };
    subject.store().release_leases(vec![released]).await.expect("leases are released");
    assert_eq!(due(subject.second(), 10).await.len(), 0, "it has a pause");
    subject.clock().advance_ms(5_000);
    let listed = the_due_run(subject.second()).await;
    assert!(!listed.interrupted);
    let claimed = try_claim(subject.second(), now(subject), &listed).await.expect("no process holds the run");
    assert_eq!((claimed.head.fence, claimed.head.attempt), (2, 1));
}

pub async fn a_run_taken_over_is_fenced_off_and_lost_to_the_first_handle(subject: &mut dyn SharedSubject) {
    let subject = &*subject;
    let mut old_run = RecordWriter::opened(subject, "t1").await;
    let held = vec![(old_run.key(), old_run.head.fence)];
    let_leases_run_out(subject);
    let claimed = try_claim(subject.second(), now(subject), &the_due_run(subject.second()).await).await;
    let fence = claimed.expect("no process holds the run").head.fence;
    let mut commit = old_run.commit(subject, vec![chunk("a", "late", false)]);
    commit.fence = Some(old_run.head.fence);
    let refused = old_run.try_write(subject, commit).await;
    assert!(matches!(refused, Err(CommitError::Fenced)), "{refused:?}");
    let store = subject.store();
    assert_eq!(store.renew_leases(held.clone(), LEASE_MS).await.expect("leases are renewed"), [old_run.key()]);
    assert_eq!(store.begin_runs(held).await.expect("runs begin"), [old_run.key()]);
    let released = Release { key: old_run.key(), fence: old_run.head.fence, pause_ms: 0 };
    store.release_leases(vec![released]).await.expect("leases are released");
    assert_eq!(due(store, 10).await.len(), 0, "a process can release only its own lease");
    let held = vec![(old_run.key(), fence)];
    assert_eq!(subject.second().begin_runs(held).await.expect("runs begin"), []);
}

pub async fn a_run_that_begins_through_one_handle_is_interrupted_for_the_other(subject: &mut dyn SharedSubject) {
    let subject = &*subject;
    let writer = RecordWriter::opened(subject, "t1").await;
    let released = Release { key: writer.key(), fence: writer.head.fence, pause_ms: 0 };
    subject.store().release_leases(vec![released]).await.expect("leases are released");
    let claimed = try_claim(subject.store(), now(subject), &the_due_run(subject.store()).await).await;
    let fence = claimed.expect("no process holds the run").head.fence;
    let_leases_run_out(subject);
    let listed = the_due_run(subject.second()).await;
    assert!(!listed.interrupted, "it was claimed and has not begun");
    let begun = subject.store().begin_runs(vec![(writer.key(), fence)]).await;
    assert_eq!(begun.expect("runs begin"), []);
    assert!(is_conflict(&try_claim(subject.second(), now(subject), &listed).await), "it has begun meanwhile");
    let listed = the_due_run(subject.second()).await;
    assert!(listed.interrupted);
    let claimed = try_claim(subject.second(), now(subject), &listed).await.expect("no process holds the run");
    assert_eq!((claimed.head.fence, claimed.head.attempt), (3, 2));
}

pub async fn a_cancel_asked_for_through_one_handle_is_found_through_the_other(subject: &mut dyn SharedSubject) {
    let subject = &*subject;
    let mut writer = RecordWriter::opened(subject, "t1").await;
    writer.append(&Second(subject), vec![Event::CancelRequested { metadata: None, at: now(subject) }]).await;
    assert_eq!(subject.store().canceled_runs().await.expect("it is read"), [writer.key()]);
}

pub async fn a_key_used_through_one_handle_is_a_duplicate_through_the_other(subject: &mut dyn SharedSubject) {
    let subject = &*subject;
    let expires = now(subject).plus_ms(60_000);
    let accept = Accept { key: [7; 32], digest: [8; 32], turn: 1, after_seq: 0, expires };
    let mut writer = RecordWriter::new(anyone(), "t1", "ctx");
    let opening = writer.opening(subject, "hello");
    let mut commit = writer.commit(subject, vec![opening]);
    commit.accept = Some(accept.clone());
    writer.write(subject, commit).await;
    let found = subject.second().find_accepted(accept.key).await.expect("keys are read").expect("it is known");
    assert_eq!((&found.task_id, found.digest), (&writer.head.id, accept.digest));
    let mut again = RecordWriter::new(anyone(), "t2", "ctx");
    let opening = again.opening(subject, "hello");
    let mut commit = again.commit(subject, vec![opening]);
    commit.accept = Some(accept);
    match again.try_write(&Second(subject), commit).await {
        Err(CommitError::Duplicate(known)) => assert_eq!(known, found),
        other => panic!("{other:?}"),
    }
}

pub async fn a_delivery_is_claimed_through_one_handle_only(subject: &mut dyn SharedSubject) {
    const CLAIM_MS: u32 = 60_000;
    let subject = &*subject;
    let mut writer = RecordWriter::opened(subject, "t1").await;
    let mut commit = writer.commit(subject, vec![status(subject, TaskState::Working, None)]);
    let config = webhook(&writer, "p1");
    commit.push = vec![PushChange::Put { config, dialect: Dialect::V1_0, after_seq: 0 }];
    commit.head = Arc::new(Head { push_configs: 1, ..Head::clone(&commit.head) });
    writer.write(&Second(subject), commit).await;
    assert_eq!(subject.store().push_configs(writer.key()).await.expect("webhooks are read").len(), 1);
    let claim = async |store: &dyn Store| store.claim_deliveries(10, CLAIM_MS).await.expect("deliveries are claimed");
    let mut claimed = claim(subject.store()).await;
    assert_eq!((claimed.len(), claim(subject.second()).await.len()), (1, 0));
    let lost = claimed.remove(0);
    // The claim runs out, and the other process claims the delivery. Then the first outcome counts only for what the
    // receiver accepted.
    subject.clock().advance_ms(CLAIM_MS.into());
    let mut claimed = claim(subject.second()).await;
    let taken = claimed.remove(0);
    let failed = DeliveryOutcome::Parked { delivered_seq: 1, error: "late".to_owned() };
    subject.store().settle_deliveries(vec![(lost.claim(), failed)]).await.expect("it is settled");
    let delivered = DeliveryOutcome::Delivered { seq: writer.head.seq };
    subject.second().settle_deliveries(vec![(taken.claim(), delivered)]).await.expect("it is settled");
    assert_eq!(subject.store().next_delivery_at().await.expect("it is read"), None);
    assert_eq!((claim(subject.store()).await.len(), claim(subject.second()).await.len()), (0, 0));
}

pub async fn each_handle_lists_the_runs_of_its_own_agents(subject: &mut dyn SharedSubject) {
    let subject = &*subject;
    let agents = [AgentName::from("one"), AgentName::from("two")];
    let mut keys = Vec::new();
    for agent in &agents {
        let mut writer = RecordWriter::new(scope("", "", agent.as_str()), agent.as_str(), "ctx");
        let opening = writer.opening(subject, "hello");
        let mut commit = writer.commit(subject, vec![opening]);
        commit.lease = TAKEN;
        keys.push(writer.write(subject, commit).await);
    }
    let_leases_run_out(subject);
    for (place, store) in [subject.store(), subject.second()].into_iter().enumerate() {
        let own = std::slice::from_ref(&agents[place]);
        let listed = store.due_runs(own, 10).await.expect("due runs are listed");
        assert_eq!(listed.iter().map(|run| run.stored.key).collect::<Vec<_>>(), [keys[place]]);
        let others = store.due_runs_of_others(own, None, 10).await.expect("due runs are listed");
        assert_eq!(others.iter().map(|run| run.stored.key).collect::<Vec<_>>(), [keys[1 - place]]);
    }
}
