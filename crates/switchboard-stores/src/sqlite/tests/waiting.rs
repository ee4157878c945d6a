//! Runs that wait for an agent which is not asked for: they are read once, and do not hide other runs.

use switchboard_core::model::{AgentName, TaskState};
use switchboard_engine::contract::Subject;
use switchboard_engine::contract::given::{LEASE_MS, RecordWriter, TAKEN, claim, due, now, scope, status};
use switchboard_engine::ports::store::{Release, TaskKey};

use super::super::ledger::deliveries::{NEXT_OWNER, due_sql};
use super::{OnFile, make};

/// Runs of another agent, of which every second one was released.
async fn others(subject: &OnFile, count: usize) -> Vec<TaskKey> {
    let mut keys = Vec::new();
    for number in 0..count {
        let mut writer = RecordWriter::new(scope("", "", "other"), &format!("o{number}"), "ctx");
        let opening = writer.opening(subject, "hello");
        let mut commit = writer.commit(subject, vec![opening]);
        commit.lease = TAKEN;
        keys.push(writer.write(subject, commit).await);
    }
    release(subject, keys.iter().copied().step_by(2), 1).await;
    keys
}

async fn release(subject: &OnFile, keys: impl Iterator<Item = TaskKey>, fence: u64) {
    let released = keys.map(|key| Release { key, fence, pause_ms: 0 }).collect();
    subject.store().release_leases(released).await.unwrap();
}

async fn due_keys(subject: &OnFile) -> Vec<TaskKey> {
    due(subject.store(), 10).await.into_iter().map(|run| run.stored.key).collect()
}

#[tokio::test]
async fn a_run_that_falls_due_behind_those_of_others_is_found() {
    let mut subject = make();
    let others = others(&subject, 40).await;
    let mut own = RecordWriter::opened(&subject, "t1").await;
    subject.restart();
    assert_eq!(due_keys(&subject).await, [own.key()]);
    own.head = claim(&subject, 10).await.remove(0).stored.head;
    for round in 0..5 {
        // From here on the store knows that no other run belongs to these agents.
        assert_eq!(due_keys(&subject).await, []);
        assert_eq!(due(subject.store(), 0).await.len(), 0);
        match round {
            0 => release(&subject, [own.key()].into_iter(), own.head.fence).await,
            1 => subject.clock().advance_ms(LEASE_MS.into()),
            2 => {
                release(&subject, [own.key()].into_iter(), own.head.fence).await;
                // Waiting times are shifted with a clock that is set back.
                subject.clock().set(now(&subject).plus_ms(-3_600_000));
            }
            3 => {
                // A clock that is only corrected shifts nothing.
                subject.clock().set(now(&subject).plus_ms(-500));
                release(&subject, [own.key()].into_iter(), own.head.fence).await;
            }
            _ => {
                own.append(&subject, vec![status(&subject, TaskState::Working, None)]).await;
                subject.restart();
            }
        }
        assert_eq!(due_keys(&subject).await, [own.key()], "round {round}");
        own.head = claim(&subject, 10).await.remove(0).stored.head;
    }
    let echo = [AgentName::from("echo")];
    assert_eq!(subject.store().due_runs_of_others(&echo, None, 100).await.unwrap().len(), others.len());
    // A query for their agent finds all of them.
    let other = [AgentName::from("other")];
    assert_eq!(subject.store().due_runs(&other, 100).await.unwrap().len(), others.len());
    assert_eq!(due_keys(&subject).await, []);
}

/// What a claim of deliveries costs does not depend on how many wait: each statement is a search in an index.
#[test]
fn a_claim_of_deliveries_searches_in_an_index() {
    let subject = make();
    let connection = subject.connect();
    for (sql, index) in [
        (due_sql(false), "push_by_due (due_at<?)"),
        (due_sql(true), "push_by_owner (owner_no=? AND due_at<?)"),
        (NEXT_OWNER.to_owned(), "push_by_owner (owner_no>?"),
    ] {
        let mut explain = connection.prepare(&format!("EXPLAIN QUERY PLAN {sql}")).unwrap();
        let values = vec![1_i64; explain.parameter_count()];
        let rows = explain.query_map(rusqlite::params_from_iter(values), |row| row.get::<_, String>(3)).unwrap();
        let plan: Vec<String> = rows.map(Result::unwrap).collect();
        assert!(plan.iter().any(|step| step.contains(index)), "{plan:?}");
        assert!(!plan.iter().any(|step| step.contains("SCAN") || step.contains("TEMP B-TREE")), "{plan:?}");
    }
}
