//! One connection of each process that is always open. It holds the name of the replica, so that no other process takes it, and it
//! listens for hints of the others (`LISTEN`). Hints are sent over another connection, many in one notification and never as part
//! of a commit: a transaction with a notification waits for every other one (`NOTIFY` takes a lock of the whole database).
//!
//! A hint that is lost costs time and no data, so nothing here is repeated.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use switchboard_engine::ports::store::StoreError;
use switchboard_engine::ports::{Hint, HintSink, HintStats, Hints};
use tokio_postgres::{AsyncMessage, Client};

use super::connect::{Connector, Driver};
use super::database::Database;
use super::error::{Failure, PostgresError};
use super::rows::get;
use crate::hint_box::{CHANNELS, HintBox};

/// The longest payload; PostgreSQL has 8,000 bytes.
const PAYLOAD_BYTES_MAX: usize = 7_800;
/// The pause between two notifications, in which hints are gathered.
const GATHER: Duration = Duration::from_millis(2);
/// How long the name of a replica is waited for when its last holder has just ended.
const NAME_TRIES: u32 = 200;
const NAME_PAUSE: Duration = Duration::from_millis(50);
const RECONNECT_PAUSE: Duration = Duration::from_millis(500);

/// Hints over LISTEN and NOTIFY.
pub struct PostgresHints {
    hints: HintBox,
    /// Whether there are any; otherwise something else carries them.
    is_used: bool,
}

impl Hints for PostgresHints {
    fn notify(&self, hint: Hint<'_>) {
        if self.is_used {
            self.hints.put(hint);
        }
    }

    fn listen(&self, sink: Arc<dyn HintSink>) {
        self.hints.listen(sink);
    }

    fn stats(&self) -> HintStats {
        self.hints.stats()
    }
}

impl PostgresHints {
    pub(super) fn new(name: String, is_used: bool) -> Self {
        Self { hints: HintBox::new(name), is_used }
    }

    /// Sends hints until it is dropped.
    pub(super) async fn send(&self, database: &Database) {
        loop {
            self.hints.wait().await;
            self.send_waiting(database).await;
            tokio::time::sleep(GATHER).await;
        }
    }

    /// Sends the hints that wait.
    pub(super) async fn send_waiting(&self, database: &Database) {
        const NOTIFY: &str =
            "select pg_notify(n.channel, n.payload) from unnest($1::text[], $2::text[]) as n(channel, payload)";
        let payloads = self.hints.take(PAYLOAD_BYTES_MAX);
        if payloads.is_empty() {
            return;
        }
        let named = |(number, payload)| (channel_name(&database.connector.schema, number), payload);
        let (channels, payloads): (Vec<String>, Vec<String>) = payloads.into_iter().map(named).unzip();
        if let Err(error) = database.serve(NOTIFY, &[&channels, &payloads]).await {
            tracing::debug!(?error, "hints lost");
        }
    }
}

fn channel_name(schema: &str, number: u64) -> String {
    format!("{schema}_h{number}")
}

/// The open connection, and the name that it holds.
pub(super) struct Presence {
    name: String,
    client: Client,
    driver: Driver,
}

impl Presence {
    /// Takes the name. The process that had it before may have ended just now.
    pub(super) async fn begin(connector: &Connector, name: &str, hints: &PostgresHints) -> Result<Self, PostgresError> {
        for _ in 0..NAME_TRIES {
            let (client, driver) = connector.connect_undriven().await?;
            let mut presence = Self { name: name.to_owned(), client, driver };
            if presence.take(connector, hints).await? {
                return Ok(presence);
            }
            drop(presence);
            tokio::time::sleep(NAME_PAUSE).await;
        }
        Err(PostgresError(format!(
            "another process runs under the replica name `{name}`; each needs a name of its own"
        )))
    }

    /// Takes the name and listens; false if another connection has the name.
    async fn take(&mut self, connector: &Connector, hints: &PostgresHints) -> Result<bool, Failure> {
        let Self { name, client, driver } = self;
        let schema = &connector.schema;
        let work = async {
            connector.set_up(client).await?;
            let lock = format!("switchboard replica {schema} {name}");
            let row = client.query_one("select pg_try_advisory_lock(hashtextextended($1, 0))", &[&lock]).await?;
            if !row.try_get::<_, bool>(0)? {
                return Ok(false);
            }
            let listen: String =
                (0..CHANNELS).map(|number| format!("LISTEN \"{}\";", channel_name(schema, number))).collect();
            if hints.is_used {
                client.batch_execute(&listen).await?;
            }
            Ok(true)
        };
        let mut work = pin!(work);
        tokio::select! {
            biased;
            result = &mut work => result,
            () = drive(driver, hints) => Err(Failure::connection("the connection was lost")),
        }
    }

    /// Keeps the connection open, and makes it again when it is lost.
    pub(super) async fn keep(mut self, connector: &Connector, hints: &PostgresHints) {
        loop {
            drive(&mut self.driver, hints).await;
            tracing::warn!("connection of this replica lost; if it carries hints, they come late until it is back");
            loop {
                tokio::time::sleep(RECONNECT_PAUSE).await;
                let Ok((client, driver)) = connector.connect_undriven().await else { continue };
                self = Self { name: self.name, client, driver };
                match self.take(connector, hints).await {
                    Ok(true) => break,
                    Ok(false) => {
                        tracing::error!(replica = self.name, "another process has taken the name of this replica");
                    }
                    Err(failure) => tracing::debug!(reason = failure.reason, "connection of this replica not made"),
                }
            }
            tracing::info!("connection of this replica made again");
        }
    }
}

/// The keys of the names that connections of processes hold.
macro_rules! held_names {
    () => {
        "with held as materialized (
                select ((classid::bigint << 32) | objid::bigint) as key from pg_locks
                 where locktype = 'advisory' and objsubid = 1 and granted
                   and database = (select oid from pg_database where datname = current_database()))"
    };
}
pub(super) use held_names;

/// Counts the processes that share the schema: those whose connection holds their name. One that has just ended is counted until PostgreSQL
/// notices.
pub(super) async fn count_replicas(database: &Database) -> Result<u32, StoreError> {
    const COUNT: &str = concat!(
        held_names!(),
        " select count(*) from replica
           where hashtextextended('switchboard replica ' || $1 || ' ' || name, 0) in (select key from held)"
    );
    let rows = database.serve(COUNT, &[&database.connector.schema]).await?;
    let count: i64 = rows.first().map_or(Ok(1), |row| get(row, 0))?;
    Ok(u32::try_from(count).unwrap_or(u32::MAX))
}

/// Drives a connection until it ends, and passes on what it is told.
async fn drive(driver: &mut Driver, hints: &PostgresHints) {
    loop {
        match poll_fn(|cx| driver.poll_message(cx)).await {
            Some(Ok(AsyncMessage::Notification(told))) => hints.hints.received(told.payload()),
            Some(Ok(_)) => {}
            Some(Err(error)) => {
                tracing::debug!(error = %error, "connection to PostgreSQL lost");
                return;
            }
            None => return,
        }
    }
}
