//! The prepared statements for commits, which the writer keeps. Their values are bound one by one or as a tuple, by their types:
//! `params!` finds out the type of each value when it runs, which takes 70 instructions more for every value.

use rusqlite::{Connection, Result, Statement};

use super::rows::TASK_COLUMNS;

/// Which columns an update names decides which indexes it touches, so there is one
/// for each combination of "the listing changes" and "the run changes".
pub(super) struct Statements<'c> {
    pub(super) insert_task: WriteStatement<'c>,
    pub(super) insert_log: WriteStatement<'c>,
    pub(super) insert_recent: WriteStatement<'c>,
    pub(super) file_recent: Statement<'c>,
    pub(super) update_filed: Statement<'c>,
    pub(super) select_task: Statement<'c>,
    pub(super) update_task: [[WriteStatement<'c>; 2]; 2],
    pub(super) probe_accepted: Statement<'c>,
    pub(super) insert_accepted: Statement<'c>,
}

const UPDATE_ALWAYS: &str = "version = ?2, seq = ?3, turns = ?4, turn = ?5, fence = ?6, attempt = ?7, \
     push_configs = ?8, deadline = ?9, artifacts = ?10, story_version = ?11, artifact_version = ?12, \
     status_version = ?13, lease_until = ?14, updated_at = ?15, closed_at = ?16, checksum = ?17, bytes = ?25";
const UPDATE_LISTING: &str = ", phase = ?18, state = ?19, status_at = ?20";
const UPDATE_RUN: &str = ", running = ?21, holder = ?22, run_at = ?23, cancel_requested = ?24";

impl<'c> Statements<'c> {
    pub(super) fn prepare(connection: &'c Connection) -> Result<Self> {
        let update = |listing: &str, run: &str| {
            let sql = format!("UPDATE task SET {UPDATE_ALWAYS}{listing}{run} WHERE task_no = ?1");
            WriteStatement::prepare(connection, &sql)
        };
        Ok(Self {
            insert_task: WriteStatement::prepare(
                connection,
                "INSERT INTO task (task_no, id, scope_no, context_id, phase, state, status_at, version, seq, turns,
                                   turn, fence, attempt, cancel_requested, push_configs, deadline, artifacts,
                                   story_version, artifact_version, status_version, floor_seq, floor_version, running,
                                   holder, lease_until, run_at, created_at, updated_at, closed_at, checksum, bytes)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20, 0,
                         0, ?21, ?22, ?23, ?24, ?25, ?25, ?26, ?27, ?28)
                 ON CONFLICT DO NOTHING",
            )?,
            insert_log: WriteStatement::prepare(
                connection,
                "INSERT INTO log (log_no, last_seq, visible, prev_story, prev_artifact, at, record, accept_expires, checksum)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
            )?,
            insert_recent: WriteStatement::prepare(
                connection,
                "INSERT INTO recent (recent_no, log_no, last_seq, visible, prev_story, prev_artifact, at, record, checksum)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
            )?,
            // It is one row, so there is nothing to undo if it fails. Without `OR FAIL` SQLite copies the pages that it changes
            // in order to undo them.
            file_recent: connection.prepare(
                "INSERT OR FAIL INTO log (log_no, last_seq, visible, prev_story, prev_artifact, at, record, checksum)
                 SELECT log_no, last_seq, visible, prev_story, prev_artifact, at, record,
                        (checksum | recent_no) & ~(checksum & recent_no)
                   FROM recent WHERE recent_no = ?1",
            )?,
            update_filed: connection.prepare(
                "UPDATE task SET version = ?2, seq = ?3, artifacts = ?4, artifact_version = ?5, updated_at = ?6,
                                 checksum = ?7, bytes = ?8, story_version = ?9
                  WHERE task_no = ?1",
            )?,
            select_task: connection.prepare(&format!("SELECT {TASK_COLUMNS} FROM task WHERE task_no = ?1"))?,
            update_task: [
                [update("", "")?, update("", UPDATE_RUN)?],
                [update(UPDATE_LISTING, "")?, update(UPDATE_LISTING, UPDATE_RUN)?],
            ],
            probe_accepted: connection.prepare("SELECT 1 FROM accepted WHERE day = ?1 AND key = ?2")?,
            insert_accepted: connection.prepare(
                "INSERT OR REPLACE INTO accepted (day, key, task_no, digest, turn, after_seq, expires, version, checksum)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
            )?,
        })
    }
}

/// A statement that writes a row and knows which numbers are bound to it. SQLite keeps the values of a statement from one execution to
/// the next, and most columns of a commit have the value that they had in the commit before: those are not bound again, which takes
/// 100 instructions for each.
pub(super) struct WriteStatement<'c> {
    statement: Statement<'c>,
    bound: Box<[Bound]>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Bound {
    Number(Option<i64>),
    /// A text, or a value that could not be bound.
    Other,
}

/// What a column can be set to.
#[derive(Clone, Copy)]
pub(super) enum Value<'v> {
    Number(Option<i64>),
    Text(&'v str),
}

impl<'c> WriteStatement<'c> {
    fn prepare(connection: &'c Connection, sql: &str) -> Result<Self> {
        let statement = connection.prepare(sql)?;
        let bound = vec![Bound::Number(None); statement.parameter_count()].into();
        Ok(Self { statement, bound })
    }

    /// Sets the parameter with this number, which counts from 1.
    #[inline]
    pub(super) fn bind<'v>(&mut self, number: usize, value: impl Into<Value<'v>>) -> Result<()> {
        let value = value.into();
        let Some(bound) = self.bound.get_mut(number.wrapping_sub(1)) else {
            return Err(rusqlite::Error::InvalidParameterCount(number, self.bound.len()));
        };
        let before = std::mem::replace(bound, Bound::Other);
        match value {
            Value::Number(value) => {
                if before != Bound::Number(value) {
                    self.statement.raw_bind_parameter(number, value)?;
                }
                *bound = Bound::Number(value);
                Ok(())
            }
            Value::Text(text) => self.statement.raw_bind_parameter(number, text),
        }
    }

    /// Runs the statement with the values that are bound, and returns how many rows it has changed.
    pub(super) fn execute(&mut self) -> Result<usize> {
        self.statement.raw_execute()
    }
}

impl From<i64> for Value<'_> {
    #[inline]
    fn from(number: i64) -> Self {
        Self::Number(Some(number))
    }
}

impl From<Option<i64>> for Value<'_> {
    #[inline]
    fn from(number: Option<i64>) -> Self {
        Self::Number(number)
    }
}

impl<'v> From<&'v str> for Value<'v> {
    #[inline]
    fn from(text: &'v str) -> Self {
        Self::Text(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(connection: &Connection) -> Vec<(Option<i64>, String)> {
        let mut select = connection.prepare("SELECT number, text FROM written ORDER BY rowid").unwrap();
        let rows = select.query_map([], |row| Ok((row.get(0)?, row.get(1)?))).unwrap();
        rows.collect::<Result<_>>().unwrap()
    }

    #[test]
    fn each_row_has_the_values_that_were_bound_last() {
        let connection = Connection::open_in_memory().unwrap();
        connection.execute_batch("CREATE TABLE written (number, text)").unwrap();
        let mut insert =
            WriteStatement::prepare(&connection, "INSERT INTO written (number, text) VALUES (?1, ?2)").unwrap();
        let values = [(None, "a"), (Some(1), "b"), (Some(1), "b"), (Some(0), "c"), (None, "c"), (Some(0), "c")];
        for (number, text) in values {
            insert.bind(1, number).unwrap();
            insert.bind(2, text).unwrap();
            assert_eq!(insert.execute().unwrap(), 1);
        }
        assert_eq!(rows(&connection), values.map(|(number, text)| (number, text.to_owned())));
    }

    #[test]
    fn a_number_is_bound_again_after_a_text() {
        let connection = Connection::open_in_memory().unwrap();
        connection.execute_batch("CREATE TABLE written (number, text)").unwrap();
        let mut insert =
            WriteStatement::prepare(&connection, "INSERT INTO written (number, text) VALUES (?1, ?2)").unwrap();
        insert.bind(2, "beside it").unwrap();
        for value in [Value::Number(Some(7)), Value::Text("a text"), Value::Number(Some(7))] {
            insert.bind(1, value).unwrap();
        }
        insert.execute().unwrap();
        assert_eq!(rows(&connection), [(Some(7), "beside it".to_owned())]);
    }

    #[test]
    fn a_parameter_that_does_not_exist_is_refused() {
        let connection = Connection::open_in_memory().unwrap();
        let mut select = WriteStatement::prepare(&connection, "SELECT ?1").unwrap();
        for number in [0, 2] {
            select.bind(number, 7).unwrap_err();
        }
    }
}
