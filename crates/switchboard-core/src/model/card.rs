//! The agent card: what an agent says about itself. Media types are called "modes", as in the spec.

use super::json::Json;
use super::security::{SecurityRequirement, SecurityScheme};

/// What an agent says about itself: what it can do, and how it is reached.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct AgentCard {
    /// The agent's name, for people.
    pub name: String,
    /// What the agent is for, for people and for agents that choose among agents.
    pub description: String,
    /// The agent's own version, not the protocol's.
    pub version: String,
    /// In order of preference.
    pub supported_interfaces: Vec<AgentInterface>,
    /// Who offers the agent.
    pub provider: Option<AgentProvider>,
    /// A page about the agent.
    pub documentation_url: Option<String>,
    /// A picture of the agent.
    pub icon_url: Option<String>,
    /// Which optional parts of the protocol it supports.
    pub capabilities: AgentCapabilities,
    /// Named schemes, in the order they are to be printed.
    pub security_schemes: Vec<(String, SecurityScheme)>,
    /// What a caller must present: any one of these. Empty is nothing.
    pub security_requirements: Vec<SecurityRequirement>,
    /// Media types it reads, unless a skill says otherwise.
    pub default_input_modes: Vec<String>,
    /// Media types it writes, unless a skill says otherwise.
    pub default_output_modes: Vec<String>,
    /// What it can do, one entry for each ability.
    pub skills: Vec<AgentSkill>,
    /// Signatures of the card, by which a reader can verify who wrote it.
    pub signatures: Vec<AgentCardSignature>,
}

/// One way to reach the agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AgentInterface {
    /// Where requests are sent. Absolute; for gRPC of 0.3 `host:port`.
    pub url: String,
    /// `JSONRPC`, `HTTP+JSON`, `GRPC` or a URI of another binding.
    pub protocol_binding: String,
    /// The protocol version spoken there, such as `1.0`.
    pub protocol_version: String,
    /// The tenant that requests to this interface name; none on a server without tenants.
    pub tenant: Option<String>,
}

/// Who offers an agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AgentProvider {
    /// The name of the organization.
    pub organization: String,
    /// The organization's own page.
    pub url: String,
}

/// Which optional parts of the protocol an agent supports. None is not said, which clients read as no.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct AgentCapabilities {
    /// Whether answers can be streamed (`SendStreamingMessage`, `SubscribeToTask`).
    pub streaming: Option<bool>,
    /// Whether updates are posted to webhooks.
    pub push_notifications: Option<bool>,
    /// Whether authenticated callers can ask for a card with more on it.
    pub extended_agent_card: Option<bool>,
    /// The extensions of the protocol that the agent knows.
    pub extensions: Vec<AgentExtension>,
}

/// An extension of the protocol that an agent knows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AgentExtension {
    /// Names the extension; clients activate it by this URI.
    pub uri: String,
    /// What the agent uses it for.
    pub description: Option<String>,
    /// Whether requests that do not activate it are refused.
    pub required: bool,
    /// Settings of the extension, as its own specification has them.
    pub params: Option<Json>,
}

/// One ability of an agent.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct AgentSkill {
    /// Unique within the card.
    pub id: String,
    /// The name, for people.
    pub name: String,
    /// What it does, for people and for agents that choose among agents.
    pub description: String,
    /// Keywords to find it by.
    pub tags: Vec<String>,
    /// Messages that make use of it.
    pub examples: Vec<String>,
    /// Media types it reads; empty is the card's default.
    pub input_modes: Vec<String>,
    /// Media types it writes; empty is the card's default.
    pub output_modes: Vec<String>,
    /// What a caller of this skill must present: any one of these. Empty is what the card says.
    pub security_requirements: Vec<SecurityRequirement>,
}

/// A signature of a card: a JSON Web Signature (RFC 7515) over it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AgentCardSignature {
    /// The protected header, in base64url.
    pub protected: String,
    /// The signature itself, in base64url.
    pub signature: String,
    /// The unprotected header, an object.
    pub header: Option<Json>,
}

impl AgentCard {
    /// Whether the agent or one of its skills reads this media type.
    #[must_use]
    pub fn reads(&self, media_type: &str) -> bool {
        let mut modes = self.default_input_modes.iter().chain(self.skills.iter().flat_map(|skill| &skill.input_modes));
        modes.any(|mode| modes_match(mode, media_type))
    }

    /// Whether the agent or one of its skills writes a media type that the client accepts. A client that names none
    /// accepts any.
    #[must_use]
    pub fn writes_any(&self, accepted: &[String]) -> bool {
        let mut modes =
            self.default_output_modes.iter().chain(self.skills.iter().flat_map(|skill| &skill.output_modes));
        accepted.is_empty() || modes.any(|mode| accepted.iter().any(|wanted| modes_match(mode, wanted)))
    }
}

/// Whether two media types can mean the same; either may be a range such as `text/*`. Parameters and case do not count.
/// `text` alone is what some older clients send for `text/plain`.
fn modes_match(one: &str, other: &str) -> bool {
    fn split(mode: &str) -> (&str, &str) {
        let bare = mode.split(';').next().unwrap_or_default().trim();
        bare.split_once('/').unwrap_or((bare, "*"))
    }
    let same = |a: &str, b: &str| a == "*" || b == "*" || a.eq_ignore_ascii_case(b);
    let ((kind, detail), (other_kind, other_detail)) = (split(one), split(other));
    same(kind, other_kind) && same(detail, other_detail)
}

#[cfg(test)]
mod tests {
    use super::modes_match;

    #[test]
    fn ranges_parameters_and_case_do_not_matter() {
        for (one, other, expected) in [
            ("text/plain", "text/plain", true),
            ("text/plain", "TEXT/Plain; charset=utf-8", true),
            ("text/*", "text/csv", true),
            ("*/*", "image/png", true),
            ("text/plain", "text", true),
            ("text/plain", "text/csv", false),
            ("application/json", "text/plain", false),
            ("text/plain", "", false),
        ] {
            assert_eq!(modes_match(one, other), expected, "{one} ~ {other}");
            assert_eq!(modes_match(other, one), expected, "{other} ~ {one}");
        }
    }
}
