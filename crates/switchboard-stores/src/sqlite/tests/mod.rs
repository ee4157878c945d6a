//! The SQLite store under the contract, with and without its cache, and what is its own: the file, its lock, its
//! schema, its threads.

mod backups;
mod compacting;
mod counting;
mod files;
mod long;
mod power_cut;
mod restarts;
mod schema;
mod shell;
mod story;
mod verifying;
mod writing;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use switchboard_core::model::Timestamp;
use switchboard_engine::contract::Subject;
use switchboard_engine::memory::ManualClock;
use switchboard_engine::ports::Store;
use tempfile::TempDir;

use super::{SqliteOptions, SqliteStore, Synchronous, verify};

/// A store on a file of its own, which goes when the test ends.
struct OnFile {
    // Dropped before the folder it lives in.
    store: Option<SqliteStore>,
    clock: Arc<ManualClock>,
    options: SqliteOptions,
    folder: TempDir,
}

impl OnFile {
    fn new(options: SqliteOptions) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let clock = Arc::new(ManualClock::new(Timestamp::from_ms(1_700_000_000_000)));
        let mut subject = Self { store: None, clock, options, folder };
        subject.restart();
        subject
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("data").join("tasks.db")
    }

    /// The file seen by somebody else, who may look while it is in use.
    fn look(&self) -> rusqlite::Connection {
        rusqlite::Connection::open(self.path()).unwrap()
    }

    fn close(&mut self) {
        self.store = None;
    }
}

/// Whatever a test did through the store, the file holds together.
impl Drop for OnFile {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            assert_eq!(faults_of(&self.path()), [] as [String; 0], "the file is left in order");
        }
    }
}

fn faults_of(database: &Path) -> Vec<String> {
    let mut faults = Vec::new();
    verify(database, &mut |fault| faults.push(fault.to_string())).unwrap();
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

/// Waiting for the disk at each of many small steps would say nothing more about behaviour.
fn quick() -> SqliteOptions {
    SqliteOptions { synchronous: Synchronous::Normal, ..SqliteOptions::default() }
}

fn make() -> OnFile {
    OnFile::new(quick())
}

mod cached {
    switchboard_engine::store_contract!(super::make);
}

mod uncached {
    use super::{OnFile, SqliteOptions, quick};

    fn make() -> OnFile {
        OnFile::new(SqliteOptions { cache_records_max: 0, readers: 1, ..quick() })
    }

    switchboard_engine::store_contract!(make);
}
