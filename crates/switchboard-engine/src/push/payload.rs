//! What a receiver is sent: the body for one update, or for the whole task in its present state, and the headers.

use bytes::Bytes;
use switchboard_core::model::redact::{redact_update, redact_view};
use switchboard_core::model::{AuthenticationInfo, Dialect, TaskView, TraceContext, Update};

use crate::ports::store::{Delivery, StoreError};
use crate::state::EngineState;

/// The body for one numbered update.
pub(super) struct Payload {
    pub(super) seq: u64,
    /// How many updates before it the receiver will not be sent.
    pub(super) skipped: u64,
    pub(super) body: Bytes,
}

/// Encodes the body for an update, without secrets that must not leave the server.
pub(super) fn encode(dialect: Dialect, update: &Update) -> Bytes {
    let mut body = Vec::with_capacity(512);
    dialect.write_update(redact_update(update).as_ref().unwrap_or(update), &mut body);
    body.into()
}

/// The id of a delivery, which is the same in every attempt, so that a receiver recognises repeats.
#[must_use]
pub(super) fn delivery_id(task_id: &str, config_id: &str, seq: u64) -> String {
    format!("{task_id}:{config_id}:{seq}")
}

pub(super) fn headers(
    delivery: &Delivery,
    delivery_id: &str,
    payload: &Payload,
    attempt: u32,
    trace: Option<&TraceContext>,
) -> Vec<(&'static str, String)> {
    let Delivery { config, dialect, .. } = delivery;
    let mut headers = vec![
        ("content-type", dialect.rules().push_media_type.to_owned()),
        ("a2a-delivery-id", delivery_id.to_owned()),
        ("a2a-delivery-seq", payload.seq.to_string()),
        ("a2a-delivery-attempt", attempt.to_string()),
    ];
    push_trace(&mut headers, trace);
    if payload.skipped > 0 {
        headers.push(("a2a-delivery-skipped", payload.skipped.to_string()));
    }
    // A scheme without credentials is left out, because receivers would take it for a broken credential; the adapter that posts
    // may have some of its own.
    if let Some(AuthenticationInfo { scheme, credentials: Some(credentials) }) = &config.authentication
        && !credentials.is_empty()
    {
        headers.push(("authorization", format!("{scheme} {credentials}")));
    }
    if let Some(token) = &config.token {
        // The spec names no header; these are the two that other SDKs use.
        headers.push(("x-a2a-notification-token", token.clone()));
        headers.push(("a2a-notification-token", token.clone()));
    }
    headers
}

/// Adds the headers that name the trace of a post.
pub(crate) fn push_trace(headers: &mut Vec<(&'static str, String)>, trace: Option<&TraceContext>) {
    let Some(trace) = trace else { return };
    headers.push(("traceparent", trace.trace_parent()));
    if let Some(state) = trace.trace_state() {
        headers.push(("tracestate", state.to_owned()));
    }
}

/// The scheme of a receiver that has left it to the server to prove who it is.
pub(super) fn scheme_without_credentials(delivery: &Delivery) -> Option<String> {
    let AuthenticationInfo { scheme, credentials } = delivery.config.authentication.as_ref()?;
    let has_none = credentials.as_ref().is_none_or(String::is_empty);
    has_none.then(|| scheme.clone())
}

/// A larger task is delivered update by update, because its newest state is no less work than its backlog.
const STATE_BYTES_MAX: u64 = 1 << 20;

/// The newest state of the task in place of a long backlog, under the number of its newest update. None if the receiver
/// is not far enough behind, the setting is off, or the task is too large.
pub(super) async fn newest_state(engine: &EngineState, delivery: &Delivery) -> Result<Option<Payload>, StoreError> {
    let after = u64::from(engine.limits.delivery_coalesce_after);
    if after == 0 || delivery.task_seq.saturating_sub(delivery.delivered_seq) <= after {
        return Ok(None);
    }
    let Some(stored) = engine.store.head(&delivery.scope, &delivery.task_id).await? else { return Ok(None) };
    // The head is checked first, so that a large task is not even read.
    if stored.head.artifacts.iter().map(|artifact| artifact.bytes).sum::<u64>() > STATE_BYTES_MAX {
        return Ok(None);
    }
    let Some(stored) = engine.stored_task(&delivery.scope, &delivery.task_id).await? else { return Ok(None) };
    let seq = stored.head.seq;
    let body = encode(delivery.dialect, &Update::Task(TaskView::whole(stored.folded.task.clone())));
    if seq <= delivery.delivered_seq || body.len() as u64 > 2 * STATE_BYTES_MAX {
        return Ok(None);
    }
    let skipped = seq - delivery.delivered_seq - 1;
    Ok(Some(Payload { seq, skipped, body }))
}

/// The whole task in its present state, for receivers of older dialects, and the number of its newest update. None if
/// the task is no longer kept.
pub(super) async fn whole_task(engine: &EngineState, delivery: &Delivery) -> Result<Option<(u64, Bytes)>, StoreError> {
    let Some(stored) = engine.stored_task(&delivery.scope, &delivery.task_id).await? else { return Ok(None) };
    let mut body = Vec::with_capacity(1024);
    let view =
        engine.fitted(&delivery.scope, TaskView::whole(stored.folded.task.clone()), engine.limits.reply_bytes_max);
    delivery.dialect.write_pushed_task(&redact_view(view), &mut body);
    Ok(Some((stored.head.seq, body.into())))
}
