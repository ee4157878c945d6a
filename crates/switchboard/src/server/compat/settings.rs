//! How an agent treats the accents of single systems: what its owner may choose, and what is remembered of their clients.

use std::sync::Arc;

use switchboard_core::dialect::Dialect;
use switchboard_core::dialect::compat::corvid::{DEPTH_MAX, TIMEOUT_MS_DEFAULT};

use super::cards::CardForm;
use super::interfaces::ProtocolBinding;
use super::seeds::rate::Rate;
use super::seeds::window::Window;

/// An agent's ways with the accents of single systems.
#[derive(Clone, Debug, Default)]
pub(crate) struct Accent {
    /// The dialect of those who name no version.
    pub(crate) claim: Option<Dialect>,
    /// The dialect of requests that nothing else decides.
    pub(crate) default: Option<Dialect>,
    pub(crate) card: Option<CardForm>,
    /// Whether the agent's owner has named a version; if not, some cards name ours.
    pub(crate) has_version: bool,
    /// What its card names, if not what the server's settings say.
    pub(crate) interfaces: Option<Vec<ProtocolBinding>>,
    pub(crate) selectools: SelectoolsOptions,
    /// Which tasks clients of selectools can still read.
    pub(crate) window: Arc<Window>,
    /// Whether it takes calls of corvid that name no agent.
    pub(crate) default_project: bool,
    pub(crate) corvid: CorvidOptions,
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
