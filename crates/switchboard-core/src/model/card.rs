//! The agent card: what an agent says about itself.

use super::{Json, SecurityRequirement, SecurityScheme};

#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct AgentCard {
    pub name: String,
    pub description: String,
    /// The agent's own version, not the protocol's.
    pub version: String,
    /// In order of preference.
    pub supported_interfaces: Vec<AgentInterface>,
    pub provider: Option<AgentProvider>,
    pub documentation_url: Option<String>,
    pub icon_url: Option<String>,
    pub capabilities: AgentCapabilities,
    /// Named schemes, in the order they are to be printed.
    pub security_schemes: Vec<(String, SecurityScheme)>,
    pub security_requirements: Vec<SecurityRequirement>,
    pub default_input_modes: Vec<String>,
    pub default_output_modes: Vec<String>,
    pub skills: Vec<AgentSkill>,
    pub signatures: Vec<AgentCardSignature>,
}

/// One way to reach the agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AgentInterface {
    pub url: String,
    /// `JSONRPC`, `HTTP+JSON`, `GRPC` or a URI of another binding.
    pub protocol_binding: String,
    pub protocol_version: String,
    pub tenant: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AgentProvider {
    pub organization: String,
    pub url: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct AgentCapabilities {
    pub streaming: Option<bool>,
    pub push_notifications: Option<bool>,
    pub extended_agent_card: Option<bool>,
    pub extensions: Vec<AgentExtension>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AgentExtension {
    pub uri: String,
    pub description: Option<String>,
    pub required: bool,
    pub params: Option<Json>,
}

#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct AgentSkill {
    pub id: String,
    pub name: String,
    pub description: String,
    pub tags: Vec<String>,
    pub examples: Vec<String>,
    pub input_modes: Vec<String>,
    pub output_modes: Vec<String>,
    pub security_requirements: Vec<SecurityRequirement>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AgentCardSignature {
    pub protected: String,
    pub signature: String,
    pub header: Option<Json>,
}
