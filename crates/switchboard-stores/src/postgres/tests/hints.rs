//! Hints between processes: they arrive, not at their sender, and again after the connection was lost.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use switchboard_core::model::TaskId;
use switchboard_engine::ports::{Hint, HintSink, Hints};
use tokio::time::Instant;

use super::super::PostgresStore;
use super::OnSchema;

struct Sink(Sender<(String, u64)>);

impl HintSink for Sink {
    fn hint(&self, hint: Hint<'_>) {
        let _ = self.0.send((hint.task.as_str().to_owned(), hint.seq));
    }
}

fn listening(store: &PostgresStore) -> Receiver<(String, u64)> {
    let (sender, hints) = channel();
    store.hints().listen(Arc::new(Sink(sender)));
    hints
}

fn notify(store: &PostgresStore, task: &str, seq: u64) {
    store.hints().notify(Hint { task: &TaskId::from(task), seq });
}

/// Longer than a hint takes on a busy machine.
const PATIENCE: Duration = Duration::from_secs(30);

#[test]
#[ignore = "starts PostgreSQL"]
fn a_hint_reaches_the_others_and_not_its_sender() {
    let subject = OnSchema::shared();
    let (first, second) = (subject.first.as_ref().unwrap(), subject.second.as_ref().unwrap());
    let (of_first, of_second) = (listening(first), listening(second));
    notify(first, "from the first", 1);
    assert_eq!(of_second.recv_timeout(PATIENCE).unwrap(), ("from the first".to_owned(), 1));
    notify(second, "from the second", 2);
    // The first hint has come round by now, and would be here before this one.
    assert_eq!(of_first.recv_timeout(PATIENCE).unwrap(), ("from the second".to_owned(), 2));
}

#[test]
#[ignore = "starts PostgreSQL"]
fn many_hints_are_gathered_and_the_newest_of_each_task_arrives() {
    let subject = OnSchema::shared();
    let (first, second) = (subject.first.as_ref().unwrap(), subject.second.as_ref().unwrap());
    let hints = listening(second);
    for seq in 1..=5 {
        for task in 0..500 {
            notify(first, &format!("task {task} with a name that fills payloads"), seq);
        }
    }
    let mut newest = std::collections::BTreeMap::new();
    while newest.len() < 500 || newest.values().any(|seq| *seq < 5) {
        let (task, seq) = hints.recv_timeout(PATIENCE).expect("every task is hinted at");
        newest.insert(task, seq);
    }
}

#[test]
#[ignore = "starts PostgreSQL"]
fn hints_come_again_after_the_connection_was_lost() {
    let subject = OnSchema::shared();
    let (first, second) = (subject.first.as_ref().unwrap(), subject.second.as_ref().unwrap());
    let hints = listening(second);
    let listeners = format!(
        "select count(pg_terminate_backend(pid)) from pg_stat_activity where pid <> pg_backend_pid() and query like '%LISTEN \"{}_h%'",
        subject.options.schema
    );
    subject.sql(&listeners);
    // Hints are lost until the connection is made again, so they are sent until one arrives.
    let deadline = Instant::now() + PATIENCE;
    for seq in 1.. {
        notify(first, "t1", seq);
        if hints.recv_timeout(Duration::from_millis(50)).is_ok() {
            return;
        }
        assert!(Instant::now() < deadline, "no hint arrives any more");
    }
}

#[test]
#[ignore = "starts PostgreSQL"]
fn a_payload_of_others_is_not_taken_for_a_hint() {
    let subject = OnSchema::shared();
    let (first, second) = (subject.first.as_ref().unwrap(), subject.second.as_ref().unwrap());
    let hints = listening(second);
    for payload in ["", "name", "name\nword", "name\nx y", "name\n99999999999999999999 t", "\n\n\n"] {
        subject.sql(&format!("select pg_notify('{}_h0', '{payload}')", subject.options.schema));
    }
    notify(first, "t1", 1);
    assert_eq!(hints.recv_timeout(PATIENCE).unwrap(), ("t1".to_owned(), 1));
}
