//! A valid file passes in whatever state it is; a fault is reported with its task.

use std::path::Path;

use rusqlite::Connection;
use switchboard_core::model::{Part, TaskState};
use switchboard_engine::contract::Subject;
use switchboard_engine::contract::given::{RecordWriter, chunk, now, status, write_parts};
use switchboard_engine::ports::store::Retention;

use super::super::{Checked, FileError, backup, verify};
use super::{BEGIN, OnFile, faults_of, make, sample};

const DAY_MS: i64 = 86_400_000;

/// A copy of a file to damage.
struct Copy {
    folder: tempfile::TempDir,
}

impl Copy {
    fn of(subject: &OnFile) -> Self {
        let copy = Self { folder: tempfile::tempdir().unwrap() };
        backup(&subject.path(), &copy.path()).unwrap();
        copy
    }

    fn path(&self) -> std::path::PathBuf {
        self.folder.path().join("copy.db")
    }

    fn faults_after(self, sql: &str) -> Vec<String> {
        Connection::open(self.path()).unwrap().execute_batch(sql).unwrap();
        faults_of(&self.path())
    }
}

/// A log that retention has compacted to the commits that readers fold.
pub(super) async fn compacted(subject: &OnFile) -> RecordWriter {
    let mut writer = RecordWriter::opened(subject, "task-compacted").await;
    for step in 0..10 {
        writer.append(subject, vec![status(subject, TaskState::Working, Some("busy"))]).await;
        writer.append(subject, vec![chunk("a", "x", step > 0)]).await;
    }
    writer.append(subject, vec![status(subject, TaskState::Completed, None)]).await;
    compact_logs(subject).await;
    writer
}

async fn compact_logs(subject: &OnFile) {
    subject.clock().advance_ms(8 * DAY_MS);
    let retention = Retention {
        now: now(subject),
        events_ms: 7 * DAY_MS,
        tasks_ms: 30 * DAY_MS,
        replies_ms: DAY_MS,
        tasks_max: 1_000_000,
        tasks_batch: 0,
    };
    assert!(subject.store().prune(retention, 100).await.unwrap() > 0);
}

#[tokio::test]
async fn a_file_in_use_is_counted_and_in_order() {
    let mut subject = make();
    let _sample = sample::write(&subject).await;
    for _ in 0..2 {
        let mut faults = Vec::new();
        let checked = verify(&subject.path(), BEGIN, &mut |fault| faults.push(fault)).unwrap();
        assert_eq!(faults, []);
        let expected = Checked {
            tasks: 6,
            tasks_compacted: 0,
            commits: 14,
            events: 13,
            chunks: 1,
            chunk_bytes: 33_000,
            webhooks: 2,
            // Their key is not beside the file.
            webhooks_without_key: 2,
            accepted: 1,
            calls: 2,
            audit_entries: 2,
            faults: 0,
        };
        assert_eq!(checked, expected);
        // The result is the same after the store was closed.
        subject.close();
    }
}

#[tokio::test]
async fn every_kind_of_damage_is_found_and_names_its_task() {
    let subject = make();
    compacted(&subject).await;
    sample::write(&subject).await;
    let done = "(SELECT task_no FROM task WHERE id = 'task-done')";
    let pushing = "(SELECT task_no FROM task WHERE id = 'task-pushing')";
    let packed = "(SELECT task_no FROM task WHERE id = 'task-compacted')";
    let cases = [
        (format!("DELETE FROM log WHERE log_no = {done} << 24 | 3"), "task task-done: commits 3 to 3 are missing"),
        (
            format!("DELETE FROM log WHERE log_no = {done} << 24 | 5"),
            "task task-done: its log ends at commit 4, and it is at 5",
        ),
        (
            "UPDATE task SET state = 4 WHERE id = 'task-done'".to_owned(),
            "task task-done: its state is Failed, and its log says Completed",
        ),
        (
            "UPDATE task SET seq = 9 WHERE id = 'task-running'".to_owned(),
            // Its chunk waits to be filed.
            "task task-running: its last event is 9, and its log says 1",
        ),
        (
            format!("UPDATE log SET visible = 2 WHERE log_no = {done} << 24 | 2"),
            "task task-done: commit 2: it says that it has 2 events, and has 1",
        ),
        (
            format!("UPDATE log SET last_seq = 7 WHERE log_no = {done} << 24 | 2"),
            "task task-done: commit 2: it ends with event 7, and should with 2",
        ),
        (
            format!("UPDATE log SET prev_artifact = 0 WHERE log_no = {done} << 24 | 5"),
            "task task-done: commit 5: it points back to commits (1, 0), and should to (1, 4)",
        ),
        (
            format!(
                "UPDATE log SET record = replace(record, 'half way', 'h') WHERE log_no = {done} << 24 | 2; \
                     UPDATE log SET record = substr(record, 1, 40) WHERE log_no = {done} << 24 | 2"
            ),
            "task task-done: commit 2: stored record: EOF while parsing",
        ),
        ("UPDATE task SET story_version = 2 WHERE id = 'task-done'".to_owned(), "task task-done: it is read from"),
        ("DELETE FROM chunk".to_owned(), "task task-done: commit 3: piece of content 1 is missing"),
        (
            "UPDATE chunk SET start = 5".to_owned(),
            "task task-done: commit 3: piece of content 1 does not match its checksum",
        ),
        (
            format!("INSERT INTO chunk SELECT 9, {done}, 3, artifact_id, 1, 0, x'00', 0 FROM chunk"),
            "task task-done: 2 pieces of content are kept for it, and its log has 1",
        ),
        (
            "INSERT INTO chunk SELECT 9, 99, 3, artifact_id, 1, 0, x'00', 0 FROM chunk".to_owned(),
            "pieces of content of task number 99, which is not there",
        ),
        (
            "INSERT INTO log SELECT 98 << 24 | 1, 1, 1, 0, 0, 0, record, NULL, 0 FROM log LIMIT 1".to_owned(),
            "commits of task number 98, which is not there",
        ),
        (
            "UPDATE recent SET record = replace(record, 'append', 'bppend')".to_owned(),
            "task task-running: commit 2, a new one, does not match its checksum",
        ),
        ("DELETE FROM recent".to_owned(), "the chunks that wait to be filed end before number"),
        ("DELETE FROM scope".to_owned(), "it has no owner: its scope is missing"),
        (
            format!("UPDATE push SET delivered_seq = 9 WHERE task_no = {pushing} AND config_id = 'good'"),
            "task task-pushing: webhook good has delivered event 9 of 3",
        ),
        (
            "UPDATE push SET due_at = NULL, delivered_seq = 1, parked = 0 WHERE config_id = 'good'".to_owned(),
            "task task-pushing: webhook good has delivered event 1 of 3, and is not due",
        ),
        ("DELETE FROM push WHERE config_id = 'good'".to_owned(), "task task-pushing: it counts 2 webhooks, and has 1"),
        (
            "UPDATE accepted SET turn = 7".to_owned(),
            "task task-done: an idempotency key of task number 2 does not match its checksum",
        ),
        (
            "UPDATE task SET holder = 0, run_at = NULL WHERE id = 'task-running'".to_owned(),
            "task task-running: no process holds its run, and it is never due",
        ),
        (
            "UPDATE task SET holder = 77 WHERE id = 'task-running'".to_owned(),
            "task task-running: its run is held by epoch 77, and the file is in epoch 1",
        ),
        (
            "UPDATE task SET closed_at = NULL WHERE id = 'task-done'".to_owned(),
            "task task-done: whether it has ended is told in two ways",
        ),
        (
            "INSERT INTO removal SELECT task_no FROM task WHERE id = 'task-done'".to_owned(),
            "task task-done: it is there, and is being removed",
        ),
        (
            format!("DELETE FROM log WHERE log_no = {packed} << 24 | 3"),
            "task task-compacted: commit 5: it points back to commit 3, which is missing",
        ),
        (
            "UPDATE task SET artifacts = replace(artifacts, '10', '11') WHERE id = 'task-compacted'".to_owned(),
            "task task-compacted: its artifacts are not those of its log",
        ),
        (
            "UPDATE task SET status_version = 4 WHERE id = 'task-compacted'".to_owned(),
            "task task-compacted: it is read from commit 4, which is missing",
        ),
        ("UPDATE task SET state = 99 WHERE id = 'task-done'".to_owned(), "task task-done: its row cannot be read"),
    ];
    for (sql, expected) in cases {
        let faults = Copy::of(&subject).faults_after(&sql);
        assert!(faults.iter().any(|fault| fault.contains(expected)), "{sql}\nfound: {faults:#?}");
    }
}

#[tokio::test]
async fn a_task_that_is_being_removed_may_be_half_gone() {
    let subject = make();
    sample::write(&subject).await;
    let removed = "INSERT INTO removal SELECT task_no FROM task WHERE id = 'task-done';
                   DELETE FROM log WHERE log_no = (SELECT task_no FROM removal) << 24 | 2;
                   DELETE FROM task WHERE id = 'task-done'";
    assert_eq!(Copy::of(&subject).faults_after(removed), [] as [String; 0]);
    // Without the record of the removal, its remaining rows belong to no task.
    let faults = Copy::of(&subject).faults_after(&format!("{removed}; DELETE FROM removal"));
    let expected =
        ["commits of task number 1, which is not there", "pieces of content of task number 1, which is not there"];
    assert_eq!(faults, expected);
}

#[tokio::test]
async fn a_compacted_task_is_in_order_and_its_message_pieces_go_with_it() {
    let subject = make();
    let mut writer = RecordWriter::opened(&subject, "t1").await;
    // A progress note too long for a record: readers do not fold it, so compaction removes it with its chunks.
    let note = "x".repeat(100_000);
    writer.append(&subject, vec![status(&subject, TaskState::Working, Some(&note))]).await;
    writer.append(&subject, vec![write_parts("a", vec![Part::raw(vec![1; 600_000])], false)]).await;
    writer.append(&subject, vec![status(&subject, TaskState::Completed, Some("done"))]).await;
    let pieces = || verify(&subject.path(), BEGIN, &mut |fault| panic!("{fault}")).unwrap().chunks;
    assert_eq!(pieces(), 4);
    compact_logs(&subject).await;
    assert_eq!(pieces(), 3);
    writer.check_whole(&subject).await;
}

#[tokio::test]
async fn a_damaged_page_is_a_fault_and_the_rest_is_still_looked_at() {
    let subject = make();
    for number in 0..200 {
        RecordWriter::completed(&subject, &format!("t{number}")).await;
    }
    let copy = Copy::of(&subject);
    let mut bytes = std::fs::read(copy.path()).unwrap();
    let root: usize = Connection::open(copy.path())
        .unwrap()
        .query_row("SELECT rootpage FROM sqlite_schema WHERE name = 'log'", [], |row| row.get(0))
        .unwrap();
    bytes[(root - 1) * 4096..root * 4096].fill(0xAA);
    std::fs::write(copy.path(), bytes).unwrap();
    let faults = faults_of(&copy.path());
    assert!(faults.iter().any(|fault| fault.starts_with("SQLite: ")), "{faults:#?}");
    assert!(faults.iter().any(|fault| fault.contains("could not be read to the end")), "{faults:#?}");
}

#[test]
fn what_is_no_database_of_ours_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let refused = |path: &Path| verify(path, BEGIN, &mut |fault| panic!("{fault}")).unwrap_err();
    let missing = folder.path().join("missing.db");
    assert_eq!(refused(&missing).to_string(), format!("{} does not exist", missing.display()));
    assert!(!missing.exists(), "checking for the file does not create it");

    let empty = folder.path().join("empty.db");
    std::fs::write(&empty, "").unwrap();
    assert!(matches!(refused(&empty), FileError::NotOurs { .. }));

    let text = folder.path().join("text.db");
    std::fs::write(&text, "no database at all, but long enough to look like the header of one .........").unwrap();
    assert!(matches!(refused(&text), FileError::Sqlite { .. }));
}
