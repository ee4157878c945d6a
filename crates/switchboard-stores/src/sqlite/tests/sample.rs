//! A sample with one of everything that can be stored, written the same way each time. The fixtures contain it, and
//! tests that reopen a file expect it.

use std::sync::Arc;

use switchboard_core::lifecycle::Event;
use switchboard_core::model::{Dialect, Part, Role, TaskState};
use switchboard_engine::contract::Subject;
use switchboard_engine::contract::given::{
    RecordWriter, TAKEN, anyone, call, chunk, claim, inbound, message, now, scope, status, webhook, write_parts,
};
use switchboard_engine::ports::audit::{AuditEntry, AuditEvent, Decision};
use switchboard_engine::ports::calls::{CallRow, CallStatus, CallStep};
use switchboard_engine::ports::store::{Accept, DeliveryOutcome, PushChange, Release};

pub(crate) struct Sample {
    pub(crate) writers: Vec<RecordWriter>,
    /// The index of the task whose run is at work at the end.
    pub(crate) running: usize,
    /// The task with two webhooks: one has delivered up to event 2, one is a dead letter.
    pub(crate) pushing: usize,
    pub(crate) accept: Accept,
}

pub(crate) async fn write(subject: &dyn Subject) -> Sample {
    let mut done = RecordWriter::new(scope("acme", "ann", "echo"), "task-done", "talk");
    let opening = done.opening(subject, "hello \u{0} 🦀");
    let mut commit = done.commit(subject, vec![opening]);
    let expires = now(subject).plus_ms(86_400_000);
    let accept = Accept { key: [7; 32], digest: [8; 32], turn: 1, after_seq: 0, expires };
    commit.accept = Some(accept.clone());
    done.write(subject, commit).await;
    subject.clock().advance_ms(1000);
    done.append(subject, vec![status(subject, TaskState::Working, Some("half way"))]).await;
    done.append(subject, vec![write_parts("file", vec![Part::raw(vec![42; 33_000])], false)]).await;
    done.append(subject, vec![chunk("text", "a", false), chunk("text", "b", true)]).await;
    done.append(subject, vec![status(subject, TaskState::Completed, Some("done"))]).await;

    let mut running = RecordWriter::opened(subject, "task-running").await;
    running.append(subject, vec![chunk("text", "so far", false)]).await;

    let mut paused = RecordWriter::opened(subject, "task-paused").await;
    subject.clock().advance_ms(1000);
    paused.append(subject, vec![status(subject, TaskState::InputRequired, Some("which one?"))]).await;

    let mut pushing = RecordWriter::opened(subject, "task-pushing").await;
    let mut commit = pushing.commit(subject, vec![status(subject, TaskState::Working, None)]);
    for id in ["good", "gone"] {
        let config = webhook(&pushing, id);
        commit.push.push(PushChange::Put { config, dialect: Dialect::V1_0, after_seq: 0 });
        Arc::make_mut(&mut commit.head).push_configs += 1;
    }
    pushing.write(subject, commit).await;
    for delivery in subject.store().claim_deliveries(2, 1000).await.unwrap() {
        let outcome = match delivery.config.id.as_str() {
            "good" => DeliveryOutcome::Delivered { seq: 2 },
            _ => DeliveryOutcome::Parked { delivered_seq: 1, error: "410".to_owned() },
        };
        subject.store().settle_deliveries(vec![(delivery.claim(), outcome)]).await.unwrap();
    }
    pushing.append(subject, vec![status(subject, TaskState::Canceled, None)]).await;

    write_calls(subject, &running, &paused).await;

    let mut unborn = RecordWriter::new(anyone(), "record-unborn", "talk");
    let received = Event::Received { inbound: inbound(1, "hm"), context_id: "talk".into() };
    let mut commit = unborn.commit(subject, vec![received.clone()]);
    commit.lease = TAKEN;
    unborn.write(subject, commit).await;
    let released = Release { key: unborn.key(), fence: unborn.head.fence, pause_ms: 60_000 };
    subject.store().release_leases(vec![released]).await.unwrap();

    let mut replied = RecordWriter::new(anyone(), "record-replied", "talk");
    replied.append(subject, vec![received, Event::Replied { message: message(Role::Agent, "r", "hm?") }]).await;
    let audit = subject.store().audit().expect("there is an audit log");
    for (principal, agent) in [("ann", "echo"), ("bob", "shout")] {
        let refusal = AuditEntry::new(now(subject), AuditEvent::Refusal, Decision::Refused, "SendMessage");
        audit.record(AuditEntry { principal: principal.to_owned(), agent: Some(agent.into()), ..refusal });
    }
    audit.flush().await.unwrap();
    Sample { writers: vec![done, running, paused, pushing, unborn, replied], running: 1, pushing: 3, accept }
}

/// A call whose run waits for it, and one that nobody waits for.
async fn write_calls(subject: &dyn Subject, running: &RecordWriter, paused: &RecordWriter) {
    let calls = subject.store().calls().expect("calls are kept");
    for (parent, id) in [(running, "call-inline"), (paused, "call-continued")] {
        let opened = CallRow { due_at: Some(now(subject).plus_ms(60_000)), ..call(subject, parent, id) };
        calls.open_call(opened).await.unwrap();
        let remote = CallStep::Remote { task: "remote".into(), context: Some("talk".into()) };
        calls.change_call(id, remote).await.unwrap().expect("it is open");
    }
    let deliver_to = Some("https://example.com/told".to_owned());
    let handed_over = CallStep::HandOver { wait_ms: 20_000, give_up_ms: 600_000, deliver_to };
    calls.change_call("call-continued", handed_over).await.unwrap().expect("it is open");
}

/// Checks that a store holds the calls of the sample.
pub(crate) async fn check_calls(subject: &dyn Subject) {
    let calls = subject.store().calls().expect("calls are kept");
    let cases = [
        ("call-inline", "task-running", CallStatus::Inline, None),
        ("call-continued", "task-paused", CallStatus::Pending, Some("https://example.com/told")),
    ];
    for (id, parent, status, deliver_to) in cases {
        let call = calls.call(id).await.unwrap().expect("the call is kept");
        assert_eq!((call.parent_id.as_str(), call.status, call.deliver_to.as_deref()), (parent, status, deliver_to));
        assert_eq!((call.agent.as_str(), call.remote_task), ("mail", Some("remote".into())));
        assert_eq!(calls.calls_of(call.parent).await.unwrap().len(), 1);
    }
}

/// Checks that a store holds the sample, except the calls, which old files do not have.
pub(crate) async fn check(subject: &dyn Subject, sample: &mut Sample) {
    for writer in &sample.writers {
        writer.check(subject).await;
    }
    let store = subject.store();
    let accepted = store.find_accepted(sample.accept.key).await.unwrap().expect("the key is kept");
    assert_eq!((accepted.task_id.as_str(), accepted.digest), ("task-done", sample.accept.digest));

    let pushing = &sample.writers[sample.pushing];
    let configs = store.push_configs(pushing.key()).await.unwrap();
    assert_eq!(configs, [webhook(pushing, "good"), webhook(pushing, "gone")]);
    let due = store.claim_deliveries(10, 1000).await.unwrap();
    let found: Vec<_> = due.iter().map(|d| (d.config.id.as_str(), d.delivered_seq, d.dialect)).collect();
    assert_eq!(found, [("good", 2, Dialect::V1_0)]);

    // The run at work can be claimed at once; the released run waits until it is due.
    let running = &mut sample.writers[sample.running];
    let mut claimed = claim(subject, 10).await;
    assert_eq!(claimed.len(), 1);
    let head = claimed.remove(0).stored.head;
    assert_eq!((&head.id, head.fence, head.attempt), (&running.head.id, 2, 2));
    let event = Event::Claimed { fence: 2, attempt: 2, at: now(subject) };
    running.remember(head, [event].into(), running.head.seq + 1);
    running.check(subject).await;
    subject.clock().advance_ms(60_000);
    assert_eq!(claim(subject, 10).await.len(), 2);
}
