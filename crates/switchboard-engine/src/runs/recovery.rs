//! Takes up runs that nobody works on: at start, those of a process that died; later, those whose lease ran out.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use switchboard_core::lifecycle::{Command, RunCommand, TurnEnd};
use switchboard_core::model::{Message, Part, Role};

use super::{Recovery, Run};
use crate::commit::Record;
use crate::house::House;
use crate::ports::store::{StoreError, StoredHead};

/// Runs claimed in one go; more follow at once.
const CLAIM_BATCH: usize = 256;
/// How often a task is looked at whose agent is not served here.
const UNSERVED_LOOK_MS: i64 = 60_000;

/// Takes up everything that an earlier process left.
pub(crate) async fn recover(house: &Arc<House>) -> Result<(), StoreError> {
    loop {
        let claimed = house.store.claim_runs(CLAIM_BATCH, house.limits.lease_ms).await?;
        let done = claimed.len() < CLAIM_BATCH;
        for stored in claimed {
            take_up(house, stored).await?;
        }
        if done {
            house.health.recovering.store(false, Ordering::Relaxed);
            return Ok(());
        }
    }
}

/// The loop that keeps every active task owned: renews what this process runs before it claims anything, and tells
/// followers of tasks that moved without a hint.
pub(crate) async fn sweep(house: Arc<House>) {
    let mut since_poll = Duration::ZERO;
    let pause = Duration::from_millis(u64::from(house.limits.sweep_ms));
    loop {
        tokio::time::sleep(pause).await;
        if let Err(error) = renew_and_claim(&house).await {
            let _ = house.store_failed(&error);
        } else if house.health.commit_failed.load(Ordering::Relaxed) && house.store.probe().await.is_ok() {
            house.health.commit_failed.store(false, Ordering::Relaxed);
        }
        since_poll += pause;
        if since_poll >= Duration::from_millis(u64::from(house.limits.follow_poll_ms)) {
            since_poll = Duration::ZERO;
            poll_followed(&house).await;
        }
    }
}

async fn renew_and_claim(house: &Arc<House>) -> Result<(), StoreError> {
    let held = house.runs.held();
    if !held.is_empty() {
        let lost = house.store.renew_leases(held.clone(), house.limits.lease_ms).await?;
        house.runs.drop_lost(&held, &lost);
        house.runs.cancel_all(&house.store.canceled_runs().await?);
    }
    if house.supervisor.is_draining() {
        return Ok(());
    }
    recover(house).await
}

/// Looks at every followed task once: a hint may have been lost.
async fn poll_followed(house: &Arc<House>) {
    for tail in house.tails.all() {
        match house.store.head(tail.scope(), tail.task_id()).await {
            Ok(Some(stored)) => tail.overtaken(stored.head.seq),
            Ok(None) => {}
            Err(error) => {
                tracing::warn!(task = %tail.task_id(), ?error, "a followed task could not be read");
                return;
            }
        }
    }
}

/// Leaves a turn to a process that serves its agent; looking at it was not an attempt.
async fn put_back(house: &House, claimed: StoredHead) -> Result<(), StoreError> {
    let key = claimed.key;
    let record = Record::stored(claimed);
    tracing::warn!(task = %record.id, agent = %record.scope.agent, "a task waits for an agent that is not served");
    if let Err(error) = house.write(&record, Command::PutBack).await {
        tracing::warn!(task = %record.id, ?error, "an attempt that was none could not be taken back");
    }
    let fence = record.with_head(|head| head.fence);
    house.store.release_leases(vec![(key, fence)], house.now().plus_ms(UNSERVED_LOOK_MS)).await
}

/// Runs a claimed turn again, or fails it, as its agent declares.
async fn take_up(house: &Arc<House>, claimed: StoredHead) -> Result<(), StoreError> {
    let (key, fence, attempt) = (claimed.key, claimed.head.fence, claimed.head.attempt);
    if house.runs.holds(key, fence) {
        return Ok(());
    }
    let Some(agent) = house.agents.get(&claimed.scope.agent).cloned() else {
        return put_back(house, claimed).await;
    };
    let cancel_requested = claimed.head.cancel_requested;
    let record = Arc::new(Record::stored(claimed));
    let Some(stored) = house.stored_task(&record.scope, &record.id).await? else { return Ok(()) };
    let Some(inbound) = stored.folded.open_turns.first().cloned() else { return Ok(()) };
    house.note_recovered();
    let reason = match &agent.source.traits().recovery {
        _ if cancel_requested => None,
        Recovery::Fail { reason } => Some(reason.clone()),
        Recovery::Retry { attempts_max } => {
            let max = attempts_max.unwrap_or(house.limits.attempts_max);
            (attempt > max).then(|| format!("The agent was interrupted {max} times and is not tried again"))
        }
    };
    if reason.is_none() && !cancel_requested {
        tracing::info!(task = %record.id, agent = %agent.name, attempt, "run taken up again");
        let referenced = house.referenced_tasks(&record.scope, &stored).await;
        if let Some(run) = Run::begin(house.clone(), agent, record, &stored, referenced) {
            run.spawn();
        }
        return Ok(());
    }
    let end = match reason {
        None => TurnEnd::Returned,
        Some(reason) => {
            let mut message = Message::new(Role::Agent, house.ids.uuid(), vec![Part::text(reason)]);
            message.context_id = Some(record.context_id.clone());
            message.task_id = Some(record.id.clone());
            TurnEnd::Failed { message: Some(Arc::new(message)) }
        }
    };
    let command = Command::Run { fence, inbound, command: RunCommand::EndTurn(end) };
    if let Err(error) = house.write(&record, command).await {
        tracing::warn!(task = %record.id, ?error, "an interrupted run could not be ended");
    }
    Ok(())
}
