//! What a send costs the server and PostgreSQL: CPU time by the kernel, rows, transactions and statements as the server counts them, and bytes of
//! the write-ahead log.

use std::fmt;
use std::time::Duration;

use anyhow::{Result, ensure};
use switchboard_test_servers::Postgres;

use crate::load::Outcome;
use crate::process;
use crate::server::Server;

/// The CPU time that PostgreSQL has taken so far, with processes that have ended, such as those that vacuum.
pub(super) fn cpu_of(postgres: &Postgres) -> Duration {
    let processes = postgres.processes();
    let (first, others) = processes.split_first().map_or((None, &[][..]), |(first, others)| (Some(*first), others));
    let of_first = first.and_then(|pid| process::cpu_time_with_ended_children(pid).ok()).unwrap_or_default();
    of_first + others.iter().filter_map(|pid| process::cpu_time(*pid).ok()).sum::<Duration>()
}

/// What was used so far.
#[derive(Clone, Copy, Debug, Default)]
struct Used {
    server: Duration,
    database: Duration,
    rows: u64,
    transactions: u64,
    statements: u64,
    wal_bytes: u64,
}

impl Used {
    async fn by(server: &Server, postgres: &Postgres) -> Result<Self> {
        let wal = postgres.sql("select pg_wal_lsn_diff(pg_current_wal_lsn(), '0/0')::bigint");
        Ok(Self {
            rows: server.metric("switchboard_store_rows_written_total").await?,
            transactions: server.metric("switchboard_commit_batches_total").await?,
            statements: server.metric("switchboard_store_statements_total").await?,
            wal_bytes: wal.trim().parse()?,
            server: process::cpu_time(server.pid())?,
            database: cpu_of(postgres),
        })
    }

    fn add(&mut self, before: &Self, after: &Self) {
        self.server += after.server.saturating_sub(before.server);
        self.database += after.database.saturating_sub(before.database);
        self.rows += after.rows - before.rows;
        self.transactions += after.transactions - before.transactions;
        self.statements += after.statements - before.statements;
        self.wal_bytes += after.wal_bytes - before.wal_bytes;
    }
}

/// The cost of several rounds.
#[derive(Default)]
pub(super) struct Cost {
    used: Used,
    outcomes: Vec<Outcome>,
}

impl Cost {
    /// Adds a round, unless it only warms up.
    pub(super) async fn measure(
        &mut self,
        server: &Server,
        postgres: &Postgres,
        is_counted: bool,
        sends: impl Future<Output = Outcome>,
    ) -> Result<()> {
        let before = Used::by(server, postgres).await?;
        let outcome = sends.await;
        ensure!(outcome.errors == 0, "{} errors, first: {:?}", outcome.errors, outcome.first_error);
        if is_counted {
            self.used.add(&before, &Used::by(server, postgres).await?);
            self.outcomes.push(outcome);
        }
        Ok(())
    }

    pub(super) fn per_send(self) -> PerSend {
        let outcome = Outcome::of_all(self.outcomes);
        let sends = outcome.requests.max(1) as f64;
        let Used { server, database, rows, transactions, statements, wal_bytes } = self.used;
        let each = |count: u64| count as f64 / sends;
        PerSend {
            per_second: outcome.per_second,
            p50_ms: outcome.p50_ms,
            p99_ms: outcome.p99_ms,
            server_us: server.as_secs_f64() * 1e6 / sends,
            database_us: database.as_secs_f64() * 1e6 / sends,
            rows: each(rows),
            transactions: each(transactions),
            statements: each(statements),
            wal_bytes: each(wal_bytes),
        }
    }
}

/// What one send costs.
pub(super) struct PerSend {
    pub(super) per_second: f64,
    p50_ms: f64,
    p99_ms: f64,
    pub(super) server_us: f64,
    pub(super) database_us: f64,
    rows: f64,
    transactions: f64,
    statements: f64,
    wal_bytes: f64,
}

impl fmt::Display for PerSend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { per_second, p50_ms, p99_ms, server_us, database_us, .. } = self;
        write!(f, "{per_second:6.0}/s, p50 {p50_ms:.2} ms, p99 {p99_ms:.2} ms, ")?;
        write!(f, "CPU per send: server {server_us:.0} us, PostgreSQL {database_us:.0} us")
    }
}

impl PerSend {
    /// What it is to the database.
    pub(super) fn of_database(&self) -> String {
        let Self { rows, transactions, statements, wal_bytes, .. } = self;
        format!(
            "per send {rows:.2} rows, {transactions:.3} transactions, {statements:.3} statements to PostgreSQL, {wal_bytes:.0} bytes of its log"
        )
    }
}
