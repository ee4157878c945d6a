//! Killed while it looks after its file: in the middle of a migration of real data, and in the middle of pruning.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use rusqlite::Connection;

use super::process::{Server, binary, command, free_addr, verify};

/// Longer than anything here may take; a test that waits this long has failed.
const PATIENCE: Duration = Duration::from_secs(120);

/// Tasks that wait for an answer, and as many that have ended: enough that their pages do not fit SQLite's cache, so that
/// a transaction reaches the disk before it is committed.
const TASKS: i64 = 6_000;

/// A file as the first version of the schema wrote it, with many tasks that rest: a server that starts on it leaves them
/// as they are. Two tasks of the fixture are the patterns.
fn old_file(data: &Path) -> PathBuf {
    std::fs::create_dir(data).unwrap();
    let path = data.join("switchboard.db");
    let fixture = Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates/switchboard-stores/fixtures/schema-v1.db");
    std::fs::copy(fixture, &path).unwrap();
    let now = i64::try_from(SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis()).unwrap();
    let sql = format!(
        "PRAGMA journal_mode = wal;
         BEGIN;
         DELETE FROM push; DELETE FROM chunk; DELETE FROM accepted;
         DELETE FROM task WHERE id NOT IN ('task-paused', 'task-pushing');
         DELETE FROM log WHERE log_no >> 24 NOT IN (SELECT task_no FROM task);
         UPDATE task SET push_configs = 0, closed_at = iif(closed_at, {now}, NULL);
         CREATE TEMP TABLE number AS
             WITH RECURSIVE counting (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM counting WHERE n < {TASKS})
             SELECT n FROM counting;
         CREATE TEMP TABLE pattern AS SELECT * FROM task;
         INSERT INTO task
             SELECT n * 10 + task_no, id || '-' || n, scope_no, context_id, phase, state, status_at, version, seq, turns,
                    turn, fence, attempt, cancel_requested, push_configs, deadline, artifacts, story_version,
                    artifact_version, status_version, floor_seq, floor_version, running, holder, lease_until, run_at,
                    created_at, updated_at, closed_at
               FROM temp.pattern, temp.number;
         INSERT INTO log
             SELECT ((n * 10 + (log_no >> 24)) << 24) | (log_no & 0xFFFFFF), last_seq, visible, prev_story, prev_artifact,
                    at, record
               FROM log, temp.number WHERE log_no >> 24 < 10;
         COMMIT;"
    );
    Connection::open(&path).unwrap().execute_batch(&sql).unwrap();
    path
}

/// Everything that clients were told, which no looking after may change.
fn told(path: &Path, of: &str) -> Vec<(String, i64, i64, String)> {
    let connection = Connection::open(path).unwrap();
    let mut select = connection
        .prepare(
            "SELECT task.id, log.log_no, log.last_seq, log.record FROM task JOIN log ON log.log_no >> 24 = task.task_no
              WHERE task.id LIKE ?1 ORDER BY log.log_no",
        )
        .unwrap();
    let rows = select.query_map([of], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?))).unwrap();
    rows.collect::<Result<_, _>>().unwrap()
}

fn bytes_of(path: &Path) -> u64 {
    path.metadata().map_or(0, |metadata| metadata.len())
}

fn beside(path: &Path, suffix: &str) -> PathBuf {
    PathBuf::from(format!("{}{suffix}", path.display()))
}

/// Kills a process as soon as something is to be seen; says whether it was, before the process had ended or was done.
fn kill_when(mut child: Child, is_seen: impl Fn() -> bool, is_done: impl Fn() -> bool) -> bool {
    let deadline = Instant::now() + PATIENCE;
    let seen = loop {
        if is_seen() {
            break true;
        }
        if is_done() || child.try_wait().unwrap().is_some() {
            break false;
        }
        assert!(Instant::now() < deadline, "neither seen nor done");
        std::thread::sleep(Duration::from_micros(200));
    };
    let _ = child.kill();
    child.wait().unwrap();
    seen
}

/// The schema version that this build writes.
const NEWEST: i64 = 10;

#[test]
fn a_migration_that_is_killed_at_any_point_loses_nothing_and_is_done_again() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let path = old_file(&data);
    let before = told(&path, "%");
    let (wal, copy, part) = (beside(&path, "-wal"), beside(&path, ".v1-backup"), beside(&path, ".v1-backup.part"));
    let version = || -> i64 {
        Connection::open(&path).unwrap().pragma_query_value(None, "user_version", |row| row.get(0)).unwrap()
    };
    // While it copies, when the copy is whole, and again and again while it writes.
    let copy_bytes = bytes_of(&path);
    let half_copied = || bytes_of(&part) > copy_bytes / 2;
    let copied = || bytes_of(&copy) > 0;
    let mut killed_in_the_middle = 0;
    for step in 0..8_u64 {
        let _ = std::fs::remove_file(&copy);
        let written = || copied() && bytes_of(&wal) > (step - 1) << 20;
        let addr = free_addr();
        let mut serve = command(&data, addr);
        let child = serve.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let is_ready = || super::http::readiness(addr).is_some();
        let seen = match step {
            0 => kill_when(child, half_copied, is_ready),
            1 => kill_when(child, copied, is_ready),
            _ => kill_when(child, written, is_ready),
        };
        println!("step {step}: {}", if seen { "killed in the middle" } else { "it was done before" });
        if version() == NEWEST {
            break;
        }
        killed_in_the_middle += u32::from(seen);
        assert_eq!(told(&path, "%"), before, "step {step}");
    }
    assert!(killed_in_the_middle >= 3, "{killed_in_the_middle} kills came in time");

    let server = Server::start(&data, free_addr());
    server.interrupt();
    assert_eq!(version(), NEWEST);
    assert_eq!(told(&path, "%"), before);
    verify(&data);
    if copy.exists() {
        assert_eq!(told(&copy, "%"), before, "the copy is the file as it was");
    }
}

#[test]
fn pruning_that_is_killed_at_any_point_removes_nothing_that_is_kept() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let path = old_file(&data);
    Server::start(&data, free_addr()).interrupt();
    let kept = told(&path, "task-paused%");
    let ended = |path: &Path| told(path, "task-pushing%").len();
    let all = ended(&path);
    // As many as wait: all that have ended are too many.
    let config = folder.path().join("switchboard.toml");
    std::fs::write(&config, format!("[server]\nretention_tasks_max = {}\n", TASKS + 1)).unwrap();
    let compact = || {
        let mut compact = Command::new(binary());
        compact.args(["db", "compact", "--data"]).arg(&data).arg("--config").arg(&config);
        compact.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        compact
    };
    let wal = beside(&path, "-wal");
    let mut half_done = 0;
    for step in 0..6_u64 {
        let left = ended(&path);
        // Each step a little later: in the first batch, in a later one, and while the file is rewritten.
        kill_when(compact().spawn().unwrap(), || bytes_of(&wal) > (step * step) << 18, || false);
        let now_left = ended(&path);
        println!("step {step}: {left} commits of ended tasks before, {now_left} after");
        assert!(now_left <= left);
        half_done += u32::from((1..all).contains(&now_left));
        assert_eq!(told(&path, "task-paused%"), kept, "step {step}");
        verify(&data);
    }
    assert!(half_done > 0, "no kill came in the middle");
    let done = compact().output().unwrap();
    assert!(done.status.success());
    assert_eq!(ended(&path), 0);
    assert_eq!(told(&path, "task-paused%"), kept);
    verify(&data);
}
