//! Runs agents. Users implement [`Agent`]; a [`Turn`] is the agent's handle while it works on one message. The runner
//! drives the agent independently of any connection, the sweeper renews its lease, and recovery resumes the runs of
//! processes that died.
#![warn(missing_docs, missing_debug_implementations)]

mod agent;
mod agent_error;
mod artifact_writer;
mod attached;
mod background;
mod call;
mod call_ending;
mod call_error;
mod called_back;
mod callees;
mod ending;
mod fair_slots;
mod recovery;
mod registry;
mod run_slots;
mod run_time;
mod runner;
mod self_fire;
mod self_fired;
mod sweeper;
mod traits;
mod turn;
mod turn_state;

pub use agent::{Agent, AgentFuture, AgentSource, LeftOver, Registered};
pub use agent_error::{AgentError, TurnError};
pub use artifact_writer::ArtifactWriter;
pub use call::{Call, CallAnswer, CallMessage, TURN_CALLS_MAX};
pub use call_error::AgentCallError;
pub use called_back::CalledBack;
pub use ending::{Histogram, MICROS_BOUNDS, RunCounters, RunEnd};
pub use run_slots::RunHoldUse;
pub use traits::{Backoff, Effects, ErrorDetails, Idempotency, Recovery, Replies, Traits};
pub use turn::{PassedOn, Turn};

pub(crate) use agent::Agents;
pub(crate) use agent_error::invalid_response;
pub(crate) use attached::{AttachedRun, StreamedRun, StreamedRuns};
pub(crate) use call::settle;
pub(crate) use call_ending::end_left_over;
pub(crate) use called_back::{CALL_METADATA, Outcome, delivery_id};
pub(crate) use callees::{caller, find_callee};
pub(crate) use fair_slots::FairSlots;
pub(crate) use recovery::{cancel_left_over, give_back};
pub(crate) use registry::RunRegistry;
pub(crate) use run_slots::{Begun, RunHold, RunSlot};
pub(crate) use runner::{Run, RunStart, admitted, poll_once};
pub(crate) use self_fire::SelfFire;
pub(crate) use self_fired::process;
pub(crate) use sweeper::sweep;
pub(crate) use turn::{Background, TurnStart};
