//! Continuations: calls to other agents that their run no longer waits for. Each is a row in the store; the loop here claims those that are
//! due, looks at the other agent's task, and delivers what came of it: as the next message of the task whose run made the call, or to
//! a URL. What is delivered is recorded before it is, so that a crash in between repeats the same delivery, which its receiver
//! recognises. It also checks the calls of runs from time to time, because the process of a run may have died.
//!
//! On a server that starts runs by posts to itself, continuations are looked at by posts, too ([`EngineState::look_later`]): one when the call is handed over, and
//! one for each further look. The loop then only finds, once a minute, what no post has come for.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::join_all;
use serde_json::json;
use switchboard_core::call::{Request, SendMessage};
use switchboard_core::error::ProtocolError;
use switchboard_core::model::{Json, Message, Part, Role, Task, TaskState};
use tokio::time::{sleep, timeout};

use crate::ports::calls::{CallRow, CallStatus, CallStep, ClaimedStep, INLINE_LOOK_MS};
use crate::ports::store::StoreError;
use crate::ports::{WebhookCall, WebhookError};
use crate::push::push_trace;
use crate::runs::{
    AgentCallError, CALL_METADATA, CalledBack, Outcome, caller, delivery_id, end_left_over, find_callee, settle,
};
use crate::state::EngineState;

/// How long a claim lasts: longer than everything that is done under it.
const CONTINUATION_CLAIM_MS: u32 = 60_000;
/// How many are claimed at once.
const CONTINUATION_BATCH: usize = 5;
/// How often rows are looked for that no notice came for.
const CONTINUATION_SWEEP: Duration = Duration::from_secs(60);
/// How long one look at the other agent's task takes, and the time to find the agent before that.
const LOOK_MAX: Duration = Duration::from_secs(10);
const CALLEE_MAX: Duration = Duration::from_secs(8);
/// The time for one delivery.
const CONTINUATION_DELIVERY_MAX: Duration = Duration::from_secs(12);
/// How long a delivery is tried after the time for the call itself is over.
const UNDELIVERED_MS_MAX: i64 = 600_000;
/// The longest text that is delivered; the rest is with the other agent's task.
const CONTINUATION_TEXT_BYTES_MAX: usize = 32 << 10;
/// How long a request that comes before a continuation is due waits for it.
const EARLY_MAX: Duration = Duration::from_secs(25);
/// The pause when a row is due and cannot be claimed: another process is just claiming it, or it cannot be read.
const UNCLAIMED_PAUSE: Duration = Duration::from_secs(1);
/// The pause when the store fails.
const AFTER_FAILURE: Duration = Duration::from_millis(500);

/// The error of a call whose agent took too long, as agent-native names it.
const REMOTE_TIMEOUT: &str = "a2a_remote_timeout";
const DOWNSTREAM_ERROR: &str = "a2a_downstream_error";

pub(crate) async fn continue_forever(engine: Arc<EngineState>) {
    if engine.store.calls().is_none() {
        return;
    }
    loop {
        let pause = match work_off(&engine).await {
            Ok(pause) => pause,
            Err(error) => {
                let _ = engine.store_failed(&error);
                AFTER_FAILURE
            }
        };
        let _ = timeout(pause, engine.calls_due.notified()).await;
    }
}

/// Works on everything that is due. Returns how long there is nothing to do.
async fn work_off(engine: &Arc<EngineState>) -> Result<Duration, StoreError> {
    let Some(calls) = engine.store.calls() else { return Ok(CONTINUATION_SWEEP) };
    if engine.supervisor.is_draining() {
        return Ok(CONTINUATION_SWEEP);
    }
    let claimed = calls.claim_calls(None, CONTINUATION_BATCH, CONTINUATION_CLAIM_MS).await?;
    let (is_none, is_all) = (claimed.is_empty(), claimed.len() < CONTINUATION_BATCH);
    for worked in join_all(claimed.into_iter().map(|row| work(engine, row))).await {
        worked?;
    }
    if !is_all {
        return Ok(Duration::ZERO);
    }
    if engine.self_fire.is_some() {
        return Ok(CONTINUATION_SWEEP);
    }
    Ok(match calls.next_call_in().await? {
        Some(..=0) if is_none => UNCLAIMED_PAUSE,
        Some(ms) => Duration::from_millis(u64::try_from(ms).unwrap_or_default()).min(CONTINUATION_SWEEP),
        None => CONTINUATION_SWEEP,
    })
}

/// Works on one continuation, for a request that names it. False if there is nothing to do: another process has claimed it, it is
/// over, or there is none.
pub(crate) async fn process_call(engine: &Arc<EngineState>, id: &str) -> Result<bool, StoreError> {
    let Some(calls) = engine.store.calls() else { return Ok(false) };
    let Some(row) = calls.call(id).await?.filter(|row| !row.status.is_over()) else { return Ok(false) };
    if row.status == CallStatus::Inline {
        return Ok(false);
    }
    let Some(due_at) = row.due_at else { return Ok(false) };
    if row.claimed_until.is_none() {
        let early = Duration::from_millis(u64::try_from(due_at.ms_since(engine.now())).unwrap_or_default());
        sleep(early.min(EARLY_MAX)).await;
    }
    let claimed = calls.claim_calls(Some(id.to_owned()), 1, CONTINUATION_CLAIM_MS).await?;
    let Some(row) = claimed.into_iter().next() else { return Ok(false) };
    work(engine, row).await?;
    Ok(true)
}

/// Works on a row that this process has claimed.
async fn work(engine: &Arc<EngineState>, row: CallRow) -> Result<(), StoreError> {
    match row.status {
        CallStatus::Delivering => return deliver(engine, row).await,
        CallStatus::Inline => {
            if !end_left_over(engine, &row).await? {
                step(engine, &row, ClaimedStep::Again { wait_ms: INLINE_LOOK_MS, error: None }).await?;
            }
            return Ok(());
        }
        CallStatus::Pending | CallStatus::Processing | CallStatus::Completed | CallStatus::Failed => {}
    }
    let (outcome, error) = match look(engine, &row).await {
        Look::Settled(task) => outcome_of(&task),
        Look::Lost(error) => (failed(&row, &format!("failed: {error}")), Some(format!("{DOWNSTREAM_ERROR}: {error}"))),
        Look::NotYet(error) => {
            let limits = &engine.limits;
            let is_late = row.give_up_at.is_some_and(|at| at <= engine.now());
            if row.attempts < limits.continuation_attempts_max && !is_late {
                let wait_ms = limits.continuation_pause_ms.into();
                return step(engine, &row, ClaimedStep::Again { wait_ms, error }).await.map(drop);
            }
            tracing::info!(task = %row.parent_id, call = row.id, agent = row.agent, attempts = row.attempts, "call given up");
            (failed(&row, "didn't respond in time"), Some(REMOTE_TIMEOUT.to_owned()))
        }
    };
    let outcome = serde_json::to_string(&outcome).unwrap_or_default();
    match step(engine, &row, ClaimedStep::Deliver { outcome, error }).await? {
        Some(row) => deliver(engine, row).await,
        // Another process has claimed the row.
        None => Ok(()),
    }
}

async fn step(engine: &EngineState, row: &CallRow, step: ClaimedStep) -> Result<Option<CallRow>, StoreError> {
    let (Some(calls), Some(until)) = (engine.store.calls(), row.claimed_until) else { return Ok(None) };
    let is_looked_at_again = matches!(step, ClaimedStep::Again { .. }) && row.status != CallStatus::Inline;
    let changed = calls.change_call(&row.id, CallStep::Claimed { until, step }).await?;
    if is_looked_at_again && engine.self_fire.is_some() {
        engine.look_later(&row.id);
    }
    Ok(changed)
}

enum Look {
    Settled(Arc<Task>),
    /// The other agent is at work, or does not answer.
    NotYet(Option<String>),
    /// Nothing will come of it.
    Lost(String),
}

/// Looks at the other agent's task for a while.
async fn look(engine: &EngineState, row: &CallRow) -> Look {
    let Some(task) = &row.remote_task else { return Look::Lost("its task is not known".to_owned()) };
    let owner = &row.scope.owner;
    let callee = match timeout(CALLEE_MAX, find_callee(engine, owner, &row.agent)).await {
        Ok(Ok(callee)) => callee,
        Ok(Err(AgentCallError::Unreachable { reason, .. })) => return Look::NotYet(Some(reason)),
        Ok(Err(error)) => return Look::Lost(error.to_string()),
        Err(_) => return Look::NotYet(Some("its card did not arrive in time".to_owned())),
    };
    match timeout(LOOK_MAX, settle(&*callee.endpoint, &caller(owner, row.trace.as_ref()), task)).await {
        Ok(Ok(task)) => Look::Settled(task),
        Ok(Err(error)) => Look::Lost(error.to_string()),
        Err(_) => Look::NotYet(None),
    }
}

fn outcome_of(task: &Task) -> (Outcome, Option<String>) {
    let (state, mut text) = (task.state(), task.answer_text());
    if text.len() > CONTINUATION_TEXT_BYTES_MAX {
        let mut ends = (0..=CONTINUATION_TEXT_BYTES_MAX).rev();
        text.truncate(ends.find(|end| text.is_char_boundary(*end)).unwrap_or_default());
    }
    let is_failure = matches!(state, TaskState::Failed | TaskState::Canceled | TaskState::Rejected);
    let error = is_failure.then(|| format!("{DOWNSTREAM_ERROR}: {}", state.word()));
    (Outcome::new(state, text), error)
}

fn failed(row: &CallRow, why: &str) -> Outcome {
    Outcome::new(TaskState::Failed, format!("The agent {} {why}", row.agent))
}

/// Delivers what came of a call.
async fn deliver(engine: &Arc<EngineState>, row: CallRow) -> Result<(), StoreError> {
    let delivering = async {
        let Some(back) = CalledBack::of(&row) else {
            return Err(Undelivered::Never("what came of it cannot be read".to_owned()));
        };
        match &row.deliver_to {
            Some(url) => post(engine, &row, &back, url).await,
            None => send_to_parent(engine, &row, &back).await,
        }
    };
    let delivered = match timeout(CONTINUATION_DELIVERY_MAX, delivering).await {
        Ok(delivered) => delivered,
        Err(_) => Err(Undelivered::Later("it was not answered in time".to_owned())),
    };
    let next = match delivered {
        Ok(receipt) => ClaimedStep::Delivered { receipt },
        Err(Undelivered::Never(error)) => ClaimedStep::Undeliverable { error },
        Err(Undelivered::Later(error)) => {
            let late_ms = row.give_up_at.map_or(0, |at| engine.now().ms_since(at));
            match late_ms > UNDELIVERED_MS_MAX {
                true => ClaimedStep::Undeliverable { error },
                false => {
                    let wait_ms = engine.limits.continuation_pause_ms.into();
                    ClaimedStep::Again { wait_ms, error: Some(error) }
                }
            }
        }
    };
    if let ClaimedStep::Undeliverable { error } = &next {
        tracing::warn!(task = %row.parent_id, call = row.id, agent = row.agent, error, "what came of a call was not delivered");
    }
    step(engine, &row, next).await.map(drop)
}

enum Undelivered {
    Later(String),
    Never(String),
}

/// Sends what came of a call to the task whose run made it, as its next message.
async fn send_to_parent(engine: &EngineState, row: &CallRow, back: &CalledBack) -> Result<String, Undelivered> {
    let owner = &row.scope.owner;
    let agent = find_callee(engine, owner, row.scope.agent.as_str()).await;
    let agent = agent.map_err(|error| Undelivered::Later(error.to_string()))?;
    let mut message = Message::new(Role::User, delivery_id(row), vec![Part::text(back.text.clone())]);
    message.task_id = Some(row.parent_id.clone());
    message.metadata = Json::from_serialize(&json!({ CALL_METADATA: back.json() })).ok();
    let mut send = SendMessage::new(message);
    send.return_immediately = true;
    let mut from = caller(owner, row.trace.as_ref());
    from.idempotency_key = Some(delivery_id(row));
    match agent.endpoint.call(from, Request::SendMessage(send.into())).await {
        Ok(_) => Ok(format!("message of task {}", row.parent_id)),
        Err(error) if is_passing(&error) => Err(Undelivered::Later(error.to_string())),
        Err(error) => Err(Undelivered::Never(error.to_string())),
    }
}

fn is_passing(error: &ProtocolError) -> bool {
    error.retry_after_s().is_some() || matches!(error, ProtocolError::Internal { .. })
}

async fn post(engine: &EngineState, row: &CallRow, back: &CalledBack, url: &str) -> Result<String, Undelivered> {
    let mut headers = vec![("content-type", "application/json".to_owned()), ("idempotency-key", delivery_id(row))];
    push_trace(&mut headers, row.trace.as_deref());
    let call = WebhookCall {
        url: url.to_owned(),
        delivery_id: delivery_id(row),
        headers,
        body: Bytes::from(back.json().to_string()),
        task_id: row.parent_id.clone(),
        scheme_without_credentials: None,
    };
    match engine.webhook.post(call).await {
        Ok(answer) if (200..300).contains(&answer.status) => Ok(format!("HTTP {}", answer.status)),
        Ok(answer) => Err(Undelivered::Later(format!("HTTP {}", answer.status))),
        Err(WebhookError::Refused(why)) => Err(Undelivered::Never(why)),
        Err(WebhookError::Failed(why)) => Err(Undelivered::Later(why)),
    }
}
