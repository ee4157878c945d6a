//! Counts the tasks of a file by state, and their bytes by owner, when it is opened. A large file is counted by a separate thread, so that it does
//! not delay the start of the server (a million tasks take about 0.2 s). The thread reads the file as it was before the
//! first write, and the writer keeps count of the changes since.

use std::path::Path;
use std::sync::Arc;
use std::thread::JoinHandle;

use rusqlite::{Connection, InterruptHandle};

use super::open::open_reader;
use super::rows::UNINDEXED_TASK;
use super::totals::{ByState, Totals, place};
use super::unindexed::AMONG_THE_NEWEST;
use super::usage::{self, StoredSums};

/// Files with no more tasks than this are counted at once, which takes less than a millisecond.
pub(super) const AT_ONCE_MAX: i64 = 2_000;

/// A count that may still be running; dropping it stops the thread.
pub(super) struct Census {
    under_way: Option<(InterruptHandle, JoinHandle<()>)>,
}

impl Census {
    /// Counts what the file holds now. Nothing may have been written since it was opened. A file that cannot be counted, such
    /// as a damaged one, is served without the count.
    pub(super) fn begin(
        path: &Path,
        connection: &Connection,
        totals: &Arc<Totals>,
        sums: &Arc<StoredSums>,
        at_once_max: i64,
    ) -> Self {
        let begun = Self::try_begin(path, connection, totals, sums, at_once_max);
        let under_way = begun.unwrap_or_else(|error| {
            not_counted(&error);
            None
        });
        Self { under_way }
    }

    fn try_begin(
        path: &Path,
        connection: &Connection,
        totals: &Arc<Totals>,
        sums: &Arc<StoredSums>,
        at_once_max: i64,
    ) -> rusqlite::Result<Option<(InterruptHandle, JoinHandle<()>)>> {
        let span = "SELECT coalesce(max(task_no) - min(task_no), 0) FROM task";
        if connection.query_row(span, [], |row| row.get::<_, i64>(0))? < at_once_max {
            totals.counted_all(count(connection)?);
            sums.counted(usage::count(connection)?);
            return Ok(None);
        }
        let reader = open_reader(path)?;
        // The first read fixes what the transaction sees.
        reader.execute_batch("BEGIN; SELECT 1 FROM meta LIMIT 1")?;
        let (interrupt, totals, sums) = (reader.get_interrupt_handle(), totals.clone(), sums.clone());
        let thread = std::thread::Builder::new().name("sqlite-count".to_owned());
        #[expect(clippy::disallowed_methods, reason = "counting blocks; this thread is joined on drop")]
        let spawned = thread.spawn(move || {
            match count(&reader).and_then(|counts| {
                totals.counted_all(counts);
                usage::count(&reader)
            }) {
                Ok(counted) => sums.counted(counted),
                Err(error) if error.sqlite_error_code() == Some(rusqlite::ErrorCode::OperationInterrupted) => {}
                Err(error) => not_counted(&error),
            }
        });
        Ok(spawned.ok().map(|thread| (interrupt, thread)))
    }
}

impl Drop for Census {
    fn drop(&mut self) {
        if let Some((interrupt, thread)) = self.under_way.take() {
            interrupt.interrupt();
            let _ = thread.join();
        }
    }
}

fn not_counted(error: &rusqlite::Error) {
    tracing::warn!(%error, "the tasks could not be counted; /metrics does not show them by state, nor all bytes stored");
}

/// Grouped in the order of the listing index, so that SQLite need not sort.
fn count(connection: &Connection) -> rusqlite::Result<ByState> {
    let mut counts = ByState::default();
    let sql = format!(
        "SELECT state, count(*) FROM task WHERE phase = 1 GROUP BY scope_no, state UNION ALL
         SELECT state, 1 FROM task WHERE phase = {UNINDEXED_TASK} AND {AMONG_THE_NEWEST}"
    );
    let mut select = connection.prepare(&sql)?;
    let mut rows = select.query([])?;
    while let Some(row) = rows.next()? {
        if let Some(count) = counts.get_mut(place(row.get(0)?)) {
            *count += row.get::<_, i64>(1)?.unsigned_abs();
        }
    }
    Ok(counts)
}
