//! The prepared statements for commits, which the writer keeps. Their values are bound one by one or as a tuple, by their types:
//! `params!` finds out the type of each value when it runs, which takes 70 instructions more for every value.

use rusqlite::{Connection, Statement};

use super::rows::TASK_COLUMNS;

/// Which columns an update names decides which indexes it touches, so there is one
/// for each combination of "the listing changes" and "the run changes".
pub(super) struct Statements<'c> {
    pub(super) insert_task: Statement<'c>,
    pub(super) insert_log: Statement<'c>,
    pub(super) insert_recent: Statement<'c>,
    pub(super) file_recent: Statement<'c>,
    pub(super) update_filed: Statement<'c>,
    pub(super) select_task: Statement<'c>,
    pub(super) update_task: [[Statement<'c>; 2]; 2],
    pub(super) probe_accepted: Statement<'c>,
    pub(super) insert_accepted: Statement<'c>,
}

const UPDATE_ALWAYS: &str = "version = ?2, seq = ?3, turns = ?4, turn = ?5, fence = ?6, attempt = ?7, \
     push_configs = ?8, deadline = ?9, artifacts = ?10, story_version = ?11, artifact_version = ?12, \
     status_version = ?13, lease_until = ?14, updated_at = ?15, closed_at = ?16, checksum = ?17, bytes = ?25";
const UPDATE_LISTING: &str = ", phase = ?18, state = ?19, status_at = ?20";
const UPDATE_RUN: &str = ", running = ?21, holder = ?22, run_at = ?23, cancel_requested = ?24";

impl<'c> Statements<'c> {
    pub(super) fn prepare(connection: &'c Connection) -> rusqlite::Result<Self> {
        let update = |listing: &str, run: &str| {
            connection.prepare(&format!("UPDATE task SET {UPDATE_ALWAYS}{listing}{run} WHERE task_no = ?1"))
        };
        Ok(Self {
            insert_task: connection.prepare(
                "INSERT INTO task (task_no, id, scope_no, context_id, phase, state, status_at, version, seq, turns,
                                   turn, fence, attempt, cancel_requested, push_configs, deadline, artifacts,
                                   story_version, artifact_version, status_version, floor_seq, floor_version, running,
                                   holder, lease_until, run_at, created_at, updated_at, closed_at, checksum, bytes)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20, 0,
                         0, ?21, ?22, ?23, ?24, ?25, ?25, ?26, ?27, ?28)
                 ON CONFLICT DO NOTHING",
            )?,
            insert_log: connection.prepare(
                "INSERT INTO log (log_no, last_seq, visible, prev_story, prev_artifact, at, record, accept_expires, checksum)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
            )?,
            insert_recent: connection.prepare(
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
