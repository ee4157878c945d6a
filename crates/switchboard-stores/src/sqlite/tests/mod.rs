//! Runs the store contract on the SQLite store, with and without its cache, and tests what only this store has: the
//! file, its lock, its schema, its threads.

mod assigning;
mod audit;
mod backups;
mod compacting;
mod counting;
mod damage;
mod damaged;
mod files;
mod flips;
mod foreign;
mod long;
mod power_cut;
mod recent;
mod restarts;
pub(crate) mod sample;
mod schema;
mod secrets;
mod shell;
mod strangers;
mod unindexed;
mod usage;
mod verifying;
mod waiting;
mod writing;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::time::Duration;

use switchboard_core::model::Timestamp;
use switchboard_engine::contract::Subject;
use switchboard_engine::memory::ManualClock;
use switchboard_engine::ports::{Clock as _, Store};
use tempfile::TempDir;

use super::{SecretKeySource, SecretKeys, SqliteOptions, SqliteStore, Synchronous, verify};

/// A store on its own file, which is deleted when the test ends.
pub(crate) struct OnFile {
    // Dropped before the folder that contains its file.
    pub(crate) store: Option<SqliteStore>,
    pub(crate) clock: Arc<ManualClock>,
    pub(crate) options: SqliteOptions,
    pub(crate) folder: TempDir,
    /// Set if the test has damaged the file, so that it is not verified at the end.
    pub(crate) is_damaged: bool,
    _watchdog: Watchdog,
}

/// Ends the process if a test takes far too long, so that a test that hangs fails with its name.
struct Watchdog {
    /// Dropped with the test; the waiting thread notices that.
    _alive: Sender<()>,
}

const TEST_SECONDS_MAX: u64 = 900;

impl Watchdog {
    fn start() -> Self {
        let (alive, gone) = channel::<()>();
        let test = std::thread::current().name().unwrap_or("a test").to_owned();
        #[expect(clippy::disallowed_methods, reason = "it ends with the test, or ends the process")]
        std::thread::spawn(move || {
            if gone.recv_timeout(Duration::from_secs(TEST_SECONDS_MAX)) == Err(RecvTimeoutError::Timeout) {
                eprintln!("{test} has not ended within {TEST_SECONDS_MAX} s");
                std::process::abort();
            }
        });
        Self { _alive: alive }
    }
}

impl OnFile {
    fn new(options: SqliteOptions) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let clock = Arc::new(ManualClock::new(BEGIN));
        let watchdog = Watchdog::start();
        let mut subject = Self { store: None, clock, options, folder, is_damaged: false, _watchdog: watchdog };
        subject.restart();
        subject
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.folder.path().join("data").join("tasks.db")
    }

    /// Another connection to the file, which may read while the store uses it.
    pub(crate) fn connect(&self) -> rusqlite::Connection {
        rusqlite::Connection::open(self.path()).unwrap()
    }

    pub(crate) fn close(&mut self) {
        self.store = None;
    }

    /// As [`Self::damage`], but every row gets a valid checksum for its new content, as if another build had written
    /// it.
    fn write_as_another_build(&mut self, sql: &str) {
        self.damage(sql);
        self.close();
        super::fill::renew_checksums(&self.connect()).unwrap();
        self.restart();
    }

    /// Closes the store, changes the file, and opens it again.
    fn damage(&mut self, sql: &str) {
        self.close();
        self.is_damaged = true;
        self.connect().execute_batch(sql).unwrap();
        self.restart();
    }
}

/// After every test the file must pass `verify`.
impl Drop for OnFile {
    fn drop(&mut self) {
        if !self.is_damaged && !std::thread::panicking() {
            let faults = faults_at(&self.path(), self.clock.now());
            assert_eq!(faults, [] as [String; 0], "the file has no faults at the end");
        }
    }
}

/// Where the clock of every test begins.
const BEGIN: Timestamp = Timestamp::from_ms(1_700_000_000_000);

fn faults_of(database: &Path) -> Vec<String> {
    faults_at(database, BEGIN)
}

fn faults_at(database: &Path, now: Timestamp) -> Vec<String> {
    let mut faults = Vec::new();
    verify(database, now, &mut |fault| faults.push(fault.to_string())).unwrap();
    faults
}

impl Subject for OnFile {
    fn store(&self) -> &dyn Store {
        self.store.as_ref().expect("the store is open")
    }

    fn clock(&self) -> &ManualClock {
        &self.clock
    }

    fn restart(&mut self) {
        self.close();
        self.store = Some(SqliteStore::open(&self.path(), self.clock.clone(), self.options.clone()).unwrap());
    }
}

/// Options without syncing, because waiting for the disk would not test more. The writer is never considered idle, so
/// that tests do not depend on the speed of the machine.
fn quick() -> SqliteOptions {
    let idle = Duration::from_secs(3600);
    // The fixtures hold secrets that were encrypted with this key.
    let keys = SecretKeys::parse("swkey_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=").unwrap();
    let secrets = SecretKeySource::Keys(keys);
    SqliteOptions { synchronous: Synchronous::Normal, idle, secrets, ..SqliteOptions::default() }
}

pub(crate) fn make() -> OnFile {
    OnFile::new(quick())
}

// There is no second handle to test with `shared_store_contract!`: a lock gives the file to one process, and the writer's
// memory of leases and rows relies on it. `files` tests that a second process is refused.
mod cached {
    switchboard_engine::store_contract!(super::make);
    switchboard_engine::storage_contract!(super::make);
    switchboard_engine::calls_contract!(super::make);
    switchboard_engine::counted_calls_contract!(super::make);
}

mod uncached {
    use super::{OnFile, SqliteOptions, quick};

    fn make() -> OnFile {
        OnFile::new(SqliteOptions { cache_records_max: 0, readers: 1, ..quick() })
    }

    switchboard_engine::store_contract!(make);
    switchboard_engine::storage_contract!(make);
    switchboard_engine::calls_contract!(make);
    switchboard_engine::counted_calls_contract!(make);
}
