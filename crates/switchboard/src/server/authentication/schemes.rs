//! The ways to prove who calls that a server takes, under the names that its cards have for them, and which of them are enough: any
//! one of several requirements, each of which is one scheme or several together.

use serde::Deserialize;
use switchboard_core::call::Request;
use switchboard_core::error::ProtocolError;
use switchboard_core::model::{AgentCard, AgentSkill, Json, SecurityRequirement, SecurityScheme};

use super::identity::Identity;

/// A set of schemes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct SchemeSet(u32);

impl SchemeSet {
    pub(crate) const NONE: Self = Self(0);
    /// What an application accepts counts as whatever scheme it declares.
    pub(crate) const ALL: Self = Self(u32::MAX);
    pub(crate) const BEARER: Self = Self(1);
    pub(crate) const BASIC: Self = Self(1 << 1);
    pub(crate) const API_KEY_HEADER: Self = Self(1 << 2);
    pub(crate) const API_KEY_QUERY: Self = Self(1 << 3);
    pub(crate) const API_KEY_COOKIE: Self = Self(1 << 4);
    pub(crate) const SHARED_SECRET: Self = Self(1 << 5);
    pub(crate) const CERTIFICATE: Self = Self(1 << 6);

    /// How many issuers a server can have.
    pub(crate) const ISSUERS_MAX: usize = 16;

    /// Tokens of the issuer at this place of the list.
    pub(crate) fn of_issuer(place: usize) -> Self {
        Self(if place < Self::ISSUERS_MAX { 1 << (8 + place) } else { 0 })
    }

    pub(crate) fn and(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    pub(crate) fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }
}

/// Schemes that must all be proven, and the scopes that the credential must have been issued for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Requirement {
    pub(crate) schemes: SchemeSet,
    /// The scheme that names the caller, where there are several: the one that was named first.
    pub(crate) first: SchemeSet,
    pub(crate) scopes: Vec<String>,
    /// As the card says it.
    pub(crate) declared: SecurityRequirement,
}

impl Requirement {
    pub(crate) fn has_scopes(&self, identity: &Identity) -> bool {
        self.scopes.iter().all(|scope| identity.scopes.contains(scope))
    }
}

/// Whether a caller meets one of several requirements. Too little was proven, or it was not issued for enough.
pub(crate) fn check(requirements: &[Requirement], identity: &Identity, proven: SchemeSet) -> Result<(), ProtocolError> {
    let mut proven_ones = requirements.iter().filter(|requirement| proven.contains(requirement.schemes)).peekable();
    if proven_ones.peek().is_none() && !requirements.is_empty() {
        let reason = "this skill asks for another credential; its card says which".to_owned();
        return Err(ProtocolError::Unauthenticated { reason });
    }
    if requirements.is_empty() || proven_ones.any(|requirement| requirement.has_scopes(identity)) {
        return Ok(());
    }
    Err(lacks_scope())
}

/// The refusal of a caller that is known and may not do this.
pub(crate) fn lacks_scope() -> ProtocolError {
    ProtocolError::PermissionDenied { reason: "your credential was not issued for a scope that is required".to_owned() }
}

/// The schemes of a server and what it requires of every caller.
#[derive(Clone, Debug, Default)]
pub(crate) struct Schemes {
    known: Vec<(String, SchemeSet, SecurityScheme)>,
    requirements: Vec<Requirement>,
}

impl Schemes {
    pub(crate) fn add(&mut self, name: &str, set: SchemeSet, declared: SecurityScheme) {
        self.known.push((name.to_owned(), set, declared));
    }

    /// What an application declares. Each is enough, and a caller that the application lets in has proven all of them.
    pub(crate) fn of_application(declared: Vec<(String, SecurityScheme)>) -> Self {
        let mut schemes = Self::default();
        for (name, declared) in declared {
            schemes.add(&name, SchemeSet::BEARER, declared);
        }
        let any_one = schemes.any_one().into_iter().filter_map(|declared| schemes.resolve(declared).ok()).collect();
        schemes.requirements = any_one;
        schemes
    }

    /// Whether one of the schemes has this name already.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.known.iter().any(|(known, _, _)| known == name)
    }

    /// What every caller must present; without any, one of the schemes is enough.
    ///
    /// # Errors
    /// When a requirement is empty or names a scheme that is not there.
    pub(crate) fn require(&mut self, requirements: Vec<SecurityRequirement>) -> Result<(), String> {
        let requirements = if requirements.is_empty() { self.any_one() } else { requirements };
        self.requirements =
            requirements.into_iter().map(|declared| self.resolve(declared)).collect::<Result<_, _>>()?;
        Ok(())
    }

    fn any_one(&self) -> Vec<SecurityRequirement> {
        let alone = |name: &String| SecurityRequirement { schemes: vec![(name.clone(), Vec::new())] };
        self.known.iter().map(|(name, _, _)| alone(name)).collect()
    }

    /// # Errors
    /// When it is empty, or names a scheme that this server does not have.
    pub(crate) fn resolve(&self, declared: SecurityRequirement) -> Result<Requirement, String> {
        let mut resolved =
            Requirement { schemes: SchemeSet::NONE, first: SchemeSet::NONE, scopes: Vec::new(), declared };
        for (name, scopes) in &resolved.declared.schemes {
            let Some((_, set, _)) = self.known.iter().find(|(known, _, _)| known == name) else {
                let known: Vec<&str> = self.known.iter().map(|(known, _, _)| known.as_str()).collect();
                let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
                return Err(format!("{name:?} is no security scheme of this server; it has {known}"));
            };
            if resolved.first == SchemeSet::NONE {
                resolved.first = *set;
            }
            resolved.schemes = resolved.schemes.and(*set);
            resolved.scopes.extend(scopes.iter().cloned());
        }
        match resolved.first {
            SchemeSet::NONE => Err("a security requirement without a scheme would let everybody in".to_owned()),
            _ => Ok(resolved),
        }
    }

    pub(crate) fn requirements(&self) -> &[Requirement] {
        &self.requirements
    }

    /// Has a card say what is enforced.
    pub(crate) fn declare(&self, card: &mut AgentCard) {
        if !self.known.is_empty() {
            card.security_schemes =
                self.known.iter().map(|(name, _, declared)| (name.clone(), declared.clone())).collect();
            card.security_requirements =
                self.requirements.iter().map(|requirement| requirement.declared.clone()).collect();
        }
    }

    /// Takes from a card what its skills ask for by names that mean nothing here.
    pub(crate) fn strip_skills(&self, card: &mut AgentCard) {
        for skill in &mut card.skills {
            skill.security_requirements.retain(|declared| self.resolve(declared.clone()).is_ok());
        }
    }
}

/// What the skills of one agent ask of their callers beyond what the server asks of everybody, each by the id of its skill. It is
/// checked when a message has been decoded and before it is accepted, because only the message says which skill it is for.
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
