//! Push configs, and one cursor row per webhook. A row is due from the commit that gives it something to deliver until
//! the receiver has taken everything or it is given up on; while a delivery is under way it is due again only when its
//! claim has run out.

use rusqlite::{OptionalExtension, Row, params};
use switchboard_core::call::Owner;
use switchboard_core::model::{AuthenticationInfo, Dialect, PushConfig, TaskId};
use switchboard_engine::ports::store::{
    Delivery, DeliveryKey, DeliveryOutcome, PushChange, Scope, StoreError, TaskKey,
};

use super::error::Failure;
use super::ledger::Ledger;
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
                    task.id, task.context_id, scope.tenant, scope.principal, scope.agent
               FROM push JOIN task USING (task_no) JOIN scope USING (scope_no) WHERE push.due_at <= ?1 ORDER BY push.due_at LIMIT ?2"
        );
        let mut select = self.connection.prepare_cached(&sql)?;
        let mut rows = select.query(params![self.now.as_ms(), signed(limit as u64)])?;
        let mut claimed = Vec::new();
        while let Some(row) = rows.next()? {
            claimed.push(delivery_from(row)?);
        }
        let until = self.now.plus_ms(claim_ms.into()).as_ms();
        let mut update = self.connection.prepare_cached(
            "UPDATE push SET due_at = ?2, claimed_until = ?2, last_attempt_at = ?3 WHERE push_no = ?1",
        )?;
        for delivery in &claimed {
            update.execute(params![delivery.key.0, until, self.now.as_ms()])?;
        }
        self.count_rows(claimed.len(), 0);
        Ok(claimed)
    }

    pub(super) fn settle_delivery(&mut self, key: DeliveryKey, outcome: &DeliveryOutcome) -> Result<(), Failure> {
        let mut select = self.connection.prepare_cached(
            "SELECT push.delivered_seq, push.failures, task.seq FROM push JOIN task USING (task_no) WHERE push_no = ?1",
        )?;
        let found = select
            .query_row([key.0], |row| Ok((row.get::<_, i64>(0)?, row.get::<_, i64>(1)?, row.get::<_, i64>(2)?)))
            .optional()?;
        // The config was deleted or replaced meanwhile: nobody waits for this outcome.
        let Some((delivered_before, failures_before, seq)) = found else { return Ok(()) };
        let (delivered, failures, due_at, parked, error) = match outcome {
            DeliveryOutcome::Delivered { seq: delivered } => {
                let delivered = signed(*delivered).max(delivered_before);
                (delivered, 0, (delivered < seq).then_some(self.now), false, None)
            }
            DeliveryOutcome::Retry { delivered_seq, due, error } => {
                let delivered = signed(*delivered_seq).max(delivered_before);
                // A receiver that took something has not failed at what comes next before.
                let failures = if delivered > delivered_before { 1 } else { failures_before + 1 };
                (delivered, failures, Some(*due), false, Some(error))
            }
            DeliveryOutcome::Parked { delivered_seq, error } => {
                let delivered = signed(*delivered_seq).max(delivered_before);
                (delivered, failures_before + 1, None, true, Some(error))
            }
        };
        let mut update = self.connection.prepare_cached(
            "UPDATE push SET delivered_seq = ?2, failures = ?3, due_at = ?4, parked = ?5, last_error = ?6,
                             claimed_until = NULL
              WHERE push_no = ?1",
        )?;
        update.execute(params![key.0, delivered, failures, due_at.map(|at| at.as_ms()), parked, error])?;
        self.count_rows(1, 0);
        Ok(())
    }
}

fn delivery_from(row: &Row<'_>) -> Result<Delivery, Failure> {
    let dialect: String = row.get(5)?;
    let task_id = TaskId::from(row.get::<_, String>(10)?);
    let known = Dialect::from_name(&dialect);
    Ok(Delivery {
        key: DeliveryKey(row.get(6)?),
        scope: scope_from(row, 12)?,
        task_key: TaskKey(row.get(7)?),
        context_id: row.get::<_, String>(11)?.into(),
        config: config_from(row, task_id.clone())?,
        task_id,
        dialect: known.ok_or_else(|| StoreError::Corrupt(format!("dialect {dialect} is unknown")))?,
        delivered_seq: unsigned(row.get(8)?),
        failures: row.get(9)?,
    })
}

fn scope_from(row: &Row<'_>, at: usize) -> rusqlite::Result<Scope> {
    let text = |column: usize| row.get::<_, String>(column);
    let owner = Owner { tenant: text(at)?.into(), principal: text(at + 1)?.into() };
    Ok(Scope { owner, agent: text(at + 2)?.into() })
}
