//! Why a call of an agent to another agent has no answer.

use std::error::Error;
use std::fmt;

use switchboard_core::error::ProtocolError;
use switchboard_core::model::TaskId;

use crate::hops::HopError;

/// Why a call to another agent has no answer. Its text begins with the name of the error. An agent that returns it with `?` fails its
/// task, and the client reads the text.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum AgentCallError {
    /// No agent has this name. The text names those there are.
    UnknownAgent {
        /// The name that was asked for.
        agent: String,
        /// Agents that can be called.
        known: Vec<String>,
    },
    /// The call would go round in a circle, or the message has been passed on too often.
    Hop(HopError),
    /// The agent did not take the message, or the task is not there any more.
    Refused {
        /// The agent.
        agent: String,
        /// What it said.
        error: ProtocolError,
    },
    /// The agent could not be reached. The message has not been accepted, so the call can be made again.
    Unreachable {
        /// The agent.
        agent: String,
        /// What went wrong.
        reason: String,
    },
    /// The message may have reached the agent, which might do the work twice if it were sent again.
    OutcomeUnknown {
        /// The agent.
        agent: String,
    },
    /// The task of this agent was canceled. The other agent has been told.
    Canceled {
        /// The agent.
        agent: String,
        /// Its task.
        task: Option<TaskId>,
    },
    /// The turn has made as many calls as it may.
    TooManyCalls {
        /// How many it may make.
        max: usize,
    },
    /// The store keeps no calls, so none can be made.
    NotSupported,
    /// The task has ended, or another run has taken over: stop working.
    Stopped,
    /// The store failed; the run is tried again.
    Unavailable,
}

impl AgentCallError {
    /// The name of the error, for logs and for programs.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::UnknownAgent { .. } => "UNKNOWN_AGENT",
            Self::Hop(error) => error.name(),
            Self::Refused { .. } => "CALL_REFUSED",
            Self::Unreachable { .. } => "AGENT_UNREACHABLE",
            Self::OutcomeUnknown { .. } => "CALL_OUTCOME_UNKNOWN",
            Self::Canceled { .. } => "CALL_CANCELED",
            Self::TooManyCalls { .. } => "TOO_MANY_CALLS",
            Self::NotSupported => "CALLS_NOT_SUPPORTED",
            Self::Stopped => "RUN_STOPPED",
            Self::Unavailable => "STORE_UNAVAILABLE",
        }
    }
}

impl fmt::Display for AgentCallError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Self::Hop(error) = self {
            return fmt::Display::fmt(error, f);
        }
        write!(f, "{}: ", self.name())?;
        match self {
            Self::UnknownAgent { agent, known } => {
                let shown: String = agent.chars().take(64).collect();
                write!(f, "no agent is called {shown:?}; ")?;
                match known.is_empty() {
                    true => f.write_str("there are no others"),
                    false => write!(f, "there are: {}", known.join(", ")),
                }
            }
            Self::Hop(_) => Ok(()),
            Self::Refused { agent, error } => write!(f, "agent {agent:?} refused: {error}"),
            Self::Unreachable { agent, reason } => write!(f, "agent {agent:?} could not be reached: {reason}"),
            Self::OutcomeUnknown { agent } => write!(
                f,
                "the message may have reached agent {agent:?}, which does not recognise repeats, so it is not sent again"
            ),
            Self::Canceled { agent, .. } => {
                write!(f, "the call to agent {agent:?} was canceled together with its task")
            }
            Self::TooManyCalls { max } => write!(f, "a turn may make {max} calls"),
            Self::NotSupported => f.write_str("this store keeps no calls yet; use SQLite or memory"),
            Self::Stopped => f.write_str("the task has ended or moved to another run"),
            Self::Unavailable => f.write_str("the store is unavailable"),
        }
    }
}

impl Error for AgentCallError {}
