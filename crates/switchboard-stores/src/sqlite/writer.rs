//! The only thread that writes. It waits for a request, takes all others that have arrived meanwhile, runs them in one
//! transaction, and answers when that is durable. So the more requests wait, the more share a disk write; there is no
//! delay to collect more. If one request of a batch fails unexpectedly, the batch is rolled back and each request is
//! run alone, so that only the faulty one fails. If making a batch durable fails, all its requests fail.
//!
//! All answers to a batch are stored before any waiter is woken, and each runtime is woken once: one task in the runtime wakes
//! its waiters, where waking is cheap. If the writer thread woke each waiter, that would be a system call, and often a thread
//! switch, for every commit of a batch.

use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::thread::JoinHandle;
use std::time::Duration;

use rusqlite::Connection;
use switchboard_engine::ports::Clock;
use switchboard_engine::ports::store::{Commit, CommitError, StoreError, Target, TaskKey};
use tokio::runtime::Handle;
use tokio::sync::oneshot;
use tokio::time::Instant;

use super::audit::{AUDIT_WAIT_MAX, AuditQueue};
use super::error::{Failure, stopped};
use super::ledger::{Effect, Ledger, LedgerShares};
use super::open::SqliteOptions;
use super::presence::Presence;
use super::quarantine::Quarantined;
use super::readers::send;
use super::recent::UnfiledTasks;
use super::secrets::Secrets;
use super::totals::Totals;
use super::usage::StoredSums;
use crate::cache::{Cache, Committed};
use crate::record::Encoded;
use crate::write_stats::WriteStats;

/// The most requests that share a transaction.
const BATCH_MAX: usize = 512;
/// How often the writer checks that its files still exist.
const PRESENCE_LOOK: Duration = Duration::from_secs(1);
const FILE_GONE: &str = "the database was deleted or replaced while the server has it open";

pub(super) struct Writer {
    queue: Option<SyncSender<Request>>,
    stats: Arc<WriteStats>,
    thread: Option<JoinHandle<()>>,
}

pub(super) enum Request {
    Commit(Box<CommitRequest>),
    Work(Box<dyn Work>),
    /// Entries of the audit log wait to be written. It is no work by itself.
    AuditWaits,
}

pub(super) struct CommitRequest {
    pub(super) commit: Commit,
    pub(super) encoded: Encoded,
    /// The head's artifacts as the task's row stores them. None if the commit does not write the task's row.
    pub(super) artifacts: Option<String>,
    asked_at: Instant,
    outcome: Option<Result<TaskKey, CommitError>>,
    /// The request itself is returned, so that its memory is freed by the thread that allocated it.
    reply: Option<Reply<Box<Self>>>,
}

impl CommitRequest {
    pub(super) fn new(commit: Commit, encoded: Encoded, artifacts: Option<String>, reply: Reply<Box<Self>>) -> Self {
        Self { commit, encoded, artifacts, asked_at: Instant::now(), outcome: None, reply: Some(reply) }
    }

    pub(super) fn into_outcome(self) -> Result<TaskKey, CommitError> {
        self.outcome.unwrap_or_else(|| Err(stopped().into()))
    }

    fn answer(mut self: Box<Self>, wake_list: &mut WakeList) {
        if let Some(reply) = self.reply.take() {
            reply.leave(self, wake_list);
        }
    }
}

/// The state in memory that is updated after every durable batch.
pub(super) struct SharedCaches {
    pub(super) stats: Arc<WriteStats>,
    pub(super) cache: Arc<Cache>,
    pub(super) totals: Arc<Totals>,
    pub(super) quarantine: Arc<Quarantined>,
    pub(super) unfiled: Arc<UnfiledTasks>,
    pub(super) audit: Arc<AuditQueue>,
    pub(super) secrets: Arc<Secrets>,
    pub(super) sums: Arc<StoredSums>,
}

/// Why the writer could not start.
pub(super) enum StartError {
    Thread(std::io::Error),
    Sqlite(rusqlite::Error),
}

/// Work for the writer other than a commit. It may be run again after a rollback.
pub(super) trait Work: Send {
    fn run(&mut self, ledger: &mut Ledger<'_>) -> Result<(), Failure>;
    fn finish(self: Box<Self>, failure: Option<StoreError>);
}

struct Job<T, F> {
    run: F,
    result: Option<T>,
    reply: oneshot::Sender<Result<T, StoreError>>,
}

impl<T: Send, F: FnMut(&mut Ledger<'_>) -> Result<T, Failure> + Send> Work for Job<T, F> {
    fn run(&mut self, ledger: &mut Ledger<'_>) -> Result<(), Failure> {
        self.result = Some((self.run)(ledger)?);
        Ok(())
    }

    fn finish(self: Box<Self>, failure: Option<StoreError>) {
        let answer = match (failure, self.result) {
            (None, Some(result)) => Ok(result),
            (Some(failure), _) => Err(failure),
            (None, None) => Err(stopped()),
        };
        // Sending fails if the caller has disconnected; the work is done anyway.
        let _ = self.reply.send(answer);
    }
}

impl Writer {
    pub(super) fn start(
        connection: Connection,
        caches: SharedCaches,
        clock: Arc<dyn Clock>,
        epoch: i64,
        mut presence: Presence,
        options: &SqliteOptions,
    ) -> Result<Self, StartError> {
        let (queue, requests) = sync_channel(options.queue_max);
        let idle = options.idle;
        let (ready, started) = sync_channel(1);
        let thread = std::thread::Builder::new().name("sqlite-write".to_owned());
        let stats = caches.stats.clone();
        let write = move || {
            let shares = LedgerShares {
                stats: caches.stats.clone(),
                quarantine: caches.quarantine.clone(),
                unfiled: caches.unfiled.clone(),
                audit: caches.audit.clone(),
                secrets: caches.secrets.clone(),
                sums: caches.sums.clone(),
            };
            match Ledger::new(&connection, clock, shares, epoch) {
                Ok(ledger) => {
                    let _ = ready.send(Ok(()));
                    serve(ledger, &requests, &caches, &mut presence, idle);
                }
                Err(error) => {
                    let _ = ready.send(Err(error));
                }
            }
        };
        #[expect(clippy::disallowed_methods, reason = "writing blocks; this thread is joined on drop")]
        let thread = thread.spawn(write).map_err(StartError::Thread)?;
        started.recv().unwrap_or(Err(rusqlite::Error::InvalidQuery)).map_err(StartError::Sqlite)?;
        Ok(Self { queue: Some(queue), stats, thread: Some(thread) })
    }

    pub(super) async fn commit(&self, request: Box<CommitRequest>) -> Result<(), StoreError> {
        self.send(Request::Commit(request)).await
    }

    /// Runs something in the writer's next transaction and answers when it is durable.
    pub(super) async fn run<T: Send + 'static>(
        &self,
        run: impl FnMut(&mut Ledger<'_>) -> Result<T, Failure> + Send + 'static,
    ) -> Result<T, StoreError> {
        let (reply, answer) = oneshot::channel();
        self.send(Request::Work(Box::new(Job { run, result: None, reply }))).await?;
        answer.await.unwrap_or_else(|_| Err(stopped()))
    }

    /// Tells the writer that entries of the audit log wait. If the queue is full, a commit is about to take them along.
    pub(super) fn note_audit(&self) {
        if let Some(queue) = &self.queue {
            let _ = queue.try_send(Request::AuditWaits);
        }
    }

    async fn send(&self, request: Request) -> Result<(), StoreError> {
        let queue = self.queue.as_ref().ok_or_else(stopped)?;
        self.stats.queue_depth.fetch_add(1, Relaxed);
        let sent = send(queue, request, "too many commits wait").await;
        if sent.is_err() {
            self.stats.queue_depth.fetch_sub(1, Relaxed);
            WriteStats::add(&self.stats.failures, 1);
        }
        sent
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.queue = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn serve(
    mut ledger: Ledger<'_>,
    requests: &Receiver<Request>,
    caches: &SharedCaches,
    presence: &mut Presence,
    idle: Duration,
) {
    let mut unwritten = false;
    let mut audit_due = None;
    let mut looked_at = None;
    loop {
        let first = match next_request(requests, unwritten.then_some(idle), audit_due) {
            Ok(Request::AuditWaits) => {
                audit_due.get_or_insert_with(|| Instant::now() + AUDIT_WAIT_MAX);
                continue;
            }
            Ok(first) => first,
            Err(RecvTimeoutError::Timeout) if audit_due.is_some_and(|due| due <= Instant::now()) => {
                if ledger.audit.has_entries() && presence.files_exist() {
                    process(&mut ledger, Vec::new(), caches);
                    unwritten = true;
                }
                // More than one batch may wait, or writing may have failed.
                audit_due = ledger.audit.has_entries().then(|| Instant::now() + AUDIT_WAIT_MAX);
                continue;
            }
            Err(RecvTimeoutError::Timeout) => {
                if unwritten {
                    ledger.tidy_up();
                    checkpoint(&ledger);
                    unwritten = false;
                }
                continue;
            }
            Err(RecvTimeoutError::Disconnected) => break,
        };
        // Yields, so that other threads on this core can send their requests and share the transaction. If no thread
        // waits for the core, this costs nothing.
        std::thread::yield_now();
        let mut batch = vec![first];
        let work = |request: &Request| !matches!(request, Request::AuditWaits);
        batch.extend(requests.try_iter().take(BATCH_MAX - 1).filter(work));
        caches.stats.queue_depth.fetch_sub(batch.len() as u64, Relaxed);
        if looked_at.is_none_or(|at: Instant| at.elapsed() >= PRESENCE_LOOK) {
            if !presence.files_exist() {
                // Checked again with the next batch, because a commit that is answered before the file is back would be
                // lost.
                fail(batch, &Failure(StoreError::Unavailable(FILE_GONE.to_owned())), &caches.stats);
                continue;
            }
            looked_at = Some(Instant::now());
        }
        unwritten = true;
        process(&mut ledger, batch, caches);
        if !ledger.audit.has_entries() {
            audit_due = None;
        } else if audit_due.is_none() {
            audit_due = Some(Instant::now() + AUDIT_WAIT_MAX);
        }
    }
    // Each turn writes one batch; one that fails ends this.
    while ledger.audit.has_entries() && presence.files_exist() {
        if attempt(&mut ledger, &mut [], &caches.totals).is_err() {
            tracing::error!("the last entries of the audit log could not be written");
            break;
        }
    }
    ledger.close();
    checkpoint(&ledger);
}

/// The next request, waiting no longer than until there is something else to do.
fn next_request(
    requests: &Receiver<Request>,
    idle: Option<Duration>,
    audit_due: Option<Instant>,
) -> Result<Request, RecvTimeoutError> {
    let until_audit = audit_due.map(|due| due.saturating_duration_since(Instant::now()));
    match idle.into_iter().chain(until_audit).min() {
        Some(wait) => requests.recv_timeout(wait),
        None => requests.recv().map_err(|_| RecvTimeoutError::Disconnected),
    }
}

fn process(ledger: &mut Ledger<'_>, mut batch: Vec<Request>, caches: &SharedCaches) {
    let stats = &*caches.stats;
    match attempt(ledger, &mut batch, &caches.totals) {
        Ok(()) => {
            stats.batch(batch.len() as u64);
            let effects = std::mem::take(&mut ledger.effects);
            caches.totals.update(&ledger.count_changes);
            caches.cache.update(|updates| {
                for effect in effects {
                    match effect {
                        Effect::Committed { place } => {
                            if let Some(committed) = batch.get_mut(place).and_then(committed) {
                                updates.committed(committed);
                            }
                        }
                        Effect::Removed(id) => updates.removed(&id),
                    }
                }
            });
            let now = Instant::now();
            let mut wake_list = WakeList::default();
            batch.into_iter().for_each(|request| succeed(request, stats, now, &mut wake_list));
            wake_list.wake();
        }
        Err(BatchError::OneRequest(failure)) if batch.len() == 1 => fail(batch, &failure, stats),
        Err(BatchError::OneRequest(_)) => {
            for request in batch {
                process(ledger, vec![request], caches);
            }
        }
        Err(BatchError::WholeBatch(failure)) => fail(batch, &failure, stats),
    }
}

/// Why a batch failed: one of its requests, or making it durable.
enum BatchError {
    OneRequest(Failure),
    WholeBatch(Failure),
}

fn attempt(ledger: &mut Ledger<'_>, batch: &mut [Request], totals: &Totals) -> Result<(), BatchError> {
    let work = AssertUnwindSafe(|| {
        ledger.begin().map_err(BatchError::WholeBatch)?;
        for (place, request) in batch.iter_mut().enumerate() {
            run(ledger, place, request).map_err(BatchError::OneRequest)?;
        }
        totals.begin_change();
        ledger.commit().map_err(BatchError::WholeBatch)
    });
    // A panic is a bug, but later requests must not fail because of it.
    let panicked = || Failure(StoreError::Unavailable("the writer panicked".to_owned()));
    let result = catch_unwind(work).unwrap_or_else(|_| Err(BatchError::OneRequest(panicked())));
    if result.is_err() {
        ledger.rollback();
        totals.unchanged();
    }
    result
}

fn run(ledger: &mut Ledger<'_>, place: usize, request: &mut Request) -> Result<(), Failure> {
    match request {
        Request::Commit(request) => {
            let outcome = ledger.apply(&request.commit, &request.encoded, request.artifacts.as_deref())?;
            if outcome.is_ok() {
                ledger.effects.push(Effect::Committed { place });
                if let Some(entry) = &request.commit.audit {
                    ledger.audit.add(entry);
                }
            }
            request.outcome = Some(outcome);
            Ok(())
        }
        Request::Work(work) => work.run(ledger),
        Request::AuditWaits => Ok(()),
    }
}

/// The cache's update for a commit; parts that are not needed afterwards are moved out.
fn committed(request: &mut Request) -> Option<Committed<'_>> {
    let Request::Commit(request) = request else { return None };
    let Some(Ok(key)) = request.outcome else { return None };
    let commit = &mut request.commit;
    let scope = match &mut commit.target {
        // A task that begins and ends in one commit is not cached: its caller gets all of it now, and it is rarely read
        // again. The first read puts it into the cache.
        Target::New { .. } if commit.head.is_closed() => return None,
        Target::New { scope } => Some(scope.clone()),
        Target::Existing { .. } => None,
    };
    Some(Committed { key, scope, head: commit.head.clone(), events: &commit.events, folded: commit.folded.take() })
}

fn succeed(request: Request, stats: &WriteStats, now: Instant, wake_list: &mut WakeList) {
    match request {
        Request::Commit(request) => {
            match &request.outcome {
                Some(Ok(_)) => {
                    WriteStats::add(&stats.commits, 1);
                    stats.took(now.saturating_duration_since(request.asked_at));
                }
                Some(Err(CommitError::Conflict | CommitError::Fenced | CommitError::Duplicate(_))) => {
                    WriteStats::add(&stats.conflicts, 1);
                }
                // The engine counts these.
                Some(Err(CommitError::OverStorage(_))) => {}
                Some(Err(CommitError::Full | CommitError::Store(_))) | None => WriteStats::add(&stats.failures, 1),
            }
            request.answer(wake_list);
        }
        Request::Work(work) => work.finish(None),
        Request::AuditWaits => {}
    }
}

fn fail(batch: Vec<Request>, failure: &Failure, stats: &WriteStats) {
    tracing::error!(error = ?failure.0, requests = batch.len(), "writing failed");
    WriteStats::add(&stats.failures, batch.len() as u64);
    let mut wake_list = WakeList::default();
    for request in batch {
        match request {
            Request::Commit(mut request) => {
                request.outcome = Some(Err(CommitError::Store(failure.0.clone())));
                request.answer(&mut wake_list);
            }
            Request::Work(work) => work.finish(Some(failure.0.clone())),
            Request::AuditWaits => {}
        }
    }
    wake_list.wake();
}

fn checkpoint(ledger: &Ledger<'_>) {
    let moved = ledger.connection.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |row| row.get::<_, i64>(2));
    if let Err(error) = moved {
        tracing::warn!(%error, "the write-ahead log could not be moved into the file");
    }
}

/// The slot that holds one answer, shared by the writer and the waiter.
pub(super) fn answer<T>() -> (Reply<T>, Answer<T>) {
    let slot = Arc::new(Mutex::new(Slot { value: None, waker: None, closed: false }));
    (Reply { slot: slot.clone(), runtime: Handle::try_current().ok() }, Answer(slot))
}

struct Slot<T> {
    value: Option<T>,
    waker: Option<Waker>,
    /// The writer is done with this slot, with or without an answer.
    closed: bool,
}

/// The writer's side.
pub(super) struct Reply<T> {
    slot: Arc<Mutex<Slot<T>>>,
    /// Where the waiter runs.
    runtime: Option<Handle>,
}

impl<T> Reply<T> {
    /// Stores the answer. Its waiter is woken with the others of the batch.
    fn leave(mut self, value: T, wake_list: &mut WakeList) {
        let mut slot = lock(&self.slot);
        slot.value = Some(value);
        slot.closed = true;
        let waker = slot.waker.take();
        drop(slot);
        if let Some(waker) = waker {
            wake_list.add(self.runtime.take(), waker);
        }
    }
}

impl<T> Drop for Reply<T> {
    /// If the writer stops without an answer, the waiter gets an error.
    fn drop(&mut self) {
        let mut slot = lock(&self.slot);
        slot.closed = true;
        let waker = slot.waker.take();
        drop(slot);
        waker.into_iter().for_each(Waker::wake);
    }
}

/// The waiter's side.
pub(super) struct Answer<T>(Arc<Mutex<Slot<T>>>);

impl<T> Future for Answer<T> {
    type Output = Result<T, StoreError>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut slot = lock(&self.0);
        match slot.value.take() {
            Some(value) => Poll::Ready(Ok(value)),
            None if slot.closed => Poll::Ready(Err(stopped())),
            None => {
                slot.waker = Some(cx.waker().clone());
                Poll::Pending
            }
        }
    }
}

/// The wakers of a batch, by runtime; nearly always there is one runtime.
#[derive(Default)]
struct WakeList(Vec<RuntimeWakers>);

struct RuntimeWakers {
    runtime: Option<Handle>,
    wakers: Vec<Waker>,
}

impl WakeList {
    fn add(&mut self, runtime: Option<Handle>, waker: Waker) {
        let id = |runtime: &Option<Handle>| runtime.as_ref().map(Handle::id);
        match self.0.iter_mut().find(|asleep| id(&asleep.runtime) == id(&runtime)) {
            Some(asleep) => asleep.wakers.push(waker),
            None => self.0.push(RuntimeWakers { runtime, wakers: vec![waker] }),
        }
    }

    fn wake(self) {
        for RuntimeWakers { runtime, wakers } in self.0 {
            let wakers = Wakers(wakers);
            match runtime {
                #[expect(clippy::disallowed_methods, reason = "it only wakes; dropped unrun, it still does")]
                Some(runtime) if wakers.0.len() > 1 => drop(runtime.spawn(async move { drop(wakers) })),
                Some(_) | None => drop(wakers),
            }
        }
    }
}

/// Wakes its wakers when it is dropped, also if the runtime ends before the task ran.
struct Wakers(Vec<Waker>);

impl Drop for Wakers {
    fn drop(&mut self) {
        self.0.drain(..).for_each(Waker::wake);
    }
}

fn lock<T>(slot: &Mutex<Slot<T>>) -> MutexGuard<'_, Slot<T>> {
    slot.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
#[path = "writer_tests.rs"]
mod tests;
