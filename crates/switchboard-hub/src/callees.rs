//! The agents of a directory, for agents that call others.

use std::fmt;

use switchboard::call::{BoxFuture, Owner};
use switchboard::client::Client;
use switchboard::{Callee, CalleeError, Callees, IDEMPOTENT_SENDS};

use crate::directory::Directory;

/// Lets the agents of a server call the agents of a directory with [`Turn::call`](switchboard::Turn::call). An agent of the server
/// itself comes before one of the directory with the same name.
///
/// ```
/// use std::sync::Arc;
///
/// use switchboard::client::Client;
/// use switchboard::{AgentBuilder, AgentError, Server, Turn};
/// use switchboard_hub::callees::DirectoryCallees;
/// use switchboard_hub::directory::{Directory, Sources};
///
/// async fn greet(turn: Turn) -> Result<(), AgentError> {
///     let translated = turn.call_and_wait("translator", turn.text()).await?;
///     turn.answer(format!("They say: {}", translated.text())).await?;
///     Ok(())
/// }
///
/// # tokio::runtime::Runtime::new().unwrap().block_on(async {
/// // An agent on another server.
/// let translator = AgentBuilder::from_fn("Translator", |turn: Turn| async move { Ok(turn.answer("Bom dia").await?) });
/// let elsewhere = Server::builder().agent(translator).build().unwrap().bind(([127, 0, 0, 1], 0).into()).await.unwrap();
/// let manifest = format!(r#"[{{"id": "translator", "path": "/", "url": "http://{}"}}]"#, elsewhere.local_addr());
/// tokio::spawn(elsewhere.run_until(std::future::pending(), std::time::Duration::ZERO));
///
/// let directory = Directory::open(Sources::new("/nowhere").manifest(&manifest)).await;
/// let callees = DirectoryCallees::new(directory, Client::builder().build().unwrap());
/// let concierge = AgentBuilder::from_fn("Concierge", greet);
/// let server = Server::builder().agent(concierge).callees(Arc::new(callees)).build().unwrap();
/// let answer = server.local("concierge").unwrap().send_text("Good morning").await.unwrap();
/// assert_eq!(answer.text(), "They say: Bom dia");
/// # });
/// ```
#[derive(Clone)]
pub struct DirectoryCallees {
    directory: Directory,
    client: Client,
}

impl fmt::Debug for DirectoryCallees {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DirectoryCallees").field("directory", &self.directory).finish_non_exhaustive()
    }
}

impl DirectoryCallees {
    /// Calls agents with this client. Its credentials are shown to agents outside the workspace.
    #[must_use]
    pub fn new(directory: Directory, client: Client) -> Self {
        Self { directory, client }
    }
}

impl Callees for DirectoryCallees {
    fn find<'a>(&'a self, owner: &'a Owner, name: &'a str) -> BoxFuture<'a, Result<Callee, CalleeError>> {
        Box::pin(async move {
            let agents = self.directory.agents().await;
            let entry = agents.find(name).map_err(|_| CalleeError::Unknown)?;
            let found = self.client.agent(&entry.url).await;
            let agent = found.map_err(|error| CalleeError::Unavailable(error.to_string()))?;
            let agent = match self.directory.credentials(owner, entry) {
                Some(credentials) => agent.with_credentials(credentials),
                None => agent,
            };
            let extensions = &agent.card().capabilities.extensions;
            let recognises_repeats = extensions.iter().any(|extension| extension.uri == IDEMPOTENT_SENDS);
            let (id, endpoint) = (entry.id.clone(), std::sync::Arc::new(agent));
            Ok(Callee { id, endpoint, recognises_repeats, is_local: false })
        })
    }

    fn names(&self) -> Vec<String> {
        self.directory.known().entries().iter().map(|entry| entry.name.clone()).collect()
    }
}
