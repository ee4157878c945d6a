//! The deliveries of all owners, for operators. There is no index of dead letters, because it would slow down every
//! commit with a webhook. Each page examines a bounded range of webhooks, and the next page continues there.

use rusqlite::{Connection, Row, params};
use switchboard_core::model::Timestamp;
use switchboard_engine::ports::outbox::{OutboxEntry, OutboxPage, OutboxQuery, OutboxState};
use switchboard_engine::ports::store::{DeliveryKey, TaskKey};

use super::Ledger;
use crate::record::{signed, unsigned};
use crate::sqlite::error::Failure;
use crate::sqlite::push_rows::{AFTER_PUSH, CONFIG_ID, PUSH_COLUMNS, push_columns};
use crate::sqlite::quarantine::{Quarantined, text_of};
use crate::sqlite::read::at_once;
use crate::sqlite::rows::{PushColumns, SCOPE_COLUMN_COUNT, SCOPE_COLUMNS, scope_from};

/// How many webhooks are examined for one page.
const EXAMINED_MAX: u64 = 50_000;

/// How many deliveries wait or are under way, counted up to this number in the index of what is due.
pub(crate) fn depth(connection: &Connection, at_most: u32) -> Result<u64, Failure> {
    let sql = "SELECT count(*) FROM (SELECT 1 FROM push WHERE due_at IS NOT NULL LIMIT ?1)";
    let count: i64 = connection.prepare_cached(sql)?.query_row([at_most], |row| row.get(0))?;
    Ok(count.unsigned_abs())
}

/// One page of deliveries. A webhook that cannot be read is skipped and put into quarantine.
pub(crate) fn list(
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

pub(crate) fn find(
    connection: &Connection,
    quarantine: &Quarantined,
    key: DeliveryKey,
) -> Result<Option<OutboxEntry>, Failure> {
    let sql = format!(
        "SELECT {PUSH_COLUMNS}, {SCOPE_COLUMNS}, push.due_at, push.claimed_until, task.id, task.seq
           FROM push JOIN task USING (task_no) JOIN scope USING (scope_no) WHERE push.push_no = ?1"
    );
    let mut select = connection.prepare_cached(&sql)?;
    let mut rows = select.query([key.0])?;
    let Some(row) = rows.next()? else { return Ok(None) };
    match entry_from(row, key) {
        Ok(entry) => Ok(entry),
        Err(failure) => match failure.damage() {
            Some(reason) => {
                let (task, config) = (text_of(row, AFTER_SCOPE + 2), text_of(row, CONFIG_ID));
                quarantine.put_webhook(key.0, task.into(), &config, reason);
                Ok(None)
            }
            None => Err(failure),
        },
    }
}

/// The first column after those of the webhook and of its owner.
const AFTER_SCOPE: usize = AFTER_PUSH + SCOPE_COLUMN_COUNT;

/// The row of a webhook, unless it has nothing left to deliver.
fn entry_from(row: &Row<'_>, key: DeliveryKey) -> Result<Option<OutboxEntry>, Failure> {
    let columns = push_columns(row)?;
    let due_at: Option<i64> = row.get(AFTER_SCOPE)?;
    let Some(state) = state_of(columns.parked != 0, due_at, row.get(AFTER_SCOPE + 1)?) else { return Ok(None) };
    Ok(Some(OutboxEntry {
        key,
        scope: scope_from(row, AFTER_PUSH)?,
        task_key: TaskKey(columns.task_no),
        task_id: row.get::<_, String>(AFTER_SCOPE + 2)?.into(),
        dialect: columns.dialect()?,
        state,
        delivered_seq: unsigned(columns.delivered_seq),
        task_seq: unsigned(row.get(AFTER_SCOPE + 3)?),
        failures: columns.failures()?,
        due: due_at.map(Timestamp::from_ms),
        last_attempt_at: columns.last_attempt_at.map(Timestamp::from_ms),
        created_at: Timestamp::from_ms(columns.created_at),
        config_id: columns.config_id.into(),
        url: columns.url,
        last_error: columns.last_error,
    }))
}

impl Ledger<'_> {
    pub(crate) fn redrive(&mut self, keys: &[DeliveryKey]) -> Result<usize, Failure> {
        let sql = format!(
            "SELECT {PUSH_COLUMNS}, task.id FROM push JOIN task USING (task_no)
              WHERE push_no = ?1 AND (parked = 1 OR (due_at IS NOT NULL AND claimed_until IS NULL))"
        );
        let mut select = self.connection.prepare_cached(&sql)?;
        let mut changed = 0;
        for key in keys {
            let mut rows = select.query([key.0])?;
            let Some(row) = rows.next()? else { continue };
            let Some(columns) = self.readable_webhook(row)? else { continue };
            let columns = PushColumns { parked: 0, failures: 0, ..columns };
            drop(rows);
            self.write_webhook(&columns, Some(self.now.as_ms()))?;
            changed += 1;
        }
        self.count_rows(changed, 0);
        Ok(changed)
    }

    pub(crate) fn purge(&mut self, keys: &[DeliveryKey]) -> Result<usize, Failure> {
        let sql = format!(
            "SELECT {PUSH_COLUMNS}, task.id, task.seq FROM push JOIN task USING (task_no) WHERE push_no = ?1 AND parked = 1"
        );
        let mut select = self.connection.prepare_cached(&sql)?;
        let mut changed = 0;
        for key in keys {
            let mut rows = select.query([key.0])?;
            let Some(row) = rows.next()? else { continue };
            let delivered_seq = row.get(AFTER_PUSH + 1)?;
            let Some(columns) = self.readable_webhook(row)? else { continue };
            let columns = PushColumns { parked: 0, failures: 0, last_error: None, delivered_seq, ..columns };
            drop(rows);
            self.write_cursor(&columns)?;
            changed += 1;
        }
        self.count_rows(changed, 0);
        Ok(changed)
    }
}
