//! Passes messages on to the agents of a directory, to each by a relay of its own.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use switchboard::call::BoxFuture;
use switchboard::client::ClientBuilder;
use switchboard::{AgentError, LeftOver, Traits, Turn};

use super::Forward;
use crate::directory::{Directory, DirectoryEntry};
use crate::hops::Hop;
use crate::relay::{ChosenUpstream, Relay, RelayOptions, passed_on_to};

type MakeClient = dyn Fn(&DirectoryEntry) -> ClientBuilder + Send + Sync;

/// Passes messages on to the agents of a directory as a [relay](crate::relay) does: durable, chunk by chunk, and canceled with the
/// task.
///
/// ```
/// use switchboard::client::Client;
/// use switchboard::{AgentBuilder, Server, Skill, Turn};
/// use switchboard_hub::directory::{Directory, Sources};
/// use switchboard_hub::dispatch::{Dispatch, DirectoryCards, DirectoryRelays};
/// use switchboard_hub::relay::RelayOptions;
///
/// # tokio::runtime::Runtime::new().unwrap().block_on(async {
/// // An agent elsewhere.
/// let bakes = Skill::new("bake", "Baking", "Bakes bread and cakes");
/// let kitchen = AgentBuilder::from_fn("Kitchen", |turn: Turn| async move { Ok(turn.answer("Two loaves").await?) });
/// let elsewhere = Server::builder().agent(kitchen.skill(bakes)).build().unwrap();
/// let elsewhere = elsewhere.bind(([127, 0, 0, 1], 0).into()).await.unwrap();
/// let manifest = format!(r#"[{{"id": "kitchen", "path": "/", "url": "http://{}"}}]"#, elsewhere.local_addr());
/// tokio::spawn(elsewhere.run_until(std::future::pending(), std::time::Duration::ZERO));
///
/// let directory = Directory::open(Sources::new("/nowhere").manifest(&manifest)).await;
/// let cards = DirectoryCards::new(directory.clone(), Client::builder().build().unwrap());
/// let relays = DirectoryRelays::new(directory, |_| Client::builder(), RelayOptions::default());
/// let dispatch = AgentBuilder::new("Dispatch", Dispatch::new("dispatch", cards, relays));
/// let server = Server::builder().agent(dispatch).build().unwrap();
/// let answer = server.local("dispatch").unwrap().send_text("bread, and cakes").await.unwrap();
/// assert_eq!(answer.text(), "Two loaves");
/// # });
/// ```
pub struct DirectoryRelays {
    directory: Directory,
    client: Box<MakeClient>,
    options: RelayOptions,
    /// By URL. There are no more of them than agents that were once in the directory.
    relays: Mutex<HashMap<String, Arc<Relay>>>,
}

impl fmt::Debug for DirectoryRelays {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DirectoryRelays").field("directory", &self.directory).finish_non_exhaustive()
    }
}

impl DirectoryRelays {
    /// Relays to the agents of a directory. `client` says with which credentials, certificates and addresses an agent is called.
    pub fn new(
        directory: Directory,
        client: impl Fn(&DirectoryEntry) -> ClientBuilder + Send + Sync + 'static,
        options: RelayOptions,
    ) -> Self {
        Self { directory, client: Box::new(client), options, relays: Mutex::default() }
    }

    fn relay(&self, entry: &DirectoryEntry) -> Result<Arc<Relay>, AgentError> {
        let mut relays = self.relays.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = relays.get(&entry.url) {
            return Ok(known.clone());
        }
        let made = Arc::new(Relay::new(&entry.url, (self.client)(entry), self.options.clone())?);
        relays.insert(entry.url.clone(), made.clone());
        Ok(made)
    }
}

impl Forward for DirectoryRelays {
    fn forward<'a>(&'a self, turn: Turn, target: &'a str, hop: Hop) -> BoxFuture<'a, Result<(), AgentError>> {
        Box::pin(async move {
            let agents = self.directory.agents().await;
            let entry = agents.find(target).map_err(|error| AgentError::told(error.to_string()))?;
            let chosen = ChosenUpstream {
                target,
                metadata: hop.metadata(None),
                credentials: self.directory.credentials(turn.owner(), entry),
            };
            self.relay(entry)?.pass_on(&turn, chosen).await
        })
    }

    fn cancel_left_over<'a>(&'a self, left: &'a LeftOver) -> BoxFuture<'a, ()> {
        Box::pin(async move {
            let Some(target) = passed_on_to(left.checkpoint()) else { return };
            let agents = self.directory.agents().await;
            let Ok(entry) = agents.find(&target) else { return };
            if let Ok(relay) = self.relay(entry) {
                let credentials = self.directory.credentials(left.owner(), entry);
                relay.cancel_passed_on(left.checkpoint(), credentials.as_ref()).await;
            }
        })
    }

    fn traits(&self) -> Traits {
        self.options.traits()
    }
}
