//! Dispatch: one agent in front of many. It chooses by their cards, says why, and passes the message on; what fits no agent it
//! answers itself.
//!
//! `ranking` chooses. What there is to choose from comes through [`Targets`] (`cards` has them for a directory), and
//! what passes a message on is a [`Forward`] (`relays` has them for a directory). `server_agents` is both, for the agents of a server.

mod cards;
mod ranking;
mod relays;
mod server_agents;

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use serde::Deserialize;
use serde_json::json;
use switchboard::call::BoxFuture;
use switchboard::{Agent, AgentError, Json, LeftOver, Traits, Turn};

pub use cards::DirectoryCards;
pub use ranking::{Candidate, CardIndex, Fit, Ranking};
pub use relays::DirectoryRelays;
pub use server_agents::ServerAgents;

use crate::hops::{Hop, Hops};

/// The member of a task's metadata that says which agent was chosen and why.
pub const DISPATCH_METADATA: &str = "switchboard.dispatch";

/// Agents in the answer to a message that fits none.
const AGENTS_LISTED_MAX: usize = 20;

/// The agents that there are to choose from.
pub trait Targets: Send + Sync + 'static {
    /// Their cards, as they are known now.
    fn candidates(&self) -> BoxFuture<'_, Vec<Candidate>>;

    /// Those for one turn, where the agents of its server are among them.
    fn candidates_for<'a>(&'a self, turn: &'a Turn) -> BoxFuture<'a, Vec<Candidate>> {
        let _ = turn;
        self.candidates()
    }
}

/// A list that does not change.
impl Targets for Vec<Candidate> {
    fn candidates(&self) -> BoxFuture<'_, Vec<Candidate>> {
        Box::pin(std::future::ready(self.clone()))
    }
}

/// Passes a message on to another agent and brings back what that one does with it.
pub trait Forward: Send + Sync + 'static {
    /// Works on the turn by having the agent `target` work on it: what that agent writes is written to the turn. `hop` is what
    /// the metadata of the request must say ([`Hop::metadata`]). After a crash it is called again for the same target.
    fn forward<'a>(&'a self, turn: Turn, target: &'a str, hop: Hop) -> BoxFuture<'a, Result<(), AgentError>>;

    /// Ends what a task has left at work elsewhere that was canceled while no run was at work on it.
    fn cancel_left_over<'a>(&'a self, left: &'a LeftOver) -> BoxFuture<'a, ()> {
        let _ = left;
        Box::pin(std::future::ready(()))
    }

    /// What the engine may assume about runs that are passed on.
    fn traits(&self) -> Traits {
        Traits::default()
    }
}

/// An agent that passes each message on to the agent whose card fits it best. The choice and its reason are in the log and in the
/// metadata of the task (`switchboard.dispatch`), and further messages of the task go to the same agent.
///
/// ```
/// use std::sync::Arc;
///
/// use switchboard::call::BoxFuture;
/// use switchboard::model::AgentCard;
/// use switchboard::{AgentBuilder, AgentError, Server, Turn};
/// use switchboard_hub::dispatch::{Candidate, Dispatch, Forward};
/// use switchboard_hub::hops::Hop;
///
/// /// Says where messages would go.
/// struct Say;
///
/// impl Forward for Say {
///     fn forward<'a>(&'a self, turn: Turn, target: &'a str, _: Hop) -> BoxFuture<'a, Result<(), AgentError>> {
///         Box::pin(async move { Ok(turn.answer(format!("This is for {target}")).await?) })
///     }
/// }
///
/// # tokio::runtime::Runtime::new().unwrap().block_on(async {
/// let card = AgentCard { name: "Kitchen".to_owned(), description: "Bakes bread and cakes".to_owned(), ..AgentCard::default() };
/// let targets = vec![Candidate { id: "kitchen".to_owned(), card: Arc::new(card) }];
/// let dispatch = AgentBuilder::new("Dispatch", Dispatch::new("dispatch", targets, Say));
/// let server = Server::builder().agent(dispatch).build().unwrap();
/// let task = server.local("dispatch").unwrap().send_text("Two loaves of bread, and cake").await.unwrap().into_task().unwrap();
/// assert_eq!(task.artifacts[0].text(), "This is for kitchen");
/// # });
/// ```
pub struct Dispatch<T, F> {
    own_id: String,
    targets: T,
    forward: F,
    /// The words of the cards that were read last.
    index: Mutex<Option<Arc<Indexed>>>,
}

struct Indexed {
    candidates: Vec<Candidate>,
    index: CardIndex,
}

impl<T: fmt::Debug, F> fmt::Debug for Dispatch<T, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Dispatch").field("own_id", &self.own_id).field("targets", &self.targets).finish_non_exhaustive()
    }
}

/// Where the messages of a task go, as its metadata says.
#[derive(Deserialize)]
struct Chosen {
    agent: Option<String>,
}

impl<T: Targets, F: Forward> Dispatch<T, F> {
    /// Dispatches as the agent `own_id`: that is its name in chains of calls.
    pub fn new(own_id: impl Into<String>, targets: T, forward: F) -> Self {
        Self { own_id: own_id.into(), targets, forward, index: Mutex::new(None) }
    }

    /// The index of the cards, made anew if one of them has changed.
    async fn indexed(&self, turn: &Turn) -> Arc<Indexed> {
        let candidates = self.targets.candidates_for(turn).await;
        let is_same = |known: &Indexed| {
            let is = |(one, other): (&Candidate, &Candidate)| one.id == other.id && Arc::ptr_eq(&one.card, &other.card);
            known.candidates.len() == candidates.len() && known.candidates.iter().zip(&candidates).all(is)
        };
        let lock = || self.index.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = lock().as_ref().filter(|known| is_same(known)) {
            return known.clone();
        }
        let made = Arc::new(Indexed { index: CardIndex::new(candidates.iter().cloned()), candidates });
        *lock() = Some(made.clone());
        made
    }

    /// The agent that the messages of this task go to: the one that was chosen before, or the one that fits best. Which one, and
    /// why, is recorded before anything is passed on.
    async fn choose(&self, turn: &Turn) -> Result<Option<String>, AgentError> {
        if let Some(chosen) = chosen_before(turn) {
            return Ok(chosen.agent);
        }
        let indexed = self.indexed(turn).await;
        let ranking = indexed.index.rank(&turn.text());
        let (task, reason) = (&turn.task().id, ranking.reason());
        match &ranking.choice {
            Some(choice) => {
                tracing::info!(%task, agent = choice.agent, score = choice.score, reason, "message dispatched");
            }
            None => tracing::info!(%task, reason, "message fits no agent"),
        }
        let of = |fit: &Fit| json!({"agent": fit.agent, "score": fit.score});
        let mut said = json!({
            "agent": ranking.choice.as_ref().map(|choice| &choice.agent),
            "reason": reason,
            "runnersUp": ranking.runners_up.iter().map(of).collect::<Vec<_>>(),
        });
        if let Some(choice) = &ranking.choice {
            said["score"] = json!(choice.score);
            said["skill"] = json!(choice.skill);
        }
        turn.working_with_metadata(Json::from_serialize(&json!({DISPATCH_METADATA: said}))?).await?;
        Ok(ranking.choice.map(|choice| choice.agent))
    }
}

/// What an earlier attempt or turn has chosen. No caller can write this member.
fn chosen_before(turn: &Turn) -> Option<Chosen> {
    let answer = turn.task().metadata.as_ref()?.only(&[DISPATCH_METADATA])?;
    let mut members: std::collections::HashMap<String, Chosen> = answer.deserialize().ok()?;
    members.remove(DISPATCH_METADATA)
}

impl<T: Targets, F: Forward> Agent for Dispatch<T, F> {
    async fn run(&self, turn: Turn) -> Result<(), AgentError> {
        let hops = Hops::read(turn.metadata());
        if let Err(error) = hops.arrive(&self.own_id) {
            tracing::warn!(task = %turn.task().id, %error, "message refused");
            return Ok(turn.reject(error.to_string()).await?);
        }
        let Some(target) = self.choose(&turn).await? else {
            let indexed = self.indexed(&turn).await;
            return Ok(turn.answer(nothing_fits(&indexed.candidates)).await?);
        };
        let hop = match hops.next(&self.own_id, &target) {
            Ok(hop) => hop,
            Err(error) => {
                tracing::warn!(task = %turn.task().id, %error, "message refused");
                return Ok(turn.reject(error.to_string()).await?);
            }
        };
        let task = turn.task();
        let hop = hop.thread(task.context_id.as_str()).parent_run(task.id.as_str());
        let hop = hop.parent_turn(&turn.number().to_string());
        let hop = hop.invocation(&format!("{}:{}", task.id, turn.number()));
        self.forward.forward(turn.clone(), &target, hop).await
    }

    async fn cancel_left_over(&self, left: LeftOver) {
        self.forward.cancel_left_over(&left).await;
    }

    fn traits(&self) -> Traits {
        self.forward.traits()
    }
}

/// What is answered to a message that fits no agent.
fn nothing_fits(candidates: &[Candidate]) -> String {
    let mut text = "No agent here fits this message.".to_owned();
    if candidates.is_empty() {
        return text;
    }
    text.push_str(" These are the agents:");
    for Candidate { id, card } in candidates.iter().take(AGENTS_LISTED_MAX) {
        let name = if card.name.is_empty() { id } else { &card.name };
        let about: String = card.description.chars().take(120).collect();
        text.push_str(&format!("\n- {name}{}{about}", if about.is_empty() { "" } else { ": " }));
    }
    match candidates.len().saturating_sub(AGENTS_LISTED_MAX) {
        0 => text,
        further => format!("{text}\nand {further} more"),
    }
}

#[cfg(test)]
mod tests;
