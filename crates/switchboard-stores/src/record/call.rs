//! The stored form of a call of one agent to another: one object of JSON. The names of its members are part of the format. What a store
//! has in columns of its own is not in it.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use switchboard_core::model::{TaskId, Timestamp, TraceContext};
use switchboard_engine::ports::calls::{CallRow, CallStatus};
use switchboard_engine::ports::store::{Scope, StoreError, TaskKey};

#[derive(Serialize, Deserialize)]
struct StoredCall {
    turn: u32,
    agent: String,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    has_left: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    remote_task: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    remote_context: Option<String>,
    #[serde(default)]
    attempts: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    claimed_until: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    give_up_at: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    deliver_to: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    outcome: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    receipt: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    error: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    trace_parent: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    trace_state: Option<String>,
    created_at: i64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    ended_at: Option<i64>,
}

/// The record of a call.
pub(crate) fn encode_call(call: &CallRow) -> String {
    let CallRow { turn, agent, has_left, remote_task, remote_context, attempts, claimed_until, give_up_at, .. } = call;
    let CallRow { deliver_to, outcome, receipt, error, trace, created_at, ended_at, .. } = call;
    let ms = |at: &Option<Timestamp>| at.map(Timestamp::as_ms);
    let stored = StoredCall {
        turn: *turn,
        agent: agent.clone(),
        has_left: *has_left,
        remote_task: remote_task.as_ref().map(ToString::to_string),
        remote_context: remote_context.as_ref().map(ToString::to_string),
        attempts: *attempts,
        claimed_until: ms(claimed_until),
        give_up_at: ms(give_up_at),
        deliver_to: deliver_to.clone(),
        outcome: outcome.clone(),
        receipt: receipt.clone(),
        error: error.clone(),
        trace_parent: trace.as_ref().map(|trace| trace.trace_parent()),
        trace_state: trace.as_ref().and_then(|trace| trace.trace_state()).map(str::to_owned),
        created_at: created_at.as_ms(),
        ended_at: ms(ended_at),
    };
    serde_json::to_string(&stored).unwrap_or_default()
}

/// The columns that a store keeps beside the record.
pub(crate) struct CallColumns {
    pub(crate) id: String,
    pub(crate) parent: TaskKey,
    pub(crate) parent_id: TaskId,
    pub(crate) scope: Scope,
    pub(crate) status: String,
    pub(crate) due_at: Option<i64>,
}

/// A call from its columns and its record.
pub(crate) fn decode_call(columns: CallColumns, record: &str) -> Result<CallRow, StoreError> {
    let CallColumns { id, parent, parent_id, scope, status, due_at } = columns;
    let corrupt = |why: &dyn std::fmt::Display| StoreError::Corrupt(format!("call {id}: {why}"));
    let status = CallStatus::from_word(&status).ok_or_else(|| corrupt(&format_args!("status {status:?}")))?;
    let stored: StoredCall = serde_json::from_str(record).map_err(|error| corrupt(&error))?;
    let at = |ms: Option<i64>| ms.map(Timestamp::from_ms);
    Ok(CallRow {
        id,
        parent,
        parent_id,
        scope,
        turn: stored.turn,
        agent: stored.agent,
        status,
        has_left: stored.has_left,
        remote_task: stored.remote_task.map(Into::into),
        remote_context: stored.remote_context.map(Into::into),
        attempts: stored.attempts,
        due_at: at(due_at),
        claimed_until: at(stored.claimed_until),
        give_up_at: at(stored.give_up_at),
        deliver_to: stored.deliver_to,
        outcome: stored.outcome,
        receipt: stored.receipt,
        error: stored.error,
        trace: TraceContext::of_texts(stored.trace_parent.as_deref(), stored.trace_state.as_deref()).map(Arc::new),
        created_at: Timestamp::from_ms(stored.created_at),
        ended_at: at(stored.ended_at),
    })
}
