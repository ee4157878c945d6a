//! The agents elsewhere that agents of this server call by name, and that dispatch chooses among: those of the workspace, and those whose
//! cards were accepted.

use std::path::Path;
use std::sync::Arc;

use switchboard::client::{Client, ClientBuilder};
use switchboard::outbound::AddressPolicy;
use switchboard::{Callees, SharedSecret};
use switchboard_hub::callees::DirectoryCallees;
use switchboard_hub::directory::{Directory, Sources, WorkspaceCaller};
use switchboard_hub::dispatch::{DirectoryCards, DirectoryRelays, ServerAgents};
use switchboard_hub::relay::RelayOptions;

use crate::config::{Environment, REMOTE_AGENTS_NAME, ServerSettings};

/// The directory of a server, and how its agents are called.
#[derive(Clone)]
pub(crate) struct Neighbours {
    pub(crate) directory: Directory,
    policy: AddressPolicy,
}

impl Neighbours {
    /// None for a server that has neither a workspace nor a data folder. Nothing is read yet.
    ///
    /// # Errors
    /// When the addresses that may be called are none.
    pub(crate) fn of(
        server: &ServerSettings,
        data: Option<&Path>,
        is_hosted: bool,
        environment: &Environment,
        secrets: Option<&SharedSecret>,
    ) -> Result<Option<Self>, String> {
        let sources = match workspace_sources(server, is_hosted, environment) {
            Some(sources) => sources,
            None if data.is_some() => Sources::without_workspace().hosted(is_hosted),
            None => return Ok(None),
        };
        let sources = match data {
            Some(data) => sources.remote_agents(data.join(REMOTE_AGENTS_NAME)),
            None => sources,
        };
        let policy = AddressPolicy::parse(&*server.outbound_allow)?;
        let secret = environment.raw("A2A_SECRET").and_then(|secret| secret.into_string().ok());
        let caller = (secret.is_some() || secrets.is_some()).then(|| {
            let caller = WorkspaceCaller::new(secret.unwrap_or_default().trim());
            let caller = match secrets {
                Some(secrets) => caller.with_orgs_of_owners(secrets),
                None => caller,
            };
            match &server.public_url.value {
                Some(url) => caller.with_issuer(url),
                None => caller,
            }
        });
        let directory = caller.into_iter().fold(Directory::unread(sources), Directory::with_workspace);
        Ok(Some(Self { directory, policy }))
    }

    fn client(&self) -> ClientBuilder {
        Client::builder().policy(self.policy.clone())
    }

    /// The agents that agents of this server find by name.
    ///
    /// # Errors
    /// When the client cannot be made.
    pub(crate) fn callees(&self) -> Result<Arc<dyn Callees>, String> {
        let client = self.client().build().map_err(|error| error.to_string())?;
        Ok(Arc::new(DirectoryCallees::new(self.directory.clone(), client)))
    }

    /// The agents of the server and those of the directory, for dispatch. `namespace` is what no other gateway has.
    ///
    /// # Errors
    /// When the client cannot be made.
    pub(crate) fn beside(&self, here: ServerAgents, namespace: String) -> Result<ServerAgents, String> {
        let client = self.client().build().map_err(|error| error.to_string())?;
        let cards = DirectoryCards::new(self.directory.clone(), client);
        let mut options = RelayOptions::default();
        options.namespace = namespace;
        let policy = self.policy.clone();
        let relays =
            DirectoryRelays::new(self.directory.clone(), move |_| Client::builder().policy(policy.clone()), options);
        Ok(here.with_directory(cards, relays))
    }
}

/// Where the agents of the workspace are written down, if there is one.
pub(crate) fn workspace_sources(
    server: &ServerSettings,
    is_hosted: bool,
    environment: &Environment,
) -> Option<Sources> {
    let folder = server.workspace.as_ref()?;
    let folder = std::path::absolute(folder).unwrap_or_else(|_| folder.clone());
    let text = |name: &str| environment.raw(name).and_then(|value| value.into_string().ok());
    Some(Sources::new(folder).environment(text).hosted(is_hosted))
}
