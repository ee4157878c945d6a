//! What an agent's owner may choose about its card and about clients of the compat dialects. An [`AgentBuilder`](crate::AgentBuilder)
//! collects it, and the server serves the agent by it.

use switchboard_core::dialect::Dialect;
use switchboard_core::dialect::compat::corvid::{DEPTH_MAX, TIMEOUT_MS_DEFAULT};

use crate::protocol_binding::ProtocolBinding;

/// What the public card holds for clients that do not name a version.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CardForm {
    /// The members of every version that is served, side by side.
    #[default]
    All,
    /// Those of 1.0 alone.
    V1_0,
    /// The card that a system of this compat dialect has. For a dialect of A2A itself it is that of [`CardForm::All`].
    Compat(Dialect),
}

/// What an agent's owner says about its card.
#[derive(Clone, Debug, Default)]
pub(crate) struct CardSettings {
    pub(crate) form: Option<CardForm>,
    /// Whether the agent's owner has named a version; if not, some cards name ours.
    pub(crate) has_version: bool,
    /// What its card names, if not what the server's settings say.
    pub(crate) interfaces: Option<Vec<ProtocolBinding>>,
}

/// The settings of one agent at the edge.
#[derive(Clone, Debug, Default)]
pub(crate) struct AgentSettings {
    pub(crate) card: CardSettings,
    pub(crate) compat: Compat,
}

impl AgentSettings {
    /// Those of a mounted endpoint, whose card says everything about it.
    pub(crate) fn of_mounted() -> Self {
        let card = CardSettings { has_version: true, ..CardSettings::default() };
        Self { card, compat: Compat::default() }
    }
}

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
