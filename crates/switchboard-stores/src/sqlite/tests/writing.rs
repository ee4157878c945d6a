//! The writer: waiting requests share a transaction, a failing request fails alone, and only durable commits are
//! answered.

use std::future::Future;
use std::pin::pin;
use std::sync::Mutex;
use std::sync::mpsc::channel;
use std::task::{Context, Poll, Waker};

use switchboard_core::call::BoxFuture;
use switchboard_core::lifecycle::Event;
use switchboard_core::model::{Dialect, Json, Part, TaskState};
use switchboard_engine::contract::Subject;
use switchboard_engine::contract::given::{
    RecordWriter, anyone, chunk, due, now, status, try_claim, webhook, write_parts,
};
use switchboard_engine::ports::Upkeep;
use switchboard_engine::ports::store::{CommitError, LeaseChange, PushChange, Release, StoreError, TaskKey};

use super::super::SqliteStore;
use super::super::error::Failure;
use super::super::ledger::Ledger;
use super::{OnFile, make};

fn store(subject: &OnFile) -> &SqliteStore {
    subject.store.as_ref().unwrap()
}

/// Keeps the writer busy until all given requests are in its queue.
async fn together<T>(subject: &OnFile, mut asked: Vec<BoxFuture<'_, T>>) -> Vec<T> {
    let (go, wait) = channel::<()>();
    let wait = Mutex::new(wait);
    let mut holding = pin!(store(subject).writer_for_tests().run(move |_: &mut Ledger<'_>| {
        let _ = wait.lock().unwrap().recv();
        Ok::<_, Failure>(())
    }));
    let mut context = Context::from_waker(Waker::noop());
    assert!(holding.as_mut().poll(&mut context).is_pending());
    let mut answers: Vec<Option<T>> = Vec::new();
    for future in &mut asked {
        answers.push(match future.as_mut().poll(&mut context) {
            Poll::Ready(answer) => Some(answer),
            Poll::Pending => None,
        });
    }
    // If this request shares a batch that is run again, it need not wait a second time.
    drop(go);
    holding.await.unwrap();
    let mut all = Vec::new();
    for (answer, future) in answers.into_iter().zip(asked) {
        all.push(match answer {
            Some(answer) => answer,
            None => future.await,
        });
    }
    all
}

fn opening(subject: &OnFile, id: &str) -> switchboard_engine::ports::store::Commit {
    let writer = RecordWriter::new(anyone(), id, "c1");
    let opening = writer.opening(subject, "hello");
    writer.commit(subject, vec![opening])
}

#[tokio::test]
async fn commits_that_wait_share_a_transaction() {
    let subject = make();
    let before = store(&subject).stats();
    let commits = (0..100).map(|n| subject.store().commit(opening(&subject, &format!("t{n}")))).collect();
    let answers = together(&subject, commits).await;
    assert!(answers.iter().all(Result::is_ok), "{answers:?}");
    let after = store(&subject).stats();
    assert_eq!((after.commits - before.commits, after.queue_depth), (100, 0));
    // One transaction for the work that kept the writer busy, and as few as possible for the rest.
    assert!(after.batches - before.batches <= 3, "{} transactions", after.batches - before.batches);
    assert_eq!(after.commit_seconds.iter().sum::<u64>(), after.commits);
}

/// Runs are claimed one by one, and a server that starts may find many.
#[tokio::test]
async fn claims_that_are_made_side_by_side_share_a_transaction() {
    let mut subject = make();
    for number in 0..100 {
        RecordWriter::opened(&subject, &format!("t{number}")).await;
    }
    subject.restart();
    let listed = due(subject.store(), 200).await;
    let (before, at) = (store(&subject).stats(), now(&subject));
    let claims = listed.iter().map(|run| try_claim(subject.store(), at, run));
    let answers = together(&subject, claims.map(|claim| Box::pin(claim) as BoxFuture<'_, _>).collect()).await;
    assert!(answers.iter().all(Result::is_ok), "{answers:?}");
    let after = store(&subject).stats();
    assert_eq!((answers.len(), after.rows_written - before.rows_written), (100, 200), "a task and a commit for each");
    assert!(after.batches - before.batches <= 3, "{} transactions", after.batches - before.batches);
}

#[tokio::test]
async fn a_refused_commit_leaves_its_neighbours_alone() {
    let subject = make();
    let writer = RecordWriter::opened(&subject, "old").await;
    let step = || writer.commit(&subject, vec![status(&subject, TaskState::Working, None)]);
    let commits = vec![
        subject.store().commit(opening(&subject, "t1")),
        subject.store().commit(step()),
        subject.store().commit(step()),
        subject.store().commit(opening(&subject, "old")),
        subject.store().commit(opening(&subject, "t2")),
    ];
    let answers = together(&subject, commits).await;
    let ok: Vec<_> = answers.iter().map(Result::is_ok).collect();
    assert_eq!(ok, [true, true, false, false, true]);
    assert!(matches!(answers[2], Err(CommitError::Conflict)), "{answers:?}");
    assert!(matches!(answers[3], Err(CommitError::Conflict)), "{answers:?}");
    assert_eq!(subject.store().stats().conflicts, 2);
}

#[tokio::test]
async fn work_that_fails_or_panics_fails_alone() {
    let mut subject = make();
    let commits = |ids: [&str; 2]| ids.map(|id| opening(&subject, id));
    let [first, second] = commits(["t1", "t2"]);
    let store_writer = store(&subject).writer_for_tests();
    let broken = store_writer.run(|ledger: &mut Ledger<'_>| -> Result<(), Failure> {
        ledger.connection.execute("INSERT INTO meta (name, value) VALUES ('epoch', 1)", [])?;
        Ok(())
    });
    let panicking = store_writer.run(|_: &mut Ledger<'_>| -> Result<(), Failure> { panic!("on purpose") });
    let asked: Vec<BoxFuture<'_, Result<(), String>>> = vec![
        Box::pin(async { subject.store().commit(first).await.map(|_| ()).map_err(|error| format!("{error:?}")) }),
        Box::pin(async { broken.await.map_err(|error| format!("{error:?}")) }),
        Box::pin(async { panicking.await.map_err(|error| format!("{error:?}")) }),
        Box::pin(async { subject.store().commit(second).await.map(|_| ()).map_err(|error| format!("{error:?}")) }),
    ];
    let answers = together(&subject, asked).await;
    let ok: Vec<_> = answers.iter().map(Result::is_ok).collect();
    assert_eq!(ok, [true, false, false, true], "{answers:?}");
    assert_eq!(subject.store().stats().failures, 2);
    for _ in 0..2 {
        for id in ["t1", "t2"] {
            assert!(subject.store().head(&anyone(), &id.into()).await.unwrap().is_some());
        }
        subject.restart();
    }
}

#[tokio::test]
async fn a_full_disk_fails_closed_and_is_got_over() {
    let subject = make();
    let mut writer = RecordWriter::opened(&subject, "t1").await;
    let store_writer = store(&subject).writer_for_tests();
    let limit = |pages: &'static str| {
        store_writer.run(move |ledger: &mut Ledger<'_>| {
            let sql = format!("PRAGMA max_page_count = {pages}");
            Ok(ledger.connection.query_row(&sql, [], |row| row.get::<_, i64>(0))?)
        })
    };
    limit("1").await.unwrap();
    let large = write_parts("a", vec![Part::raw(vec![1; 1_000_000])], false);
    let commit = writer.commit(&subject, vec![large, status(&subject, TaskState::Completed, None)]);
    let refused = writer.try_write(&subject, commit).await;
    assert!(matches!(refused, Err(CommitError::Store(StoreError::Unavailable(_)))), "{refused:?}");
    assert_eq!(subject.store().stats().failures, 1);
    // Nothing of it is visible, and the run that it would have ended still has its lease.
    writer.check(&subject).await;
    assert_eq!(subject.store().renew_leases(vec![(writer.key(), 1)], 1000).await.unwrap(), []);

    limit("1000000").await.unwrap();
    subject.store().probe().await.unwrap();
    writer.append(&subject, vec![chunk("a", "x", false)]).await;
    writer.check(&subject).await;
}

/// Inserts webhooks under the next numbers, so that a commit that registers one fails after it has written the rest.
fn block_webhooks(subject: &OnFile) {
    for number in 1..=2 {
        let blocker = format!(
            "INSERT INTO push (push_no, task_no, config_id, url, dialect, delivered_seq, failures, parked, created_at)
             VALUES ({number}, 999, '{number}', 'x', '1.0', 0, 0, 0, 0)"
        );
        subject.connect().execute(&blocker, []).unwrap();
    }
}

/// Leases are kept in memory: a rollback of the file must also roll them back.
#[tokio::test]
async fn a_commit_that_is_rolled_back_leaves_the_lease_as_it_was() {
    let subject = make();
    let mut writer = RecordWriter::opened(&subject, "t1").await;
    block_webhooks(&subject);
    let mut commit = writer.commit(&subject, vec![status(&subject, TaskState::Completed, None)]);
    let config = webhook(&writer, "p1");
    commit.push = vec![PushChange::Put { config, dialect: Dialect::V1_0, after_seq: 0 }];
    let refused = writer.try_write(&subject, commit).await;
    assert!(matches!(refused, Err(CommitError::Store(_))), "{refused:?}");
    assert_eq!(subject.store().renew_leases(vec![(writer.key(), 1)], 1000).await.unwrap(), [], "the run goes on");
    writer.check(&subject).await;

    // The same in the other direction: a lease that was taken by a commit that was rolled back is not held.
    let mut new = RecordWriter::new(anyone(), "t2", "ctx");
    let opening = new.opening(&subject, "hello");
    let mut commit = new.commit(&subject, vec![opening]);
    commit.lease = LeaseChange::Take { lease_ms: 1000, waits: false };
    let config = webhook(&new, "p1");
    commit.push = vec![PushChange::Put { config, dialect: Dialect::V1_0, after_seq: 0 }];
    assert!(new.try_write(&subject, commit).await.is_err());
    subject.clock().advance_ms(1_000_000);
    assert_eq!(subject.store().renew_leases(vec![(TaskKey(2), 1)], 1000).await.unwrap(), [TaskKey(2)]);
    subject.connect().execute("DELETE FROM push", []).unwrap();
}

/// The writer remembers the rows of running tasks as it wrote them, and forgets those that were rolled back.
#[tokio::test]
async fn a_step_that_is_rolled_back_is_not_remembered() {
    let subject = make();
    let mut writer = RecordWriter::opened(&subject, "t1").await;
    let blocker =
        "INSERT INTO push (push_no, task_no, config_id, url, dialect, delivered_seq, failures, parked, created_at)
                   VALUES (1, 999, '1', 'x', '1.0', 0, 0, 0, 0)";
    subject.connect().execute(blocker, []).unwrap();
    let mut commit = writer.commit(&subject, vec![chunk("a", "x", false)]);
    let config = webhook(&writer, "p1");
    commit.push = vec![PushChange::Put { config, dialect: Dialect::V1_0, after_seq: 0 }];
    let refused = writer.try_write(&subject, commit).await;
    assert!(matches!(refused, Err(CommitError::Store(_))), "{refused:?}");
    subject.connect().execute("DELETE FROM push", []).unwrap();
    writer.append(&subject, vec![chunk("a", "y", false)]).await;
    writer.check(&subject).await;
}

/// A released run has no holder, and a later commit does not restore the old one.
#[tokio::test]
async fn a_run_that_was_given_back_is_not_remembered_as_held() {
    let subject = make();
    let mut writer = RecordWriter::opened(&subject, "t1").await;
    let release = Release { key: writer.key(), fence: 1, pause_ms: 60_000 };
    subject.store().release_leases(vec![release]).await.unwrap();
    writer.append(&subject, vec![chunk("a", "x", false)]).await;
    let row = "SELECT holder, run_at IS NOT NULL, lease_until FROM task";
    let row = subject.connect().query_row(row, [], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)));
    assert_eq!(row.unwrap(), (0_i64, true, None::<i64>));
    writer.check(&subject).await;
}

#[tokio::test]
async fn a_caller_that_goes_away_takes_nothing_back() {
    let subject = make();
    let mut commit = subject.store().commit(opening(&subject, "t1"));
    let mut context = Context::from_waker(Waker::noop());
    // The request is sent, and most likely not answered yet.
    let _ = commit.as_mut().poll(&mut context);
    drop(commit);
    subject.store().probe().await.unwrap();
    assert!(subject.store().head(&anyone(), &"t1".into()).await.unwrap().is_some());
}

#[tokio::test]
async fn readers_pass_over_all_checkpoints_but_the_last() {
    let subject = make();
    let mut writer = RecordWriter::opened(&subject, "t1").await;
    for n in 0..100 {
        let checkpoint = Event::Checkpoint { value: Json::from_trusted(n.to_string()) };
        // Some come with a chunk of an artifact, which readers find by the other chain.
        let events = if n % 3 == 0 { vec![chunk("a", "x", n > 0), checkpoint] } else { vec![checkpoint] };
        writer.append(&subject, events).await;
    }
    writer.check(&subject).await;
    let steps = "WITH RECURSIVE story (version) AS (
                     SELECT story_version FROM task
                     UNION ALL
                     SELECT log.prev_story FROM story, task
                       JOIN log ON log.log_no = (task.task_no << 24 | story.version) WHERE log.prev_story > 0)
                 SELECT count(*) FROM story";
    let steps: i64 = subject.connect().query_row(steps, [], |row| row.get(0)).unwrap();
    assert_eq!(steps, 2, "the opening and the last checkpoint");
}
