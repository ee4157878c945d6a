//! Push configs, and one cursor row per webhook. A row is due from the commit that gives it something to deliver until
//! the receiver has accepted everything or the delivery becomes a dead letter. While a delivery is under way, its row
//! is due again only when the claim has run out.

use rusqlite::{OptionalExtension, Row, params};
use switchboard_core::model::{Dialect, PushConfig, TaskId, Timestamp};
use switchboard_engine::ports::store::{
    Delivery, DeliveryClaim, DeliveryKey, DeliveryOutcome, PushChange, TaskKey, share_of_a_claim,
};

use super::Ledger;
use crate::record::{signed, unsigned};
use crate::sqlite::error::Failure;
use crate::sqlite::push_rows::{AFTER_PUSH, CONFIG_ID, PUSH_COLUMNS, push_columns};
use crate::sqlite::quarantine::text_of;
use crate::sqlite::rows::{PushColumns, SCOPE_COLUMN_COUNT, SCOPE_COLUMNS, of_push_times, scope_from};
use crate::sqlite::secrets::Secrets;

impl Ledger<'_> {
    pub(crate) fn change_push(&mut self, task_no: i64, owner_no: i64, changes: &[PushChange]) -> Result<(), Failure> {
        for change in changes {
            match change {
                PushChange::Put { config, dialect, after_seq } => {
                    // A replaced config gets a new cursor under a new key, so that a delivery under way cannot move it.
                    self.delete_push(task_no, config.id.as_str())?;
                    self.insert_push(task_no, owner_no, config, *dialect, *after_seq)?;
                }
                PushChange::Delete { id } => self.delete_push(task_no, id.as_str())?,
            }
        }
        Ok(())
    }

    fn delete_push(&mut self, task_no: i64, config_id: &str) -> Result<(), Failure> {
        let mut delete = self.connection.prepare_cached("DELETE FROM push WHERE task_no = ?1 AND config_id = ?2")?;
        let deleted = delete.execute(params![task_no, config_id])?;
        self.count_rows(deleted, 0);
        Ok(())
    }

    fn insert_push(
        &mut self,
        task_no: i64,
        owner_no: i64,
        config: &PushConfig,
        dialect: Dialect,
        after_seq: u64,
    ) -> Result<(), Failure> {
        self.last_push_no += 1;
        let authentication = config.authentication.as_ref();
        let mut columns = PushColumns {
            push_no: self.last_push_no,
            task_no,
            config_id: config.id.as_str().to_owned(),
            url: config.url.clone(),
            token: config.token.clone(),
            auth_scheme: authentication.map(|info| info.scheme.clone()),
            auth_credentials: authentication.and_then(|info| info.credentials.clone()),
            dialect: dialect.name().to_owned(),
            delivered_seq: signed(after_seq),
            failures: 0,
            parked: 0,
            last_error: None,
            last_attempt_at: None,
            created_at: self.now.as_ms(),
        };
        self.secrets.seal(&mut columns)?;
        let mut insert = self.connection.prepare_cached(
            "INSERT INTO push (push_no, task_no, config_id, url, token, auth_scheme, auth_credentials, dialect,
                               delivered_seq, failures, parked, created_at, checksum, times_checksum, owner_no)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, 0, 0, ?10, ?11, ?12, ?13)",
        )?;
        insert.execute(params![
            columns.push_no,
            columns.task_no,
            columns.config_id,
            columns.url,
            columns.token,
            columns.auth_scheme,
            columns.auth_credentials,
            columns.dialect,
            columns.delivered_seq,
            columns.created_at,
            columns.checksum(),
            of_push_times(None, None),
            owner_no,
        ])?;
        self.count_rows(1, config.id.as_str().len() + config.url.len());
        Ok(())
    }

    /// Makes webhooks due that have something to deliver and are neither waiting nor dead letters.
    pub(crate) fn mark_due(&mut self, task_no: i64, seq: u64) -> Result<(), Failure> {
        let mut update = self.connection.prepare_cached(
            "UPDATE push SET due_at = ?2, claimed_until = NULL, times_checksum = ?4
              WHERE task_no = ?1 AND due_at IS NULL AND parked = 0 AND delivered_seq < ?3",
        )?;
        let due = self.now.as_ms();
        let marked = update.execute(params![task_no, due, signed(seq), of_push_times(Some(due), None)])?;
        self.count_rows(marked, 0);
        Ok(())
    }

    /// Claims a share for each owner if more are due than the limit, and what is left to it in the order in which they fell due.
    pub(crate) fn claim_deliveries(&mut self, limit: usize, claim_ms: u32) -> Result<Vec<Delivery>, Failure> {
        let until = self.now.plus_ms(claim_ms.into());
        let mut claimed = Vec::new();
        if self.has_more_due_than(limit)? {
            let owners = self.next_owners(limit)?;
            let share = share_of_a_claim(limit, owners.len());
            for owner_no in owners {
                claimed.extend(self.claim_of(Some(owner_no), share.min(limit - claimed.len()), until)?);
            }
        }
        claimed.extend(self.claim_of(None, limit - claimed.len(), until)?);
        self.count_rows(claimed.len(), 0);
        Ok(claimed)
    }

    fn has_more_due_than(&self, limit: usize) -> Result<bool, Failure> {
        let mut select =
            self.connection.prepare_cached("SELECT count(*) FROM (SELECT 1 FROM push WHERE due_at <= ?1 LIMIT ?2)")?;
        let enough = signed((limit + self.quarantine.webhooks() + 1) as u64);
        Ok(select.query_row([self.now.as_ms(), enough], |row| row.get::<_, i64>(0))? == enough)
    }

    /// The owners that have something due, beginning after the one that was looked at last. At most so many are looked at.
    fn next_owners(&mut self, count: usize) -> Result<Vec<i64>, Failure> {
        let mut select = self.connection.prepare_cached(NEXT_OWNER)?;
        let start = self.last_owner_no;
        let (mut after, mut is_round, mut owners) = (start, false, Vec::new());
        for _ in 0..count {
            let next =
                select.query_row([after], |row| Ok((row.get::<_, i64>(0)?, row.get::<_, i64>(1)?))).optional()?;
            match next {
                Some((owner_no, _)) if is_round && owner_no > start => break,
                Some((owner_no, due_at)) => {
                    after = owner_no;
                    owners.extend((due_at <= self.now.as_ms()).then_some(owner_no));
                }
                None if is_round => break,
                None => (is_round, after) = (true, i64::MIN),
            }
        }
        self.last_owner_no = after;
        Ok(owners)
    }

    /// Claims those of an owner, or of all, in the order in which they fell due.
    fn claim_of(&self, owner_no: Option<i64>, limit: usize, until: Timestamp) -> Result<Vec<Delivery>, Failure> {
        if limit == 0 {
            return Ok(Vec::new());
        }
        let sql = due_sql(owner_no.is_some());
        let mut select = self.connection.prepare_cached(&sql)?;
        // Rows in quarantine are skipped, and must not use up the limit.
        let examined = limit + self.quarantine.webhooks();
        let (now, examined) = (self.now.as_ms(), signed(examined as u64));
        let mut rows = match owner_no {
            Some(owner_no) => select.query([now, examined, owner_no])?,
            None => select.query([now, examined])?,
        };
        let mut claimed = Vec::new();
        while let Some(row) = rows.next()?.filter(|_| claimed.len() < limit) {
            let push_no = row.get(0)?;
            if self.quarantine.has_webhook(push_no) {
                continue;
            }
            match delivery_from(row, until, &self.secrets) {
                Ok(delivery) => claimed.push(delivery),
                Err(failure) => {
                    let Some(reason) = failure.damage() else { return Err(failure) };
                    self.quarantine.put_webhook(
                        push_no,
                        text_of(row, TASK_ID).into(),
                        &text_of(row, CONFIG_ID),
                        reason,
                    );
                }
            }
        }
        let mut update = self.connection.prepare_cached(
            "UPDATE push SET due_at = ?2, claimed_until = ?2, times_checksum = ?3 WHERE push_no = ?1",
        )?;
        let times = of_push_times(Some(until.as_ms()), Some(until.as_ms()));
        for delivery in &claimed {
            update.execute([delivery.key.0, until.as_ms(), times])?;
        }
        Ok(claimed)
    }

    pub(crate) fn settle_deliveries(&mut self, settled: &[(DeliveryClaim, DeliveryOutcome)]) -> Result<(), Failure> {
        let sql = format!(
            "SELECT {PUSH_COLUMNS}, task.id, push.claimed_until, task.seq FROM push JOIN task USING (task_no)
              WHERE push_no = ?1"
        );
        let mut select = self.connection.prepare_cached(&sql)?;
        for (claim, outcome) in settled {
            let mut rows = select.query([claim.key.0])?;
            // The config was deleted or replaced meanwhile, so this outcome does not matter.
            let Some(row) = rows.next()? else { continue };
            let Some(mut columns) = self.readable_webhook(row)? else { continue };
            let (claimed_until, seq): (Option<i64>, i64) = (row.get(AFTER_PUSH + 1)?, row.get(AFTER_PUSH + 2)?);
            drop(rows);
            self.count_rows(1, 0);
            if claimed_until != Some(claim.until.as_ms()) {
                // Another claim exists since. Record only what the receiver has accepted; the new claim decides the
                // rest.
                columns.delivered_seq = columns.delivered_seq.max(signed(outcome.delivered_seq()));
                self.write_cursor(&columns)?;
                continue;
            }
            let before = Cursor {
                delivered_seq: columns.delivered_seq,
                failures: columns.failures,
                due: None,
                parked: false,
                last_error: columns.last_error.take(),
                last_attempt_at: columns.last_attempt_at,
            };
            let Cursor { delivered_seq, failures, due, parked, last_error, last_attempt_at } =
                before.after(outcome, seq, self.now);
            let parked = parked.into();
            let after = PushColumns { delivered_seq, failures, parked, last_error, last_attempt_at, ..columns };
            self.write_webhook(&after, due)?;
        }
        Ok(())
    }

    /// The columns of a webhook, followed by the id of its task. A damaged one goes into quarantine.
    pub(crate) fn readable_webhook(&self, row: &Row<'_>) -> Result<Option<PushColumns>, Failure> {
        match push_columns(row) {
            Ok(columns) => Ok(Some(columns)),
            Err(failure) => {
                let Some(reason) = failure.damage() else { return Err(failure) };
                let (task, config) = (text_of(row, AFTER_PUSH), text_of(row, CONFIG_ID));
                self.quarantine.put_webhook(row.get(0)?, task.into(), &config, reason);
                Ok(None)
            }
        }
    }

    /// Writes the cursor of a webhook.
    pub(crate) fn write_cursor(&self, columns: &PushColumns) -> Result<(), Failure> {
        let mut update = self.connection.prepare_cached(
            "UPDATE push SET delivered_seq = ?2, failures = ?3, parked = ?4, last_error = ?5, last_attempt_at = ?6,
                             checksum = ?7
              WHERE push_no = ?1",
        )?;
        let PushColumns { push_no, delivered_seq, failures, parked, last_error, last_attempt_at, .. } = columns;
        let checksum = columns.checksum();
        update.execute(params![push_no, delivered_seq, failures, parked, last_error, last_attempt_at, checksum])?;
        Ok(())
    }

    /// Writes the cursor of a webhook whose claim has ended, and when it is due.
    pub(crate) fn write_webhook(&self, columns: &PushColumns, due: Option<i64>) -> Result<(), Failure> {
        let mut update = self.connection.prepare_cached(
            "UPDATE push SET delivered_seq = ?2, failures = ?3, parked = ?4, last_error = ?5, last_attempt_at = ?6,
                             checksum = ?7, due_at = ?8, claimed_until = NULL, times_checksum = ?9
              WHERE push_no = ?1",
        )?;
        let PushColumns { push_no, delivered_seq, failures, parked, last_error, last_attempt_at, .. } = columns;
        let (checksum, times) = (columns.checksum(), of_push_times(due, None));
        update.execute(params![
            push_no,
            delivered_seq,
            failures,
            parked,
            last_error,
            last_attempt_at,
            checksum,
            due,
            times
        ])?;
        Ok(())
    }
}

/// The next owner that has a webhook which waits, and when its first one is due.
pub(crate) const NEXT_OWNER: &str = "SELECT owner_no, due_at FROM push WHERE owner_no > ?1 AND due_at IS NOT NULL
      ORDER BY owner_no, due_at LIMIT 1";

/// The webhooks of one owner, or of all, that are due, in order.
pub(crate) fn due_sql(is_of_owner: bool) -> String {
    let of_owner = if is_of_owner { "push.owner_no = ?3 AND" } else { "" };
    format!(
        "SELECT {PUSH_COLUMNS}, {SCOPE_COLUMNS}, task.id, task.context_id, task.seq
           FROM push JOIN task USING (task_no) JOIN scope USING (scope_no)
          WHERE {of_owner} push.due_at <= ?1 ORDER BY push.due_at LIMIT ?2"
    )
}

/// The cursor of a webhook, in the types of its columns.
struct Cursor {
    delivered_seq: i64,
    failures: i64,
    due: Option<i64>,
    parked: bool,
    last_error: Option<String>,
    last_attempt_at: Option<i64>,
}

impl Cursor {
    /// The cursor after a delivery ended; `seq` is the number of the task's newest update.
    fn after(self, outcome: &DeliveryOutcome, seq: i64, now: Timestamp) -> Self {
        let now = now.as_ms();
        let tried = |delivered: u64| Self {
            delivered_seq: signed(delivered).max(self.delivered_seq),
            failures: 0,
            due: None,
            parked: false,
            last_error: None,
            last_attempt_at: Some(now),
        };
        match outcome {
            DeliveryOutcome::Delivered { seq: delivered } => {
                let cursor = tried(*delivered);
                Self { due: (cursor.delivered_seq < seq).then_some(now), ..cursor }
            }
            DeliveryOutcome::Retry { delivered_seq, wait_ms, error } => {
                let cursor = tried(*delivered_seq);
                // The receiver accepted an update, so the next update has no failed attempts yet.
                let failures = if cursor.delivered_seq > self.delivered_seq { 1 } else { self.failures + 1 };
                Self { failures, due: Some(now + wait_ms), last_error: Some(error.clone()), ..cursor }
            }
            DeliveryOutcome::Postponed { delivered_seq, wait_ms } => {
                let cursor = tried(*delivered_seq);
                let due = Some(now + wait_ms);
                if cursor.delivered_seq > self.delivered_seq { Self { due, ..cursor } } else { Self { due, ..self } }
            }
            DeliveryOutcome::Parked { delivered_seq, error } => {
                let (failures, last_error) = (self.failures + 1, Some(error.clone()));
                Self { failures, parked: true, last_error, ..tried(*delivered_seq) }
            }
        }
    }
}

/// The task's id in a row of a delivery: behind the columns of the webhook and of its owner.
const TASK_ID: usize = AFTER_PUSH + SCOPE_COLUMN_COUNT;

fn delivery_from(row: &Row<'_>, claimed_until: Timestamp, secrets: &Secrets) -> Result<Delivery, Failure> {
    let columns = push_columns(row)?;
    let task_id = TaskId::from(row.get::<_, String>(TASK_ID)?);
    Ok(Delivery {
        key: DeliveryKey(columns.push_no),
        scope: scope_from(row, AFTER_PUSH)?,
        task_key: TaskKey(columns.task_no),
        context_id: row.get::<_, String>(TASK_ID + 1)?.into(),
        dialect: columns.dialect()?,
        delivered_seq: unsigned(columns.delivered_seq),
        task_seq: unsigned(row.get(TASK_ID + 2)?),
        failures: columns.failures()?,
        claimed_until,
        config: columns.into_config(task_id.clone(), secrets),
        task_id,
    })
}
