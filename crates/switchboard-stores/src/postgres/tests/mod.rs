//! Runs the store contract on PostgreSQL, with two handles that share only the data, and tests what only this store has. The tests
//! start a server of their own, so they are ignored unless they are asked for, as `scripts/test` does.

mod assigning;
mod checking;
mod costs;
mod hints;
mod migrating;
mod refusals;
mod sharing;
mod usage;

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};

use switchboard_core::model::Timestamp;
use switchboard_engine::contract::{SharedSubject, Subject};
use switchboard_engine::memory::ManualClock;
use switchboard_engine::ports::Store;
use switchboard_test_servers::Postgres;

use super::{PostgresOptions, PostgresStore, SecretKeys};

const BEGIN: Timestamp = Timestamp::from_ms(1_750_000_000_000);

/// The server of all tests. It ends with this process.
pub(crate) fn server() -> &'static Postgres {
    static SERVER: OnceLock<Postgres> = OnceLock::new();
    SERVER.get_or_init(Postgres::start)
}

/// A name that no other test uses.
pub(crate) fn new_schema() -> String {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    format!("test_{}", NEXT.fetch_add(1, Ordering::Relaxed))
}

/// A schema of its own, which is dropped when the test ends.
struct OnSchema {
    // Dropped before the schema.
    first: Option<PostgresStore>,
    second: Option<PostgresStore>,
    clock: Arc<ManualClock>,
    options: PostgresOptions,
}

impl OnSchema {
    fn new() -> Self {
        Self::with(|options| options)
    }

    /// As [`OnSchema::new`], but every task is read from the database.
    fn uncached() -> Self {
        Self::with(|options| PostgresOptions { cache_records_max: 0, ..options })
    }

    fn with(change: impl FnOnce(PostgresOptions) -> PostgresOptions) -> Self {
        let clock = Arc::new(ManualClock::new(BEGIN));
        let keys = SecretKeys::generate().unwrap();
        let options = PostgresOptions::new(server().url()).schema(new_schema()).secrets(keys);
        let options = change(options.readers(1).clock(clock.clone()));
        let mut subject = Self { first: None, second: None, clock, options };
        subject.restart();
        subject
    }

    fn open(&self, replica: &str) -> PostgresStore {
        PostgresStore::open(self.options.clone().replica(replica)).unwrap()
    }

    /// A schema with a second handle.
    fn shared() -> Self {
        let mut subject = Self::new();
        subject.second = Some(subject.open("second"));
        subject
    }

    /// Runs statements on a connection of its own.
    fn sql(&self, sql: &str) {
        let (config, _) = self.options.parse().unwrap();
        let sql = format!("set search_path to {}; {sql}", self.options.schema);
        // A test may be on a runtime already, and one runtime cannot wait for another on the same thread.
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
                runtime.block_on(async {
                    let (client, driver) = config.connect(tokio_postgres::NoTls).await.unwrap();
                    tokio::select! {
                        result = client.batch_execute(&sql) => result.unwrap(),
                        _ = driver => panic!("the connection was lost"),
                    }
                });
            });
        });
    }
}

impl Drop for OnSchema {
    fn drop(&mut self) {
        self.first = None;
        self.second = None;
        if !std::thread::panicking() {
            self.sql(&format!("drop schema {} cascade", self.options.schema));
        }
    }
}

impl Subject for OnSchema {
    fn store(&self) -> &dyn Store {
        self.first.as_ref().unwrap()
    }

    fn clock(&self) -> &ManualClock {
        &self.clock
    }

    fn restart(&mut self) {
        self.first = None;
        self.first = Some(self.open("first"));
    }
}

impl SharedSubject for OnSchema {
    fn second(&self) -> &dyn Store {
        self.second.as_ref().unwrap()
    }
}

mod cached {
    fn make() -> super::OnSchema {
        super::OnSchema::new()
    }
    switchboard_engine::store_contract!(
        #[ignore = "starts PostgreSQL"]
        make
    );
}

mod uncached {
    fn make() -> super::OnSchema {
        super::OnSchema::uncached()
    }
    switchboard_engine::store_contract!(
        #[ignore = "starts PostgreSQL"]
        make
    );
    switchboard_engine::storage_contract!(
        #[ignore = "starts PostgreSQL"]
        make
    );
    switchboard_engine::calls_contract!(
        #[ignore = "starts PostgreSQL"]
        make
    );
    switchboard_engine::counted_calls_contract!(
        #[ignore = "starts PostgreSQL"]
        make
    );
}

mod shared_contract {
    fn make() -> super::OnSchema {
        super::OnSchema::shared()
    }
    switchboard_engine::shared_store_contract!(
        #[ignore = "starts PostgreSQL"]
        make
    );
}
