//! Verifies a file: SQLite's own check, the expected tables, every row against its checksum, every task against its
//! log, and everything that belongs to a task against the tasks. It reads one state of the file, which may be in use.
//! It reads one commit at a time, so it needs memory for one task's head and its largest commit.

mod commits;
mod keys;
mod recent;
mod schema;
mod tasks;

use std::path::Path;

use rusqlite::Connection;
use switchboard_core::model::Timestamp;

use super::audit::read_chains;
use super::call_rows::check_calls;
use super::epoch::EPOCH;
use super::error::{Failure, FileError};
use super::idempotency::FORGOTTEN_DAY;
use super::ledger::LAST_TASK_NO;
use super::offline::audit_file::check_chain;
use super::open::open_to_read;
use super::recent::{FIRST_RECENT, LAST_RECENT};
use super::rows::{mistyped, of_meta, of_scope};
use super::schema::MIGRATIONS;
use super::secrets::{SECRETS_SEALED, secret_key_file};
use super::wall_clock::{HELD_UNTIL, SEEN};
use crate::checked::told;
pub use crate::checked::{Checked, Fault};
use crate::secret_keys::SecretKeys;

/// How many faults SQLite reports at most.
const INTEGRITY_FAULTS_MAX: u32 = 100;

/// Checks a file, whether its server is running or not, and reports each fault as it is found. Idempotency keys that
/// have expired by `now` need not exist.
///
/// # Errors
/// When the file is missing, is not ours, or has another schema than this build's. Damage is reported as a fault, not
/// as an error.
pub fn verify(database: &Path, now: Timestamp, tell: &mut dyn FnMut(Fault)) -> Result<Checked, FileError> {
    let keys = SecretKeys::read(&secret_key_file(database)).unwrap_or_default();
    verify_with_keys(database, keys.as_ref(), now, tell)
}

/// As [`verify`], with the keys of the secrets of webhooks in place of those beside the file.
///
/// # Errors
/// As [`verify`].
pub fn verify_with_keys(
    database: &Path,
    secret_keys: Option<&SecretKeys>,
    now: Timestamp,
    tell: &mut dyn FnMut(Fault),
) -> Result<Checked, FileError> {
    let (connection, found) = open_to_read(database)?;
    let known = MIGRATIONS.len();
    if found < known {
        return Err(FileError::Older { path: database.to_owned(), found, known });
    }
    // The transaction ends with the connection.
    let begun = connection.execute_batch("BEGIN");
    begun.map_err(|source| FileError::Sqlite { path: database.to_owned(), source })?;
    let mut inspection = Inspection {
        connection: &connection,
        now,
        epoch: 0,
        last_task_no: 0,
        forgotten_day: 0,
        recent: (0, 0),
        unindexed_from: 0,
        keys_filed: 0,
        secret_keys,
        are_secrets_sealed: false,
        checked: Checked::default(),
        tell,
    };
    inspection.section("the pages of the file", Inspection::pages);
    inspection.section("the tables of the file", Inspection::schema);
    inspection.section("the numbers of the file", Inspection::numbers);
    inspection.section("the owners of tasks", Inspection::owners);
    inspection.section("the tasks", Inspection::tasks);
    inspection.section("the newest chunks", Inspection::recent);
    inspection.section("what belongs to no task", Inspection::strays);
    inspection.section("the messages accepted", Inspection::accepted);
    inspection.section("the numbers of tasks", Inspection::given_numbers);
    inspection.section("the calls of agents", Inspection::calls);
    inspection.section("the audit log", Inspection::audit);
    Ok(inspection.checked)
}

struct Inspection<'a> {
    connection: &'a Connection,
    now: Timestamp,
    epoch: i64,
    last_task_no: i64,
    /// Idempotency keys that expired before this day may have been removed.
    forgotten_day: i64,
    /// The numbers of the first and the last chunk that wait to be filed, or are filed and not deleted yet.
    recent: (i64, i64),
    /// Older tasks must be in the indexes of lists and runs.
    unindexed_from: i64,
    /// How many commits have an idempotency key that must still exist.
    keys_filed: u64,
    secret_keys: Option<&'a SecretKeys>,
    /// Whether every secret of a webhook must be encrypted.
    are_secrets_sealed: bool,
    checked: Checked,
    tell: &'a mut dyn FnMut(Fault),
}

impl Inspection<'_> {
    fn fault(&mut self, task: Option<&str>, what: impl Into<String>) {
        self.checked.faults += 1;
        (self.tell)(Fault { task: task.map(str::to_owned), what: what.into() });
    }

    /// Runs one section. Damage ends the section and is reported as a fault; the other sections are still checked.
    fn section(&mut self, name: &str, look: fn(&mut Self) -> Result<(), Failure>) {
        if let Err(failure) = look(self) {
            self.fault(None, format!("{name} could not be read to the end: {}", told(&failure.0)));
        }
    }

    fn pages(&mut self) -> Result<(), Failure> {
        let sql = format!("PRAGMA integrity_check({INTEGRITY_FAULTS_MAX})");
        let mut check = self.connection.prepare(&sql)?;
        let mut rows = check.query([])?;
        while let Some(row) = rows.next()? {
            let said: String = row.get(0)?;
            // The output has one or two headings, then one fault per line.
            for line in said.lines().filter(|line| *line != "ok" && !line.starts_with("***")) {
                self.fault(None, format!("SQLite: {line}"));
            }
        }
        Ok(())
    }

    fn numbers(&mut self) -> Result<(), Failure> {
        let mut select = self.connection.prepare("SELECT name, value, checksum FROM meta ORDER BY name")?;
        let mut rows = select.query([])?;
        let mut found = Vec::new();
        while let Some(row) = rows.next()? {
            let (name, value): (String, i64) = (row.get(0)?, row.get(1)?);
            if row.get::<_, i64>(2)? != of_meta(&name, value) {
                self.fault(None, format!("the number {name} does not match its checksum"));
            }
            match name.as_str() {
                EPOCH => self.epoch = value,
                LAST_TASK_NO => self.last_task_no = value,
                FORGOTTEN_DAY => self.forgotten_day = value,
                FIRST_RECENT => self.recent.0 = value,
                LAST_RECENT => self.recent.1 = value,
                SECRETS_SEALED => self.are_secrets_sealed = value != 0,
                _ => {}
            }
            found.push(name);
        }
        for name in [SEEN, EPOCH, FORGOTTEN_DAY, LAST_TASK_NO, FIRST_RECENT, LAST_RECENT, SECRETS_SEALED] {
            if !found.iter().any(|known| known == name) {
                self.fault(None, format!("the number {name} is missing"));
            }
        }
        for name in found {
            let known =
                [SEEN, HELD_UNTIL, EPOCH, FORGOTTEN_DAY, LAST_TASK_NO, FIRST_RECENT, LAST_RECENT, SECRETS_SEALED];
            if !known.contains(&name.as_str()) {
                self.fault(None, format!("the number {name} is none that this build keeps"));
            }
        }
        Ok(())
    }

    fn owners(&mut self) -> Result<(), Failure> {
        let mut select = self.connection.prepare("SELECT scope_no, tenant, principal, agent, checksum FROM scope")?;
        let mut rows = select.query([])?;
        while let Some(row) = rows.next()? {
            let text = |column: usize| -> Result<&str, Failure> { row.get_ref(column)?.as_str().map_err(mistyped) };
            let scope_no = row.get(0)?;
            if row.get::<_, i64>(4)? != of_scope(scope_no, [text(1)?, text(2)?, text(3)?]) {
                self.fault(None, format!("owner number {scope_no} does not match its checksum"));
            }
        }
        Ok(())
    }

    /// Reports rows whose task neither exists nor is being removed.
    fn strays(&mut self) -> Result<(), Failure> {
        // Skips from one task's rows to the next task's by one index look-up, however many rows a task has.
        let owners = [
            (
                "commits",
                "SELECT (SELECT min(log_no) FROM log) >> 24",
                "SELECT (SELECT min(log_no) FROM log WHERE log_no >= ((task_no + 1) << 24)) >> 24",
            ),
            (
                "pieces of content",
                "SELECT (SELECT min(task_no) FROM chunk)",
                "SELECT (SELECT min(task_no) FROM chunk WHERE chunk.task_no > owner.task_no)",
            ),
            (
                "webhooks",
                "SELECT (SELECT min(task_no) FROM push)",
                "SELECT (SELECT min(task_no) FROM push WHERE push.task_no > owner.task_no)",
            ),
            (
                "calls",
                "SELECT (SELECT min(task_no) FROM call)",
                "SELECT (SELECT min(task_no) FROM call WHERE call.task_no > owner.task_no)",
            ),
        ];
        for (what, first, next) in owners {
            let sql = format!(
                "WITH RECURSIVE owner (task_no) AS
                     ({first} UNION ALL {next} FROM owner WHERE task_no IS NOT NULL)
                 SELECT task_no FROM owner
                  WHERE task_no IS NOT NULL AND NOT EXISTS (SELECT 1 FROM task WHERE task.task_no = owner.task_no)
                    AND NOT EXISTS (SELECT 1 FROM removal WHERE removal.task_no = owner.task_no)"
            );
            let mut select = self.connection.prepare(&sql)?;
            let mut rows = select.query([])?;
            while let Some(row) = rows.next()? {
                let task_no: i64 = row.get(0)?;
                self.fault(None, format!("{what} of task number {task_no}, which is not there"));
            }
        }
        Ok(())
    }

    fn calls(&mut self) -> Result<(), Failure> {
        let mut damaged = Vec::new();
        self.checked.calls = check_calls(self.connection, &mut |what| damaged.push(what))?;
        for what in damaged {
            self.fault(None, what);
        }
        Ok(())
    }

    fn audit(&mut self) -> Result<(), Failure> {
        for columns in read_chains(self.connection, "ORDER BY chain_no")? {
            let mut entries = 0;
            let chain = check_chain(self.connection, &columns, &mut |_, _| entries += 1)?;
            self.checked.audit_entries += entries;
            if let Some(why) = chain.broken {
                self.fault(None, format!("the audit log is broken: {why} (chain {})", chain.id));
            }
        }
        let strays = "SELECT DISTINCT chain_no FROM audit WHERE chain_no NOT IN (SELECT chain_no FROM audit_chain)";
        let mut select = self.connection.prepare(strays)?;
        let mut rows = select.query([])?;
        while let Some(row) = rows.next()? {
            let chain_no: i64 = row.get(0)?;
            self.fault(None, format!("entries of chain number {chain_no} of the audit log, which is not there"));
        }
        Ok(())
    }

    /// The number of a task is never reused, because idempotency keys refer to it even after the task is removed.
    fn given_numbers(&mut self) -> Result<(), Failure> {
        let number = |sql: &str| self.connection.query_row(sql, [], |row| row.get::<_, i64>(0));
        let known = number("SELECT coalesce(max(task_no), 0) FROM task")?.max(self.last_task_no);
        let given = number("SELECT coalesce(max(task_no), 0) FROM accepted")?
            .max(number("SELECT coalesce(max(task_no), 0) FROM removal")?);
        if given > known {
            self.fault(None, format!("task number {given} was given already, and would be given again"));
        }
        Ok(())
    }
}
