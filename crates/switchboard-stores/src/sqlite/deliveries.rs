//! Push configs, and one cursor row per webhook. A row is due from the commit that gives it something to deliver until
//! the receiver has taken everything or it is given up on; while a delivery is under way it is due again only when its
//! claim has run out.

use rusqlite::{OptionalExtension, Row, params};
use switchboard_core::call::Owner;
use switchboard_core::model::{AuthenticationInfo, Dialect, PushConfig, TaskId, Timestamp};
use switchboard_engine::ports::store::{
    Delivery, DeliveryClaim, DeliveryKey, DeliveryOutcome, PushChange, Scope, StoreError, TaskKey,
};

use super::error::Failure;
use super::ledger::Ledger;
use super::quarantine::text_of;
use super::rows::{signed, unsigned};

/// The columns of a config, in the order [`config_from`] reads them.
pub(super) const CONFIG_COLUMNS: &str = "push.config_id, push.url, push.token, push.auth_scheme, push.auth_credentials";

pub(super) fn config_from(row: &Row<'_>, task_id: TaskId) -> rusqlite::Result<PushConfig> {
    let scheme: Option<String> = row.get(3)?;
    let credentials = row.get(4)?;
    Ok(PushConfig {
        id: row.get::<_, String>(0)?.into(),
        task_id,
        url: row.get(1)?,
        token: row.get(2)?,
        authentication: scheme.map(|scheme| AuthenticationInfo { scheme, credentials }),
    })
}

impl Ledger<'_> {
    pub(super) fn change_push(&mut self, task_no: i64, changes: &[PushChange]) -> Result<(), Failure> {
        for change in changes {
            match change {
                PushChange::Put { config, dialect, after_seq } => {
                    // A replaced config gets a new cursor under a new key, so that a delivery under way cannot move it.
                    self.delete_push(task_no, config.id.as_str())?;
                    self.insert_push(task_no, config, *dialect, *after_seq)?;
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
        config: &PushConfig,
        dialect: Dialect,
        after_seq: u64,
    ) -> Result<(), Failure> {
        self.last_push_no += 1;
        let authentication = config.authentication.as_ref();
        let mut insert = self.connection.prepare_cached(
            "INSERT INTO push (push_no, task_no, config_id, url, token, auth_scheme, auth_credentials, dialect,
                               delivered_seq, failures, parked, created_at)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, 0, 0, ?10)",
        )?;
        insert.execute(params![
            self.last_push_no,
            task_no,
            config.id.as_str(),
            config.url,
            config.token,
            authentication.map(|info| info.scheme.as_str()),
            authentication.and_then(|info| info.credentials.as_deref()),
            dialect.name(),
            signed(after_seq),
            self.now.as_ms(),
        ])?;
        self.count_rows(1, config.id.as_str().len() + config.url.len());
        Ok(())
    }

    /// Whatever has not delivered everything, and is neither waiting nor given up on, has something to do now.
    pub(super) fn mark_due(&mut self, task_no: i64, seq: u64) -> Result<(), Failure> {
        let mut update = self.connection.prepare_cached(
            "UPDATE push SET due_at = ?2
              WHERE task_no = ?1 AND due_at IS NULL AND parked = 0 AND delivered_seq < ?3",
        )?;
        let marked = update.execute(params![task_no, self.now.as_ms(), signed(seq)])?;
        self.count_rows(marked, 0);
        Ok(())
    }

    pub(super) fn claim_deliveries(&mut self, limit: usize, claim_ms: u32) -> Result<Vec<Delivery>, Failure> {
        let sql = format!(
            "SELECT {CONFIG_COLUMNS}, push.dialect, push.push_no, push.task_no, push.delivered_seq, push.failures,
                    task.id, task.context_id, task.seq, scope.tenant, scope.principal, scope.agent
               FROM push JOIN task USING (task_no) JOIN scope USING (scope_no)
              WHERE push.due_at <= ?1 ORDER BY push.due_at LIMIT ?2"
        );
        let mut select = self.connection.prepare_cached(&sql)?;
        // What is passed over must not take the places of the others.
        let examined = limit + self.quarantine.webhooks();
        let mut rows = select.query(params![self.now.as_ms(), signed(examined as u64)])?;
        let until = self.now.plus_ms(claim_ms.into());
        let mut claimed = Vec::new();
        while let Some(row) = rows.next()?.filter(|_| claimed.len() < limit) {
            let push_no = row.get(6)?;
            if self.quarantine.has_webhook(push_no) {
                continue;
            }
            match delivery_from(row, until) {
                Ok(delivery) => claimed.push(delivery),
                Err(failure) => {
                    let Some(reason) = failure.damage() else { return Err(failure) };
                    self.quarantine.put_webhook(push_no, text_of(row, 10).into(), &text_of(row, 0), reason);
                }
            }
        }
        let mut update =
            self.connection.prepare_cached("UPDATE push SET due_at = ?2, claimed_until = ?2 WHERE push_no = ?1")?;
        for delivery in &claimed {
            update.execute([delivery.key.0, until.as_ms()])?;
        }
        self.count_rows(claimed.len(), 0);
        Ok(claimed)
    }

    pub(super) fn settle_deliveries(&mut self, settled: &[(DeliveryClaim, DeliveryOutcome)]) -> Result<(), Failure> {
        let mut select = self.connection.prepare_cached(
            "SELECT push.delivered_seq, push.failures, push.last_error, push.last_attempt_at, push.claimed_until,
                    task.seq
               FROM push JOIN task USING (task_no) WHERE push_no = ?1",
        )?;
        let mut update = self.connection.prepare_cached(
            "UPDATE push SET delivered_seq = ?2, failures = ?3, due_at = ?4, parked = ?5, last_error = ?6,
                             last_attempt_at = ?7, claimed_until = NULL
              WHERE push_no = ?1",
        )?;
        let mut raise = self
            .connection
            .prepare_cached("UPDATE push SET delivered_seq = max(delivered_seq, ?2) WHERE push_no = ?1")?;
        for (claim, outcome) in settled {
            let key = claim.key;
            let found = select.query_row([key.0], |row| {
                let cursor = Cursor {
                    delivered_seq: row.get(0)?,
                    failures: row.get(1)?,
                    due: None,
                    parked: false,
                    last_error: row.get(2)?,
                    last_attempt_at: row.get(3)?,
                };
                Ok((cursor, row.get::<_, Option<i64>>(4)?, row.get::<_, i64>(5)?))
            });
            // The config was deleted or replaced meanwhile: nobody waits for this outcome.
            let Some((before, claimed_until, seq)) = found.optional()? else { continue };
            self.count_rows(1, 0);
            if claimed_until != Some(claim.until.as_ms()) {
                // Another has claimed it since: what the receiver took it took, the rest is the other's to say.
                raise.execute([key.0, signed(outcome.delivered_seq())])?;
                continue;
            }
            let Cursor { delivered_seq, failures, due, parked, last_error, last_attempt_at } =
                before.after(outcome, seq, self.now);
            update.execute(params![key.0, delivered_seq, failures, due, parked, last_error, last_attempt_at])?;
        }
        Ok(())
    }
}

/// How far a webhook has come, in the columns' own types.
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
                // A receiver that took something has not failed at what comes next before.
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

fn delivery_from(row: &Row<'_>, claimed_until: Timestamp) -> Result<Delivery, Failure> {
    let task_id = TaskId::from(row.get::<_, String>(10)?);
    Ok(Delivery {
        key: DeliveryKey(row.get(6)?),
        scope: scope_from(row, 13)?,
        task_key: TaskKey(row.get(7)?),
        context_id: row.get::<_, String>(11)?.into(),
        config: config_from(row, task_id.clone())?,
        task_id,
        dialect: dialect_from(row, 5)?,
        delivered_seq: unsigned(row.get(8)?),
        task_seq: unsigned(row.get(12)?),
        failures: row.get(9)?,
        claimed_until,
    })
}

pub(super) fn dialect_from(row: &Row<'_>, at: usize) -> Result<Dialect, Failure> {
    let name: String = row.get(at)?;
    let known = Dialect::from_name(&name);
    known.ok_or_else(|| StoreError::Corrupt(format!("dialect {name} is unknown")).into())
}

pub(super) fn scope_from(row: &Row<'_>, at: usize) -> rusqlite::Result<Scope> {
    let text = |column: usize| row.get::<_, String>(column);
    let owner = Owner { tenant: text(at)?.into(), principal: text(at + 1)?.into() };
    Ok(Scope { owner, agent: text(at + 2)?.into() })
}
