//! The cards of the agents of a directory, fetched by the client and kept for as long as HTTP lets it. An agent whose card cannot be
//! had is known by what the directory says about it.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt as _;
use switchboard::call::BoxFuture;
use switchboard::client::Client;
use switchboard::model::AgentCard;
use tokio::sync::Mutex;
use tokio::time::{Instant, timeout};

use super::Targets;
use super::ranking::Candidate;
use crate::directory::{Directory, DirectoryEntry};

/// How long the cards of a directory are taken to be up to date.
const CARDS_PAUSE: Duration = Duration::from_secs(30);
/// How long one card may take. Agents that are down must not hold up those that are not.
const CARD_WAIT_MAX: Duration = Duration::from_secs(3);
/// Cards that are fetched at once.
const CARD_FETCHES_MAX: usize = 16;

/// The cards of a directory, for [`Dispatch`](super::Dispatch).
#[derive(Clone)]
pub struct DirectoryCards {
    directory: Directory,
    client: Client,
    known: Arc<Mutex<Known>>,
}

#[derive(Default)]
struct Known {
    at: Option<Instant>,
    entries: Vec<DirectoryEntry>,
    candidates: Vec<Candidate>,
    /// By URL. Those of agents that are down stay.
    cards: HashMap<String, Arc<AgentCard>>,
}

impl fmt::Debug for DirectoryCards {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DirectoryCards").field("directory", &self.directory).finish_non_exhaustive()
    }
}

impl DirectoryCards {
    /// Fetches cards with this client, whose credentials the agents must take if their cards are not public.
    #[must_use]
    pub fn new(directory: Directory, client: Client) -> Self {
        Self { directory, client, known: Arc::default() }
    }

    async fn fetch(&self, entry: &DirectoryEntry) -> Option<Arc<AgentCard>> {
        match timeout(CARD_WAIT_MAX, Box::pin(self.client.discover(&entry.url))).await {
            Ok(Ok(found)) => Some(found.card().clone()),
            Ok(Err(error)) => {
                tracing::debug!(agent = entry.id, %error, "a card of the directory cannot be fetched");
                None
            }
            Err(_) => {
                tracing::debug!(agent = entry.id, "a card of the directory did not arrive in time");
                None
            }
        }
    }
}

impl Targets for DirectoryCards {
    fn candidates(&self) -> BoxFuture<'_, Vec<Candidate>> {
        Box::pin(async move {
            let agents = self.directory.agents().await;
            // An agent that dispatches is not chosen: it would choose again.
            let entries: Vec<DirectoryEntry> =
                agents.entries().iter().filter(|entry| !entry.is_dispatch).cloned().collect();
            let mut known = self.known.lock().await;
            if known.entries == entries && known.at.is_some_and(|at| at.elapsed() < CARDS_PAUSE) {
                return known.candidates.clone();
            }
            let fetches = futures_util::stream::iter(entries.clone());
            let fetches = fetches.map(|entry| async move { (self.fetch(&entry).await, entry) });
            let fetched: Vec<_> = fetches.buffered(CARD_FETCHES_MAX).collect().await;
            let before = std::mem::take(&mut known.cards);
            let mut cards = HashMap::new();
            known.candidates = fetched
                .into_iter()
                .map(|(card, entry)| {
                    let card = card.or_else(|| before.get(&entry.url).cloned()).unwrap_or_else(|| described(&entry));
                    cards.insert(entry.url.clone(), card.clone());
                    Candidate { id: entry.id, card }
                })
                .collect();
            known.cards = cards;
            known.entries = entries;
            known.at = Some(Instant::now());
            known.candidates.clone()
        })
    }
}

/// What the directory says about an agent, as a card.
fn described(entry: &DirectoryEntry) -> Arc<AgentCard> {
    let (name, description) = (entry.name.clone(), entry.description.clone());
    Arc::new(AgentCard { name, description, ..AgentCard::default() })
}

#[cfg(test)]
#[path = "cards_tests.rs"]
mod tests;
