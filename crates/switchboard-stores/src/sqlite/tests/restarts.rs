//! Closing a file and opening it again, and reading while others write.

use switchboard_core::model::TaskState;
use switchboard_engine::contract::Subject;
use switchboard_engine::contract::given::{self, RecordWriter, chunk, claim, status};
use switchboard_engine::ports::store::Retention;
use switchboard_engine::ports::system::ClockRecord;

use super::super::SqliteOptions;
use super::{OnFile, make, quick, sample};

#[tokio::test]
async fn a_reopened_file_holds_everything_and_runs_are_claimed_at_once() {
    let mut subject = make();
    let mut sample = sample::write(&subject).await;
    subject.restart();
    sample::check_calls(&subject).await;
    sample::check(&subject, &mut sample).await;
}

#[tokio::test]
async fn a_closed_file_is_one_file() {
    let mut subject = make();
    let writer = RecordWriter::completed(&subject, "t1").await;
    subject.close();
    let mut names: Vec<_> = std::fs::read_dir(subject.path().parent().unwrap())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    assert_eq!(names, ["tasks.db", "tasks.db.lock"]);
    subject.restart();
    writer.check(&subject).await;
}

#[tokio::test]
async fn keys_are_not_given_twice() {
    let mut subject = make();
    let first = RecordWriter::completed(&subject, "t1").await;
    let retention =
        Retention { now: given::now(&subject), events_ms: 0, tasks_ms: 0, replies_ms: 0, tasks_max: 0, tasks_batch: 0 };
    assert_eq!(subject.store().prune(retention, 10).await.unwrap(), 1);
    let second = RecordWriter::completed(&subject, "t2").await;
    assert_ne!(first.key(), second.key());
    let later = Retention { now: given::now(&subject), ..retention };
    assert_eq!(subject.store().prune(later, 10).await.unwrap(), 1);
    subject.restart();
    let third = RecordWriter::completed(&subject, "t3").await;
    assert!(![first.key(), second.key()].contains(&third.key()), "keys of removed tasks would refer to this task");
}

/// Readers see every commit that was answered before they asked, with the cache too small to hold the tasks at work.
#[test]
fn a_reader_sees_what_was_answered_before() {
    let subject = OnFile::new(SqliteOptions { cache_records_max: 3, ..quick() });
    std::thread::scope(|threads| {
        for number in 0..6 {
            let subject = &subject;
            threads.spawn(move || {
                let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
                runtime.block_on(async {
                    let mut writer = RecordWriter::opened(subject, &format!("t{number}")).await;
                    for step in 0..60 {
                        let event = match step % 3 {
                            0 => status(subject, TaskState::Working, Some("busy")),
                            _ => chunk("a", "x", step > 1),
                        };
                        writer.append(subject, vec![event]).await;
                        writer.check_whole(subject).await;
                        // A task of another writer may be in any state, but never older than one that was seen before.
                        let other = format!("t{}", (number + 1) % 6).as_str().into();
                        let first = subject.store().task(&writer.scope, &other, u64::MAX).await.unwrap();
                        let second = subject.store().head(&writer.scope, &other).await.unwrap();
                        let version = |found: Option<u64>| found.unwrap_or(0);
                        let first = version(first.map(|stored| stored.head.version));
                        assert!(version(second.map(|stored| stored.head.version)) >= first);
                    }
                    writer.check(subject).await;
                });
            });
        }
    });
}

/// The wall clock of a machine may be set at any time, also while no process runs.
#[tokio::test]
async fn a_clock_that_jumps_loses_nothing_and_gives_no_run_away() {
    const JUMP_MS: i64 = 600_000;
    let mut subject = make();
    let mut writer = RecordWriter::opened(&subject, "t1").await;
    let began = given::now(&subject);
    for jump in [JUMP_MS, -JUMP_MS, -JUMP_MS, JUMP_MS] {
        subject.clock.set(given::now(&subject).plus_ms(jump));
        // The holder of a run renews before anything is claimed, as the engine does, so no other claim gets it.
        let lost =
            subject.store().renew_leases(vec![(writer.key(), writer.head.fence)], given::LEASE_MS).await.unwrap();
        assert_eq!(lost, [], "jumped by {jump} ms");
        assert_eq!(claim(&subject, 10).await.len(), 0);
        writer.append(&subject, vec![status(&subject, TaskState::Working, Some("busy"))]).await;
        writer.check(&subject).await;
    }
    // The clock was set back while the process was dead: the run is still claimed at once, and only once.
    subject.close();
    subject.clock.set(began.plus_ms(-JUMP_MS));
    subject.restart();
    writer.check(&subject).await;
    let claimed = claim(&subject, 10).await;
    assert_eq!(claimed.iter().map(|run| run.stored.head.fence).collect::<Vec<_>>(), [writer.head.fence + 1]);
    assert_eq!(claim(&subject, 10).await.len(), 0);
}

/// The next process can tell how long none was running, or that the clock was set meanwhile.
#[tokio::test]
async fn the_time_of_the_last_commit_is_remembered_and_so_is_a_hold() {
    let mut subject = make();
    assert_eq!(subject.store().clock_record(), ClockRecord::default(), "no process has used the file before");
    let began = given::now(&subject);
    subject.restart();
    assert_eq!(subject.store().clock_record(), ClockRecord { last_seen: Some(began), held_until: None });
    // The time is stored once a minute, with the next commit.
    subject.clock().advance_ms(59_999);
    RecordWriter::completed(&subject, "t1").await;
    subject.clock().advance_ms(1);
    RecordWriter::completed(&subject, "t2").await;
    let seen = given::now(&subject);
    subject.clock().advance_ms(30_000);
    RecordWriter::completed(&subject, "t3").await;
    subject.clock().advance_ms(1_000_000);
    subject.store().hold_until(seen.plus_ms(7)).await.unwrap();
    let last_seen = Some(given::now(&subject));
    subject.restart();
    assert_eq!(subject.store().clock_record(), ClockRecord { last_seen, held_until: Some(seen.plus_ms(7)) });
}

/// A file of a build that stored no time: its tasks show how old it is.
#[tokio::test]
async fn a_file_without_a_time_is_as_old_as_its_last_task() {
    let mut subject = make();
    RecordWriter::completed(&subject, "t1").await;
    let updated = given::now(&subject);
    subject.clock().advance_ms(5_000);
    subject.close();
    subject.connect().execute("DELETE FROM meta WHERE name = 'clock_seen'", []).unwrap();
    subject.restart();
    assert_eq!(subject.store().clock_record().last_seen, Some(updated));
}
