//! Changes every stored value in every way that SQL can: `verify` must find each change. What it cannot find is listed
//! at the end with the reason, and in `docs/backup.md` for operators.

use std::path::{Path, PathBuf};

use rusqlite::types::Value;
use rusqlite::{Connection, params_from_iter};
use switchboard_engine::contract::Subject as _;
use tempfile::TempDir;

use super::verifying::compacted;
use super::{OnFile, faults_at, make, sample};

/// Year 3000, in milliseconds.
const YEAR_3000: i64 = 32_503_680_000_000;

/// How many rows of a table are changed, unless `SWITCHBOARD_TEST_LONG` is set.
const ROWS_TRIED: usize = 5;

/// A file with every kind of row, and new copies of it to damage.
struct Populated {
    subject: OnFile,
    bytes: Vec<u8>,
    folder: TempDir,
}

impl Populated {
    async fn new() -> Self {
        let subject = make();
        compacted(&subject).await;
        sample::write(&subject).await;
        let folder = tempfile::tempdir().unwrap();
        let copy = folder.path().join("whole.db");
        super::super::backup(&subject.path(), &copy).unwrap();
        let bytes = std::fs::read(copy).unwrap();
        Self { subject, bytes, folder }
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("copy.db")
    }

    fn fresh(&self) -> Connection {
        std::fs::write(self.path(), &self.bytes).unwrap();
        let connection = Connection::open(self.path()).unwrap();
        connection.execute_batch("PRAGMA synchronous = off; PRAGMA journal_mode = memory").unwrap();
        connection
    }

    fn faults(&self) -> Vec<String> {
        faults_at(&self.path(), switchboard_engine::contract::given::now(&self.subject))
    }

    fn faults_after(&self, sql: &str) -> Vec<String> {
        self.fresh().execute_batch(sql).unwrap();
        self.faults()
    }
}

struct Table {
    name: String,
    columns: Vec<String>,
    key: Vec<String>,
    rows: Vec<Vec<Value>>,
}

fn tables(connection: &Connection) -> Vec<Table> {
    let mut select = connection.prepare("SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name").unwrap();
    let names: Vec<String> = select.query_map([], |row| row.get(0)).unwrap().collect::<Result<_, _>>().unwrap();
    names.into_iter().map(|name| table(connection, name)).collect()
}

fn table(connection: &Connection, name: String) -> Table {
    let mut info = connection.prepare("SELECT name, pk FROM pragma_table_info(?1) ORDER BY cid").unwrap();
    let columns: Vec<(String, i64)> =
        info.query_map([&name], |row| Ok((row.get(0)?, row.get(1)?))).unwrap().collect::<Result<_, _>>().unwrap();
    let key = columns.iter().filter(|(_, pk)| *pk > 0).map(|(name, _)| name.clone()).collect();
    let columns: Vec<String> = columns.into_iter().map(|(name, _)| name).collect();
    let mut select = connection.prepare(&format!("SELECT * FROM {name}")).unwrap();
    let count = columns.len();
    let rows = select.query_map([], |row| (0..count).map(|at| row.get(at)).collect()).unwrap();
    let rows = rows.collect::<Result<_, _>>().unwrap();
    Table { name, columns, key, rows }
}

impl Table {
    fn key_of(&self, row: &[Value]) -> Vec<Value> {
        let place = |name: &String| self.columns.iter().position(|column| column == name).unwrap();
        self.key.iter().map(|name| row[place(name)].clone()).collect()
    }

    fn keyed(&self, first: usize) -> String {
        let terms = self.key.iter().zip(first..).map(|(name, at)| format!("{name} = ?{at}"));
        terms.collect::<Vec<_>>().join(" AND ")
    }

    /// Sets columns of one row; returns whether the constraints of the table allow it.
    fn set(&self, connection: &Connection, row: &[Value], changes: &[(&str, Value)]) -> bool {
        let sets: Vec<String> = changes.iter().zip(1..).map(|((name, _), at)| format!("{name} = ?{at}")).collect();
        let sql = format!("UPDATE {} SET {} WHERE {}", self.name, sets.join(", "), self.keyed(changes.len() + 1));
        let values = changes.iter().map(|(_, value)| value.clone()).chain(self.key_of(row));
        connection.execute(&sql, params_from_iter(values)).is_ok_and(|changed| changed == 1)
    }
}

/// Other values of the same type: slightly changed, more changed, of equal length, and NULL.
fn others(value: &Value) -> Vec<Value> {
    match value {
        Value::Null => vec![Value::Integer(1), Value::Integer(YEAR_3000), Value::Text("x".to_owned())],
        Value::Integer(number) => vec![
            Value::Integer(number + 1),
            Value::Integer(number ^ (1 << 20)),
            Value::Integer(if *number == YEAR_3000 { 0 } else { YEAR_3000 }),
            Value::Null,
        ],
        Value::Text(text) => {
            let other = |place: usize| {
                let mut chars: Vec<char> = text.chars().collect();
                chars[place] = if chars[place] == '7' { '8' } else { '7' };
                Value::Text(chars.into_iter().collect())
            };
            let count = text.chars().count();
            match count {
                0 => vec![Value::Text("x".to_owned())],
                _ => vec![other(0), other(count / 2), other(count - 1), Value::Text(String::new()), Value::Null],
            }
        }
        Value::Blob(bytes) => {
            let mut flipped = bytes.clone();
            let middle = bytes.len() / 2;
            flipped[middle] ^= 16;
            let mut zeroed = bytes.clone();
            zeroed[0] = zeroed[0].wrapping_add(1);
            vec![Value::Blob(flipped), Value::Blob(zeroed)]
        }
        Value::Real(_) => unreachable!("no column is a real number"),
    }
}

#[tokio::test]
async fn every_value_that_is_changed_is_found() {
    let populated = Populated::new().await;
    assert_eq!(populated.faults_after(""), [] as [String; 0], "the undamaged file has no faults");
    let mut tried = std::collections::BTreeMap::<String, usize>::new();
    // Each value of some rows is changed in one way, in rotation; all ways for all values take minutes.
    let is_long = std::env::var_os("SWITCHBOARD_TEST_LONG").is_some();
    let mut turn = 0;
    for table in tables(&populated.fresh()) {
        let step = if is_long { 1 } else { table.rows.len().div_ceil(ROWS_TRIED).max(1) };
        for row in table.rows.iter().step_by(step) {
            for (column, value) in table.columns.iter().zip(row) {
                let mut others = others(value);
                turn += 1;
                let first = turn % others.len();
                others.rotate_left(first);
                for other in others {
                    let connection = populated.fresh();
                    if !table.set(&connection, row, &[(column, other.clone())]) {
                        continue;
                    }
                    drop(connection);
                    *tried.entry(format!("{}.{column}", table.name)).or_default() += 1;
                    let what = format!("{}.{column}: {value:?} became {other:?}", table.name);
                    assert_ne!(populated.faults(), [] as [String; 0], "{what}");
                    if !is_long {
                        break;
                    }
                }
            }
        }
    }
    // Each column of each table was changed: no table was skipped because the file has no row of it.
    let names = |table: &Table| -> Vec<String> {
        table.columns.iter().map(|column| format!("{}.{column}", table.name)).collect()
    };
    let mut columns: Vec<String> = tables(&populated.fresh()).iter().flat_map(names).collect();
    columns.retain(|column| column != "removal.task_no");
    columns.sort();
    assert_eq!(tried.into_keys().collect::<Vec<_>>(), columns);
}

#[tokio::test]
async fn every_row_that_is_deleted_is_found() {
    let populated = Populated::new().await;
    // Nothing else refers to a call.
    for table in tables(&populated.fresh()).into_iter().filter(|table| table.name != "call") {
        for row in &table.rows {
            let connection = populated.fresh();
            let sql = format!("DELETE FROM {} WHERE {}", table.name, table.keyed(1));
            assert_eq!(connection.execute(&sql, params_from_iter(table.key_of(row))).unwrap(), 1);
            drop(connection);
            assert_ne!(populated.faults(), [] as [String; 0], "deleted from {}: {row:?}", table.name);
        }
    }
}

/// Two rows are swapped: every value is valid, but in the wrong row.
#[tokio::test]
async fn rows_that_are_swapped_are_found() {
    let populated = Populated::new().await;
    let mut swapped = 0;
    for table in tables(&populated.fresh()) {
        let contents: Vec<&String> = table.columns.iter().filter(|name| !table.key.contains(name)).collect();
        let value =
            |row: &[Value], name: &str| row[table.columns.iter().position(|column| column == name).unwrap()].clone();
        for pair in table.rows.windows(2) {
            let [one, two] = pair else { unreachable!("windows of two") };
            // The whole rows, and each column alone.
            let whole: Vec<&str> = contents.iter().map(|name| name.as_str()).collect();
            for names in std::iter::once(whole).chain(contents.iter().map(|name| vec![name.as_str()])) {
                if names.iter().all(|name| value(one, name) == value(two, name)) {
                    continue;
                }
                let connection = populated.fresh();
                let from = |row: &[Value]| -> Vec<(&str, Value)> {
                    names.iter().map(|name| (*name, value(row, name))).collect()
                };
                // First moved to an unused value, because of unique indexes.
                let aside: Vec<(&str, Value)> = names
                    .iter()
                    .map(|name| match value(one, name) {
                        Value::Text(_) => (*name, Value::Text("aside".to_owned())),
                        other => (*name, other),
                    })
                    .collect();
                let done = table.set(&connection, one, &aside)
                    && table.set(&connection, two, &from(one))
                    && table.set(&connection, one, &from(two));
                if done {
                    swapped += 1;
                    drop(connection);
                    let what = format!("{names:?} of {:?} and {:?} in {}", one[0], two[0], table.name);
                    assert_ne!(populated.faults(), [] as [String; 0], "{what}");
                }
            }
        }
    }
    assert!(swapped > 100, "{swapped} swaps");
}

#[tokio::test]
async fn what_is_missing_from_or_added_to_the_schema_is_found() {
    let populated = Populated::new().await;
    let connection = populated.fresh();
    let mut select = connection
        .prepare("SELECT type, name FROM sqlite_schema WHERE sql IS NOT NULL AND type <> 'table' ORDER BY name")
        .unwrap();
    let made: Vec<(String, String)> =
        select.query_map([], |row| Ok((row.get(0)?, row.get(1)?))).unwrap().collect::<Result<_, _>>().unwrap();
    assert_eq!(made.len(), 14, "{made:?}");
    for (kind, name) in made {
        let faults = populated.faults_after(&format!("DROP {kind} {name}"));
        assert_eq!(faults, [format!("the {kind} {name} is missing")]);
    }
    let faults = populated.faults_after(
        "CREATE TRIGGER meddle AFTER UPDATE ON push BEGIN DELETE FROM accepted; END;
         CREATE TABLE notes (text TEXT); DROP INDEX task_by_run; CREATE INDEX task_by_run ON task (holder)",
    );
    let expected = [
        "the index task_by_run is not made as this build makes it",
        "the table notes is none that this build makes",
        "the trigger meddle is none that this build makes",
    ];
    assert_eq!(faults, expected);
    // What a database shell may have left behind is not damage.
    assert_eq!(populated.faults_after("ANALYZE"), [] as [String; 0]);
}

/// The kinds of corruption for which checksums were introduced, each by its name.
#[tokio::test]
async fn damage_that_looks_right_is_told_with_its_task() {
    let populated = Populated::new().await;
    let cases = [
        (
            "UPDATE log SET record = replace(record, 'half way', 'half gay') WHERE record LIKE '%half way%'",
            "task task-done: commit 2 does not match its checksum",
        ),
        (
            "UPDATE chunk SET bytes = zeroblob(length(bytes))",
            "task task-done: commit 3: piece of content 1 does not match its checksum",
        ),
        (
            "UPDATE push SET delivered_seq = 3, due_at = NULL WHERE config_id = 'good'",
            "task task-pushing: webhook good does not match its checksum",
        ),
        (
            "UPDATE push SET due_at = 32503680000000 WHERE config_id = 'good'",
            "task task-pushing: the times of webhook good do not match their checksum",
        ),
        (
            "UPDATE push SET dialect = 'klingon' WHERE config_id = 'good'",
            "task task-pushing: webhook good is for the dialect klingon, which this build does not know",
        ),
        ("DELETE FROM accepted", "task task-done: the idempotency key that commit 1 filed is missing"),
        (
            "UPDATE accepted SET task_no = (SELECT task_no FROM task WHERE id = 'task-paused')",
            "task task-paused: an idempotency key of task number 4 does not match its checksum",
        ),
        (
            "UPDATE task SET run_at = 32503680000000 WHERE id = 'record-unborn'",
            "task record-unborn: its row does not match its checksum",
        ),
        (
            "UPDATE task SET scope_no = (SELECT scope_no FROM task WHERE id = 'task-paused') WHERE id = 'task-done'",
            "task task-done: its row does not match its checksum",
        ),
        ("UPDATE scope SET principal = 'eve' WHERE principal = 'ann'", "owner number 2 does not match its checksum"),
        ("UPDATE meta SET value = 0 WHERE name = 'epoch'", "the number epoch does not match its checksum"),
    ];
    for (sql, expected) in cases {
        let faults = populated.faults_after(sql);
        assert!(faults.iter().any(|fault| fault == expected), "{sql}\nfound: {faults:#?}");
    }
}

/// Damage that `verify` cannot find. If it finds one of these some day, shorten the list in docs/backup.md.
#[tokio::test]
async fn what_verify_cannot_know_is_known() {
    let populated = Populated::new().await;
    let gone = "task_no = (SELECT task_no FROM task WHERE id = 'task-done')";
    // A task that was deleted with all its rows: nothing is left that refers to it.
    let sql = format!(
        "DELETE FROM log WHERE log_no >> 24 = (SELECT task_no FROM task WHERE id = 'task-done');
         DELETE FROM chunk WHERE {gone}; DELETE FROM accepted WHERE {gone}; DELETE FROM task WHERE id = 'task-done'"
    );
    assert_eq!(populated.faults_after(&sql), [] as [String; 0], "{sql}");
    // The same for an owner without tasks.
    let sql = format!("{sql}; DELETE FROM scope WHERE principal = 'ann'");
    assert_eq!(populated.faults_after(&sql), [] as [String; 0], "{sql}");
    // The calls of a task: no row counts them.
    assert_eq!(populated.faults_after("DELETE FROM call"), [] as [String; 0]);
}

/// A task that is being removed is recorded until all its rows are gone.
#[tokio::test]
async fn a_removal_that_is_forgotten_or_mistaken_is_found() {
    let populated = Populated::new().await;
    let removing = "INSERT INTO removal SELECT task_no FROM task WHERE id = 'task-done';
                    DELETE FROM task WHERE id = 'task-done';";
    assert_eq!(populated.faults_after(removing), [] as [String; 0]);
    for damage in ["DELETE FROM removal", "UPDATE removal SET task_no = task_no + 1", "UPDATE removal SET task_no = 99"]
    {
        assert_ne!(populated.faults_after(&format!("{removing}{damage}")), [] as [String; 0], "{damage}");
    }
}

/// A damaged row fails only the reads of that row, and later writes do not hide the damage.
#[tokio::test]
async fn a_damaged_row_is_neither_served_nor_written_on() {
    use switchboard_core::model::TaskState;
    use switchboard_engine::contract::given::{RecordWriter, status};
    use switchboard_engine::ports::store::{CommitError, StoreError};

    let mut subject = make();
    let mut damaged = RecordWriter::opened(&subject, "damaged").await;
    let mut whole = RecordWriter::opened(&subject, "whole").await;
    subject.close();
    let repaired = damage(&subject.path());
    subject.restart();
    let read = subject.store().task(&damaged.scope, &damaged.head.id, u64::MAX).await;
    let expected = "task damaged: its row does not match its checksum";
    assert_eq!(read.unwrap_err(), StoreError::Damaged(expected.to_owned()));
    let commit = damaged.commit(&subject, vec![status(&subject, TaskState::Working, None)]);
    match subject.store().commit(commit).await {
        Err(CommitError::Store(StoreError::Damaged(reason))) => {
            assert_eq!(reason, "the task is damaged, and takes no more commits");
        }
        other => panic!("{other:?}"),
    }
    whole.append(&subject, vec![status(&subject, TaskState::Working, None)]).await;
    whole.check(&subject).await;
    subject.close();
    Connection::open(subject.path()).unwrap().execute_batch(&repaired).unwrap();
    subject.restart();
    damaged.append(&subject, vec![status(&subject, TaskState::Working, None)]).await;
    damaged.check(&subject).await;
}

/// Changes the context of a task to one of equal length, and returns the SQL to undo it.
fn damage(path: &Path) -> String {
    let connection = Connection::open(path).unwrap();
    let context: String =
        connection.query_row("SELECT context_id FROM task WHERE id = 'damaged'", [], |row| row.get(0)).unwrap();
    let other = "z".repeat(context.len());
    connection.execute("UPDATE task SET context_id = ?1 WHERE id = 'damaged'", [&other]).unwrap();
    format!("UPDATE task SET context_id = '{context}' WHERE id = 'damaged'")
}
