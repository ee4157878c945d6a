//! Checks the chunks that wait to be filed: each matches its checksum and continues its task.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use rusqlite::OptionalExtension;

use super::super::error::Failure;
use super::super::fold::{Chunks, story_below_checkpoint};
use super::super::recent::{are_chunks, has_checkpoint};
use super::super::rows::{LogRow, RECENT_COLUMNS, VERSION_BITS, version_of};
use super::{Inspection, told};
use crate::checksum::ContentHash;
use crate::record::{Want, decode, signed};

/// The state of a task after those of its chunks that were checked.
struct TaskAfterChunks {
    id: String,
    version: i64,
    seq: i64,
    story: i64,
    /// The commit that a checkpoint would be chained to; none if it must be looked up.
    below_checkpoint: Option<i64>,
    artifact: i64,
    /// The chunks after a faulty one cannot be checked.
    is_faulty: bool,
}

impl Inspection<'_> {
    pub(super) fn recent(&mut self) -> Result<(), Failure> {
        let connection = self.connection;
        let mut tasks: HashMap<i64, Option<TaskAfterChunks>> = HashMap::new();
        let sql = format!("SELECT {RECENT_COLUMNS}, recent_no FROM recent ORDER BY recent_no");
        let mut select = connection.prepare(&sql)?;
        let mut rows = select.query([])?;
        let (mut next, last) = self.recent;
        let mut is_damaged = false;
        while let Some(row) = rows.next()? {
            let no: i64 = row.get(9)?;
            // The rows of a damaged task stay while the rows around them are deleted, so gaps are allowed.
            if no != next && !is_damaged {
                self.fault(None, format!("chunk {next} of those that wait to be filed is missing: {no} follows"));
            }
            next = no + 1;
            let found = LogRow::read_unchecked(row)?;
            let (task_no, version) = (found.columns.log_no >> VERSION_BITS, version_of(found.columns.log_no));
            if let Entry::Vacant(entry) = tasks.entry(task_no) {
                entry.insert(self.standing(task_no)?);
            }
            let task = tasks.get_mut(&task_no).and_then(Option::as_mut);
            if row.get::<_, i64>(7)? != found.columns.checksum(ContentHash::of(found.record.as_bytes())) {
                is_damaged = true;
                let id = task.as_ref().map(|task| task.id.clone());
                self.fault(id.as_deref(), format!("commit {version}, a new one, does not match its checksum"));
                if let Some(task) = task {
                    task.is_faulty = true;
                }
                continue;
            }
            // The task was removed since, or the row is already filed; it is only not deleted yet.
            let Some(task) = task.filter(|task| version > task.version && !task.is_faulty) else { continue };
            self.checked.commits += 1;
            match continues(task, &found, &Chunks(connection)) {
                Ok(events) => self.checked.events += events,
                Err(what) => {
                    task.is_faulty = true;
                    let id = task.id.clone();
                    self.fault(Some(&id), format!("commit {version}, a new one: {what}"));
                }
            }
        }
        if next != last + 1 {
            self.fault(
                None,
                format!("the chunks that wait to be filed end before number {next}, and should with {last}"),
            );
        }
        Ok(())
    }

    fn standing(&self, task_no: i64) -> Result<Option<TaskAfterChunks>, Failure> {
        let mut select = self
            .connection
            .prepare_cached("SELECT id, version, seq, story_version, artifact_version FROM task WHERE task_no = ?1")?;
        let standing = select.query_row([task_no], |row| {
            Ok(TaskAfterChunks {
                id: row.get(0)?,
                version: row.get(1)?,
                seq: row.get(2)?,
                story: row.get(3)?,
                below_checkpoint: None,
                artifact: row.get(4)?,
                is_faulty: false,
            })
        });
        Ok(standing.optional()?)
    }
}

/// Applies one chunk to a task and returns the number of its events, or why it does not follow.
fn continues(task: &mut TaskAfterChunks, found: &LogRow<'_>, chunks: &Chunks<'_>) -> Result<u64, String> {
    let events = decode(found.record, Want::Everything, chunks).map_err(|error| told(&error))?;
    let (version, columns) = (found.version(), &found.columns);
    if !are_chunks(&events) {
        return Err("it does more than write to an artifact".to_owned());
    }
    let visible = events.iter().filter(|event| event.is_visible()).count();
    if columns.visible != signed(visible as u64) {
        return Err(format!("it says that it has {} visible events, and has {visible}", columns.visible));
    }
    let replaces = has_checkpoint(&events);
    let prev_story = match (replaces, task.below_checkpoint) {
        (false, _) => task.story,
        (true, Some(below)) => below,
        (true, None) => {
            let task_no = columns.log_no >> VERSION_BITS;
            story_below_checkpoint(chunks.0, task_no, task.story).map_err(|failure| told(&failure.0))?
        }
    };
    let expected = (task.version + 1, task.seq + columns.visible, prev_story, task.artifact);
    if (version, columns.last_seq, columns.prev_story, columns.prev_artifact) != expected {
        return Err(format!("it does not follow commit {}", task.version));
    }
    (task.version, task.seq, task.artifact) = (version, columns.last_seq, version);
    if replaces {
        (task.story, task.below_checkpoint) = (version, Some(prev_story));
    }
    Ok(events.len() as u64)
}
