//! Chunks that wait to be filed: they are read like all others, survive their process, and affect only one task when
//! damaged.

use std::time::Duration;

use switchboard_core::lifecycle::Event;
use switchboard_core::model::{Json, TaskState};
use switchboard_engine::contract::Subject;
use switchboard_engine::contract::given::{RecordWriter, anyone, chunk, claim, status};
use switchboard_engine::ports::store::{CommitError, ListQuery, StoreError};

use super::super::{SqliteOptions, backup};
use super::{OnFile, faults_of, make, quick};

/// How many rows wait to be filed in a file.
fn waiting(subject: &OnFile) -> i64 {
    count(subject, "SELECT count(*) FROM recent")
}

fn count(subject: &OnFile, sql: &str) -> i64 {
    subject.connect().query_row(sql, [], |row| row.get(0)).unwrap()
}

/// Opens a copy of the file as if its process had died now, after `damage` was applied to it.
fn after_death(subject: &OnFile, damage: &str) -> OnFile {
    let mut next = make();
    next.close();
    std::fs::remove_file(next.path()).unwrap();
    backup(&subject.path(), &next.path()).unwrap();
    next.connect().execute_batch(damage).unwrap();
    next.is_damaged = !damage.is_empty();
    next.restart();
    next
}

#[tokio::test]
async fn chunks_wait_and_are_read_as_if_they_did_not() {
    let subject = make();
    let mut writers = Vec::new();
    for name in ["one", "two", "three"] {
        let mut writer = RecordWriter::opened(&subject, name).await;
        for number in 0..10 {
            writer.append(&subject, vec![chunk("a", "word ", number > 0)]).await;
        }
        writers.push(writer);
    }
    assert_eq!(waiting(&subject), 30);
    assert_eq!(count(&subject, "SELECT count(*) FROM log"), 3, "only what opened the tasks");
    assert_eq!(faults_of(&subject.path()), [] as [String; 0]);
    for writer in &writers {
        writer.check(&subject).await;
    }
    // The log of the task was read, so its chunks are filed.
    assert_eq!(count(&subject, "SELECT count(*) FROM log"), 33);
    assert_eq!(faults_of(&subject.path()), [] as [String; 0]);
    for writer in &mut writers {
        writer.append(&subject, vec![chunk("a", "more", true)]).await;
        writer.append(&subject, vec![chunk("a", "more", true), status(&subject, TaskState::Completed, None)]).await;
        writer.check(&subject).await;
    }
}

#[tokio::test]
async fn a_list_shows_what_waits() {
    let subject = OnFile::new(SqliteOptions { cache_records_max: 0, ..quick() });
    let mut writer = RecordWriter::opened(&subject, "one").await;
    writer.append(&subject, vec![chunk("a", "word", false)]).await;
    assert_eq!(waiting(&subject), 1);
    let query = ListQuery {
        context_id: None,
        state: None,
        status_since: None,
        page_size: 10,
        after: None,
        artifacts: true,
        bytes_max: 1 << 20,
        history_max: None,
    };
    let page = subject.store().list(&anyone(), &query).await.unwrap();
    assert_eq!(page.tasks[0].folded.task.artifacts.len(), 1);
}

#[tokio::test]
async fn chunks_of_a_dead_process_are_found() {
    let subject = make();
    let mut running = RecordWriter::opened(&subject, "running").await;
    for number in 0..5 {
        running.append(&subject, vec![chunk("a", "word ", number > 0)]).await;
    }
    let mut asking = RecordWriter::opened(&subject, "asking").await;
    asking.append(&subject, vec![chunk("a", "so far", false)]).await;
    asking.append(&subject, vec![status(&subject, TaskState::InputRequired, Some("go on?"))]).await;
    assert_eq!(waiting(&subject), 6, "a filed row is deleted later");

    let next = after_death(&subject, "");
    assert_eq!(waiting(&next), 6);
    running.check(&next).await;
    asking.check(&next).await;
    // The run is resumed in the state in which it was left.
    let due = claim(&next, 10).await;
    assert_eq!(due.len(), 1);
    assert_eq!((due[0].stored.head.seq, due[0].stored.head.artifacts[0].bytes), (6, 25));

    // A run that was not read before is resumed, too.
    let next = after_death(&subject, "");
    let due = claim(&next, 10).await;
    assert_eq!((due[0].stored.head.seq, due[0].stored.head.artifacts[0].bytes), (6, 25));
}

/// What a relay writes: each chunk with a checkpoint. They wait like other chunks, and the last checkpoint is found by readers, by the
/// next process, and by commits of other kinds; the ones before it are not folded any more.
#[tokio::test]
async fn chunks_with_checkpoints_wait_and_the_last_checkpoint_counts() {
    let checkpoint = |number: usize| Event::Checkpoint { value: Json::from_trusted(number.to_string()) };
    let subject = make();
    let mut writer = RecordWriter::opened(&subject, "one").await;
    writer.append(&subject, vec![checkpoint(100)]).await;
    for number in 0..100 {
        let mut events = vec![chunk("a", "word ", number > 0)];
        if number % 3 != 1 {
            events.push(checkpoint(number));
        }
        writer.append(&subject, events).await;
        if number == 20 {
            let next = after_death(&subject, "");
            assert_eq!(faults_of(&next.path()), [] as [String; 0]);
            writer.check(&next).await;
            assert_eq!(faults_of(&next.path()), [] as [String; 0]);
            let next = after_death(&subject, "");
            assert_eq!(claim(&next, 10).await.len(), 1);
            let found = next.store().task(&anyone(), &writer.head.id, u64::MAX).await.unwrap().unwrap();
            assert_eq!(found.folded.checkpoint.as_ref().map(Json::as_str), Some("20"));
        }
    }
    assert!(waiting(&subject) > 10, "{} rows wait", waiting(&subject));
    assert_eq!(faults_of(&subject.path()), [] as [String; 0]);
    writer.append(&subject, vec![status(&subject, TaskState::Working, Some("still"))]).await;
    writer.check(&subject).await;
    writer.append(&subject, vec![chunk("b", "x", false), checkpoint(200)]).await;
    writer.append(&subject, vec![chunk("b", "y", true), checkpoint(201)]).await;
    writer.check(&subject).await;
    assert_eq!(faults_of(&subject.path()), [] as [String; 0]);
    // Of all the commits with a checkpoint, the chain of those that readers fold has the first one and the last.
    let mut chain = Vec::new();
    let mut version = count(&subject, "SELECT story_version FROM task");
    while version > 0 {
        chain.push(version);
        version = count(&subject, &format!("SELECT prev_story FROM log WHERE (log_no & 16777215) = {version}"));
    }
    assert!(chain.len() <= 3, "{chain:?}");
}

#[tokio::test]
async fn a_closed_file_has_nothing_waiting() {
    let mut subject = make();
    let mut writer = RecordWriter::opened(&subject, "one").await;
    writer.append(&subject, vec![chunk("a", "word", false)]).await;
    subject.close();
    assert_eq!(waiting(&subject), 0);
    assert_eq!(faults_of(&subject.path()), [] as [String; 0]);
    subject.restart();
    writer.check(&subject).await;
}

#[tokio::test]
async fn an_idle_writer_files_what_waits() {
    let subject = OnFile::new(SqliteOptions { idle: Duration::from_millis(1), ..quick() });
    let mut writer = RecordWriter::opened(&subject, "one").await;
    writer.append(&subject, vec![chunk("a", "word", false)]).await;
    while waiting(&subject) > 0 {
        tokio::task::yield_now().await;
    }
    assert_eq!(count(&subject, "SELECT count(*) FROM log"), 2);
    writer.check(&subject).await;
}

#[tokio::test]
async fn a_long_stream_leaves_few_rows_waiting() {
    let subject = make();
    let mut writer = RecordWriter::opened(&subject, "one").await;
    for number in 0..3000 {
        writer.append(&subject, vec![chunk("a", "w", number > 0)]).await;
    }
    assert!(waiting(&subject) < 1200, "{} rows wait", waiting(&subject));
    writer.check(&subject).await;
}

#[tokio::test]
async fn a_task_that_waits_for_long_does_not_keep_the_chunks_of_others_in_the_table() {
    let subject = make();
    let mut slow = RecordWriter::opened(&subject, "slow").await;
    slow.append(&subject, vec![chunk("a", "first", false)]).await;
    let mut busy = RecordWriter::opened(&subject, "busy").await;
    busy.hints = false;
    for number in 0..36_000 {
        let commit = busy.commit(&subject, vec![chunk("a", "w", number > 0)]);
        busy.head = commit.head.clone();
        subject.store().commit(commit).await.unwrap();
    }
    assert!(waiting(&subject) < 4000, "{} rows are in the table", waiting(&subject));
    slow.check(&subject).await;
}

#[tokio::test]
async fn rows_that_a_dead_process_had_filed_are_deleted_in_their_order() {
    let subject = make();
    let mut running = RecordWriter::opened(&subject, "running").await;
    let mut ended = RecordWriter::opened(&subject, "ended").await;
    for number in 0..20 {
        running.append(&subject, vec![chunk("a", "x", number > 0)]).await;
        ended.append(&subject, vec![chunk("a", "x", number > 0)]).await;
    }
    ended.append(&subject, vec![status(&subject, TaskState::Completed, None)]).await;
    let mut next = after_death(&subject, "");
    // Batches that delete what was filed, while the first row waits.
    for _ in 0..3 {
        next.store().probe().await.unwrap();
    }
    assert_eq!(faults_of(&next.path()), [] as [String; 0]);
    running.check(&next).await;
    ended.check(&next).await;
    next.close();
    assert_eq!(waiting(&next), 0);
}

#[tokio::test]
async fn a_damaged_chunk_costs_its_own_task() {
    let subject = make();
    let mut writers = Vec::new();
    for name in ["good", "bad"] {
        let mut writer = RecordWriter::opened(&subject, name).await;
        writer.append(&subject, vec![chunk("a", "one", false)]).await;
        writer.append(&subject, vec![chunk("a", "two", true)]).await;
        writers.push(writer);
    }
    let [good, bad] = &*writers else { unreachable!("two tasks") };
    let damage = "UPDATE recent SET record = replace(record, 'two', 'owt') WHERE recent_no = 4";
    let mut next = after_death(&subject, damage);
    for runs in [1, 1] {
        assert_eq!(claim(&next, 10).await.len(), runs, "the undamaged run is claimed");
        let found = next.store().head(&anyone(), &bad.head.id).await;
        assert!(matches!(found, Err(StoreError::Damaged(_))), "{found:?}");
        assert_eq!(next.store().head(&anyone(), &good.head.id).await.unwrap().unwrap().head.seq, good.head.seq);
        assert_eq!(next.store().quarantine().rows, 1);
        next.close();
        assert_eq!(waiting(&next), 2, "damaged rows stay for the next process to try");
        assert_eq!(faults_of(&next.path()), ["task bad: commit 3, a new one, does not match its checksum"]);
        next.restart();
    }
}

#[tokio::test]
async fn a_row_that_is_damaged_while_its_task_streams_costs_its_own_task() {
    let mut subject = make();
    subject.is_damaged = true;
    let mut good = RecordWriter::opened(&subject, "good").await;
    let mut bad = RecordWriter::opened(&subject, "bad").await;
    subject.connect().execute_batch("UPDATE task SET artifacts = 'x' WHERE id = 'bad'").unwrap();
    let mut taken = 0;
    let refused = loop {
        good.append(&subject, vec![chunk("a", "word", taken > 0)]).await;
        let commit = bad.commit(&subject, vec![chunk("a", "word", taken > 0)]);
        match bad.try_write(&subject, commit).await {
            Ok(_) => taken += 1,
            Err(refused) => break refused,
        }
        assert!(taken < 100, "the row is never read");
    };
    // The damage is found when the chunks are filed. The chunk that is written then is taken, and the next one refused.
    assert!(matches!(refused, CommitError::Store(StoreError::Damaged(_))), "{refused:?}");
    assert!(taken >= 32, "{taken}");
    assert_eq!(subject.store().quarantine().rows, 1);
    good.check(&subject).await;
}
