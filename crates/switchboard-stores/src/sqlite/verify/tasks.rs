//! One task after the other: its row against its log, and its webhooks against both.

use rusqlite::Row;
use switchboard_core::model::{AgentName, Dialect};

use super::super::error::Failure;
use super::super::rows::{AFTER_HEAD, HEAD_COLUMNS, TaskRow, head_from, signed};
use super::{Inspection, told};

/// A task's row, and what else it says.
pub(super) struct Inspected {
    pub(super) row: TaskRow,
    pub(super) floor_seq: i64,
    pub(super) floor_version: i64,
    holder: i64,
    due: bool,
    closed: bool,
    being_removed: bool,
    scope_known: bool,
}

fn inspected_from(row: &Row<'_>) -> Result<Inspected, Failure> {
    let agent: Option<String> = row.get(AFTER_HEAD)?;
    let scope_known = agent.is_some();
    Ok(Inspected {
        row: head_from(row, &AgentName::from(agent.unwrap_or_default()))?,
        floor_seq: row.get(AFTER_HEAD + 1)?,
        floor_version: row.get(AFTER_HEAD + 2)?,
        holder: row.get(AFTER_HEAD + 3)?,
        due: row.get(AFTER_HEAD + 4)?,
        closed: row.get(AFTER_HEAD + 5)?,
        being_removed: row.get(AFTER_HEAD + 6)?,
        scope_known,
    })
}

impl Inspection<'_> {
    pub(super) fn tasks(&mut self) -> Result<(), Failure> {
        let connection = self.connection;
        let epoch: i64 = connection.query_row("SELECT value FROM meta WHERE name = 'epoch'", [], |row| row.get(0))?;
        let sql = format!(
            "SELECT {HEAD_COLUMNS}, scope.agent, floor_seq, floor_version, holder, run_at IS NOT NULL,
                    closed_at IS NOT NULL, EXISTS (SELECT 1 FROM removal WHERE removal.task_no = task.task_no)
               FROM task LEFT JOIN scope USING (scope_no) ORDER BY task_no"
        );
        let mut select = connection.prepare(&sql)?;
        let mut rows = select.query([])?;
        while let Some(row) = rows.next()? {
            self.checked.tasks += 1;
            let id: String = row.get(1)?;
            match inspected_from(row) {
                Ok(task) => {
                    self.checked.tasks_compacted += u64::from(task.floor_version > 0);
                    self.row_alone(&task, epoch);
                    // What cannot be read of one task says nothing about the next.
                    for look in [Self::commits, Self::webhooks] {
                        if let Err(failure) = look(self, &task) {
                            self.fault(Some(&id), format!("it cannot be read: {}", told(&failure.0)));
                        }
                    }
                }
                Err(failure) => self.fault(Some(&id), format!("its row cannot be read: {}", told(&failure.0))),
            }
        }
        Ok(())
    }

    /// What a row must say whatever its log says.
    fn row_alone(&mut self, task: &Inspected, epoch: i64) {
        let head = &task.row.head;
        let holder = task.holder;
        let faults = [
            (!task.scope_known, "nobody owns it: its scope is missing".to_owned()),
            (task.being_removed, "it is there, and is being removed".to_owned()),
            (head.running && holder == 0 && !task.due, "nobody holds its run, and it is never due".to_owned()),
            (!head.running && (holder != 0 || task.due), "a run is held or due, and none is at work".to_owned()),
            (holder > epoch, format!("its run is held by epoch {holder}, and the file is in epoch {epoch}")),
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
        let mut select = connection.prepare_cached(
            "SELECT config_id, delivered_seq, due_at IS NOT NULL, parked, dialect FROM push WHERE task_no = ?1",
        )?;
        let mut rows = select.query([task.row.task_no])?;
        let mut count = 0;
        while let Some(row) = rows.next()? {
            count += 1;
            let (config, delivered, due, parked): (String, i64, bool, bool) =
                (row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?);
            let dialect: String = row.get(4)?;
            if Dialect::from_name(&dialect).is_none() {
                let what = format!("webhook {config} is for the dialect {dialect}, which this build does not know");
                self.fault(Some(head.id.as_str()), what);
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
