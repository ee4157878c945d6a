//! The rows of webhooks: their columns, and whose they are.

use rusqlite::{Connection, Row};
use switchboard_core::model::{AuthenticationInfo, Dialect, PushConfig, TaskId};
use switchboard_engine::ports::store::StoreError;

use super::error::Failure;
use super::rows::{PushColumns, mismatch};
use super::secrets::Secrets;

/// The columns of a webhook, in the order [`push_columns`] reads them.
pub(super) const PUSH_COLUMNS: &str = "push.push_no, push.task_no, push.config_id, push.url, push.token, \
     push.auth_scheme, push.auth_credentials, push.dialect, push.delivered_seq, push.failures, push.parked, \
     push.last_error, push.last_attempt_at, push.created_at, push.checksum";

/// The first column after the webhook's.
pub(super) const AFTER_PUSH: usize = 15;

/// The column that names the webhook.
pub(super) const CONFIG_ID: usize = 2;

/// A row of the table of webhooks, if it matches its checksum.
pub(super) fn push_columns(row: &Row<'_>) -> Result<PushColumns, Failure> {
    let columns = push_columns_unchecked(row)?;
    match row.get::<_, i64>(AFTER_PUSH - 1)? == columns.checksum() {
        true => Ok(columns),
        false => Err(mismatch(format_args!("webhook {}", columns.config_id))),
    }
}

pub(super) fn push_columns_unchecked(row: &Row<'_>) -> Result<PushColumns, Failure> {
    Ok(PushColumns {
        push_no: row.get(0)?,
        task_no: row.get(1)?,
        config_id: row.get(2)?,
        url: row.get(3)?,
        token: row.get(4)?,
        auth_scheme: row.get(5)?,
        auth_credentials: row.get(6)?,
        dialect: row.get(7)?,
        delivered_seq: row.get(8)?,
        failures: row.get(9)?,
        parked: row.get(10)?,
        last_error: row.get(11)?,
        last_attempt_at: row.get(12)?,
        created_at: row.get(13)?,
    })
}

impl PushColumns {
    pub(super) fn into_config(mut self, task_id: TaskId, secrets: &Secrets) -> PushConfig {
        secrets.open(&mut self);
        let Self { config_id, url, token, auth_scheme, auth_credentials: credentials, .. } = self;
        let authentication = auth_scheme.map(|scheme| AuthenticationInfo { scheme, credentials });
        PushConfig { id: config_id.into(), task_id, url, token, authentication }
    }

    pub(super) fn dialect(&self) -> Result<Dialect, Failure> {
        let known = Dialect::from_name(&self.dialect);
        known.ok_or_else(|| StoreError::Corrupt(format!("dialect {} is unknown", self.dialect)).into())
    }

    pub(super) fn failures(&self) -> Result<u32, Failure> {
        u32::try_from(self.failures).map_err(|_| StoreError::Corrupt(format!("{} failures", self.failures)).into())
    }
}

/// Files each webhook under the owner of its task.
pub(super) fn file_under_owners(connection: &Connection) -> Result<(), Failure> {
    let sql = format!("UPDATE push SET owner_no = coalesce(({OWNER_OF_TASK} WHERE task.task_no = push.task_no), 0)");
    connection.execute(&sql, [])?;
    Ok(())
}

/// The number of the owner of a task, as `Usage::owner_no` has it.
pub(super) const OWNER_OF_TASK: &str = "SELECT min(other.scope_no) FROM task JOIN scope USING (scope_no) \
     JOIN scope AS other ON other.tenant = scope.tenant AND other.principal = scope.principal";
