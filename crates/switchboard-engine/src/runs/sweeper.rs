//! The loop that gives every active task an owner. It first renews the leases of this process, so that a process that
//! was frozen keeps its own runs before it claims others. Then it claims due runs of the agents that are served here:
//! at start, the runs of a process that died; later, runs whose lease ran out or was given back, or whose pause is over. It also wakes
//! followers of tasks that changed without a hint.
//!
//! Processes that share a store sweep at different times, or all of them would claim the same runs at once: pauses are drawn.
//! After a time in which the store could not be reached, all leases may have run out though their holders are alive, so the
//! first sweep then claims nothing: others get the time to renew theirs.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use futures_util::future::join_all;
use futures_util::{StreamExt as _, stream};
use switchboard_core::lifecycle::Phase;
use switchboard_core::model::Timestamp;
use tokio::time::{Instant, sleep};

use super::agent::Agents;
use super::recovery::{ClaimedRun, UnservedAgents, resume_claimed};
use crate::ports::store::{DueRun, StoreError};
use crate::state::EngineState;
use crate::state::record::Record;

/// How many runs are claimed at once; more follow immediately.
const CLAIM_BATCH: usize = 256;
/// How many claimed runs are resumed concurrently.
const TAKEN_UP_AT_ONCE: usize = 32;
/// A process that has not reached the store for so many sweeps lets others renew their leases before it claims.
const SWEEPS_AWAY: u32 = 3;
/// The first pause when the store fails at start, which doubles; also the longest pause after all listed runs were claimed by
/// other processes.
const START_PAUSE: Duration = Duration::from_millis(100);
/// The longest pause between the hint that a process has given runs back and the search for them.
const RELEASED_PAUSE: Duration = Duration::from_millis(100);

pub(crate) async fn sweep(engine: Arc<EngineState>, agents: Arc<Agents>) {
    let pause = Duration::from_millis(u64::from(engine.limits.sweep_ms));
    let poll_pause = Duration::from_millis(u64::from(engine.limits.follow_poll_ms));
    let (mut sweeps, mut polled) = (Sweeps { pause, renewed: None, listed: None }, Instant::now());
    let mut start_pause = START_PAUSE;
    let mut unserved = UnservedAgents::default();
    loop {
        engine.watch_clock().await;
        engine.streamed_runs.detach_overdue();
        let next = match tend(&engine, &agents, &mut sweeps).await {
            Ok(SweepResult::More) => Duration::ZERO,
            Ok(SweepResult::Taken) => some_of(START_PAUSE, engine.ids.any()),
            Ok(SweepResult::All) => most_of(pause, engine.ids.any()),
            Ok(SweepResult::HeldBack) => pause + some_of(pause / 2, engine.ids.any()),
            Err(error) => {
                let _ = engine.store_failed(&error);
                start_pause = (start_pause * 2).min(pause);
                if engine.health.recovering.load(Ordering::Relaxed) { start_pause } else { pause }
            }
        };
        if let Err(error) = unserved.check(&engine).await {
            let _ = engine.store_failed(&error);
        }
        if polled.elapsed() >= poll_pause {
            polled = Instant::now();
            poll_followed(&engine).await;
        }
        tokio::select! {
            biased;
            // A caller that waits for a run that no process holds wakes the loop early.
            () = engine.runs_due.notified() => {}
            // All processes are told of it at the same time.
            () = engine.runs_released.notified() => sleep(some_of(RELEASED_PAUSE, engine.ids.any())).await,
            () = sleep(next) => {}
        }
    }
}

/// When the sweeper did what.
struct Sweeps {
    /// The longest pause between two sweeps.
    pause: Duration,
    /// When leases were last renewed.
    renewed: Option<Instant>,
    /// When due runs were last listed; none before the first time.
    listed: Option<Instant>,
}

impl Sweeps {
    /// While there are many runs to resume, sweeps follow each other at once, and leases are not renewed in each.
    fn must_renew(&self) -> bool {
        self.renewed.is_none_or(|renewed| renewed.elapsed() >= self.pause / 2)
    }

    /// Whether the store was out of reach for so long that leases of living processes may have run out.
    fn were_cut_off(&self) -> bool {
        self.listed.is_some_and(|listed| listed.elapsed() >= self.pause * SWEEPS_AWAY)
    }
}

/// Between three quarters of a pause and all of it.
fn most_of(pause: Duration, any: u64) -> Duration {
    pause - some_of(pause / 4, any)
}

/// Between nothing and a whole pause.
fn some_of(pause: Duration, any: u64) -> Duration {
    pause.mul_f64((any >> 32) as f64 / f64::from(u32::MAX))
}

/// Whether a sweep has claimed everything that was due.
enum SweepResult {
    All,
    More,
    /// There are more, and other processes claimed all that were listed.
    Taken,
    /// None was claimed, so that other processes can renew their leases.
    HeldBack,
}

async fn tend(engine: &Arc<EngineState>, agents: &Agents, sweeps: &mut Sweeps) -> Result<SweepResult, StoreError> {
    if sweeps.must_renew() {
        renew(engine).await?;
        sweeps.renewed = Some(Instant::now());
    }
    if engine.supervisor.is_draining() {
        return Ok(SweepResult::All);
    }
    let listed_at = engine.now();
    let due = engine.store.due_runs(&engine.served, CLAIM_BATCH).await?;
    let is_held_back = sweeps.were_cut_off() && !due.is_empty();
    sweeps.listed = Some(Instant::now());
    if is_held_back {
        return Ok(SweepResult::HeldBack);
    }
    let is_all = due.len() < CLAIM_BATCH;
    let (due, renewed) = renew_own(engine, due).await?;
    let due = match &engine.self_fire {
        Some(self_fire) => self_fire.hold_back(engine, agents, due).await?,
        None => due,
    };
    let Claims { claimed, failed } = claim_all(engine, due).await;
    let found = match is_all {
        true => SweepResult::All,
        false if claimed.is_empty() && !renewed => SweepResult::Taken,
        false => SweepResult::More,
    };
    if failed.is_none() {
        // New work need not wait until all old runs are claimed: leases of dead processes are void or will run out.
        engine.health.recovering.store(false, Ordering::Relaxed);
    }
    resume_all(engine, agents, claimed, listed_at).await?;
    failed.map_or(Ok(found), Err)
}

/// Separates this process's own runs from the listed ones: a process that was frozen for longer than a lease renews its
/// own runs and must not claim them. Returns the others, and whether there were any of its own.
async fn renew_own(engine: &EngineState, mut due: Vec<DueRun>) -> Result<(Vec<DueRun>, bool), StoreError> {
    let own = |run: &mut DueRun| engine.runs.is_at_work(run.stored.key, run.stored.head.fence);
    let held: Vec<_> = due.extract_if(.., own).map(|run| (run.stored.key, run.stored.head.fence)).collect();
    if held.is_empty() {
        return Ok((due, false));
    }
    let lost = engine.store.renew_leases(held.clone(), engine.limits.lease_ms).await?;
    engine.runs.drop_lost(&held, &lost);
    Ok((due, true))
}

/// The result of claiming.
struct Claims {
    claimed: Vec<ClaimedRun>,
    /// The store's error, if some could not be claimed because of it.
    failed: Option<StoreError>,
}

/// Claims runs concurrently, so that their commits share a transaction. Runs that another process has claimed first, or
/// whose holder has renewed, are skipped.
async fn claim_all(engine: &EngineState, due: Vec<DueRun>) -> Claims {
    let claim = async |DueRun { stored, interrupted }| {
        if engine.runs.is_at_work(stored.key, stored.head.fence) {
            // The run was registered here since the list was read: the next sweep renews it.
            return Ok(None);
        }
        let record = Record::stored(stored);
        match engine.claim(&record, interrupted).await {
            Ok(true) => Ok(Some(ClaimedRun { record: Arc::new(record), interrupted, is_fresh: false })),
            // The store has put the task into quarantine and will not list it again.
            Ok(false) | Err(StoreError::Damaged(_)) => Ok(None),
            Err(error) => Err(error),
        }
    };
    let mut claims = Claims { claimed: Vec::new(), failed: None };
    for claim in join_all(due.into_iter().map(claim)).await {
        match claim {
            Ok(claimed) => claims.claimed.extend(claimed),
            Err(error) => claims.failed = Some(error),
        }
    }
    claims
}

/// Resumes claimed runs, several at a time, because each is read from the store first. A run that fails here keeps its
/// lease until it runs out; the others are not affected.
async fn resume_all(
    engine: &Arc<EngineState>,
    agents: &Agents,
    claimed: Vec<ClaimedRun>,
    listed_at: Timestamp,
) -> Result<(), StoreError> {
    if claimed.is_empty() {
        return Ok(());
    }
    let runs = claimed.len();
    let mut taken =
        stream::iter(claimed).map(|run| resume_claimed(engine, agents, run, listed_at)).buffered(TAKEN_UP_AT_ONCE);
    let (mut released, mut failed) = (Vec::new(), None);
    while let Some(taken) = taken.next().await {
        match taken {
            Ok(release) => released.extend(release),
            // The store has put the task into quarantine and will not list it again.
            Err(StoreError::Damaged(_)) => {}
            Err(error) => failed = Some(error),
        }
    }
    tracing::info!(runs, put_off = released.len(), "interrupted runs taken up");
    if !released.is_empty() {
        engine.store.release_leases(released).await?;
    }
    failed.map_or(Ok(()), Err)
}

async fn renew(engine: &EngineState) -> Result<(), StoreError> {
    let held = engine.runs.held();
    if held.is_empty() {
        return Ok(());
    }
    let lost = engine.store.renew_leases(held.clone(), engine.limits.lease_ms).await?;
    engine.runs.drop_lost(&held, &lost);
    engine.runs.cancel_all(&engine.store.canceled_runs().await?);
    Ok(())
}

/// Checks every followed task once, because a hint may have been lost.
async fn poll_followed(engine: &EngineState) {
    for tail in engine.tails.all() {
        match engine.store.head(tail.scope(), tail.task_id()).await {
            Ok(Some(stored)) if stored.head.phase == Phase::Replied => tail.replied(),
            Ok(Some(stored)) => tail.overtaken(stored.head.seq),
            Ok(None) => {}
            Err(error) => {
                tracing::warn!(task = %tail.task_id(), ?error, "a followed task could not be read");
                if !matches!(error, StoreError::Damaged(_)) {
                    return;
                }
            }
        }
    }
}

#[cfg(test)]
#[path = "sweeper_tests.rs"]
mod tests;
