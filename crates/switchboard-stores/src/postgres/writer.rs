//! Writes commits in batches. Each writer has a connection of its own: it takes everything that waits, sends it in one round trip,
//! and answers. While it waits for the server, the next batch forms.
//!
//! If the connection is lost, it is not known whether a batch was written. It is sent again: what was written before is refused
//! then because its version is there already, and is known by the nonce of its log row.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use switchboard_engine::ports::store::{Accepted, Commit, CommitError, StoreError, Target, TaskKey};
use tokio::sync::{oneshot, watch};
use tokio::time::Instant;

use super::commit::{NewPlace, Pending, Written, write};
use super::connect::{Connection, Slot};
use super::error::{Failure, FailureKind};
use super::read;
use super::rows::get;
use super::shared::Shared;
use crate::cache::Committed;

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

/// Hands a commit to the writers, and returns when it is durable.
pub(super) async fn commit(shared: &Shared, commit: Commit) -> Result<TaskKey, CommitError> {
    let begun = Instant::now();
    let (place, owner_no) = match &commit.target {
        Target::New { scope } => {
            let numbers = shared.scopes.make(&shared.database, scope).await?;
            let task_no = shared.scopes.next_task_no(&shared.database).await?;
            shared.usage.remember_owner(task_no, numbers.owner_no);
            let place = NewPlace { task_no, scope_no: numbers.scope_no, agent_no: numbers.agent_no.into() };
            (Some(place), numbers.owner_no)
        }
        Target::Existing { key, .. } => (None, owner_of(shared, key.0).await?),
    };
    // An expired key of a removed task is in the way once at most.
    for _ in 0..2 {
        let nonce = shared.next_nonce.fetch_add(1, Ordering::Relaxed);
        let mut pending = Pending::of(&commit, place, shared.usage.room(owner_no), nonce, shared.secrets.as_ref())?;
        let (answer, answered) = oneshot::channel();
        pending.answer = Some(answer);
        let closed = || CommitError::Store(StoreError::Unavailable("the store is closed".to_owned()));
        shared.totals.queued(1);
        if shared.sender.send(pending).await.is_err() {
            return Err(closed());
        }
        let outcome = answered.await.map_err(|_| closed())?;
        let (Err(CommitError::Duplicate(_)), Some(accept)) = (&outcome, &commit.accept) else {
            shared.totals.took(begun.elapsed());
            if let Ok(key) = outcome {
                remember(shared, key, commit);
            }
            return outcome;
        };
        if let Some(accepted) = read::find_accepted(shared, accept.key).await? {
            return Err(CommitError::Duplicate(accepted));
        }
        const FREE: &str = "delete from accepted a where a.key = $1
                               and not exists (select 1 from task t where t.task_no = a.task_no) returning 1";
        shared.database.serve(FREE, &[&&accept.key[..]]).await?;
    }
    Err(CommitError::Conflict)
}

/// Keeps what a durable commit made of its task.
fn remember(shared: &Shared, key: TaskKey, commit: Commit) {
    let Commit { target, head, events, folded, .. } = commit;
    let scope = match target {
        Target::New { scope } => Some(scope),
        Target::Existing { .. } => None,
    };
    shared.cache.update(|updates| updates.committed(Committed { key, scope, head, events: &events, folded }));
}

/// Whose a task is, by the number of its owner. A task that is gone belongs to nobody, and its commit is a conflict.
async fn owner_of(shared: &Shared, task_no: i64) -> Result<i64, StoreError> {
    const OWNER: &str = "select s.owner_no from task t join scope s using (scope_no) where t.task_no = $1::bigint";
    if let Some(known) = shared.usage.owner_of(task_no) {
        return Ok(known);
    }
    let rows = shared.database.read(OWNER, &[&task_no]).await?;
    let Some(row) = rows.first() else { return Ok(0) };
    let owner_no = get(row, 0)?;
    shared.usage.remember_owner(task_no, owner_no);
    Ok(owner_no)
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
            DUPLICATE => Err(CommitError::Duplicate(duplicate_of_unknown())),
            other => Err(pending.over_storage(other).map_or(CommitError::Conflict, CommitError::OverStorage)),
        };
        if answer.is_err() {
            shared.totals.refused();
        }
        pending.answer(answer);
    }
}

/// Stands for what a writer does not look up; the caller of the writer does.
fn duplicate_of_unknown() -> Accepted {
    Accepted { task_id: "".into(), digest: [0; 32], turn: 0, after_seq: 0 }
}

/// Writes a batch, again if the connection is lost, and finds out what an attempt without an answer has written.
async fn write_surely(shared: &Shared, slot: &Slot, batch: &[Pending]) -> Result<Written, Failure> {
    let begun = Instant::now();
    let (mut pause_ms, mut contentions) = (PAUSE_MS_MIN, 0);
    let mut is_unsure = false;
    loop {
        let failure = match slot.get(&shared.database.writers).await {
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
        let written = write(connection, batch, shared.replica_no, shared.database.now()).await?;
        return if is_unsure { recognise(connection, batch, written).await } else { Ok(written) };
    }
    let mut chain = shared.audit.lock().await;
    // Sent together: a statement is sent when its future is first polled.
    let (begun, written) = tokio::join!(biased; connection.batch("BEGIN"), write(connection, batch, shared.replica_no, shared.database.now()));
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
