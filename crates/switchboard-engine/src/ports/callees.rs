//! The port through which agents of this server find the agents that they call.

use std::sync::Arc;

use switchboard_core::call::{BoxFuture, Endpoint, Owner};

/// Finds agents outside this server by name. The agents of the server itself need no port.
pub trait Callees: Send + Sync {
    /// The agent of this name, to be called for this owner. It is asked for again before each step of a call, so it may be somewhere
    /// else after a restart.
    fn find<'a>(&'a self, owner: &'a Owner, name: &'a str) -> BoxFuture<'a, Result<Callee, CalleeError>>;

    /// The names of some agents there are, for the answer to a name that is not known.
    fn names(&self) -> Vec<String>;
}

/// An agent that can be called.
#[derive(Clone)]
pub struct Callee {
    /// Its name in chains of calls: two names of one agent are one agent.
    pub id: String,
    /// What answers the calls.
    pub endpoint: Arc<dyn Endpoint>,
    /// Whether a message that is sent again with the same `Idempotency-Key` is accepted once.
    pub recognises_repeats: bool,
    /// Whether it is an agent of this server, so that its tasks and contexts stand beside those of the caller.
    pub is_local: bool,
}

/// Why there is no agent to call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CalleeError {
    /// No agent has this name.
    Unknown,
    /// There is one, and it cannot be called now.
    Unavailable(String),
}
