//! A schema as one side of a move to another database: its rows in the form that both stores have in common, read and written in pages.

mod reading;
mod writing;

use switchboard_core::model::Timestamp;
use switchboard_engine::ports::audit::AuditEntry;
use switchboard_engine::ports::system::ClockRecord;
use tokio::runtime::Handle;
use tokio_postgres::Client;
use tokio_postgres::config::Host;

use super::error::PostgresError;
use super::migrate::{migrate, status};
use super::moved::read_move;
use super::offline::{append_audit, failed, refuse_if_running};
use super::options::PostgresOptions;
use super::thread::{connector, single_client};
use super::verify::verify_at_once;
use crate::checked::{Checked, Fault};
use crate::moving_rows::{Cursor, Row, Stage};
use crate::moving_state::{MoveRole, MoveState};

pub(crate) use super::thread::alone;

/// A schema that is moved.
pub(crate) struct SchemaSide {
    client: Client,
    options: PostgresOptions,
    place: String,
}

impl SchemaSide {
    /// Connects to a schema that exists, and brings its tables up to date.
    pub(crate) async fn source(options: &PostgresOptions) -> Result<Self, PostgresError> {
        let client = single_client(&connector(options, Handle::current())?).await?;
        if status(&client, &options.schema).await?.found == 0 {
            return Err(PostgresError(format!("there are no tables in the schema {}", options.schema)));
        }
        Self::target(options).await
    }

    /// Connects, and makes the tables or brings them up to date.
    pub(crate) async fn target(options: &PostgresOptions) -> Result<Self, PostgresError> {
        let connector = connector(options, Handle::current())?;
        let mut client = single_client(&connector).await?;
        let status = migrate(&mut client, &options.schema).await?;
        if status.found > status.known {
            return Err(PostgresError(format!("{status}; move it with the build that its servers have")));
        }
        let hosts: Vec<String> = connector.config.get_hosts().iter().map(host_name).collect();
        let database = connector.config.get_dbname().unwrap_or_default();
        let place = format!("PostgreSQL ({}/{database}, schema {})", hosts.join(","), options.schema);
        Ok(Self { client, options: options.clone(), place })
    }

    pub(crate) fn describe(&self) -> String {
        self.place.clone()
    }

    pub(crate) async fn state(&self) -> Result<Option<MoveState>, PostgresError> {
        read_move(&self.client).await
    }

    /// Marks the schema, or removes its mark. A schema that servers use is not marked.
    pub(crate) async fn set_state(&self, state: Option<&MoveState>) -> Result<(), PostgresError> {
        let Some(state) = state else { return self.drop_state().await };
        let is_new = self.state().await?.is_none();
        self.client.batch_execute("begin").await.map_err(failed)?;
        if is_new {
            self.client.batch_execute("create table db_move (state text not null)").await.map_err(failed)?;
        }
        writing::state(&self.client, state).await?;
        self.client.batch_execute("commit").await.map_err(failed)?;
        // A server that starts now finds the mark; one that was faster is found here.
        let running = refuse_if_running(&self.client, &self.options.schema).await;
        if running.is_err() && is_new {
            self.drop_state().await?;
        }
        running
    }

    async fn drop_state(&self) -> Result<(), PostgresError> {
        self.client.batch_execute("drop table if exists db_move").await.map_err(failed)
    }

    pub(crate) async fn is_empty(&self) -> Result<bool, PostgresError> {
        const ANY: &str = "select exists (select 1 from scope) or exists (select 1 from task) or exists (select 1 from log)
                               or exists (select 1 from chunk) or exists (select 1 from push) or exists (select 1 from accepted)
                               or exists (select 1 from call) or exists (select 1 from audit_chain)";
        let row = self.client.query_one(ANY, &[]).await.map_err(failed)?;
        row.try_get(0).map(|any: bool| !any).map_err(failed)
    }

    /// Rows of a table after one, in the order in which they are moved; none if there are no more. Claims of processes that are gone end
    /// at `at`.
    pub(crate) async fn read(&self, stage: Stage, after: &Cursor, at: i64) -> Result<Vec<Row>, PostgresError> {
        reading::page(&self.client, stage, after, Timestamp::from_ms(at)).await
    }

    /// Writes rows and how far the move has come, all or nothing.
    pub(crate) async fn write(&self, stage: Stage, rows: &[Row], state: &MoveState) -> Result<(), PostgresError> {
        self.client.batch_execute("begin").await.map_err(failed)?;
        writing::page(&self.client, stage, rows).await?;
        writing::state(&self.client, state).await?;
        self.client.batch_execute("commit").await.map_err(failed)
    }

    pub(crate) async fn record(&self, entry: &AuditEntry) -> Result<(), PostgresError> {
        append_audit(&self.client, entry).await
    }

    pub(crate) async fn clock(&self) -> Result<ClockRecord, PostgresError> {
        let mut clock = ClockRecord::default();
        for row in &self.client.query("select name, value from meta", &[]).await.map_err(failed)? {
            let (name, value): (&str, i64) = (row.try_get(0).map_err(failed)?, row.try_get(1).map_err(failed)?);
            let value = (value != 0).then_some(Timestamp::from_ms(value));
            match name {
                "seen_at" => clock.last_seen = value,
                "held_until" => clock.held_until = value,
                _ => {}
            }
        }
        Ok(clock)
    }

    /// What is left to do after all rows were moved: new numbers begin after those that came.
    pub(crate) async fn settle(&self, clock: ClockRecord) -> Result<(), PostgresError> {
        const NUMBERS: &str = "
            select setval('task_block', 1000 * (max(task_no) / 1000)) from task having max(task_no) >= 1000;
            select setval(pg_get_serial_sequence('scope', 'scope_no'), max(scope_no)) from scope having max(scope_no) > 0;
            select setval(pg_get_serial_sequence('push', 'push_no'), max(push_no)) from push having max(push_no) > 0;
            select setval(pg_get_serial_sequence('call', 'call_no'), max(call_no)) from call having max(call_no) > 0;
            select setval(pg_get_serial_sequence('audit_chain', 'chain_no'), max(chain_no)) from audit_chain having max(chain_no) > 0;
            analyze scope, task, log, chunk, push, accepted, call";
        self.client.batch_execute(NUMBERS).await.map_err(failed)?;
        for (name, at) in [("seen_at", clock.last_seen), ("held_until", clock.held_until)] {
            let value = at.map_or(0, Timestamp::as_ms);
            let set = "update meta set value = $2 where name = $1";
            self.client.execute(set, &[&name, &value]).await.map_err(failed)?;
        }
        Ok(())
    }

    pub(crate) async fn verify(&self, tell: &mut dyn FnMut(Fault)) -> Result<Checked, PostgresError> {
        verify_at_once(&self.options, tell).await
    }
}

fn host_name(host: &Host) -> String {
    match host {
        Host::Tcp(name) => name.clone(),
        #[cfg(unix)]
        Host::Unix(path) => path.display().to_string(),
    }
}

/// Removes the mark of a schema; false if it has none.
///
/// # Errors
/// When the database cannot be reached or changed, or rows are being moved into it.
pub fn reopen(options: &PostgresOptions) -> Result<bool, PostgresError> {
    alone(async {
        let client = single_client(&connector(options, Handle::current())?).await?;
        let found = read_move(&client).await?;
        match &found {
            Some(state) if state.role == MoveRole::Target => Err(PostgresError(state.refusal())),
            Some(_) => client.batch_execute("drop table db_move").await.map(|()| true).map_err(failed),
            None => Ok(false),
        }
    })
}
