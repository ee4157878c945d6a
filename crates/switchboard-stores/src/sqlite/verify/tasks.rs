//! Checks one task after the other: its row against its log, and its webhooks against both.

use rusqlite::Row;
use switchboard_core::model::AgentName;

use super::super::error::Failure;
use super::super::push_rows::{AFTER_PUSH, OWNER_OF_TASK, PUSH_COLUMNS, push_columns_unchecked};
use super::super::rows::{
    AFTER_TASK, TASK_COLUMNS, TaskRow, UNINDEXED_RUN, UNINDEXED_TASK, of_push_times, task_columns_unchecked, task_row,
};
use super::super::secrets::{is_plain, is_readable};
use super::super::unindexed::AMONG_THE_NEWEST;
use super::super::usage::bytes_of_task;
use super::{Inspection, told};
use crate::record::signed;

/// A task's row, and further columns of it.
pub(super) struct Inspected {
    pub(super) row: TaskRow,
    pub(super) floor_seq: i64,
    pub(super) floor_version: i64,
    is_as_written: bool,
    holder: i64,
    is_unindexed: bool,
    leased: bool,
    due: bool,
    closed: bool,
    being_removed: bool,
    scope_known: bool,
    bytes: i64,
}

fn inspected_from(row: &Row<'_>) -> Result<Inspected, Failure> {
    let columns = task_columns_unchecked(row)?;
    let agent: Option<String> = row.get(AFTER_TASK)?;
    let scope_known = agent.is_some();
    Ok(Inspected {
        row: task_row(&columns, &AgentName::from(agent.unwrap_or_default()))?,
        floor_seq: columns.floor_seq,
        floor_version: columns.floor_version,
        is_as_written: row.get::<_, i64>(AFTER_TASK - 1)? == columns.checksum(),
        holder: columns.holder,
        is_unindexed: columns.head.running == UNINDEXED_RUN || columns.head.phase == UNINDEXED_TASK,
        leased: columns.lease_until.is_some(),
        due: columns.run_at.is_some(),
        closed: columns.closed_at.is_some(),
        being_removed: row.get(AFTER_TASK + 1)?,
        scope_known,
        bytes: columns.bytes,
    })
}

impl Inspection<'_> {
    pub(super) fn tasks(&mut self) -> Result<(), Failure> {
        let connection = self.connection;
        let oldest = format!("SELECT coalesce(min(task_no), 0) FROM task WHERE {AMONG_THE_NEWEST}");
        self.unindexed_from = connection.query_row(&oldest, [], |row| row.get(0))?;
        let sql = format!(
            "SELECT {TASK_COLUMNS}, scope.agent, EXISTS (SELECT 1 FROM removal WHERE removal.task_no = task.task_no)
               FROM task LEFT JOIN scope USING (scope_no) ORDER BY task_no"
        );
        let mut select = connection.prepare(&sql)?;
        let mut rows = select.query([])?;
        while let Some(row) = rows.next()? {
            self.checked.tasks += 1;
            let task_no: i64 = row.get(0)?;
            let id: String = row.get(1).unwrap_or_else(|_| format!("number {task_no}"));
            let found = inspected_from(row);
            let task = match found {
                Ok(task) => task,
                Err(failure) => {
                    self.fault(Some(&id), format!("its row cannot be read: {}", told(&failure.0)));
                    continue;
                }
            };
            let faults = self.checked.faults;
            self.checked.tasks_compacted += u64::from(task.floor_version > 0);
            self.row_alone(&task);
            if let Err(failure) = self.commits(&task) {
                self.fault(Some(&id), format!("its log could not be read to the end: {}", told(&failure.0)));
            }
            if let Err(failure) = self.webhooks(&task) {
                self.fault(Some(&id), format!("its webhooks could not be read to the end: {}", told(&failure.0)));
            }
            // A row that is missing is a fault already, and it is why the bytes differ.
            if self.checked.faults == faults {
                let counted = bytes_of_task(connection, task_no, task.row.head.push_configs.into())?;
                if counted != task.bytes {
                    self.fault(Some(&id), format!("it counts {} bytes stored, and has {counted}", task.bytes));
                }
            }
        }
        Ok(())
    }

    /// Checks of a row that do not depend on its log.
    fn row_alone(&mut self, task: &Inspected) {
        let head = &task.row.head;
        let (holder, epoch) = (task.holder, self.epoch);
        let faults = [
            (!task.is_as_written, "its row does not match its checksum".to_owned()),
            (!task.scope_known, "it has no owner: its scope is missing".to_owned()),
            (task.being_removed, "it is there, and is being removed".to_owned()),
            (head.running && holder == 0 && !task.due, "no process holds its run, and it is never due".to_owned()),
            (!head.running && (holder != 0 || task.due), "a run is held or due, and none is at work".to_owned()),
            ((holder != 0) != task.leased, "whether its run is held is told in two ways".to_owned()),
            (holder > epoch, format!("its run is held by epoch {holder}, and the file is in epoch {epoch}")),
            (
                task.is_unindexed && (holder == 0 || task.row.task_no < self.unindexed_from),
                "it is not in the indexes of lists and runs, and should be".to_owned(),
            ),
            (task.closed != head.is_closed(), "whether it has ended is told in two ways".to_owned()),
            (task.floor_version > 0 && !head.is_closed(), "it was compacted before it ended".to_owned()),
            (
                task.floor_seq > signed(head.seq) || task.floor_version > signed(head.version),
                "more of it was compacted than there is".to_owned(),
            ),
        ];
        for (is_so, what) in faults {
            if is_so {
                self.fault(Some(head.id.as_str()), what);
            }
        }
    }

    fn webhooks(&mut self, task: &Inspected) -> Result<(), Failure> {
        let connection = self.connection;
        let head = &task.row.head;
        let sql = format!(
            "SELECT {PUSH_COLUMNS}, due_at, claimed_until, times_checksum,
                    owner_no = coalesce(({OWNER_OF_TASK} WHERE task.task_no = ?1), owner_no)
               FROM push WHERE task_no = ?1"
        );
        let mut select = connection.prepare_cached(&sql)?;
        let mut rows = select.query([task.row.task_no])?;
        let mut count = 0;
        while let Some(row) = rows.next()? {
            count += 1;
            let columns = match push_columns_unchecked(row) {
                Ok(columns) => columns,
                Err(failure) => {
                    self.fault(Some(head.id.as_str()), format!("a webhook cannot be read: {}", told(&failure.0)));
                    continue;
                }
            };
            let (due_at, claimed_until): (Option<i64>, Option<i64>) = (row.get(AFTER_PUSH)?, row.get(AFTER_PUSH + 1)?);
            let (delivered, parked, due) = (columns.delivered_seq, columns.parked != 0, due_at.is_some());
            let config = &columns.config_id;
            if row.get::<_, i64>(AFTER_PUSH - 1)? != columns.checksum() {
                self.fault(Some(head.id.as_str()), format!("webhook {config} does not match its checksum"));
            }
            if row.get::<_, i64>(AFTER_PUSH + 2)? != of_push_times(due_at, claimed_until) {
                self.fault(
                    Some(head.id.as_str()),
                    format!("the times of webhook {config} do not match their checksum"),
                );
            }
            if !row.get::<_, bool>(AFTER_PUSH + 3)? {
                self.fault(Some(head.id.as_str()), format!("webhook {config} is filed under another owner"));
            }
            if columns.dialect().is_err() {
                let dialect = &columns.dialect;
                let what = format!("webhook {config} is for the dialect {dialect}, which this build does not know");
                self.fault(Some(head.id.as_str()), what);
            }
            if self.are_secrets_sealed && is_plain(&columns) {
                self.fault(Some(head.id.as_str()), format!("a secret of webhook {config} is not encrypted"));
            } else if !is_readable(self.secret_keys, &columns) {
                self.checked.webhooks_without_key += 1;
            }
            let seq = signed(head.seq);
            let what = if !(0..=seq).contains(&delivered) {
                format!("has delivered event {delivered} of {seq}")
            } else if parked && due {
                "is given up on, and due".to_owned()
            } else if delivered < seq && !parked && !due {
                format!("has delivered event {delivered} of {seq}, and is not due")
            } else if delivered < task.floor_seq {
                format!("has yet to deliver event {}, which is no longer kept", delivered + 1)
            } else {
                continue;
            };
            self.fault(Some(head.id.as_str()), format!("webhook {config} {what}"));
        }
        self.checked.webhooks += u64::from(count);
        if count != head.push_configs {
            let what = format!("it counts {} webhooks, and has {count}", head.push_configs);
            self.fault(Some(head.id.as_str()), what);
        }
        Ok(())
    }
}
