//! The thread that drives the connections of a store: it opens the database, runs the writers, the presence of this replica and the
//! regular work, and ends after everything that was queued is written. Also the commands that need a database and no store.

use std::sync::atomic::AtomicI64;
use std::sync::{Arc, mpsc as blocking};
use std::thread::JoinHandle;
use std::time::Duration;

use switchboard_core::model::Timestamp;
use switchboard_engine::ports::Share;
use switchboard_engine::ports::store::StoreError;
use switchboard_engine::ports::system::ClockRecord;
use tokio::runtime::Handle;
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, MissedTickBehavior, interval};
use tokio_postgres::Client;

use super::audit::Audit;
use super::connect::{Connector, Plans, Pool, Slot, Use};
use super::database::Database;
use super::deliveries::NO_OWNER;
use super::error::{Failure, PostgresError};
use super::hints::{PostgresHints, Presence};
use super::migrate::{self, SchemaStatus};
use super::moved::check_not_moved;
use super::options::{PostgresOptions, TimeSource};
use super::quarantine::Quarantined;
use super::queue::{QUEUE_MAX, Queue};
use super::rows::get;
use super::scopes::Scopes;
use super::shared::Shared;
use super::tls::Tls;
use super::totals::Totals;
use super::usage::Usage;
use super::{calls, hints, prune, runs, text, writer};
use crate::cache::Cache;

/// Bytes of the tasks that this process wrote lately and keeps in memory.
const CACHE_BYTES_MAX: usize = 8 << 20;
/// How long closing waits for what is queued.
const CLOSING_S_MAX: u64 = 15;
/// How often audit entries without a commit are written.
const FLUSH_EVERY: Duration = Duration::from_millis(500);
/// How often it is counted how many processes share the database.
const REPLICAS_COUNTED_EVERY: Duration = Duration::from_secs(2);
/// The pauses between two counts of all records. A count reads all rows, so it is followed by a pause of a hundred times its length.
const COUNT_PAUSE_S_MIN: u64 = 30;
const COUNT_PAUSE_S_MAX: u64 = 600;
const COUNT_PAUSE_FACTOR: u32 = 100;

/// The running thread; dropping it ends it and waits for that.
pub(super) struct StoreThread {
    closing: watch::Sender<bool>,
    thread: Option<JoinHandle<()>>,
}

impl Drop for StoreThread {
    fn drop(&mut self) {
        self.closing.send_replace(true);
        if let Some(thread) = self.thread.take() {
            // A panic of the thread was logged by its hook.
            let _ = thread.join();
        }
    }
}

impl StoreThread {
    pub(super) fn start(options: PostgresOptions) -> Result<(Self, Arc<Shared>, Arc<PostgresHints>), PostgresError> {
        let (closing, closes) = watch::channel(false);
        let (opened, result) = blocking::sync_channel(1);
        let failed = |error: std::io::Error| PostgresError(format!("no thread could be started: {error}"));
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(failed)?;
        #[expect(clippy::disallowed_methods, reason = "joined when the store is dropped")]
        let thread = std::thread::Builder::new().name("postgres".to_owned()).spawn(move || {
            runtime.block_on(async move {
                match open(options, Handle::current()).await {
                    Err(error) => drop(opened.send(Err(error))),
                    Ok((shared, hints, presence)) => {
                        let _ = opened.send(Ok((shared.clone(), hints.clone())));
                        Box::pin(run(shared, hints, presence, closes)).await;
                    }
                }
            });
        });
        let thread = Self { closing, thread: Some(thread.map_err(failed)?) };
        let result =
            result.recv().unwrap_or_else(|_| Err(PostgresError("its thread ended while it was opened".to_owned())));
        result.map(|(shared, hints)| (thread, shared, hints))
    }
}

/// Runs a future on a runtime of its own, for commands, which are not on a runtime.
pub(crate) fn alone<T>(work: impl Future<Output = Result<T, PostgresError>>) -> Result<T, PostgresError> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.map_err(|error| PostgresError(format!("no runtime could be started: {error}")))?.block_on(work)
}

/// The state of a database.
///
/// # Errors
/// When it cannot be reached, or the server cannot hold the data.
pub fn status(options: &PostgresOptions) -> Result<SchemaStatus, PostgresError> {
    alone(async {
        let connector = connector(options, Handle::current())?;
        let client = single_client(&connector).await?;
        migrate::status(&client, &options.schema).await
    })
}

/// Brings a database to the version of this build, and returns its state before. Servers may run meanwhile.
///
/// # Errors
/// When it cannot be reached or changed.
pub fn migrate(options: &PostgresOptions) -> Result<SchemaStatus, PostgresError> {
    alone(async {
        let connector = connector(options, Handle::current())?;
        let mut client = single_client(&connector).await?;
        migrate::migrate(&mut client, &options.schema).await
    })
}

pub(super) fn connector(options: &PostgresOptions, runtime: Handle) -> Result<Connector, PostgresError> {
    let (config, root) = options.parse()?;
    let tls = Tls::new(root.as_deref())?;
    let (schema, statement_timeout) = (options.schema.clone(), options.statement_timeout);
    let plans = Plans::AsServerDecides;
    Ok(Connector { config, tls, schema, statement_timeout, plans, runtime, sent: Arc::default() })
}

pub(super) async fn single_client(connector: &Connector) -> Result<Client, PostgresError> {
    let (client, driver) = connector.connect_undriven().await?;
    #[expect(clippy::disallowed_methods, reason = "ends with its connection")]
    connector.runtime.spawn(async move {
        if let Err(error) = driver.await {
            tracing::debug!(error = %error, "connection to PostgreSQL lost");
        }
    });
    connector.set_up(&client).await?;
    Ok(client)
}

async fn open(
    options: PostgresOptions,
    runtime: Handle,
) -> Result<(Arc<Shared>, Arc<PostgresHints>, Presence), PostgresError> {
    let connector = connector(&options, runtime)?;
    let mut client = single_client(&connector).await?;
    let status = if options.migrates {
        migrate::migrate(&mut client, &options.schema).await?
    } else {
        migrate::status(&client, &options.schema).await?
    };
    if !(status.is_usable() || (options.migrates && status.found < status.known)) {
        return Err(PostgresError(status.to_string()));
    }
    let name = match &options.replica {
        Some(name) => name.clone(),
        None => format!("replica-{:016x}", random()?),
    };
    let hints = Arc::new(PostgresHints::new(name.clone(), options.carries_hints));
    let presence = Presence::begin(&connector, &name, &hints).await?;
    let failed = |error: tokio_postgres::Error| PostgresError::from(Failure::from(error));
    let now = match &options.time {
        TimeSource::Database => None,
        TimeSource::Given(clock) => Some(clock.now().as_ms()),
    };
    let stored_name = text::stored(&name);
    let row = client
        .query_one(
            "insert into replica (name, started_at)
             values ($2, coalesce($1::bigint, (extract(epoch from clock_timestamp()) * 1000)::bigint))
             on conflict (name) do update set started_at = excluded.started_at returning replica_no, started_at",
            &[&now, &&*stored_name],
        )
        .await
        .map_err(failed)?;
    let (replica_no, started_at): (i32, i64) = (row.try_get(0).map_err(failed)?, row.try_get(1).map_err(failed)?);
    check_not_moved(&client).await?;
    // No other process has this name, so what it held before belongs to a process that is gone.
    client
        .execute(
            "update task set hold = 2, claimable_at = -9223372036854775808 where running and hold = 1 and holder = $1",
            &[&replica_no],
        )
        .await
        .map_err(failed)?;
    client
        .execute(
            "update push set due_at = $2, claimed_until = null, claimed_by = null
              where due_at is not null and claimed_until is not null and claimed_by = $1",
            &[&replica_no, &started_at],
        )
        .await
        .map_err(failed)?;
    let rows = client.query("select name, value from meta", &[]).await.map_err(failed)?;
    let mut clock_record = ClockRecord::default();
    for row in &rows {
        let unreadable = |_| PostgresError("the table `meta` cannot be read".to_owned());
        let (name, value): (&str, i64) = (get(row, 0).map_err(unreadable)?, get(row, 1).map_err(unreadable)?);
        let value = (value != 0).then_some(Timestamp::from_ms(value));
        match name {
            "seen_at" => clock_record.last_seen = value,
            "held_until" => clock_record.held_until = value,
            _ => {}
        }
    }
    let (sender, waiting) = mpsc::channel(QUEUE_MAX);
    let shared = Arc::new(Shared {
        database: Database {
            writers: connector.planning_once(),
            connector,
            readers: Pool::new(options.readers, Use::Reads),
            service: Pool::new(1, Use::Service),
            upkeep: Slot::of(Use::Upkeep),
            time: options.time,
        },
        queue: Queue::new(waiting),
        sender,
        cache: Cache::new(options.cache_records_max, CACHE_BYTES_MAX),
        scopes: Scopes::default(),
        totals: Totals::default(),
        usage: Usage::default(),
        share: Share::default(),
        audit: Audit::new(name),
        quarantine: Quarantined::default(),
        secrets: options.secrets,
        replica_no,
        clock_record,
        next_nonce: AtomicI64::new(random()?),
        claimed_after: AtomicI64::new(NO_OWNER),
    });
    runs::observe_clock(&shared).await.map_err(|error| PostgresError(format!("{error:?}")))?;
    calls::void_claims(&shared).await.map_err(|error| PostgresError(format!("{error:?}")))?;
    prune::count_if_few(&shared).await.map_err(|error| PostgresError(format!("{error:?}")))?;
    count_replicas(&shared).await.map_err(|error| PostgresError(format!("{error:?}")))?;
    Ok((shared, hints, presence))
}

fn random() -> Result<i64, PostgresError> {
    let mut bytes = [0; 8];
    let failed = |_| PostgresError("the system gives no randomness".to_owned());
    aws_lc_rs::rand::fill(&mut bytes).map_err(failed)?;
    // Half of the range stays free above it, so that counting on never overflows.
    Ok(i64::from_le_bytes(bytes) >> 1)
}

/// Runs until the store closes, and writes what waits then.
async fn run(shared: Arc<Shared>, hints: Arc<PostgresHints>, presence: Presence, closes: watch::Receiver<bool>) {
    let writers = async {
        // Two of them, on one thread: each waits for the server most of the time.
        tokio::join!(writer::run(shared.clone(), closes.clone()), writer::run(shared.clone(), closes.clone()));
    };
    let mut is_closing = closes.clone();
    let until_closed = async {
        // A sender that is gone closes the store, too.
        let _ = is_closing.wait_for(|is_closing| *is_closing).await;
    };
    let regular = async {
        tokio::select! {
            biased;
            () = until_closed => {}
            () = tend(&shared) => {}
            () = presence.keep(&shared.database.connector, &hints) => {}
            () = hints.send(&shared.database) => {}
        }
    };
    let work = async {
        tokio::join!(writers, regular);
        if let Err(error) = shared.audit.flush(&shared.database).await {
            tracing::error!(?error, "entries of the audit log not written");
        }
        // Others learn what this process has given back.
        hints.send_waiting(&shared.database).await;
    };
    let mut closes_late = closes.clone();
    let closed_late = async {
        let _ = closes_late.wait_for(|is_closing| *is_closing).await;
        tokio::time::sleep(Duration::from_secs(CLOSING_S_MAX)).await;
    };
    tokio::select! {
        biased;
        () = work => {}
        () = closed_late => tracing::error!("store closed before everything was written"),
    }
}

pub(super) async fn count_replicas(shared: &Shared) -> Result<(), StoreError> {
    shared.share.set_processes(hints::count_replicas(&shared.database).await?);
    Ok(())
}

/// Work that comes back: audit entries without a commit, the number of processes, and the numbers of tasks.
async fn tend(shared: &Shared) {
    let mut ticks = interval(FLUSH_EVERY);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let (pause_min, pause_max) = (Duration::from_secs(COUNT_PAUSE_S_MIN), Duration::from_secs(COUNT_PAUSE_S_MAX));
    let (mut count_at, mut look_at) = (Instant::now() + pause_min, Instant::now() + REPLICAS_COUNTED_EVERY);
    loop {
        ticks.tick().await;
        if let Err(error) = shared.audit.flush(&shared.database).await {
            tracing::warn!(?error, "entries of the audit log not written yet");
        }
        let begun = Instant::now();
        if begun >= look_at {
            // What was known stays until the database answers.
            if let Err(error) = count_replicas(shared).await {
                tracing::debug!(?error, "processes not counted");
            }
            look_at = begun + REPLICAS_COUNTED_EVERY;
        }
        if begun < count_at {
            continue;
        }
        if let Err(error) = prune::count(shared).await {
            tracing::debug!(?error, "tasks not counted");
        }
        count_at = Instant::now() + (begun.elapsed() * COUNT_PAUSE_FACTOR).clamp(pause_min, pause_max);
    }
}
