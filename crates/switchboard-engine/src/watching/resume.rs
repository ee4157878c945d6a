//! Opens streams: from the present state on, or from where an earlier stream broke off. A client that repeats its message
//! gets the stream of that turn again, from the turn's first event or from where the client stopped. It ends where the
//! turn's own stream ended, whatever happened to the task since.

use std::collections::VecDeque;
use std::sync::Arc;

use switchboard_core::call::{Frame, Reply, SharedUpdate};
use switchboard_core::error::ProtocolError;
use switchboard_core::lifecycle::StreamKind;
use switchboard_core::model::{TaskId, TaskView, Update};

use super::subscription::{Following, Subscription, frames, snapshot_at};
use crate::ports::store::{Accepted, AcceptedTask, Scope, StoreError, StoredTask};
use crate::state::EngineState;

/// Shows `first`, then what comes after `cursor`.
pub(crate) async fn follow(
    engine: &Arc<EngineState>,
    following: Following,
    kind: StreamKind,
    first: VecDeque<Frame>,
    cursor: u64,
) -> Result<Reply, ProtocolError> {
    let subscription = Subscription::open(engine.clone(), following, kind, first, cursor).await?;
    Ok(Reply::Stream(Box::pin(subscription)))
}

/// Shows exactly what comes after a client's `Last-Event-ID`.
pub(crate) async fn resume(
    engine: &Arc<EngineState>,
    scope: Scope,
    stored: &StoredTask,
    kind: StreamKind,
    last_event_id: &str,
) -> Result<Reply, ProtocolError> {
    let cursor = cursor_of(last_event_id, stored)?;
    follow(engine, Following::of(scope, stored), kind, VecDeque::new(), cursor).await
}

/// The event number in a `Last-Event-ID`, if the task has such an event.
pub(super) fn cursor_of(text: &str, stored: &StoredTask) -> Result<u64, ProtocolError> {
    read_cursor(text, &stored.head.id, stored.head.seq)
}

fn read_cursor(text: &str, id: &TaskId, last: u64) -> Result<u64, ProtocolError> {
    let invalid = |why: String| ProtocolError::invalid("Last-Event-ID", why);
    let cursor = text.trim().parse::<u64>().map_err(|_| invalid("must be the number of an event, or 0".to_owned()))?;
    if cursor > last {
        return Err(invalid(format!("is {cursor}, but the last event of task {id} is {last}")));
    }
    Ok(cursor)
}

/// Shows the task as it was when the message was accepted, then everything that came after.
pub(crate) async fn replay(
    engine: &Arc<EngineState>,
    scope: Scope,
    stored: &StoredTask,
    accepted: &Accepted,
    history_length: Option<u32>,
) -> Result<Reply, ProtocolError> {
    let following = Following::of(scope.clone(), stored);
    if accepted.after_seq == 0 {
        let first = opening(engine, stored, history_length).await?;
        let cursor = first.back().and_then(|frame| frame.seq).unwrap_or(0);
        return follow(engine, following, StreamKind::Send, first, cursor).await;
    }
    let Some(AcceptedTask { task, seq, waited, .. }) = task_as_accepted(engine, &scope, accepted).await? else {
        // If those events are no longer kept, the stream shows the present task instead and says so.
        return follow(engine, following, StreamKind::Send, VecDeque::new(), accepted.after_seq).await;
    };
    let first = VecDeque::from([snapshot_at(engine, &scope, task, seq, history_length)]);
    follow(engine, Following { waits: waited, ..following }, StreamKind::Send, first, seq).await
}

/// Shows what came after a client's `Last-Event-ID`, and nothing from before the turn: a question that ended an earlier one
/// would end this stream, too.
pub(crate) async fn resume_turn(
    engine: &Arc<EngineState>,
    scope: Scope,
    stored: &StoredTask,
    accepted: &Accepted,
    last_event_id: &str,
) -> Result<Reply, ProtocolError> {
    let shown = cursor_of(last_event_id, stored)?.max(accepted.after_seq);
    let waits = match accepted.after_seq {
        0 => false,
        _ => task_as_accepted(engine, &scope, accepted).await?.is_some_and(|then| then.waited),
    };
    // The event that the client has seen last may be the one that ended the turn. So the stream starts with it, but
    // does not show it.
    let cursor = if shown > accepted.after_seq && shown < stored.head.seq { shown - 1 } else { shown };
    let following = Following { waits, shown, ..Following::of(scope, stored) };
    follow(engine, following, StreamKind::Send, VecDeque::new(), cursor).await
}

/// None if the log is no longer kept that far back.
async fn task_as_accepted(
    engine: &EngineState,
    scope: &Scope,
    accepted: &Accepted,
) -> Result<Option<AcceptedTask>, ProtocolError> {
    match engine.store.task_as_accepted(scope, accepted, engine.limits.reply_bytes_max).await {
        Ok(Some(then)) => Ok(Some(engine.with_links_then(scope, then))),
        Ok(None) => Err(ProtocolError::task_not_found(&accepted.task_id)),
        Err(StoreError::Pruned) => Ok(None),
        Err(error) => Err(engine.store_failed(&error)),
    }
}

/// The first commit of a task, which begins with the task itself. It is read only if less of the history is to be
/// shown.
async fn opening(
    engine: &EngineState,
    stored: &StoredTask,
    history_length: Option<u32>,
) -> Result<VecDeque<Frame>, ProtocolError> {
    if history_length.is_none() {
        return Ok(VecDeque::new());
    }
    let page = match engine.store.log(stored.key, 0, 1).await {
        Ok(page) => page,
        Err(StoreError::Pruned) => return Ok(VecDeque::new()),
        Err(error) => return Err(engine.store_failed(&error)),
    };
    let Some(commit) = page.commits.first() else { return Ok(VecDeque::new()) };
    let mut first = frames(&stored.head.id, &stored.head.context_id, commit.first_seq, &commit.events);
    if let Some(frame) = first.front_mut() {
        shorten(frame, history_length);
    }
    Ok(first)
}

/// Limits how much of a task's history is shown.
pub(crate) fn shorten(frame: &mut Frame, history_length: Option<u32>) {
    if let Update::Task(view) = &frame.update.update {
        let view = TaskView { history_length, ..view.clone() };
        frame.update = SharedUpdate::new(Update::Task(view));
    }
}

#[cfg(test)]
mod tests {
    use super::read_cursor;

    /// No text makes a stream begin behind the last event of its task, and a refusal does not repeat what was sent.
    #[test]
    fn fuzz_last_event_ids() {
        let corpus = switchboard_fuzz::texts(&["0", "7", " 18446744073709551615 ", "-1", "7;drop", "\u{664}"]);
        switchboard_fuzz::run("Last-Event-ID", &corpus, |input| {
            let text = String::from_utf8_lossy(input);
            for last in [0, 7, u64::MAX] {
                match read_cursor(&text, &"t".into(), last) {
                    Ok(cursor) => assert!(cursor <= last && text.trim().trim_start_matches('+').parse() == Ok(cursor)),
                    Err(error) => assert!(error.to_string().len() < 200, "{error}"),
                }
            }
        });
    }
}
