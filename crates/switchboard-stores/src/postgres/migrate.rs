//! Brings the schema to the version of this build. Many processes may do so at once: a lock of the database lets one of them work
//! while the others wait. A schema that is newer than this build is used as it is if it says that this build can.

use std::fmt;

use tokio_postgres::Client;

use super::connect::SERVER_VERSION_MIN;
use super::error::{Failure, PostgresError};
use super::schema::{MIGRATIONS, VERSION};

/// The state of a database.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SchemaStatus {
    /// The version of the server, as in `15.8`.
    pub server: String,
    /// The version of the schema; 0 if there is none yet.
    pub found: i32,
    /// The version that this build writes.
    pub known: i32,
    /// The oldest build that can work with the schema, by the version it writes.
    pub works_from: i32,
}

impl SchemaStatus {
    /// Whether this build can use the schema as it is.
    #[must_use]
    pub fn is_usable(&self) -> bool {
        self.found >= self.known && self.works_from <= self.known
    }
}

impl fmt::Display for SchemaStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { server, found, known, works_from } = self;
        write!(f, "server {server}, schema {found}, this build writes {known}")?;
        match (*found, self.is_usable()) {
            (0, _) => write!(f, ": empty, `switchboard db migrate` makes the tables"),
            (found, true) if found == *known => write!(f, ": up to date"),
            (_, true) => write!(f, ": newer, and usable by this build"),
            (found, false) if found > *known => {
                write!(f, ": too new, it needs a build that writes {works_from} or later")
            }
            (_, false) => write!(f, ": `switchboard db migrate` brings it up to date"),
        }
    }
}

/// Reads the state, and refuses servers that cannot hold the data.
pub(super) async fn status(client: &Client, schema: &str) -> Result<SchemaStatus, PostgresError> {
    let failed = |error: tokio_postgres::Error| PostgresError::from(Failure::from(error));
    let row = client
        .query_one(
            "select current_setting('server_version_num')::int, current_setting('server_version'), \
                    current_setting('server_encoding'), current_setting('fsync'), pg_is_in_recovery(), \
                    to_regclass(quote_ident($1) || '.schema_version') is not null",
            &[&schema],
        )
        .await
        .map_err(failed)?;
    let number: i32 = row.try_get(0).map_err(failed)?;
    let server: String = row.try_get(1).map_err(failed)?;
    let encoding: String = row.try_get(2).map_err(failed)?;
    if number / 10_000 < SERVER_VERSION_MIN {
        return Err(PostgresError(format!("the server is version {server}; expected {SERVER_VERSION_MIN} or later")));
    }
    if encoding != "UTF8" {
        return Err(PostgresError(format!(
            "the database has the encoding {encoding}; expected one that was created with ENCODING 'UTF8'"
        )));
    }
    if row.try_get::<_, bool>(4).map_err(failed)? {
        return Err(PostgresError(
            "the server is a standby and takes no writes; give the address of the primary".to_owned(),
        ));
    }
    if row.try_get::<_, String>(3).map_err(failed)? == "off" {
        tracing::warn!("fsync is off on the server: what was acknowledged can be lost when it loses power");
    }
    let (mut found, mut works_from) = (0, 0);
    if row.try_get::<_, bool>(5).map_err(failed)? {
        let sql = format!("select version, works_from from \"{schema}\".schema_version order by version desc limit 1");
        if let Some(row) = client.query_opt(&sql, &[]).await.map_err(failed)? {
            (found, works_from) = (row.try_get(0).map_err(failed)?, row.try_get(1).map_err(failed)?);
        }
    }
    Ok(SchemaStatus { server, found, known: VERSION, works_from })
}

/// Applies the migrations that are missing, and returns the state before.
pub(super) async fn migrate(client: &mut Client, schema: &str) -> Result<SchemaStatus, PostgresError> {
    let before = status(client, schema).await?;
    if before.found >= VERSION {
        return Ok(before);
    }
    let failed = |error: tokio_postgres::Error| PostgresError::from(Failure::from(error));
    let transaction = client.transaction().await.map_err(failed)?;
    let waits = "SET LOCAL statement_timeout = 0; SET LOCAL lock_timeout = 0; SET LOCAL idle_in_transaction_session_timeout = 0";
    transaction.batch_execute(waits).await.map_err(failed)?;
    let lock = format!("switchboard migrates {schema}");
    transaction.execute("select pg_advisory_xact_lock(hashtextextended($1, 0))", &[&lock]).await.map_err(failed)?;
    let exists =
        transaction.query_opt("select 1 from pg_namespace where nspname = $1", &[&schema]).await.map_err(failed)?;
    if exists.is_none() {
        transaction.batch_execute(&format!("create schema \"{schema}\"")).await.map_err(failed)?;
    }
    let begin = format!(
        "SET LOCAL search_path TO \"{schema}\"; \
         create table if not exists schema_version (version int primary key, works_from int not null, \
         applied_at timestamptz not null default clock_timestamp())"
    );
    transaction.batch_execute(&begin).await.map_err(failed)?;
    let row =
        transaction.query_one("select coalesce(max(version), 0) from schema_version", &[]).await.map_err(failed)?;
    let found: i32 = row.try_get(0).map_err(failed)?;
    for (version, migration) in (1..).zip(MIGRATIONS).filter(|(version, _)| *version > found) {
        transaction.batch_execute(migration.sql).await.map_err(|error| {
            tracing::error!(version, error = %error, "migration refused");
            failed(error)
        })?;
        transaction
            .execute(
                "insert into schema_version (version, works_from) values ($1, $2)",
                &[&version, &migration.works_from],
            )
            .await
            .map_err(failed)?;
        tracing::info!(version, "schema of PostgreSQL migrated");
    }
    transaction.commit().await.map_err(failed)?;
    Ok(before)
}
