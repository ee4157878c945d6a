//! The agents of the server that dispatch is part of, and those of its directory: what there is to choose from, and what passes messages on to them.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use switchboard::call::BoxFuture;
use switchboard::{AgentError, LeftOver, Traits, Turn};

use super::cards::DirectoryCards;
use super::ranking::Candidate;
use super::relays::DirectoryRelays;
use super::{Forward, Targets};
use crate::hops::Hop;
use crate::relay::{ChosenUpstream, Relay, RelayOptions, cancel_passed_on_here, pass_on_here, passed_on_to};

/// The agents of a server, for a [`Dispatch`](super::Dispatch) that is one of them, and those of a directory. An agent of the server
/// comes before one of the directory with the same name. Relays of the server are passed messages at once, without a task of their
/// own.
///
/// ```
/// use switchboard::{AgentBuilder, Server, Skill, Turn};
/// use switchboard_hub::dispatch::{Dispatch, ServerAgents};
///
/// # tokio::runtime::Runtime::new().unwrap().block_on(async {
/// let bakes = Skill::new("bake", "Baking", "Bakes bread and cakes");
/// let kitchen = AgentBuilder::from_fn("Kitchen", |turn: Turn| async move { Ok(turn.answer("Two loaves").await?) });
/// let agents = ServerAgents::new();
/// let dispatch = AgentBuilder::new("Dispatch", Dispatch::new("dispatch", agents.clone(), agents));
/// let server = Server::builder().agent(dispatch).agent(kitchen.skill(bakes)).build().unwrap();
/// let answer = server.local("dispatch").unwrap().send_text("bread, and cakes").await.unwrap();
/// assert_eq!(answer.text(), "Two loaves");
/// # });
/// ```
#[derive(Clone, Default)]
pub struct ServerAgents {
    shared: Arc<Shared>,
    directory: Option<Arc<(DirectoryCards, DirectoryRelays)>>,
    only: Arc<HashSet<String>>,
}

#[derive(Default)]
struct Shared {
    /// The relays of the server, by the names of their agents.
    relays: Mutex<HashMap<String, Relay>>,
    /// Agents that are not chosen, because they would choose again.
    dispatchers: Mutex<HashSet<String>>,
}

impl fmt::Debug for ServerAgents {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServerAgents").field("only", &self.only).finish_non_exhaustive()
    }
}

impl ServerAgents {
    /// The agents of the server alone.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Those of a directory, too.
    #[must_use]
    pub fn with_directory(mut self, cards: DirectoryCards, relays: DirectoryRelays) -> Self {
        self.directory = Some(Arc::new((cards, relays)));
        self
    }

    /// Only these, by their names; none is all of them. Clones made before are not changed.
    #[must_use]
    pub fn only<N: AsRef<str>>(mut self, names: impl IntoIterator<Item = N>) -> Self {
        self.only = Arc::new(names.into_iter().map(|name| name.as_ref().to_lowercase()).collect());
        self
    }

    /// An agent of the server that is this relay. Clones know it, too.
    pub fn add_relay(&self, name: &str, relay: &Relay) {
        lock(&self.shared.relays).insert(name.to_owned(), relay.clone());
    }

    /// An agent of the server that dispatches itself, and is never chosen. Clones know it, too.
    pub fn add_dispatcher(&self, name: &str) {
        lock(&self.shared.dispatchers).insert(name.to_owned());
    }

    fn relay(&self, name: &str) -> Option<Relay> {
        lock(&self.shared.relays).get(name).cloned()
    }

    fn is_wanted(&self, name: &str) -> bool {
        self.only.is_empty() || self.only.contains(&name.to_lowercase())
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Targets for ServerAgents {
    fn candidates(&self) -> BoxFuture<'_, Vec<Candidate>> {
        Box::pin(async move {
            let mut found = match &self.directory {
                Some(directory) => directory.0.candidates().await,
                None => Vec::new(),
            };
            found.retain(|candidate| self.is_wanted(&candidate.id));
            found
        })
    }

    fn candidates_for<'a>(&'a self, turn: &'a Turn) -> BoxFuture<'a, Vec<Candidate>> {
        Box::pin(async move {
            let mut here = turn.agents_here();
            here.retain(|(name, _)| name != turn.agent() && !lock(&self.shared.dispatchers).contains(name.as_str()));
            let is_here = |id: &str| here.iter().any(|(name, _)| name.as_str().eq_ignore_ascii_case(id));
            let mut further = self.candidates().await;
            further.retain(|candidate| !is_here(&candidate.id));
            let own = here.into_iter().filter(|(name, _)| self.is_wanted(name.as_str()));
            let own = own.map(|(name, card)| Candidate { id: name.as_str().to_owned(), card });
            own.chain(further).collect()
        })
    }
}

impl Forward for ServerAgents {
    fn forward<'a>(&'a self, turn: Turn, target: &'a str, hop: Hop) -> BoxFuture<'a, Result<(), AgentError>> {
        Box::pin(async move {
            if let Some(relay) = self.relay(target) {
                let chosen = ChosenUpstream { target, metadata: hop.metadata(None), credentials: None };
                return relay.pass_on(&turn, chosen).await;
            }
            match turn.callee(target).await {
                Ok(callee) if callee.is_local => {
                    pass_on_here(&turn, &callee, RelayOptions::default(), hop.metadata(None)).await
                }
                other => match &self.directory {
                    Some(directory) => directory.1.forward(turn, target, hop).await,
                    None => Err(other.err().map_or_else(|| AgentError::told("The agent is gone"), Into::into)),
                },
            }
        })
    }

    fn cancel_left_over<'a>(&'a self, left: &'a LeftOver) -> BoxFuture<'a, ()> {
        Box::pin(async move {
            let Some(target) = passed_on_to(left.checkpoint()) else { return };
            if let Some(relay) = self.relay(&target) {
                return relay.cancel_passed_on(left.checkpoint(), None).await;
            }
            match left.callee(&target).await {
                Ok(callee) if callee.is_local => {
                    cancel_passed_on_here(left.owner(), &callee, left.checkpoint()).await;
                }
                _ => {
                    if let Some(directory) = &self.directory {
                        directory.1.cancel_left_over(left).await;
                    }
                }
            }
        })
    }

    fn traits(&self) -> Traits {
        RelayOptions::default().traits()
    }
}

#[cfg(test)]
#[path = "server_agents_tests.rs"]
mod tests;
