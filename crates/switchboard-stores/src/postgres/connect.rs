//! Connections to the server. A connection prepares each statement once. Statements of several callers are pipelined on one
//! connection, and one that was lost is made again by the next caller.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use switchboard_engine::ports::store::Statements;
use tokio::runtime::Handle;
use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, Config, Row, Socket, Statement};

use super::error::{Failure, FailureKind};
use super::tls::{Secured, Tls};

/// The oldest server that is supported.
pub(super) const SERVER_VERSION_MIN: i32 = 14;

pub(super) type Params<'a> = &'a [&'a (dyn ToSql + Sync)];

/// What drives a connection, for the one that listens.
pub(super) type Driver = tokio_postgres::Connection<Socket, Secured<Socket>>;

/// What a connection is for.
#[derive(Clone, Copy, Debug, Default)]
pub(super) enum Use {
    #[default]
    Commits,
    Reads,
    /// Leases, deliveries, calls and hints, which must not wait behind reads.
    Service,
    /// Work that may take long.
    Upkeep,
}

/// The statements that were sent, by [`Use`].
#[derive(Default)]
pub(super) struct Sent([AtomicU64; 4]);

impl Sent {
    fn one(&self, used_for: Use) {
        self.0[used_for as usize].fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn read(&self) -> Statements {
        let [commits, reads, service, upkeep] = self.0.each_ref().map(|count| count.load(Ordering::Relaxed));
        Statements { commits, reads, service, upkeep }
    }
}

/// Makes connections.
#[derive(Clone)]
pub(super) struct Connector {
    pub(super) config: Config,
    pub(super) tls: Tls,
    pub(super) schema: String,
    pub(super) statement_timeout: Duration,
    pub(super) plans: Plans,
    /// Where connections are driven.
    pub(super) runtime: Handle,
    /// Counts what goes over them.
    pub(super) sent: Arc<Sent>,
}

/// How the server plans the statements that a connection repeats.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Plans {
    /// It decides itself whether to plan for the parameters each time.
    AsServerDecides,
    /// Once, when they are first used, with indexes and loops whatever the tables hold then. The statements of a commit are right that
    /// way for every batch, and to plan them each time takes as long as a small batch itself.
    Once,
}

impl Connector {
    /// The same, but its connections plan each statement once.
    pub(super) fn planning_once(&self) -> Self {
        Self { plans: Plans::Once, ..self.clone() }
    }

    /// A connection that is driven by the thread of the store.
    pub(super) async fn connect(&self, used_for: Use) -> Result<Connection, Failure> {
        let this = self.clone();
        // Sockets belong to the runtime that made them, so the whole connection is made where it will be driven.
        #[expect(clippy::disallowed_methods, reason = "ends with the connection or with the store's thread")]
        let made = self.runtime.spawn(async move {
            let (client, driver) = this.connect_undriven().await?;
            #[expect(clippy::disallowed_methods, reason = "ends with the connection or with the store's thread")]
            this.runtime.spawn(async move {
                if let Err(error) = driver.await {
                    tracing::debug!(error = %error, "connection to PostgreSQL lost");
                }
            });
            this.set_up(&client).await?;
            let time_limit = this.statement_timeout * 2;
            Ok(Connection { client, statements: Mutex::default(), time_limit, sent: this.sent, used_for })
        });
        made.await.unwrap_or_else(|_| Err(Failure::connection("the store is closed")))
    }

    /// A connection that the caller drives.
    pub(super) async fn connect_undriven(&self) -> Result<(Client, Driver), Failure> {
        let (client, driver) = self.config.connect(self.tls.clone()).await.map_err(|error| {
            let failure = Failure::from(error);
            // An error without a code while connecting says more than that the connection was lost.
            Failure { kind: FailureKind::Connection, ..failure }
        })?;
        // A server says its version before anything is asked of it, so one that is too old never gets a statement that it does not know.
        if let Some(version) = driver.parameter("server_version") {
            let major =
                version.split(|letter: char| !letter.is_ascii_digit()).next().and_then(|word| word.parse::<i32>().ok());
            if major.is_some_and(|major| major < SERVER_VERSION_MIN) {
                let expected = format!("expected {SERVER_VERSION_MIN} or later");
                return Err(Failure::other(format!("the server is version {version}; {expected}")));
            }
        }
        Ok((client, driver))
    }

    pub(super) async fn set_up(&self, client: &Client) -> Result<(), Failure> {
        let timeout_ms = self.statement_timeout.as_millis();
        let plans = match self.plans {
            Plans::AsServerDecides => "",
            Plans::Once => {
                "SET plan_cache_mode = force_generic_plan; SET enable_seqscan = off; SET enable_hashjoin = off; \
                 SET enable_mergejoin = off; "
            }
        };
        let sql = format!(
            "{plans}SET search_path TO \"{}\"; SET statement_timeout = {timeout_ms}; SET lock_timeout = {timeout_ms}; \
             SET idle_in_transaction_session_timeout = {timeout_ms}; SET client_encoding = 'UTF8'; SET timezone = 'UTC'; \
             SET default_transaction_isolation = 'read committed'; SET jit = off; SET synchronous_commit = 'on'",
            self.schema
        );
        client.batch_execute(&sql).await?;
        Ok(())
    }
}

/// An open connection.
pub(super) struct Connection {
    pub(super) client: Client,
    statements: Mutex<HashMap<&'static str, Statement>>,
    /// After this a statement is given up: the server has its own limit, but may be frozen or cut off.
    time_limit: Duration,
    sent: Arc<Sent>,
    used_for: Use,
}

impl Connection {
    pub(super) fn is_closed(&self) -> bool {
        self.client.is_closed()
    }

    async fn prepare(&self, sql: &'static str) -> Result<Statement, Failure> {
        let known = self.statements.lock().unwrap_or_else(PoisonError::into_inner).get(sql).cloned();
        if let Some(statement) = known {
            return Ok(statement);
        }
        let statement = self.client.prepare(sql).await?;
        self.statements.lock().unwrap_or_else(PoisonError::into_inner).insert(sql, statement.clone());
        Ok(statement)
    }

    pub(super) async fn query(&self, sql: &'static str, params: Params<'_>) -> Result<Vec<Row>, Failure> {
        let run = async {
            let statement = self.prepare(sql).await?;
            self.sent.one(self.used_for);
            Ok(self.client.query(&statement, params).await?)
        };
        match tokio::time::timeout(self.time_limit, run).await {
            Ok(result) => result,
            Err(_) => Err(Failure::connection("the server does not answer")),
        }
    }

    pub(super) async fn execute(&self, sql: &'static str, params: Params<'_>) -> Result<u64, Failure> {
        let run = async {
            let statement = self.prepare(sql).await?;
            self.sent.one(self.used_for);
            Ok(self.client.execute(&statement, params).await?)
        };
        match tokio::time::timeout(self.time_limit, run).await {
            Ok(result) => result,
            Err(_) => Err(Failure::connection("the server does not answer")),
        }
    }

    /// Statements without parameters, such as `BEGIN`.
    pub(super) async fn batch(&self, sql: &str) -> Result<(), Failure> {
        self.sent.one(self.used_for);
        match tokio::time::timeout(self.time_limit, self.client.batch_execute(sql)).await {
            Ok(result) => Ok(result?),
            Err(_) => Err(Failure::connection("the server does not answer")),
        }
    }
}

/// A place for one connection, which is made when it is needed.
#[derive(Default)]
pub(super) struct Slot {
    used_for: Use,
    open: tokio::sync::Mutex<Option<Arc<Connection>>>,
}

impl Slot {
    pub(super) fn of(used_for: Use) -> Self {
        Self { used_for, open: tokio::sync::Mutex::default() }
    }

    pub(super) async fn get(&self, connector: &Connector) -> Result<Arc<Connection>, Failure> {
        let mut open = self.open.lock().await;
        if let Some(connection) = open.as_ref().filter(|connection| !connection.is_closed()) {
            return Ok(connection.clone());
        }
        *open = None;
        let made = Arc::new(connector.connect(self.used_for).await?);
        *open = Some(made.clone());
        Ok(made)
    }

    /// Forgets a connection that does not answer.
    pub(super) async fn discard(&self, connection: &Arc<Connection>) {
        let mut open = self.open.lock().await;
        if open.as_ref().is_some_and(|known| Arc::ptr_eq(known, connection)) {
            *open = None;
        }
    }
}

/// Connections for single statements of any caller.
pub(super) struct Pool {
    slots: Vec<Slot>,
    next: AtomicUsize,
}

impl Pool {
    pub(super) fn new(size: usize, used_for: Use) -> Self {
        Self { slots: (0..size.max(1)).map(|_| Slot::of(used_for)).collect(), next: AtomicUsize::new(0) }
    }

    /// Runs a statement that may be repeated: one that reads, or one that has the same effect twice. It is repeated once
    /// if its connection was lost.
    pub(super) async fn query(
        &self,
        connector: &Connector,
        sql: &'static str,
        params: Params<'_>,
    ) -> Result<Vec<Row>, Failure> {
        let mut is_repeated = false;
        loop {
            let slot = &self.slots[self.next.fetch_add(1, Ordering::Relaxed) % self.slots.len()];
            let connection = slot.get(connector).await?;
            match connection.query(sql, params).await {
                Err(failure) if failure.kind == FailureKind::Connection => {
                    slot.discard(&connection).await;
                    if is_repeated {
                        return Err(failure);
                    }
                    is_repeated = true;
                }
                Err(failure) if failure.kind == FailureKind::Contention && !is_repeated => is_repeated = true,
                result => return result,
            }
        }
    }
}
