//! The hop guard: how often a message may be passed on from agent to agent, and that it never comes back to an agent that has
//! had it. Pure: it reads the metadata of a request that came in and writes that of a request that goes out.
//!
//! The members are those of agent-native: `delegationDepth` is how many hops the message has made, `visitedApps` which agents have
//! had it, and the others say who asked for what. All of it is said by the caller, so it is good for stopping loops of
//! programs that mean well, and for nothing else: who calls is proved by the credential.
#![warn(missing_docs, missing_debug_implementations)]

use std::fmt;

use serde::Serialize;
use serde_json::{Map, Value};
use switchboard_core::error::ProtocolError;
use switchboard_core::model::Json;

/// How many hops a message may make.
pub const HOPS_MAX: u32 = 3;

/// How long the name of an agent, or an id in the metadata of a hop, may be.
pub const HOP_NAME_CHARS_MAX: usize = 200;

/// How many visited agents are kept: one more than there may be hops.
const VISITED_MAX: usize = 4;

/// What a request says about the hops before it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Hops {
    depth: u32,
    visited: Vec<String>,
    caller: Option<String>,
    invocation: Option<String>,
}

/// Why a message is not passed on. The text is for the client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HopError {
    /// The agent would call itself.
    SelfCall {
        /// The agent.
        agent: String,
    },
    /// The agent has had the message already, and waits for its answer.
    Cycle {
        /// The agent that would have it again.
        agent: String,
        /// The agents that have had it, in order.
        visited: Vec<String>,
    },
    /// The message has made as many hops as it may.
    TooManyHops {
        /// The agent that was to be called.
        agent: String,
    },
    /// A name that cannot be written into the metadata of a hop, so that a loop through this agent would not be seen.
    Unnameable {
        /// The name.
        agent: String,
    },
}

impl HopError {
    /// The name of the error, for logs and for programs.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::SelfCall { .. } => "SELF_CALL",
            Self::Cycle { .. } => "DELEGATION_CYCLE",
            Self::TooManyHops { .. } => "TOO_MANY_HOPS",
            Self::Unnameable { .. } => "AGENT_NAME_INVALID",
        }
    }
}

impl fmt::Display for HopError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = self.name();
        match self {
            Self::SelfCall { agent } => write!(f, "{name}: agent {agent:?} cannot call itself"),
            Self::Cycle { agent, visited } => {
                let way = visited.join(" > ");
                write!(f, "{name}: agent {agent:?} has had this message already ({way} > {agent})")
            }
            Self::TooManyHops { agent } => {
                write!(
                    f,
                    "{name}: agent {agent:?} is not called, because the message was passed on {HOPS_MAX} times already"
                )
            }
            Self::Unnameable { agent } => {
                let shown: String = agent.chars().take(64).collect();
                write!(
                    f,
                    "{name}: {shown:?} cannot be the name of an agent in a chain of calls; expected 1 to {HOP_NAME_CHARS_MAX} letters, \
                     digits, '.', '_' or '-', the first a letter or digit"
                )
            }
        }
    }
}

impl std::error::Error for HopError {}

impl From<HopError> for ProtocolError {
    fn from(error: HopError) -> Self {
        Self::unsupported(error.to_string())
    }
}

impl Hops {
    /// Reads the metadata of a request. Nothing in it is refused, and what is damaged never makes a message look younger: a depth
    /// that is not a number of hops counts as the most there may be, and the depth is at least the number of visited agents.
    #[must_use]
    pub fn read(metadata: Option<&Json>) -> Self {
        let members: Map<String, Value> = metadata.and_then(|json| json.deserialize().ok()).unwrap_or_default();
        let mut visited: Vec<String> = Vec::new();
        if let Some(Value::Array(names)) = members.get("visitedApps") {
            for name in names.iter().filter_map(|name| name_of(name, is_agent_letter)) {
                if visited.len() < VISITED_MAX && !has(&visited, &name) {
                    visited.push(name);
                }
            }
        }
        let of_way = u32::try_from(visited.len()).unwrap_or(HOPS_MAX).min(HOPS_MAX);
        let depth = match members.get("delegationDepth") {
            None => of_way,
            Some(depth) => {
                let said = depth.as_u64().and_then(|depth| u32::try_from(depth).ok());
                said.filter(|depth| *depth <= HOPS_MAX).unwrap_or(HOPS_MAX).max(of_way)
            }
        };
        let caller = members.get("callerApp").and_then(|name| name_of(name, is_agent_letter));
        let invocation = members.get("invocationId").and_then(|id| name_of(id, is_id_letter));
        Self { depth, visited, caller, invocation }
    }

    /// How many hops the message has made.
    #[must_use]
    pub fn depth(&self) -> u32 {
        self.depth
    }

    /// The agents that have had the message, in order.
    #[must_use]
    pub fn visited(&self) -> &[String] {
        &self.visited
    }

    /// The agent that passed the message on, as it says itself.
    #[must_use]
    pub fn caller(&self) -> Option<&str> {
        self.caller.as_deref()
    }

    /// What the agent before called this call, for logs.
    #[must_use]
    pub fn invocation(&self) -> Option<&str> {
        self.invocation.as_deref()
    }

    /// Checks a message that has come in: an agent that finds its own name among the visited ones is in a loop, which an agent
    /// in between did not stop.
    ///
    /// # Errors
    /// [`HopError::Cycle`].
    pub fn arrive(&self, own: &str) -> Result<(), HopError> {
        match has(&self.visited, own) {
            true => Err(HopError::Cycle { agent: own.to_owned(), visited: self.visited.clone() }),
            false => Ok(()),
        }
    }

    /// The metadata of a message that a relay passes on as `before`: with one hop more. A relay stands for the agent behind it, which may
    /// have the same name, so the relay is not among the visited agents.
    ///
    /// # Errors
    /// When the message has made [`HOPS_MAX`] hops.
    pub fn relayed(&self, relay: &str, before: Option<&Json>) -> Result<Json, HopError> {
        if self.depth >= HOPS_MAX {
            return Err(HopError::TooManyHops { agent: relay.to_owned() });
        }
        let mut members: Map<String, Value> = before.and_then(|json| json.deserialize().ok()).unwrap_or_default();
        members.insert("delegationDepth".to_owned(), (self.depth + 1).into());
        Ok(Json::from_trusted(Value::Object(members).to_string()))
    }

    /// The hop from the agent `own` to the agent `target`. Names are compared without regard to case, as they are looked up.
    ///
    /// # Errors
    /// When the agent would call itself or one that waits for it, or when the message has made [`HOPS_MAX`] hops.
    pub fn next(&self, own: &str, target: &str) -> Result<Hop, HopError> {
        for name in [own, target] {
            if !is_name(name, is_agent_letter) {
                return Err(HopError::Unnameable { agent: name.to_owned() });
            }
        }
        if own.eq_ignore_ascii_case(target) {
            return Err(HopError::SelfCall { agent: own.to_owned() });
        }
        if has(&self.visited, target) {
            return Err(HopError::Cycle { agent: target.to_owned(), visited: self.visited.clone() });
        }
        if self.depth >= HOPS_MAX {
            return Err(HopError::TooManyHops { agent: target.to_owned() });
        }
        let mut visited = self.visited.clone();
        if !has(&visited, own) {
            visited.push(own.to_owned());
        }
        Ok(Hop {
            caller_app: own.to_owned(),
            selected_receiver_app: target.to_owned(),
            delegation_depth: self.depth + 1,
            visited_apps: visited,
            ..Hop::default()
        })
    }
}

/// One hop: what the request to the next agent says about it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Hop {
    caller_app: String,
    selected_receiver_app: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    caller_thread_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    parent_run_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    parent_turn_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    invocation_id: Option<String>,
    delegation_depth: u32,
    visited_apps: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    caller_model: Option<String>,
}

/// The members of metadata that a hop owns: what an earlier agent said in them is not passed on.
const MEMBERS: [&str; 9] = [
    "callerApp",
    "selectedReceiverApp",
    "callerThreadId",
    "parentRunId",
    "parentTurnId",
    "invocationId",
    "delegationDepth",
    "visitedApps",
    "callerModel",
];

impl Hop {
    /// The conversation that the call belongs to (`callerThreadId`). Here as in the other ids, a text that is longer than
    /// [`HOP_NAME_CHARS_MAX`] or has other letters than those of ids is left out.
    #[must_use]
    pub fn thread(mut self, id: &str) -> Self {
        self.caller_thread_id = id_of(id);
        self
    }

    /// The task that the call belongs to (`parentRunId`).
    #[must_use]
    pub fn parent_run(mut self, id: &str) -> Self {
        self.parent_run_id = id_of(id);
        self
    }

    /// The message that the call belongs to (`parentTurnId`).
    #[must_use]
    pub fn parent_turn(mut self, id: &str) -> Self {
        self.parent_turn_id = id_of(id);
        self
    }

    /// Names this call (`invocationId`); the same in every attempt.
    #[must_use]
    pub fn invocation(mut self, id: &str) -> Self {
        self.invocation_id = id_of(id);
        self
    }

    /// The model that decided to call (`callerModel`).
    #[must_use]
    pub fn model(mut self, name: &str) -> Self {
        self.caller_model = id_of(name);
        self
    }

    /// How many hops the message has made with this one.
    #[must_use]
    pub fn depth(&self) -> u32 {
        self.delegation_depth
    }

    /// The metadata of the request to the next agent: what `before` says, with the members of the hop replaced. A `before` that is
    /// not an object counts as empty.
    #[must_use]
    pub fn metadata(&self, before: Option<&Json>) -> Json {
        let mut members: Map<String, Value> = before.and_then(|json| json.deserialize().ok()).unwrap_or_default();
        members.retain(|name, _| !MEMBERS.contains(&name.as_str()));
        if let Ok(Value::Object(own)) = serde_json::to_value(self) {
            members.extend(own);
        }
        Json::from_trusted(Value::Object(members).to_string())
    }
}

fn has(visited: &[String], name: &str) -> bool {
    visited.iter().any(|visited| visited.eq_ignore_ascii_case(name))
}

fn is_agent_letter(letter: char) -> bool {
    letter.is_ascii_alphanumeric() || matches!(letter, '.' | '_' | '-')
}

fn is_id_letter(letter: char) -> bool {
    is_agent_letter(letter) || letter == ':'
}

fn is_name(text: &str, is_letter: fn(char) -> bool) -> bool {
    text.starts_with(|first: char| first.is_ascii_alphanumeric())
        && text.len() <= HOP_NAME_CHARS_MAX
        && text.chars().all(is_letter)
}

/// Whether a text can name an agent in a chain of calls, and so in a directory of agents.
#[must_use]
pub fn is_agent_name(text: &str) -> bool {
    is_name(text, is_agent_letter)
}

fn name_of(value: &Value, is_letter: fn(char) -> bool) -> Option<String> {
    value.as_str().map(str::trim).filter(|text| is_name(text, is_letter)).map(str::to_owned)
}

fn id_of(text: &str) -> Option<String> {
    Some(text.trim()).filter(|text| is_name(text, is_id_letter)).map(str::to_owned)
}

#[cfg(test)]
#[path = "hops_tests.rs"]
mod tests;
