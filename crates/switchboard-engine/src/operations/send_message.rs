//! SendMessage and SendStreamingMessage: accept the message, then wait for the answer or stream it.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use switchboard_core::call::{Caller, Frame, Reply, SendMessage, SharedUpdate};
use switchboard_core::error::ProtocolError;
use switchboard_core::lifecycle::{Command, Folded, Phase, StreamEnd, StreamKind, after_state};
use switchboard_core::model::{Message, TaskState, TaskView, Update};
use tokio::time::Instant;

use crate::accepting::{Acceptance, AcceptedMessage, accept, check, confirm_webhook, identify};
use crate::commit::WriteError;
use crate::ports::store::{Accepted, Scope, StoreError, StoredHead, StoredTask};
use crate::runs::{Registered, invalid_response};
use crate::state::EngineState;
use crate::state::record::Record;
use crate::state::runs::AttachedRun;
use crate::watching::{
    Finished, Following, Subscription, Until, drive_until_settled, drive_until_written, follow, frames, replay,
    resume_turn, shorten, snapshot, wait_until,
};

pub(crate) async fn send_message(
    engine: &Arc<EngineState>,
    agent: &Arc<Registered>,
    caller: &Caller,
    send: Box<SendMessage>,
) -> Result<Reply, ProtocolError> {
    check(engine, agent, caller, &send)?;
    if send.push_config.is_some() {
        // Boxed, because few sends have a webhook.
        Box::pin(confirm_webhook(engine, caller, &send)).await?;
    }
    let bytes_max = engine.reply_bytes_max(caller);
    let (history_length, return_immediately) = (send.history_length, send.return_immediately);
    let again = (caller.dialect.rules().frees_keys && caller.idempotency_key.is_some()).then(|| send.clone());
    let (record, stored, run) = match accept(engine, agent, caller, send).await? {
        Acceptance::New(AcceptedMessage { record, stored, run, .. }) => (record, stored, run),
        Acceptance::Repeated(accepted) => {
            let earlier = Box::pin(recall(engine, engine.scope(caller, agent), &accepted)).await?;
            let (record, stored) = match again.filter(|_| has_freed_its_key(&earlier.1)) {
                Some(send) => Box::pin(send_anew(engine, agent, caller, send, earlier)).await?,
                None => earlier,
            };
            (record, stored, None)
        }
    };
    let may_answer = stored.head.is_settled() || (return_immediately && stored.head.phase == Phase::Live);
    let has_waited = !return_immediately && caller.dialect.rules().refuses_wrong_answers;
    if may_answer {
        return told(answer(engine, &record.scope, &stored.folded, history_length, bytes_max), has_waited);
    }
    // Boxed, because most sends never get here, and their futures need not reserve memory for it.
    let waiting = Waiting { history_length, bytes_max, return_immediately };
    told(Box::pin(wait_for_answer(engine, record, stored, run, waiting)).await?, has_waited)
}

/// The reply, or an error if the agent's answer broke the protocol and the caller waited for it. The task that failed
/// because of this can still be read.
fn told(reply: Reply, has_waited: bool) -> Result<Reply, ProtocolError> {
    match &reply {
        Reply::SentTask(view) if has_waited => invalid_response(&view.task).map_or(Ok(reply), Err),
        _ => Ok(reply),
    }
}

/// In some dialects a key may be used again if its task did not complete.
fn has_freed_its_key(stored: &StoredTask) -> bool {
    stored.head.state.is_terminal() && stored.head.state != TaskState::Completed
}

/// Sends under a key that an earlier, uncompleted task has used. The id of that task is appended to the key, so that
/// each key still belongs to one task.
async fn send_anew(
    engine: &Arc<EngineState>,
    agent: &Arc<Registered>,
    caller: &Caller,
    send: Box<SendMessage>,
    mut earlier: (Arc<Record>, StoredTask),
) -> Result<(Arc<Record>, StoredTask), ProtocolError> {
    let mut caller = caller.clone();
    let key = caller.idempotency_key.take().unwrap_or_default();
    for _ in 1..engine.limits.tasks_per_key_max {
        caller.idempotency_key = Some(format!("{key}\n{}", earlier.1.head.id));
        match accept(engine, agent, &caller, send.clone()).await? {
            Acceptance::New(AcceptedMessage { record, stored, .. }) => return Ok((record, stored)),
            Acceptance::Repeated(accepted) => earlier = recall(engine, engine.scope(&caller, agent), &accepted).await?,
        }
        if !has_freed_its_key(&earlier.1) {
            break;
        }
    }
    Ok(earlier)
}

/// How long a send waits, and what its answer may hold.
#[derive(Clone, Copy)]
struct Waiting {
    history_length: Option<u32>,
    bytes_max: u64,
    return_immediately: bool,
}

async fn wait_for_answer(
    engine: &EngineState,
    record: Arc<Record>,
    stored: StoredTask,
    run: Option<AttachedRun>,
    waiting: Waiting,
) -> Result<Reply, ProtocolError> {
    let Waiting { history_length, bytes_max, return_immediately } = waiting;
    let begun = Instant::now();
    let patience = Duration::from_secs(u64::from(engine.limits.settle_wait_s_max));
    let settled = match run {
        Some(run) if stored.head.phase != Phase::Unborn => drive_until_settled(engine, &record, run, patience).await,
        // A record that is not a task yet becomes one if its run takes long, so the run is detached from this call.
        run => {
            drop(run);
            false
        }
    };
    if stored.head.phase == Phase::Unborn {
        // A repeat that does not wait, of a send that does: it is told of a task, as if it had come first.
        let patience = if return_immediately { Duration::ZERO } else { birth_wait(engine) };
        wait_until_known(engine, &record, &stored, patience).await?;
    }
    if !settled && !return_immediately {
        wait_until(engine, &record, Until::Settled, patience.saturating_sub(begun.elapsed())).await?;
    }
    let stored = match settled {
        true => read_settled(engine, &record).await?,
        false => read(engine, &record.scope, &record).await?,
    };
    Ok(answer(engine, &record.scope, &stored.folded, history_length, bytes_max))
}

pub(crate) async fn send_streaming_message(
    engine: &Arc<EngineState>,
    agent: &Arc<Registered>,
    caller: &Caller,
    send: Box<SendMessage>,
) -> Result<Reply, ProtocolError> {
    // Boxed, because few calls get here, and the futures of the others need not reserve memory for it.
    agent.require_streaming(caller.dialect)?;
    check(engine, agent, caller, &send)?;
    if send.push_config.is_some() {
        // Boxed, because few sends have a webhook.
        Box::pin(confirm_webhook(engine, caller, &send)).await?;
    }
    if let Some(last_event_id) = &caller.last_event_id {
        return Box::pin(resume_send(engine, agent, caller, &send.message, last_event_id)).await;
    }
    let history_length = send.history_length;
    let message = match accept(engine, agent, caller, send).await? {
        Acceptance::New(message) => message,
        Acceptance::Repeated(accepted) => {
            return Box::pin(stream_again(engine, engine.scope(caller, agent), &accepted, history_length)).await;
        }
    };
    let first_seq = message.first_seq();
    let AcceptedMessage { record, stored, events, opened, run } = message;
    if stored.head.phase != Phase::Live {
        drop(run);
        return Box::pin(stream_unborn(engine, &record, &stored, history_length)).await;
    }
    let first = if opened {
        let mut first = frames(&record.id, &record.context_id, first_seq, &events);
        if let (Some(frame), Some(_)) = (first.front_mut(), history_length) {
            shorten(frame, history_length);
        }
        first
    } else {
        VecDeque::from([snapshot(engine, &record.scope, &stored, history_length)])
    };
    let cursor = stored.head.seq;
    if opened && after_state(StreamKind::Send, stored.head.state) == StreamEnd::Close {
        let first = first.into_iter().map(|frame| engine.fitted_frame(&record.scope, frame)).collect();
        return Ok(Reply::Stream(Box::pin(Finished(first))));
    }
    let waits = stored.head.inbox() > 0;
    let following = Following { waits, ..Following::of(record.scope.clone(), &stored) };
    let opening = Box::pin(Subscription::open(engine.clone(), following, StreamKind::Send, first, cursor));
    let mut subscription = Box::new(opening.await?);
    // An answer that the agent gives at once is waited for, so that it is sent together with what comes first.
    if let Some(run) = run
        && let Some(run) = drive_until_written(&record, run).await
    {
        subscription.drive(&record, run);
    }
    Ok(Reply::Stream(Box::into_pin(subscription)))
}

/// The reply for a settled record, or for a task in its present state.
fn answer(engine: &EngineState, scope: &Scope, folded: &Folded, history_length: Option<u32>, bytes_max: u64) -> Reply {
    match &folded.reply {
        Some(message) => Reply::SentMessage(message.clone()),
        None => {
            let view = TaskView { history_length, ..TaskView::whole(folded.task.clone()) };
            Reply::SentTask(engine.fitted(scope, view, bytes_max))
        }
    }
}

/// How long a direct reply is waited for.
fn birth_wait(engine: &EngineState) -> Duration {
    Duration::from_millis(u64::from(engine.limits.birth_wait_ms))
}

/// Waits for a direct reply. A record that has none within the limit becomes a task.
async fn wait_until_known(
    engine: &EngineState,
    record: &Record,
    stored: &StoredTask,
    patience: Duration,
) -> Result<(), ProtocolError> {
    if wait_until(engine, record, Until::Known, patience).await? {
        return Ok(());
    }
    let Some(inbound) = stored.folded.open_turns.first().cloned() else { return Ok(()) };
    engine.reload(record).await.map_err(WriteError::into_protocol)?;
    engine.write(record, Command::Birth { inbound }).await.map_err(WriteError::into_protocol)?;
    Ok(())
}

/// Streams a record that may be answered directly: one message, or the task that it has become.
async fn stream_unborn(
    engine: &Arc<EngineState>,
    record: &Record,
    stored: &StoredTask,
    history_length: Option<u32>,
) -> Result<Reply, ProtocolError> {
    if stored.head.phase == Phase::Unborn {
        wait_until_known(engine, record, stored, birth_wait(engine)).await?;
    }
    let stored = read(engine, &record.scope, record).await?;
    if let Some(message) = &stored.folded.reply {
        return Ok(message_stream(message.clone()));
    }
    let mut first = VecDeque::new();
    // The log begins with the task itself, so a stream from 0 has the task first and misses nothing.
    if history_length.is_some() {
        first.push_back(snapshot(engine, &record.scope, &stored, history_length));
    }
    let cursor = if first.is_empty() { 0 } else { stored.head.seq };
    follow(engine, Following::of(record.scope.clone(), &stored), StreamKind::Send, first, cursor).await
}

fn message_stream(message: Arc<Message>) -> Reply {
    let update = SharedUpdate::new(Update::Message(message));
    Reply::Stream(Box::pin(Finished(VecDeque::from([Frame { seq: None, truncated: false, update }]))))
}

/// The turn that an earlier send of the same message began.
async fn recall(
    engine: &Arc<EngineState>,
    scope: Scope,
    accepted: &Accepted,
) -> Result<(Arc<Record>, StoredTask), ProtocolError> {
    let stored = match engine.stored_task(&scope, &accepted.task_id).await {
        Ok(Some(stored)) => stored,
        Ok(None) => return Err(ProtocolError::task_not_found(&accepted.task_id)),
        Err(error) => return Err(engine.store_failed(&error)),
    };
    let record = Record::stored(StoredHead { key: stored.key, scope, head: stored.head.clone() });
    Ok((Arc::new(record), stored))
}

/// Streams an accepted turn again, from its first event.
async fn stream_again(
    engine: &Arc<EngineState>,
    scope: Scope,
    accepted: &Accepted,
    history_length: Option<u32>,
) -> Result<Reply, ProtocolError> {
    let (record, stored) = recall(engine, scope.clone(), accepted).await?;
    match stream_of_no_task(engine, record, &stored, history_length).await? {
        Some(reply) => Ok(reply),
        None => replay(engine, scope, &stored, accepted, history_length).await,
    }
}

/// The reply to a repeated message that was answered directly, or may still be.
async fn stream_of_no_task(
    engine: &Arc<EngineState>,
    record: Arc<Record>,
    stored: &StoredTask,
    history_length: Option<u32>,
) -> Result<Option<Reply>, ProtocolError> {
    if let Some(message) = &stored.folded.reply {
        return Ok(Some(message_stream(message.clone())));
    }
    if stored.head.phase == Phase::Unborn {
        return stream_unborn(engine, &record, stored, history_length).await.map(Some);
    }
    Ok(None)
}

/// Re-posting a streaming message with `Last-Event-ID` resumes its turn; it never starts a new one.
async fn resume_send(
    engine: &Arc<EngineState>,
    agent: &Registered,
    caller: &Caller,
    message: &Message,
    last_event_id: &str,
) -> Result<Reply, ProtocolError> {
    let known = match identify(agent, caller, message) {
        Some(identity) => {
            let known = engine.store.find_accepted(identity.key).await.map_err(|error| engine.store_failed(&error))?;
            known.map(|accepted| identity.check(&accepted, caller.dialect).map(|()| accepted)).transpose()?
        }
        None => None,
    };
    let Some(accepted) = known else {
        let follow = caller.dialect.rules().words.subscribe;
        let description =
            format!("there is no earlier send of this message to resume; use {follow} with the task's id");
        return Err(ProtocolError::invalid("Last-Event-ID", description));
    };
    let scope = engine.scope(caller, agent);
    let (record, stored) = recall(engine, scope.clone(), &accepted).await?;
    match stream_of_no_task(engine, record, &stored, None).await? {
        Some(reply) => Ok(reply),
        None => resume_turn(engine, scope, &stored, &accepted, last_event_id).await,
    }
}

async fn read(engine: &EngineState, scope: &Scope, record: &Record) -> Result<StoredTask, ProtocolError> {
    let failed = |error: StoreError| engine.store_failed(&error);
    let stored = engine.stored_task(scope, &record.id).await.map_err(failed)?;
    stored.ok_or_else(|| ProtocolError::task_not_found(&record.id))
}

/// The record as a commit of this process has settled it, or later.
async fn read_settled(engine: &EngineState, record: &Record) -> Result<StoredTask, ProtocolError> {
    let version = record.with_head(|head| head.version);
    let stored = engine.stored_task_since(&record.scope, &record.id, version).await;
    stored.map_err(|error| engine.store_failed(&error))?.ok_or_else(|| ProtocolError::task_not_found(&record.id))
}
