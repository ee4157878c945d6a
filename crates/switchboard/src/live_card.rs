//! A card that changes while its agent is served.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use switchboard_core::model::AgentCard;
use switchboard_engine::CurrentCard;

/// The card of an agent, to be replaced while the agent is served: for an agent whose work is done elsewhere and whose card follows
/// the card there. The next client that asks gets the new one, with the addresses, the security and the signature of this
/// server. Clones are the same card.
///
/// ```
/// use switchboard::{AgentBuilder, LiveCard, Server, Turn};
///
/// # tokio::runtime::Runtime::new().unwrap().block_on(async {
/// let card = LiveCard::default();
/// let echo = AgentBuilder::from_fn("Echo", |turn: Turn| async move { Ok(turn.answer(turn.text()).await?) });
/// let server = Server::builder().agent(echo.live_card(&card)).build()?;
/// let agent = server.local("echo").unwrap();
/// assert_eq!(agent.card().description, "Echo, served by Switchboard");
///
/// card.change(|card| card.description = "Says what you said".to_owned());
/// assert_eq!(agent.card().description, "Says what you said");
/// # Ok::<(), switchboard::ServeError>(())
/// # }).unwrap();
/// ```
#[derive(Clone, Default)]
pub struct LiveCard(Arc<Mutex<Vec<Served>>>);

/// The card as one server has it.
struct Served {
    card: Arc<CurrentCard>,
    /// Adds what the server says about its callers.
    finish: Arc<dyn Fn(&mut AgentCard) + Send + Sync>,
}

impl fmt::Debug for LiveCard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LiveCard").finish_non_exhaustive()
    }
}

impl LiveCard {
    /// Changes the card, in every server that serves it. Before there is one, nothing happens. What a server says about its callers is
    /// put on the card afterwards, so that a change of that has no effect.
    pub fn change(&self, change: impl Fn(&mut AgentCard)) {
        for Served { card, finish } in self.0.lock().unwrap_or_else(PoisonError::into_inner).iter() {
            let before = card.get();
            let mut after = AgentCard::clone(&before);
            change(&mut after);
            finish(&mut after);
            if after != *before {
                card.replace(after);
            }
        }
    }

    /// From now on the card of a server follows.
    pub(crate) fn serve(&self, card: Arc<CurrentCard>, finish: Arc<dyn Fn(&mut AgentCard) + Send + Sync>) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(Served { card, finish });
    }
}
