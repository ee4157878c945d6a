//! The agents of a process: what each is called, what its card says, and where its runs come from.

use std::collections::HashMap;
use std::sync::Arc;

use switchboard_core::call::{Caller, Owner};
use switchboard_core::error::ProtocolError;
use switchboard_core::model::{AgentCard, AgentName, Dialect, Vocabulary};

use crate::engine_state::{CurrentCard, EngineState};
use crate::ports::store::Scope;
use crate::runs::AgentSource;

/// All agents of a process, by name.
pub(crate) type Agents = HashMap<AgentName, Arc<Registered>>;

/// One agent of this process.
pub struct Registered {
    pub name: AgentName,
    pub source: AgentSource,
    pub card: Arc<CurrentCard>,
    pub extended_card: Option<Arc<AgentCard>>,
    /// Spec 13.3 requires authentication for the extended card; a server without authentication can opt out.
    pub extended_card_for_anyone: bool,
}

impl Registered {
    /// Checked before the task is looked up, so that an agent without push gives the same error for every task.
    pub(crate) fn require_push(&self) -> Result<(), ProtocolError> {
        match self.card.get().capabilities.push_notifications {
            Some(true) => Ok(()),
            Some(false) | None => Err(ProtocolError::PushNotificationNotSupported),
        }
    }

    pub(crate) fn require_streaming(&self, dialect: Dialect) -> Result<(), ProtocolError> {
        match self.card.get().capabilities.streaming {
            Some(true) => Ok(()),
            Some(false) | None => {
                let Vocabulary { send_message, get_task, .. } = &dialect.rules().words;
                let reason = format!("This agent does not stream; use {send_message} and {get_task}");
                Err(ProtocolError::unsupported(reason))
            }
        }
    }
}

impl EngineState {
    pub(crate) fn scope(&self, caller: &Caller, agent: &Registered) -> Scope {
        self.scope_of(&caller.owner, agent)
    }

    pub(crate) fn scope_of(&self, owner: &Owner, agent: &Registered) -> Scope {
        Scope { owner: owner.clone(), agent: agent.name.clone() }
    }
}
