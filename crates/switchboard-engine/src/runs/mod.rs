//! Runs agents. Users implement [`Agent`]; a [`Turn`] is the agent's handle while it works on one message. The runner
//! drives the agent independently of any connection, the sweeper renews its lease, and recovery resumes the runs of
//! processes that died.
#![warn(missing_docs, missing_debug_implementations)]

mod agent;
mod artifact_writer;
mod background;
mod ending;
mod error;
mod pause;
mod recovery;
mod registry;
mod restore;
mod run_time;
mod runner;
mod slot;
mod stage;
mod streamed;
mod sweeper;
mod turn;
mod unserved;
mod work_time;
mod writes;

pub use agent::{
    Agent, AgentFuture, AgentSource, Backoff, Effects, ErrorDetails, Idempotency, Recovery, Replies, Traits,
};
pub use artifact_writer::ArtifactWriter;
pub use ending::{RunCounters, RunEnd};
pub use error::{AgentError, TurnError};
pub use turn::Turn;

pub(crate) use background::Background;
pub(crate) use error::invalid_response;
pub(crate) use recovery::give_back;
pub(crate) use registry::RunRegistry;
pub(crate) use runner::{AttachedRun, Run, RunStart, poll_once};
pub(crate) use slot::{Begun, RunSlot};
pub(crate) use stage::Stage;
pub(crate) use streamed::{StreamedRun, StreamedRuns};
pub(crate) use sweeper::sweep;
pub(crate) use turn::TurnStart;
