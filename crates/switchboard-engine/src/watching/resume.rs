//! Opens streams: from the present state on, or from where an earlier stream broke off.

use std::collections::VecDeque;
use std::sync::Arc;

use switchboard_core::call::{Frame, Reply};
use switchboard_core::error::ProtocolError;
use switchboard_core::lifecycle::StreamKind;

use super::{Following, Subscription};
use crate::engine_state::EngineState;
use crate::ports::store::{Scope, StoredTask};

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
    let invalid = |why: String| ProtocolError::invalid("Last-Event-ID", why);
    let cursor = text.trim().parse::<u64>().map_err(|_| invalid("must be the number of an event, or 0".to_owned()))?;
    if cursor > stored.head.seq {
        let (id, last) = (&stored.head.id, stored.head.seq);
        return Err(invalid(format!("is {cursor}, but the last event of task {id} is {last}")));
    }
    Ok(cursor)
}
