//! What an agent is made with beside its own settings: the server that it is part of.

use std::path::Path;

use switchboard::CallDoor;
use switchboard_hub::dispatch::ServerAgents;
use switchboard_hub::relay::RelayHandle;

use crate::config::ServerSettings;
use crate::neighbours::Neighbours;

/// The relays of a server, by the names of their agents.
pub(crate) type Relays = Vec<(String, RelayHandle)>;

/// What agents need of the server that they are part of.
pub(crate) struct AgentContext<'a> {
    pub(crate) server: &'a ServerSettings,
    /// None if tasks are in memory.
    pub(crate) data: Option<&'a Path>,
    pub(crate) relays: &'a mut Relays,
    /// All agents of the server, for those that dispatch.
    pub(crate) here: &'a ServerAgents,
    pub(crate) neighbours: Option<&'a Neighbours>,
    pub(crate) door: &'a CallDoor,
}

impl AgentContext<'_> {
    /// What no other gateway in front of an upstream has.
    pub(crate) fn namespace(&self, slug: &str) -> String {
        format!("{}/agents/{slug}", self.server.public_url.as_deref().unwrap_or_default())
    }
}
