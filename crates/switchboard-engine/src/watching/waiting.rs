//! Waits at a tail until a record has reached a state: settled, for a blocking caller; ended, for a caller that cancels; opened as a
//! task or answered, for a caller that may be answered directly. A caller that waits for a run of this process also polls it.

use std::future::poll_fn;
use std::sync::Arc;
use std::task::{Poll, ready};
use std::time::Duration;

use switchboard_core::call::SharedUpdate;
use switchboard_core::error::ProtocolError;
use switchboard_core::lifecycle::{Head, Phase};
use switchboard_core::model::Update;
use tokio::time::{Instant, timeout_at};

use crate::state::EngineState;
use crate::state::record::Record;
use crate::state::runs::AttachedRun;
use crate::state::tail::{Tail, TailRead};

/// What a caller waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Until {
    /// Terminal, interrupted with nothing left to read, or answered directly.
    Settled,
    /// Terminal, or answered directly: a question does not count.
    Ended,
    /// A task exists, or a direct reply does.
    Known,
}

impl Until {
    fn holds(self, head: &Head) -> bool {
        match self {
            Self::Settled => head.is_settled(),
            Self::Ended => head.is_closed(),
            Self::Known => head.phase != Phase::Unborn,
        }
    }

    /// Whether an update can have led to the awaited state. If not, the waiter need not check.
    fn may_follow(self, update: &Update) -> bool {
        match (self, update) {
            (Self::Settled, Update::Status(update)) => update.status.state.is_settled(),
            (Self::Ended, Update::Status(update)) => update.status.state.is_terminal(),
            (Self::Settled | Self::Ended, _) => false,
            (Self::Known, _) => true,
        }
    }
}

/// Waits until the state is reached or `at_most` has passed, and returns whether it was reached.
pub(crate) async fn wait_until(
    engine: &EngineState,
    record: &Record,
    until: Until,
    at_most: Duration,
) -> Result<bool, ProtocolError> {
    let deadline = Instant::now() + at_most;
    let sleeper = Sleeper::new(engine.tails.follow(&record.scope, &record.id, record.with_head(|head| head.seq)));
    let draining = engine.supervisor.draining();
    loop {
        // The tail is followed before the store is read, so that a commit after the read wakes this waiter.
        let replies = sleeper.tail.replies();
        let stored = engine.store.head(&record.scope, &record.id).await.map_err(|error| engine.store_failed(&error))?;
        let Some(stored) = stored else { return Err(ProtocolError::task_not_found(&record.id)) };
        if until.holds(&stored.head) {
            return Ok(true);
        }
        let woken = tokio::select! {
            biased;
            woken = timeout_at(deadline, sleeper.sleep(stored.head.seq, replies, until)) => woken,
            () = draining.cancelled() => return Ok(false),
        };
        match woken {
            Ok(Woken::LookAgain) => {}
            Ok(Woken::Closing) | Err(_) => return Ok(false),
        }
    }
}

/// Drives a run of this process until its record is settled or `at_most` has passed, and says whether it is settled. If
/// the run has not ended then, it continues as a background task.
pub(crate) async fn drive_until_settled(
    engine: &EngineState,
    record: &Record,
    mut run: AttachedRun,
    at_most: Duration,
) -> bool {
    let is_settled = || record.with_head(Head::is_settled);
    let mut given_up = std::pin::pin!(async {
        tokio::select! {
            biased;
            // A background task of the agent may settle the record while the run itself waits for something else.
            () = record.settles() => {}
            () = engine.supervisor.draining().cancelled() => {}
            () = tokio::time::sleep(at_most) => {}
        }
    });
    let mut waits_for_more = false;
    poll_fn(|cx| {
        if run.poll(cx).is_ready() || is_settled() {
            return Poll::Ready(());
        }
        // While the agent waits for the store there is nothing else to wait for.
        waits_for_more = waits_for_more || !run.is_writing(cx);
        // The record is looked at again, because it may have settled before `settles` was first polled.
        if waits_for_more && (given_up.as_mut().poll(cx).is_ready() || is_settled()) {
            return Poll::Ready(());
        }
        Poll::Pending
    })
    .await;
    is_settled()
}

/// Drives a run of this process until its first commit, as long as the agent waits for nothing but the store. Returns
/// the run if it has not ended then.
pub(crate) async fn drive_until_written(record: &Record, mut run: AttachedRun) -> Option<AttachedRun> {
    let version = record.with_head(|head| head.version);
    let driven = poll_fn(|cx| {
        let over = run.poll(cx).is_ready();
        let is_written = record.with_head(|head| head.version) > version;
        if over || is_written || !run.is_writing(cx) { Poll::Ready(over) } else { Poll::Pending }
    });
    if driven.await { None } else { Some(run) }
}

enum Woken {
    LookAgain,
    Closing,
}

struct Sleeper {
    tail: Arc<Tail>,
    reader: u64,
}

impl Sleeper {
    fn new(tail: Arc<Tail>) -> Self {
        // The waiter reads the store before it sleeps, and sets its cursor then.
        let reader = tail.reader(u64::MAX);
        Self { tail, reader }
    }

    /// Skips updates that cannot lead to the awaited state.
    async fn sleep(&self, mut cursor: u64, replies: u64, until: Until) -> Woken {
        poll_fn(|cx| {
            loop {
                let (mut seen, mut may_follow) = (cursor, false);
                let give = |seq, update: Arc<SharedUpdate>| {
                    seen = seq;
                    may_follow |= until.may_follow(&update.update);
                };
                match ready!(self.tail.poll_answer(cursor, replies, self.reader, cx, give)) {
                    TailRead::Updates if may_follow => return Poll::Ready(Woken::LookAgain),
                    TailRead::Updates => cursor = seen,
                    TailRead::Behind => return Poll::Ready(Woken::LookAgain),
                    TailRead::Closing => return Poll::Ready(Woken::Closing),
                }
            }
        })
        .await
    }
}

impl Drop for Sleeper {
    fn drop(&mut self) {
        self.tail.forget(self.reader);
    }
}
