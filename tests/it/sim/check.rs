//! What must hold when everything has come to rest.

use std::collections::BTreeMap;
use std::time::Duration;

use switchboard_core::dialect::v1_0;
use switchboard_core::lifecycle::{Folded, updates};
use switchboard_core::model::redact::redact_update;
use switchboard_core::model::{Role, TaskState, Update};
use switchboard_engine::ports::TaskLog;
use switchboard_engine::ports::store::{StoredTask, TaskKey};
use tokio::time::Instant;

use super::agent::{answer, parse};
use super::audit::Book;
use super::client::{Known, Ledger};
use super::world::World;

/// How often a calm world is looked at.
const LOOK: Duration = Duration::from_millis(250);
/// Longer than all runs, one after the other, and every wait between them.
const REST: Duration = Duration::from_secs(300);

/// Waits until no node has anything left to do. On the way, every run has an owner once the leases of dead nodes have
/// run out and a sweeper has looked.
pub(super) async fn come_to_rest(world: &World) {
    let limits = world.limits();
    let lease = Duration::from_millis(u64::from(limits.lease_ms));
    // Later attempts are put off, by the clock of the process that does it.
    let pause = Duration::from_millis(u64::from(limits.retry_backoff_ms_max));
    let owned = Instant::now() + lease + pause + Duration::from_secs(4) + world.jumped();
    let rested = owned + REST;
    let mut looked_at_owners = false;
    loop {
        let restless = restless(world);
        if restless.is_empty() || world.journal().is_broken() {
            return;
        }
        if Instant::now() >= owned && !looked_at_owners {
            looked_at_owners = true;
            owners(world);
        }
        if Instant::now() >= rested {
            return world.journal().broken(&format!("stuck: {}", restless.join("; ")));
        }
        tokio::time::sleep(LOOK).await;
    }
}

fn restless(world: &World) -> Vec<String> {
    let books = world.audit().books();
    let mut restless = Vec::new();
    for book in books.tasks.values() {
        let (id, state) = (&book.head.id, book.head.state);
        if book.head.running || book.head.inbox() > 0 && !book.head.is_closed() {
            restless.push(format!("{id} is {} in turn {}", state.word(), book.head.turn));
        }
        for (config, after_seq) in &book.hooks {
            let last = world.receiver().last(id, config).unwrap_or(*after_seq);
            if last < book.head.seq {
                restless.push(format!("{id}: webhook {config} was told {last} of {}", book.head.seq));
            }
        }
    }
    restless
}

fn owners(world: &World) {
    for book in world.audit().books().tasks.values().filter(|book| book.head.running) {
        if book.owner.as_ref().is_none_or(|life| life.is_dead()) {
            world.journal().broken(&format!("{} has no owner", book.head.id));
        }
    }
}

/// Holds what every client was told against what is stored.
pub(super) async fn promises(world: &World, ledgers: &[Ledger]) {
    let keys: Vec<TaskKey> = world.audit().books().tasks.keys().copied().collect();
    for key in keys {
        if let Err(promise) = record(world, key, ledgers).await {
            return world.journal().broken(&promise);
        }
    }
    let books = world.audit().books();
    for id in ledgers.iter().flat_map(|ledger| ledger.tasks.keys()) {
        if !books.keys.contains_key(id) {
            world.journal().broken(&format!("{id} was acknowledged and never stored"));
        }
    }
}

async fn record(world: &World, key: TaskKey, ledgers: &[Ledger]) -> Result<(), String> {
    let (scope, id) = {
        let books = world.audit().books();
        let book = &books.tasks[&key];
        (book.scope.clone(), book.head.id.clone())
    };
    let stored = world.memory().task(&scope, &id, u64::MAX).await.unwrap().ok_or_else(|| format!("{id} is gone"))?;
    let logged = world.memory().log(key, 0, usize::MAX).await.unwrap().commits;
    let books = world.audit().books();
    let book = &books.tasks[&key];
    // What is stored is what was taken, commit by commit, and the task is the fold of it.
    let visible = book.commits.iter().filter(|commit| commit.events.iter().any(|event| event.is_visible()));
    let taken: Vec<_> = visible.map(|commit| (commit.first_seq, &commit.events)).collect();
    let found: Vec<_> = logged.iter().map(|commit| (commit.first_seq, &commit.events)).collect();
    ensure(taken == found, || format!("{id}: the log is not what the store took"))?;
    let mut folded = Folded::empty(id.clone(), book.head.context_id.clone());
    for commit in &book.commits {
        folded.apply_all(&commit.events);
    }
    ensure(folded == *stored.folded, || format!("{id}: the stored task is not the fold of its log"))?;
    ensure(stored.head == book.head, || format!("{id}: the stored head is not the one that was written last"))?;
    let shown = shown(book, Update::clone)?;
    at_rest(&stored)?;
    content(&stored)?;
    for known in ledgers.iter().filter_map(|ledger| ledger.tasks.get(&id)) {
        told(book, &stored, &shown, known)?;
    }
    for (config, after_seq) in &book.hooks {
        let told = world.receiver().told().remove(&(id.clone(), config.clone())).unwrap_or_default();
        // A client in this process sees everything; what leaves for a webhook has metadata of ours taken out.
        let posted = self::shown(book, |update| redact_update(update).unwrap_or_else(|| update.clone()))?;
        let due: BTreeMap<u64, String> =
            posted.range(after_seq + 1..).map(|(seq, text)| (*seq, text.clone())).collect();
        ensure(told == due, || format!("{id}: webhook {config} was told {:?}, not {:?}", told.keys(), due.keys()))?;
    }
    Ok(())
}

/// Every visible update as it would be on the wire: numbered from 1 without a gap, and nothing after the end.
fn shown(book: &Book, as_told: impl Fn(&Update) -> Update) -> Result<BTreeMap<u64, String>, String> {
    let (id, context_id) = (&book.head.id, &book.head.context_id);
    let mut shown = BTreeMap::new();
    let mut ended = false;
    for commit in &book.commits {
        for (seq, update) in updates(id, context_id, commit.first_seq, &commit.events) {
            ensure(!ended, || format!("{id}: update {seq} follows the end"))?;
            ensure(seq == shown.len() as u64 + 1, || format!("{id}: update {seq} is number {}", shown.len() + 1))?;
            if let Update::Status(update) = &update {
                ended = update.status.state.is_terminal();
            }
            let mut bytes = Vec::new();
            v1_0::encode_update(&as_told(&update), &mut bytes);
            shown.insert(seq, String::from_utf8(bytes).unwrap());
        }
    }
    ensure(shown.len() as u64 == book.head.seq, || format!("{id}: {} updates, not {}", shown.len(), book.head.seq))?;
    Ok(shown)
}

/// Ended, answered directly, or waiting for the user with nothing left to read.
fn at_rest(stored: &StoredTask) -> Result<(), String> {
    let head = &stored.head;
    let paused = head.state == TaskState::InputRequired && head.inbox() == 0;
    ensure(!head.running && (head.is_closed() || paused), || format!("{} is left {}", head.id, head.state.word()))
}

/// A completed task holds the answer to each of its messages, whole and once, however often its runs died.
fn content(stored: &StoredTask) -> Result<(), String> {
    let (task, id) = (&stored.folded.task, &stored.head.id);
    let said: Vec<String> =
        task.history.iter().filter(|message| message.role == Role::User).map(|message| message.text()).collect();
    let text: String = task.artifacts.iter().map(|artifact| artifact.text()).collect();
    if stored.folded.reply.is_none() && task.state() == TaskState::Completed {
        let due: String = said.iter().map(|text| answer(text)).collect();
        ensure(text == due, || format!("{id}: {said:?} was answered with {text:?}"))?;
        let hopeless = said.iter().any(|text| matches!(parse(text).0, "fail" | "panic" | "lost"));
        ensure(!hopeless, || format!("{id}: {said:?} was completed"))?;
    }
    Ok(())
}

/// What one client was told of a task is still so.
fn told(book: &Book, stored: &StoredTask, shown: &BTreeMap<u64, String>, known: &Known) -> Result<(), String> {
    let (id, state) = (&stored.head.id, stored.head.state);
    ensure(known.terminal.is_none_or(|said| said == state), || format!("{id} was said to be {:?}", known.terminal))?;
    for (seq, text) in &known.seen {
        ensure(shown.get(seq) == Some(text), || format!("{id}: update {seq} is not what was shown"))?;
    }
    for (seq, snapshot) in &known.snapshots {
        ensure(*snapshot == at(book, *seq), || format!("{id}: it never was {snapshot:?} at update {seq}"))?;
    }
    for message in &known.messages {
        let kept = stored.folded.task.history.iter().filter(|kept| kept.message_id == *message).count();
        ensure(kept == 1, || format!("{id}: message {message} was accepted and is there {kept} times"))?;
    }
    for hook in &known.hooks {
        ensure(book.hooks.contains_key(hook), || format!("{id}: webhook {hook} was accepted and is gone"))?;
    }
    Ok(())
}

/// The state of a task after so many updates, and the text of its artifacts.
fn at(book: &Book, seq: u64) -> (TaskState, String) {
    let mut folded = Folded::empty(book.head.id.clone(), book.head.context_id.clone());
    for event in book.commits.iter().filter(|commit| commit.first_seq <= seq).flat_map(|commit| &*commit.events) {
        folded.apply(event);
    }
    (folded.task.state(), folded.task.artifacts.iter().map(|artifact| artifact.text()).collect())
}

fn ensure(holds: bool, otherwise: impl FnOnce() -> String) -> Result<(), String> {
    if holds { Ok(()) } else { Err(otherwise()) }
}
