//! The threads that read. Each has its own read-only connection, and a free thread takes the next job.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use rusqlite::Connection;
use switchboard_engine::ports::store::StoreError;
use tokio::sync::oneshot;

use super::error::{Failure, stopped};

type Job = Box<dyn FnOnce(&Connection) + Send>;

/// How long a request waits for space in a full queue, and how often it checks.
pub(super) const QUEUE_WAIT: Duration = Duration::from_secs(2);
pub(super) const QUEUE_LOOK: Duration = Duration::from_millis(2);

const READS_WAITING_MAX: usize = 4096;

pub(super) struct Readers {
    queue: Option<SyncSender<Job>>,
    threads: Vec<JoinHandle<()>>,
}

impl Readers {
    pub(super) fn start(connections: Vec<Connection>) -> std::io::Result<Self> {
        let (queue, jobs) = sync_channel(READS_WAITING_MAX);
        let jobs = Arc::new(Mutex::new(jobs));
        let mut threads = Vec::new();
        for (number, connection) in connections.into_iter().enumerate() {
            let jobs = jobs.clone();
            let thread = std::thread::Builder::new().name(format!("sqlite-read-{number}"));
            #[expect(clippy::disallowed_methods, reason = "reading blocks; these threads are joined on drop")]
            threads.push(thread.spawn(move || serve(&connection, &jobs))?);
        }
        Ok(Self { queue: Some(queue), threads })
    }

    /// Runs a read on one of the threads.
    pub(super) async fn run<T: Send + 'static>(
        &self,
        read: impl FnOnce(&Connection) -> Result<T, Failure> + Send + 'static,
    ) -> Result<T, StoreError> {
        let (reply, answer) = oneshot::channel();
        let job: Job = Box::new(move |connection| {
            // Sending fails if the caller has disconnected; the answer is not needed then.
            let _ = reply.send(read(connection));
        });
        let queue = self.queue.as_ref().ok_or_else(stopped)?;
        send(queue, job, "too many reads wait").await?;
        match answer.await {
            Ok(result) => result.map_err(|failure| failure.0),
            Err(_) => Err(stopped()),
        }
    }
}

impl Drop for Readers {
    fn drop(&mut self) {
        self.queue = None;
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

fn serve(connection: &Connection, jobs: &Mutex<Receiver<Job>>) {
    loop {
        // The lock is held while waiting: one idle thread waits for a job, and the others wait for the lock.
        let job = jobs.lock().unwrap_or_else(PoisonError::into_inner).recv();
        let Ok(job) = job else { return };
        // A job that panics loses only its own answer; the thread continues.
        if catch_unwind(AssertUnwindSafe(|| job(connection))).is_err() {
            tracing::error!("a read panicked");
        }
        if !connection.is_autocommit() {
            let _ = connection.execute_batch("ROLLBACK");
        }
    }
}

/// Puts something into a queue, waiting a little if it is full.
pub(super) async fn send<T>(queue: &SyncSender<T>, item: T, full: &str) -> Result<(), StoreError> {
    let mut item = item;
    let mut waited = Duration::ZERO;
    loop {
        match queue.try_send(item) {
            Ok(()) => return Ok(()),
            Err(TrySendError::Disconnected(_)) => return Err(stopped()),
            Err(TrySendError::Full(_)) if waited >= QUEUE_WAIT => return Err(StoreError::Unavailable(full.to_owned())),
            Err(TrySendError::Full(back)) => item = back,
        }
        tokio::time::sleep(QUEUE_LOOK).await;
        waited += QUEUE_LOOK;
    }
}
