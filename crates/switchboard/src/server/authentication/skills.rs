//! What single skills ask of their callers beyond what the server asks of everybody. It is checked when a message has been decoded
//! and before it is accepted, because only the message says which skill it is for.

use serde::Deserialize;
use switchboard_core::call::Request;
use switchboard_core::error::ProtocolError;
use switchboard_core::model::{AgentSkill, Json};

use super::Identity;
use super::schemes::{Requirement, SchemeSet, Schemes, check};

/// The requirements of the skills of one agent, each by the id of its skill.
#[derive(Clone, Debug, Default)]
pub(crate) struct SkillRules(Vec<(String, Vec<Requirement>)>);

/// The skill that the metadata of a message or of its request names, under the names that systems have for it.
#[derive(Default, Deserialize)]
struct Named {
    #[serde(default)]
    skill: Option<serde_json::Value>,
    #[serde(default, rename = "skillId")]
    skill_id: Option<serde_json::Value>,
}

impl SkillRules {
    /// # Errors
    /// When a skill asks for a scheme that the server does not have.
    pub(crate) fn new<'a>(schemes: &Schemes, skills: impl Iterator<Item = &'a AgentSkill>) -> Result<Self, String> {
        let mut rules = Vec::new();
        for skill in skills.filter(|skill| !skill.security_requirements.is_empty()) {
            let resolve = |declared| schemes.resolve(declared).map_err(|why| format!("skill {:?}: {why}", skill.id));
            let requirements = skill.security_requirements.iter().cloned().map(resolve).collect::<Result<_, _>>()?;
            rules.push((skill.id.clone(), requirements));
        }
        Ok(Self(rules))
    }

    /// Refuses a message for a skill that asks for more than its caller has proven. A message that names no skill is for the agent
    /// as a whole; one that names several must be allowed to use each of them.
    pub(crate) fn check(&self, identity: &Identity, proven: SchemeSet, request: &Request) -> Result<(), ProtocolError> {
        if self.0.is_empty() {
            return Ok(());
        }
        let (Request::SendMessage(send) | Request::SendStreamingMessage(send)) = request else { return Ok(()) };
        let metadata = [&send.metadata, &send.message.metadata];
        let named: Vec<Named> =
            metadata.into_iter().flatten().filter_map(|json| Json::deserialize(json).ok()).collect();
        let named =
            named.iter().flat_map(|named| [&named.skill, &named.skill_id]).flatten().filter_map(|id| id.as_str());
        for id in named {
            for (_, requirements) in self.0.iter().filter(|(skill, _)| skill == id) {
                check(requirements, identity, proven)?;
            }
        }
        Ok(())
    }
}
