//! Checks idempotency keys against the commits that stored them. A commit records when its key expires, and a key
//! records its commit. So their numbers must be equal, apart from expired keys.

use rusqlite::{OptionalExtension, params};

use super::super::error::Failure;
use super::super::idempotency::{ACCEPTED_COLUMNS, accepted_columns_unchecked, day_of};
use super::super::rows::{AcceptedColumns, log_no};
use super::Inspection;
use switchboard_core::model::Timestamp;

/// The task and the commit that a key refers to.
struct KeyOrigin {
    id: String,
    turns: i64,
    seq: i64,
    floor_version: i64,
    /// When the key expires according to the commit; none if the commit does not exist.
    expires: Option<Option<i64>>,
}

impl Inspection<'_> {
    /// Whether a key must still exist.
    pub(super) fn is_kept(&self, expires: i64) -> bool {
        expires > self.now.as_ms() && day_of(Timestamp::from_ms(expires)) >= self.forgotten_day
    }

    pub(super) fn accepted(&mut self) -> Result<(), Failure> {
        let connection = self.connection;
        let mut select = connection.prepare(&format!("SELECT {ACCEPTED_COLUMNS} FROM accepted"))?;
        let mut rows = select.query([])?;
        let mut kept = 0;
        while let Some(row) = rows.next()? {
            self.checked.accepted += 1;
            let columns = match accepted_columns_unchecked(row) {
                Ok(columns) => columns,
                Err(failure) => {
                    self.fault(None, format!("an idempotency key cannot be read: {}", super::told(&failure.0)));
                    continue;
                }
            };
            let filed = self.filed(&columns)?;
            let id = filed.as_ref().map(|filed| filed.id.clone());
            if row.get::<_, i64>(8)? != columns.checksum() {
                let what = format!("an idempotency key of task number {} does not match its checksum", columns.task_no);
                self.fault(id.as_deref(), what);
                continue;
            }
            // The task was removed, so the key cannot be checked and is never used.
            let Some(filed) = filed else { continue };
            let AcceptedColumns { turn, after_seq, expires, version, .. } = columns;
            if !(1..=filed.turns).contains(&turn) || !(0..=filed.seq).contains(&after_seq) {
                let what =
                    format!("a message was accepted as turn {turn} after event {after_seq}, which it does not have");
                self.fault(id.as_deref(), what);
            }
            match filed.expires {
                Some(said) if version > 0 && said != Some(expires) => {
                    self.fault(
                        id.as_deref(),
                        format!("an idempotency key was not filed by commit {version}, as it says"),
                    );
                }
                None if version > filed.floor_version => {
                    self.fault(
                        id.as_deref(),
                        format!("an idempotency key was filed by commit {version}, which is missing"),
                    );
                }
                Some(_) if version > 0 && self.is_kept(expires) => kept += 1,
                Some(_) | None => {}
            }
        }
        if kept != self.keys_filed {
            self.missing_keys()?;
        }
        Ok(())
    }

    fn filed(&self, key: &AcceptedColumns<'_>) -> Result<Option<KeyOrigin>, Failure> {
        let mut select =
            self.connection.prepare_cached("SELECT id, turns, seq, floor_version FROM task WHERE task_no = ?1")?;
        let found = select.query_row([key.task_no], |row| {
            Ok(KeyOrigin {
                id: row.get(0)?,
                turns: row.get(1)?,
                seq: row.get(2)?,
                floor_version: row.get(3)?,
                expires: None,
            })
        });
        let Some(filed) = found.optional()? else { return Ok(None) };
        let mut select = self.connection.prepare_cached("SELECT accept_expires FROM log WHERE log_no = ?1")?;
        let expires = select.query_row([log_no(key.task_no, key.version)], |row| row.get(0)).optional()?;
        Ok(Some(KeyOrigin { expires, ..filed }))
    }

    /// Reports the commits whose keys are missing. It is called only when some are, so it may need time and memory.
    fn missing_keys(&mut self) -> Result<(), Failure> {
        let connection = self.connection;
        connection.execute_batch("CREATE TEMP TABLE kept_key (log_no INTEGER NOT NULL PRIMARY KEY) STRICT")?;
        connection.execute(
            "INSERT OR IGNORE INTO kept_key SELECT task_no << 24 | version FROM accepted WHERE version > 0",
            [],
        )?;
        let mut select = connection.prepare(
            "SELECT task.id, log.log_no & 0xFFFFFF, log.accept_expires
               FROM log JOIN task ON task.task_no = log.log_no >> 24
              WHERE log.accept_expires > ?1 AND NOT EXISTS (SELECT 1 FROM kept_key WHERE kept_key.log_no = log.log_no)",
        )?;
        let mut rows = select.query(params![self.now.as_ms()])?;
        while let Some(row) = rows.next()? {
            let (id, version, expires): (String, i64, i64) = (row.get(0)?, row.get(1)?, row.get(2)?);
            if self.is_kept(expires) {
                self.fault(Some(&id), format!("the idempotency key that commit {version} filed is missing"));
            }
        }
        Ok(())
    }
}
