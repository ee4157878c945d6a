//! Deliveries as an operator sees them. There is no index for dead letters, which would burden every commit with a
//! webhook: a list looks at a bounded stretch of the webhooks at a time, and goes on where it stopped.

use rusqlite::{Connection, Row, params};
use switchboard_core::model::Timestamp;
use switchboard_engine::ports::outbox::{OutboxEntry, OutboxPage, OutboxQuery, OutboxState};
use switchboard_engine::ports::store::{DeliveryKey, TaskKey};

use super::deliveries::{dialect_from, scope_from};
use super::error::Failure;
use super::ledger::Ledger;
use super::quarantine::{Quarantined, text_of};
use super::read::at_once;
use super::rows::{signed, unsigned};

/// Webhooks looked at for one page.
const EXAMINED_MAX: u64 = 50_000;

/// A page of them. A webhook that cannot be read is passed over, and named in the quarantine.
pub(super) fn list(
    connection: &Connection,
    quarantine: &Quarantined,
    query: OutboxQuery,
) -> Result<OutboxPage, Failure> {
    at_once(connection, || {
        let mut select = connection.prepare_cached(
            "SELECT push_no, parked, due_at, claimed_until FROM push WHERE push_no > ?1 ORDER BY push_no LIMIT ?2",
        )?;
        let mut rows = select.query(params![query.after.map_or(0, |key| key.0), signed(EXAMINED_MAX)])?;
        let mut page = OutboxPage { entries: Vec::new(), next: None };
        let mut examined = 0;
        let mut last = None;
        while let Some(row) = rows.next()? {
            if page.entries.len() >= query.limit {
                page.next = last;
                return Ok(page);
            }
            examined += 1;
            let key = DeliveryKey(row.get(0)?);
            last = Some(key);
            let state = state_of(row.get(1)?, row.get(2)?, row.get(3)?);
            if state.is_some_and(|state| query.state.is_none_or(|wanted| wanted == state)) {
                page.entries.extend(find(connection, quarantine, key)?);
            }
        }
        page.next = last.filter(|_| examined == EXAMINED_MAX);
        Ok(page)
    })
}

fn state_of(parked: bool, due_at: Option<i64>, claimed_until: Option<i64>) -> Option<OutboxState> {
    match (parked, due_at, claimed_until) {
        (true, _, _) => Some(OutboxState::Dead),
        (false, None, _) => None,
        (false, Some(_), Some(_)) => Some(OutboxState::UnderWay),
        (false, Some(_), None) => Some(OutboxState::Waiting),
    }
}

pub(super) fn find(
    connection: &Connection,
    quarantine: &Quarantined,
    key: DeliveryKey,
) -> Result<Option<OutboxEntry>, Failure> {
    let mut select = connection.prepare_cached(
        "SELECT push.parked, push.due_at, push.claimed_until, push.task_no, task.id, push.config_id, push.url,
                push.delivered_seq, task.seq, push.failures, push.last_error, push.last_attempt_at, push.created_at,
                scope.tenant, scope.principal, scope.agent, push.dialect
           FROM push JOIN task USING (task_no) JOIN scope USING (scope_no) WHERE push.push_no = ?1",
    )?;
    let mut rows = select.query([key.0])?;
    let Some(row) = rows.next()? else { return Ok(None) };
    match entry_from(row, key) {
        Ok(entry) => Ok(entry),
        Err(failure) => match failure.damage() {
            Some(reason) => {
                quarantine.put_webhook(key.0, text_of(row, 4).into(), &text_of(row, 5), reason);
                Ok(None)
            }
            None => Err(failure),
        },
    }
}

/// The row of a webhook, unless it has nothing left to deliver.
fn entry_from(row: &Row<'_>, key: DeliveryKey) -> Result<Option<OutboxEntry>, Failure> {
    let text = |column: usize| row.get::<_, String>(column);
    let time = |column: usize| Ok::<_, rusqlite::Error>(row.get::<_, Option<i64>>(column)?.map(Timestamp::from_ms));
    let Some(state) = state_of(row.get(0)?, row.get(1)?, row.get(2)?) else { return Ok(None) };
    Ok(Some(OutboxEntry {
        key,
        scope: scope_from(row, 13)?,
        task_key: TaskKey(row.get(3)?),
        task_id: text(4)?.into(),
        config_id: text(5)?.into(),
        url: text(6)?,
        dialect: dialect_from(row, 16)?,
        state,
        delivered_seq: unsigned(row.get(7)?),
        task_seq: unsigned(row.get(8)?),
        failures: row.get(9)?,
        due: time(1)?,
        last_error: row.get(10)?,
        last_attempt_at: time(11)?,
        created_at: Timestamp::from_ms(row.get(12)?),
    }))
}

impl Ledger<'_> {
    pub(super) fn redrive(&mut self, keys: &[DeliveryKey]) -> Result<usize, Failure> {
        let mut update = self.connection.prepare_cached(
            "UPDATE push SET parked = 0, failures = 0, due_at = ?2
              WHERE push_no = ?1 AND (parked = 1 OR (due_at IS NOT NULL AND claimed_until IS NULL))",
        )?;
        let mut changed = 0;
        for key in keys {
            changed += update.execute([key.0, self.now.as_ms()])?;
        }
        self.count_rows(changed, 0);
        Ok(changed)
    }

    pub(super) fn purge(&mut self, keys: &[DeliveryKey]) -> Result<usize, Failure> {
        let mut update = self.connection.prepare_cached(
            "UPDATE push SET parked = 0, failures = 0, last_error = NULL,
                             delivered_seq = (SELECT seq FROM task WHERE task.task_no = push.task_no)
              WHERE push_no = ?1 AND parked = 1",
        )?;
        let mut changed = 0;
        for key in keys {
            changed += update.execute([key.0])?;
        }
        self.count_rows(changed, 0);
        Ok(changed)
    }
}
