//! Behaviours of the calls that agents make to other agents.

use super::Subject;
use super::given::{RecordWriter, call, now};
use crate::ports::Calls;
use crate::ports::calls::{CallRow, CallStatus, CallStep, ClaimedStep};
use crate::ports::storage::CALL_BYTES;
use crate::ports::store::Retention;

const CLAIM_MS: u32 = 60_000;
const PAUSE_MS: i64 = 20_000;
const GIVE_UP_MS: i64 = 600_000;

fn calls(subject: &dyn Subject) -> &dyn Calls {
    subject.store().calls().expect("this store keeps calls")
}

async fn change(subject: &dyn Subject, id: &str, step: CallStep) -> Option<CallRow> {
    calls(subject).change_call(id, step).await.expect("the step is applied")
}

fn remote() -> CallStep {
    CallStep::Remote { task: "remote-1".into(), context: Some("remote-ctx".into()) }
}

fn hand_over() -> CallStep {
    CallStep::HandOver {
        wait_ms: PAUSE_MS,
        give_up_ms: GIVE_UP_MS,
        deliver_to: Some("https://example.com/told".to_owned()),
    }
}

/// A call that its run no longer waits for.
async fn handed_over(subject: &dyn Subject, parent: &RecordWriter, id: &str) {
    calls(subject).open_call(call(subject, parent, id)).await.expect("the call is recorded");
    change(subject, id, remote()).await.expect("the call is there");
    change(subject, id, hand_over()).await.expect("the call is open");
}

async fn claim(subject: &dyn Subject, only: Option<&str>) -> Vec<CallRow> {
    calls(subject).claim_calls(only.map(str::to_owned), 10, CLAIM_MS).await.expect("calls are claimed")
}

async fn settle(subject: &dyn Subject, claimed: &CallRow, step: ClaimedStep) -> Option<CallRow> {
    let until = claimed.claimed_until.expect("it is claimed");
    change(subject, &claimed.id, CallStep::Claimed { until, step }).await
}

async fn next_in_ms(subject: &dyn Subject) -> Option<i64> {
    calls(subject).next_call_in().await.expect("answers")
}

pub async fn a_call_is_recorded_once_and_read_back_whole(subject: &mut dyn Subject) {
    let parent = RecordWriter::opened(subject, "t1").await;
    let first = call(subject, &parent, "c1");
    assert_eq!(calls(subject).open_call(first.clone()).await.expect("recorded"), first);
    let changed = change(subject, "c1", remote()).await.expect("the call is there");
    assert_eq!(changed.remote_task, Some("remote-1".into()));
    subject.restart();
    // The same call of the next attempt finds what the first one has recorded.
    let again = CallRow { created_at: now(subject).plus_ms(5), ..first };
    assert_eq!(calls(subject).open_call(again).await.expect("recorded"), changed);
    assert_eq!(calls(subject).call("c1").await.expect("answers"), Some(changed.clone()));
    assert_eq!(calls(subject).call("c2").await.expect("answers"), None);
    let second = call(subject, &parent, "c2");
    calls(subject).open_call(second.clone()).await.expect("recorded");
    assert_eq!(calls(subject).calls_of(parent.key()).await.expect("answers"), [changed, second]);
    assert_eq!(change(subject, "c3", remote()).await, None);
}

pub async fn every_field_of_a_call_is_kept(subject: &mut dyn Subject) {
    let parent = RecordWriter::opened(subject, "t1").await;
    handed_over(subject, &parent, "c1").await;
    change(subject, "c1", CallStep::Left(true)).await.expect("the call is open");
    subject.clock().advance_ms(PAUSE_MS);
    let claimed = claim(subject, None).await.remove(0);
    let (outcome, error) = ("{\"text\":\"§\"}".to_owned(), Some("late".to_owned()));
    let delivering = settle(subject, &claimed, ClaimedStep::Deliver { outcome: outcome.clone(), error: error.clone() });
    let delivering = delivering.await.expect("the claim holds");
    subject.restart();
    let stored = calls(subject).call("c1").await.expect("answers").expect("the call is there");
    let at_restart = CallRow { claimed_until: None, due_at: Some(now(subject)), ..delivering };
    assert_eq!(stored, at_restart);
    let expected = (CallStatus::Delivering, Some(outcome), error, true, 1);
    assert_eq!((stored.status, stored.outcome, stored.error, stored.has_left, stored.attempts), expected);
    assert_eq!(stored.deliver_to.as_deref(), Some("https://example.com/told"));
}

pub async fn a_call_without_a_time_is_never_due(subject: &mut dyn Subject) {
    let parent = RecordWriter::opened(subject, "t1").await;
    calls(subject).open_call(call(subject, &parent, "c1")).await.expect("recorded");
    assert_eq!(change(subject, "c1", hand_over()).await, None, "no task of the other agent is known");
    change(subject, "c1", remote()).await.expect("the call is open");
    subject.clock().advance_ms(GIVE_UP_MS);
    assert_eq!((claim(subject, None).await, next_in_ms(subject).await), (Vec::new(), None));
    let used = change(subject, "c1", CallStep::Used).await.expect("the call is open");
    assert_eq!((used.status, used.ended_at), (CallStatus::Completed, Some(now(subject))));
    assert_eq!(change(subject, "c1", CallStep::Failed { error: "late".to_owned() }).await, None, "it is over");
}

pub async fn a_call_of_a_run_is_looked_at_when_its_process_is_gone(subject: &mut dyn Subject) {
    let parent = RecordWriter::opened(subject, "t1").await;
    let due_at = Some(now(subject).plus_ms(PAUSE_MS));
    for id in ["c1", "c2"] {
        let opened = CallRow { due_at, ..call(subject, &parent, id) };
        calls(subject).open_call(opened).await.expect("recorded");
        change(subject, id, remote()).await.expect("the call is open");
    }
    change(subject, "c2", CallStep::Answered).await.expect("the call is open");
    assert_eq!((claim(subject, None).await, next_in_ms(subject).await), (Vec::new(), Some(PAUSE_MS)));
    subject.restart();
    let claimed = claim(subject, None).await;
    let seen: Vec<_> = claimed.iter().map(|call| (call.id.as_str(), call.status, call.attempts)).collect();
    assert_eq!(seen, [("c1", CallStatus::Inline, 0)]);
    let again = settle(subject, &claimed[0], ClaimedStep::Again { wait_ms: PAUSE_MS, error: None }).await;
    assert_eq!(again.expect("the claim holds").status, CallStatus::Inline);
    subject.clock().advance_ms(PAUSE_MS);
    let claimed = claim(subject, None).await.remove(0);
    // The run, which is alive after all, hands the call over.
    change(subject, "c1", hand_over()).await.expect("the call is open");
    assert_eq!(settle(subject, &claimed, ClaimedStep::Again { wait_ms: 1, error: None }).await, None);
    assert_eq!(next_in_ms(subject).await, Some(PAUSE_MS));
}

pub async fn a_continuation_is_claimed_by_one_and_counts_attempts(subject: &mut dyn Subject) {
    let parent = RecordWriter::opened(subject, "t1").await;
    handed_over(subject, &parent, "c1").await;
    assert_eq!((claim(subject, None).await, next_in_ms(subject).await), (Vec::new(), Some(PAUSE_MS)));
    subject.clock().advance_ms(PAUSE_MS);
    assert_eq!(claim(subject, Some("c2")).await, []);
    let first = claim(subject, Some("c1")).await.remove(0);
    assert_eq!((first.status, first.attempts), (CallStatus::Processing, 1));
    assert_eq!((claim(subject, None).await, next_in_ms(subject).await), (Vec::new(), Some(CLAIM_MS.into())));
    let again = settle(subject, &first, ClaimedStep::Again { wait_ms: PAUSE_MS, error: None }).await;
    assert_eq!(again.expect("the claim holds").status, CallStatus::Pending);
    subject.clock().advance_ms(PAUSE_MS);
    let second = claim(subject, None).await.remove(0);
    assert_eq!(second.attempts, 2);
    // The process does not come back. The claim runs out, and the next one is one more attempt.
    subject.clock().advance_ms(CLAIM_MS.into());
    let third = claim(subject, None).await.remove(0);
    assert_eq!(third.attempts, 3);
    let late = ClaimedStep::Deliver { outcome: "{}".to_owned(), error: None };
    assert_eq!(settle(subject, &second, late).await, None, "another claim holds");
}

pub async fn what_is_delivered_is_recorded_first_and_ends_once(subject: &mut dyn Subject) {
    let parent = RecordWriter::opened(subject, "t1").await;
    handed_over(subject, &parent, "c1").await;
    subject.clock().advance_ms(PAUSE_MS);
    let claimed = claim(subject, None).await.remove(0);
    let receipt = ClaimedStep::Delivered { receipt: "HTTP 200".to_owned() };
    assert_eq!(settle(subject, &claimed, receipt.clone()).await, None, "nothing is recorded that could be delivered");
    let outcome = "{\"text\":\"done\"}".to_owned();
    let recorded = settle(subject, &claimed, ClaimedStep::Deliver { outcome: outcome.clone(), error: None }).await;
    assert_eq!(recorded.expect("the claim holds").status, CallStatus::Delivering);
    // The process dies while it delivers. The next one delivers the same, which is no further attempt.
    subject.restart();
    let again = claim(subject, None).await.remove(0);
    assert_eq!((again.status, again.attempts, again.outcome.clone()), (CallStatus::Delivering, 1, Some(outcome)));
    let ended = settle(subject, &again, receipt.clone()).await.expect("the claim holds");
    assert_eq!((ended.status, ended.receipt.as_deref()), (CallStatus::Completed, Some("HTTP 200")));
    assert_eq!(settle(subject, &again, receipt).await, None);
    assert_eq!((claim(subject, None).await, next_in_ms(subject).await), (Vec::new(), None));
}

pub async fn a_continuation_waits_as_long_as_before_when_the_clock_is_set_back(subject: &mut dyn Subject) {
    let parent = RecordWriter::opened(subject, "t1").await;
    handed_over(subject, &parent, "c1").await;
    subject.clock().advance_ms(-3_600_000);
    assert_eq!(claim(subject, None).await, []);
    assert_eq!(next_in_ms(subject).await, Some(PAUSE_MS));
    subject.clock().advance_ms(PAUSE_MS);
    assert_eq!(claim(subject, None).await.len(), 1);
}

pub async fn calls_count_in_the_stored_bytes(subject: &mut dyn Subject) {
    let stored = |subject: &dyn Subject| subject.store().stats().stored_bytes.expect("few tasks are counted at once");
    let parent = RecordWriter::completed(subject, "t1").await;
    let before = stored(subject);
    handed_over(subject, &parent, "c1").await;
    calls(subject).open_call(call(subject, &parent, "c1")).await.expect("it is there already");
    assert_eq!(stored(subject) - before, CALL_BYTES);
    subject.clock().advance_ms(PAUSE_MS);
    let claimed = claim(subject, None).await.remove(0);
    let outcome = format!("{{\"text\":\"{}\"}}", "ä\\n".repeat(5_000));
    let bytes = outcome.len() as u64;
    settle(subject, &claimed, ClaimedStep::Deliver { outcome, error: None }).await.expect("the claim holds");
    assert_eq!(stored(subject) - before, CALL_BYTES + bytes);
    subject.restart();
    assert_eq!(stored(subject) - before, CALL_BYTES + bytes, "it is counted again");
    let retention =
        Retention { now: now(subject), events_ms: 0, tasks_ms: 0, replies_ms: 0, tasks_max: 100, tasks_batch: 0 };
    while subject.store().prune(retention, 100).await.expect("answers") > 0 {}
    assert_eq!(stored(subject), 0);
}

pub async fn calls_go_with_their_task(subject: &mut dyn Subject) {
    let parent = RecordWriter::completed(subject, "t1").await;
    handed_over(subject, &parent, "c1").await;
    subject.clock().advance_ms(GIVE_UP_MS);
    let retention =
        Retention { now: now(subject), events_ms: 0, tasks_ms: 0, replies_ms: 0, tasks_max: 100, tasks_batch: 0 };
    while subject.store().prune(retention, 100).await.expect("answers") > 0 {}
    assert_eq!(calls(subject).call("c1").await.expect("answers"), None);
    assert_eq!((claim(subject, None).await, next_in_ms(subject).await), (Vec::new(), None));
}
