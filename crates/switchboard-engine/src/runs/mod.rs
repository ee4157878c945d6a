//! Runs agents. Users implement [`Agent`]; a [`Turn`] is the agent's handle while it works on one message. The runner
//! drives the agent independently of any connection, the sweeper renews its lease, and recovery resumes the runs of
//! processes that died. What is kept about runs meanwhile is in `crate::state::runs`.
#![warn(missing_docs, missing_debug_implementations)]

mod agent;
mod agent_error;
mod artifact_writer;
mod background;
mod call;
mod call_ending;
mod call_error;
mod called_back;
mod callees;
mod recovery;
mod run_slots;
mod run_time;
mod runner;
mod self_fired;
mod sweeper;
mod turn;
mod turn_state;

pub use agent::{Agent, AgentFuture, AgentSource, LeftOver, Registered};
pub use agent_error::{AgentError, TurnError};
pub use artifact_writer::ArtifactWriter;
pub use call::{Call, CallAnswer, CallMessage, TURN_CALLS_MAX};
pub use call_error::AgentCallError;
pub use called_back::CalledBack;
pub use run_slots::RunHoldUse;
pub use turn::{PassedOn, Turn};

pub use crate::state::runs::{
    Backoff, Effects, ErrorDetails, Histogram, Idempotency, MICROS_BOUNDS, Recovery, Replies, RunCounters, RunEnd,
    Traits,
};

pub(crate) use agent::Agents;
pub(crate) use agent_error::invalid_response;
pub(crate) use call::settle;
pub(crate) use call_ending::end_left_over;
pub(crate) use called_back::{CALL_METADATA, Outcome, delivery_id};
pub(crate) use callees::{caller, find_callee};
pub(crate) use recovery::{cancel_left_over, give_back};
pub(crate) use run_slots::{Begun, RunHold, RunSlot};
pub(crate) use runner::{Run, RunStart, admitted, poll_once};
pub(crate) use self_fired::process;
pub(crate) use sweeper::sweep;
pub(crate) use turn::{Background, TurnStart};
