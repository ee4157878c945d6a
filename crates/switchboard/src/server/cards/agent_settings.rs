//! What an agent's owner has chosen about how it is served.

use crate::server::bindings::compat::AgentCompat;
use crate::server::cards::CardSettings;

/// The settings of one agent at the edge.
#[derive(Clone, Debug, Default)]
pub(crate) struct AgentSettings {
    pub(crate) card: CardSettings,
    pub(crate) compat: AgentCompat,
}
