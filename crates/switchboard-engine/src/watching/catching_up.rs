//! What other processes do to tasks that this process follows or runs. A hint says which task; what has happened is read from
//! the store, once for all followers of a task, however many there are. A hint that somebody made up costs one read.

use std::sync::Arc;

use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use tokio::sync::Notify;

use crate::ports::store::StoreError;
use crate::ports::{Hint, HintSink, News};
use crate::state::EngineState;
use crate::state::runs::RunRegistry;
use crate::state::tail::{Tail, Tails};

/// How many tasks are read at once for their followers.
const READ_AT_ONCE: usize = 32;

/// Takes the hints of other processes.
pub(crate) struct Listener {
    pub(crate) tails: Arc<Tails>,
    pub(crate) runs: RunRegistry,
    /// Wakes the loop below when a run of this process may have to stop.
    pub(crate) cancels_due: Arc<Notify>,
    /// Wakes the sweeper.
    pub(crate) runs_released: Arc<Notify>,
}

impl HintSink for Listener {
    fn hint(&self, hint: Hint<'_>) {
        match hint.news {
            News::Event(seq) => {
                if let Some(tail) = self.tails.find(hint.task) {
                    tail.overtaken(seq);
                }
            }
            News::Replied => {
                if let Some(tail) = self.tails.find(hint.task) {
                    tail.replied();
                }
            }
            News::CancelRequested if self.runs.has(hint.task) => self.cancels_due.notify_one(),
            News::CancelRequested => {}
            News::RunsReleased => self.runs_released.notify_one(),
        }
    }
}

/// Brings followers what other processes committed, and tells runs of this process to stop that were canceled elsewhere.
pub(crate) async fn catch_up_forever(engine: Arc<EngineState>) {
    tokio::join!(read_forever(&engine), cancel_forever(&engine));
}

async fn read_forever(engine: &EngineState) {
    let mut reads = FuturesUnordered::new();
    loop {
        tokio::select! {
            biased;
            Some(()) = reads.next(), if !reads.is_empty() => {}
            tail = engine.tails.next_overtaken(), if reads.len() < READ_AT_ONCE => reads.push(catch_up(engine, tail)),
        }
    }
}

/// Asks the store which runs of this process are to stop. If it does not answer, the sweeper asks again.
async fn cancel_forever(engine: &EngineState) {
    loop {
        engine.cancels_due.notified().await;
        match engine.store.canceled_runs().await {
            Ok(canceled) => engine.runs.cancel_all(&canceled),
            Err(error) => {
                let _ = engine.store_failed(&error);
            }
        }
    }
}

/// Reads the log after the last update in the ring. If the store fails, followers wait for the next hint or the next look of the sweeper.
async fn catch_up(engine: &EngineState, tail: Arc<Tail>) {
    while let Some((last, heard_of)) = tail.lag() {
        match read(engine, &tail, last).await {
            Ok(true) => {}
            Ok(false) if tail.leave_behind(heard_of) => {}
            Ok(false) => return,
            Err(error) => {
                if !matches!(error, StoreError::Unavailable(_)) {
                    // Each reader finds out by itself that the next update cannot be read, and its stream ends with the error.
                    tail.skip_to(last + 1);
                }
                let _ = engine.store_failed(&error);
                tail.leave_behind(u64::MAX);
                return;
            }
        }
    }
}

/// Reads one page for all readers of a tail; false if there is nothing after `last`.
async fn read(engine: &EngineState, tail: &Arc<Tail>, last: u64) -> Result<bool, StoreError> {
    if tail.place.get().is_none() {
        let Some(stored) = engine.store.head(tail.scope(), tail.task_id()).await? else { return Ok(false) };
        let _ = tail.place.set((stored.key, stored.head.context_id.clone()));
    }
    let Some((key, context_id)) = tail.place.get() else { return Ok(false) };
    match engine.store.log(*key, last, engine.limits.log_page_commits).await {
        Ok(page) => {
            for commit in &page.commits {
                tail.take_commit(context_id, commit.first_seq, &commit.events);
            }
            Ok(!page.commits.is_empty())
        }
        Err(StoreError::Pruned) => {
            let Some(stored) = engine.store.head(tail.scope(), tail.task_id()).await? else { return Ok(false) };
            tail.skip_to(stored.head.seq);
            Ok(stored.head.seq > last)
        }
        Err(error) => Err(error),
    }
}
