//! What [`Client::call_text`] and [`Client::invoke`] share: an agent that is named by a URL and may have no card, and a task that is
//! looked at again and again.

use std::sync::Arc;
use std::time::Duration;

use switchboard_core::model::{Task, TaskId};
use tokio::time::{Instant, sleep_until, timeout_at};

use super::Client;
use super::credentials::Credentials;
use super::negotiation::Form;
use crate::agent_client::AgentClient;
use crate::call_error::CallError;

/// How the agent is called.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Asking {
    /// Whether the address that was named must be one that the policy allows.
    pub(super) strict_addresses: bool,
    /// In place of the client's.
    pub(super) credentials: Option<Credentials>,
}

impl Asking {
    /// The agent at this URL, and how it is called. Without a card it is called by the one that is made from the URL.
    pub(super) async fn agent(
        &self,
        client: &Client,
        url: &str,
        card: fn(&str) -> String,
    ) -> Result<(AgentClient, Form), CallError> {
        let client = if self.strict_addresses { client.strict_addresses() } else { client.clone() };
        let (agent, form) = client.agent_or(url, card).await?;
        Ok(match &self.credentials {
            Some(credentials) => (agent.with_credentials(credentials.clone()), form),
            None => (agent, form),
        })
    }
}

/// When a task is looked at.
pub(super) struct Looks {
    pub(super) first: Instant,
    pub(super) pause: Duration,
    /// How long one look may take.
    pub(super) look_max: Duration,
    pub(super) until: Instant,
}

impl Looks {
    /// Looks at a task until it has settled; none if the time was over before. `is_final` says which failures end the looking.
    pub(super) async fn settled(
        &self,
        agent: &AgentClient,
        id: &TaskId,
        is_final: fn(&CallError) -> bool,
    ) -> Result<Option<Arc<Task>>, CallError> {
        let agent = agent.clone().with_deadline(self.look_max);
        let mut next = self.first;
        while next < self.until {
            sleep_until(next).await;
            match timeout_at(self.until, agent.task(id)).await {
                Ok(Ok(task)) if task.state().is_settled() => return Ok(Some(task)),
                Ok(Err(error)) if is_final(&error) => return Err(error),
                // The task goes on whatever becomes of one look at it.
                Ok(Ok(_) | Err(_)) => {}
                Err(_) => return Ok(None),
            }
            next = (next + self.pause).max(Instant::now());
        }
        Ok(None)
    }
}
