//! Writes commits in batches. Each writer has a connection of its own: it takes everything that waits, sends it in one round trip,
//! and answers. While it waits for the server, the next batch forms.
//!
//! If the connection is lost, it is not known whether a batch was written. It is sent again: what was written before is refused
//! then because its version is there already, and is known by the nonce of its log row.

use std::collections::{HashSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use switchboard_engine::ports::store::{CommitError, StoreError, TaskKey};
use tokio::sync::{Mutex, mpsc, watch};
use tokio::time::Instant;

use super::commit::{Pending, Written, write};
use super::connect::{Connection, Slot};
use super::error::{Failure, FailureKind};
use super::rows::get;
use super::store::Shared;

/// Commits that wait at most; a caller with one more waits until there is room.
pub(super) const QUEUE_MAX: usize = 4_096;
/// Commits, and bytes of them, in one batch.
const BATCH_MAX: usize = 256;
const BATCH_BYTES_MAX: u64 = 8 << 20;
/// How long a batch is tried while the server cannot be reached.
const RECONNECT_S_MAX: u64 = 10;
const PAUSE_MS_MIN: u64 = 20;
const PAUSE_MS_MAX: u64 = 500;
/// How often a batch is tried that another transaction is in the way of.
const CONTENTION_MAX: u32 = 5;

// What `commit_v2` answers.
const WRITTEN: i16 = 0;
const FENCED: i16 = 2;
const DUPLICATE: i16 = 3;

/// Commits that wait to be written. The writers take turns at it.
pub(super) struct Queue {
    state: Mutex<QueueState>,
}

struct QueueState {
    waiting: mpsc::Receiver<Pending>,
    /// Commits that cannot be in the same batch as an earlier one.
    deferred: VecDeque<Pending>,
}

impl Queue {
    pub(super) fn new(waiting: mpsc::Receiver<Pending>) -> Self {
        Self { state: Mutex::new(QueueState { waiting, deferred: VecDeque::new() }) }
    }

    /// The next batch, in the order of [`Pending::order`]; none when the store is closing and nothing waits.
    async fn batch(&self, closing: &mut watch::Receiver<bool>) -> Option<Vec<Pending>> {
        let mut state = self.state.lock().await;
        let mut batch = Batch::default();
        for _ in 0..state.deferred.len() {
            let Some(pending) = state.deferred.pop_front() else { break };
            state.deferred.extend(batch.take(pending));
        }
        if batch.is_empty() {
            // What waits is written before the store closes.
            let first = tokio::select! {
                biased;
                first = state.waiting.recv() => first?,
                _ = closing.wait_for(|is_closing| *is_closing) => state.waiting.try_recv().ok()?,
            };
            state.deferred.extend(batch.take(first));
        }
        while batch.has_room() && state.deferred.len() < BATCH_MAX {
            let Ok(pending) = state.waiting.try_recv() else { break };
            state.deferred.extend(batch.take(pending));
        }
        Some(batch.sorted())
    }
}

/// A batch that is being put together. It has at most one commit for each task, id and idempotency key.
#[derive(Default)]
struct Batch {
    commits: Vec<Pending>,
    bytes: u64,
    tasks: HashSet<i64>,
    ids: HashSet<String>,
    keys: HashSet<[u8; 32]>,
}

impl Batch {
    fn is_empty(&self) -> bool {
        self.commits.is_empty()
    }

    fn has_room(&self) -> bool {
        self.commits.len() < BATCH_MAX && self.bytes < BATCH_BYTES_MAX
    }

    /// Takes a commit, or gives it back.
    fn take(&mut self, pending: Pending) -> Option<Pending> {
        let is_apart = self.has_room()
            && !self.tasks.contains(&pending.task_no())
            && (!pending.is_new() || !self.ids.contains(pending.id()))
            && pending.accept_key().is_none_or(|key| !self.keys.contains(key));
        if !is_apart {
            return Some(pending);
        }
        self.tasks.insert(pending.task_no());
        if pending.is_new() {
            self.ids.insert(pending.id().to_owned());
        }
        self.keys.extend(pending.accept_key());
        self.bytes += pending.bytes;
        self.commits.push(pending);
        None
    }

    fn sorted(mut self) -> Vec<Pending> {
        self.commits.sort_unstable_by(Pending::order);
        self.commits
    }
}

/// Writes batches until the store closes.
pub(super) async fn run(shared: Arc<Shared>, mut closing: watch::Receiver<bool>) {
    let slot = Slot::default();
    while let Some(mut batch) = shared.queue.batch(&mut closing).await {
        shared.totals.queued(-i64::try_from(batch.len()).unwrap_or(0));
        match write_surely(&shared, &slot, &batch).await {
            Ok(outcomes) => answer(&shared, &mut batch, outcomes),
            Err(failure) if failure.kind == FailureKind::Other && batch.len() > 1 => {
                // One commit may be the reason, and the others shall not suffer for it.
                for pending in batch {
                    let mut alone = [pending];
                    match write_surely(&shared, &slot, &alone).await {
                        Ok(outcomes) => answer(&shared, &mut alone, outcomes),
                        Err(failure) => refuse(&shared, &mut alone, &failure),
                    }
                }
            }
            Err(failure) => refuse(&shared, &mut batch, &failure),
        }
    }
}

fn refuse(shared: &Shared, batch: &mut [Pending], failure: &Failure) {
    tracing::warn!(commits = batch.len(), reason = failure.reason, "commits not written");
    for pending in batch {
        shared.totals.failed();
        pending.answer(Err(CommitError::Store(StoreError::Unavailable(failure.reason.clone()))));
    }
}

fn answer(shared: &Shared, batch: &mut [Pending], outcomes: Written) {
    shared.totals.batch(batch.len());
    let Written { statuses, befores, changes } = outcomes;
    for (((pending, status), before), change) in batch.iter_mut().zip(statuses).zip(befores).zip(changes) {
        let answer = match status {
            WRITTEN => {
                let from = (before >= 0).then_some(i64::from(before));
                shared.totals.changed(from, pending.listed_after, i64::from(pending.is_new()));
                shared.totals.written(pending.rows, pending.bytes);
                shared.usage.add(pending.owner_no, pending.grown(change));
                Ok(TaskKey(pending.task_no()))
            }
            FENCED => Err(CommitError::Fenced),
            // The caller looks up whose the key is.
            DUPLICATE => Err(CommitError::Duplicate(super::store::duplicate_of_unknown())),
            other => Err(pending.over_storage(other).map_or(CommitError::Conflict, CommitError::OverStorage)),
        };
        if answer.is_err() {
            shared.totals.refused();
        }
        pending.answer(answer);
    }
}

/// Writes a batch, again if the connection is lost, and finds out what an attempt without an answer has written.
async fn write_surely(shared: &Shared, slot: &Slot, batch: &[Pending]) -> Result<Written, Failure> {
    let begun = Instant::now();
    let (mut pause_ms, mut contentions) = (PAUSE_MS_MIN, 0);
    let mut is_unsure = false;
    loop {
        let failure = match slot.get(&shared.writers).await {
            Ok(connection) => match attempt(shared, &connection, batch, is_unsure).await {
                Ok(written) => return Ok(written),
                Err(failure) => {
                    // Its transaction may be open still, or it may be cut off.
                    slot.discard(&connection).await;
                    is_unsure |= failure.kind == FailureKind::Connection;
                    failure
                }
            },
            Err(failure) => failure,
        };
        match failure.kind {
            FailureKind::Connection if begun.elapsed() < Duration::from_secs(RECONNECT_S_MAX) => {
                tokio::time::sleep(Duration::from_millis(pause_ms)).await;
                pause_ms = (pause_ms * 2).min(PAUSE_MS_MAX);
            }
            FailureKind::Contention if contentions < CONTENTION_MAX => contentions += 1,
            FailureKind::Connection | FailureKind::Contention | FailureKind::Other => return Err(failure),
        }
    }
}

async fn attempt(
    shared: &Shared,
    connection: &Connection,
    batch: &[Pending],
    is_unsure: bool,
) -> Result<Written, Failure> {
    let has_audit = batch.iter().any(|pending| pending.audit.is_some());
    if !has_audit {
        let written = write(connection, batch, shared.replica_no, shared.now()).await?;
        return if is_unsure { recognise(connection, batch, written).await } else { Ok(written) };
    }
    let mut chain = shared.audit.lock().await;
    // Sent together: a statement is sent when its future is first polled.
    let (begun, written) =
        tokio::join!(biased; connection.batch("BEGIN"), write(connection, batch, shared.replica_no, shared.now()));
    begun?;
    let written = written?;
    let entries: Vec<_> = batch
        .iter()
        .zip(&written.statuses)
        .filter(|(_, status)| **status == WRITTEN)
        .filter_map(|(pending, _)| pending.audit.as_deref())
        .collect();
    let added = shared.audit.add(connection, &mut chain, &entries).await?;
    let ended = connection.batch("COMMIT").await;
    shared.audit.ended(&mut chain, added, &ended);
    ended?;
    if is_unsure { recognise(connection, batch, written).await } else { Ok(written) }
}

/// Finds commits that were refused because an earlier attempt has written them.
async fn recognise(connection: &Connection, batch: &[Pending], mut written: Written) -> Result<Written, Failure> {
    const FIND: &str =
        "select l.task_no, l.version, l.nonce from unnest($1::bigint[], $2::bigint[]) as c(task_no, version)
                          join log l on l.task_no = c.task_no and l.version = c.version";
    let refused: Vec<usize> = (0..batch.len()).filter(|place| written.statuses[*place] != WRITTEN).collect();
    if refused.is_empty() {
        return Ok(written);
    }
    let tasks: Vec<i64> = refused.iter().map(|place| batch[*place].task_no()).collect();
    let versions: Vec<i64> = refused.iter().map(|place| batch[*place].version()).collect();
    let rows = connection.query(FIND, &[&tasks, &versions]).await?;
    let wrong = |_| Failure::other("the log cannot be read");
    let mut found = HashSet::new();
    for row in &rows {
        let columns: [i64; 3] = [get(row, 0).map_err(wrong)?, get(row, 1).map_err(wrong)?, get(row, 2).map_err(wrong)?];
        found.insert(columns);
    }
    for place in refused {
        let pending = &batch[place];
        if found.contains(&[pending.task_no(), pending.version(), pending.nonce()]) {
            written.statuses[place] = WRITTEN;
            // The state before is not known, nor by how much the task grew; the next count corrects the totals.
            written.befores[place] = -1;
            written.changes[place] = 0;
        }
    }
    Ok(written)
}
