//! What an agent's owner may choose about clients of the compat dialects, and what is remembered of them.

use std::sync::Arc;

use switchboard_core::dialect::Dialect;
use switchboard_core::dialect::compat::corvid::{DEPTH_MAX, TIMEOUT_MS_DEFAULT};

use super::rate::Rate;

pub(crate) use super::rate::Window;

/// How an agent treats clients of the compat dialects: what older systems speak instead of A2A 1.0 or 0.3. Set
/// by [`AgentBuilder::compat`](crate::AgentBuilder::compat).
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Compat {
    /// Answers those who name no version in this dialect, with its own checks, limits and texts, wherever the agent has a
    /// JSON-RPC endpoint. Without it, a dialect has these only on its own mount, `/dialects/{name}`. Only dialects that travel
    /// over JSON-RPC ([`Dialect::COMPAT_RPC`]) can claim an endpoint; others leave it as it is.
    pub claim: Option<Dialect>,
    /// The dialect of requests that nothing else decides, such as `tasks/get`.
    pub default: Option<Dialect>,
    /// Takes the calls of corvid that name no agent, at `/a2a/tasks/send`. If several agents do, the first one gets them.
    pub default_project: bool,
    /// How the agent behaves towards clients of selectools.
    pub selectools: SelectoolsOptions,
    /// How the agent behaves towards corvid-agents.
    pub corvid: CorvidOptions,
}

/// The settings of an agent, and what is remembered of its clients.
#[derive(Clone, Debug, Default)]
pub(crate) struct AgentCompat {
    pub(crate) settings: Compat,
    /// Which tasks clients of selectools can still read.
    pub(crate) window: Arc<Window>,
    /// How much clients of corvid have sent lately.
    pub(crate) rate: Arc<Rate>,
}

/// How an agent behaves towards clients of selectools.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct SelectoolsOptions {
    /// How many tasks its clients can read: the newest ones. Older ones are not found; the store keeps them all the same.
    pub tasks_max: usize,
    /// Size of a request body; a larger one is not a valid request.
    pub body_bytes_max: usize,
    /// What the card says in `url`. Empty, as in the original, unless set.
    pub card_url: String,
}

impl Default for SelectoolsOptions {
    fn default() -> Self {
        Self { tasks_max: 2_000, body_bytes_max: 1 << 20, card_url: String::new() }
    }
}

/// How an agent behaves towards corvid-agents.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct CorvidOptions {
    /// How many sends a minute each source may make.
    pub sends_per_min: usize,
    /// How often a call may have been passed on from agent to agent.
    pub depth_max: u32,
    /// How long a task may take whose caller names no limit, as far as the agent itself allows.
    pub timeout_ms: u32,
}

impl Default for CorvidOptions {
    fn default() -> Self {
        Self { sends_per_min: 5, depth_max: DEPTH_MAX, timeout_ms: TIMEOUT_MS_DEFAULT }
    }
}
