//! Runs that wait for an agent which is not asked for: they are read once, and do not hide other runs.

use switchboard_core::model::{AgentName, TaskState};
use switchboard_engine::contract::Subject;
use switchboard_engine::contract::given::{LEASE_MS, RecordWriter, TAKEN, claim, due, now, scope, status};
use switchboard_engine::ports::store::{Release, TaskKey};

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
