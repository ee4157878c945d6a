//! The card of an agent as it is now. Most never change; that of an agent whose work is done elsewhere follows the other card.

use std::fmt;
use std::sync::{Arc, PoisonError, RwLock};

use switchboard_core::model::AgentCard;

/// A card that may be replaced while its agent is served.
pub struct CurrentCard(RwLock<Arc<AgentCard>>);

impl CurrentCard {
    /// The card as it is now.
    #[must_use]
    pub fn get(&self) -> Arc<AgentCard> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The next reader gets this one.
    pub fn replace(&self, card: AgentCard) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(card);
    }
}

impl From<AgentCard> for CurrentCard {
    fn from(card: AgentCard) -> Self {
        Self(RwLock::new(Arc::new(card)))
    }
}

impl fmt::Debug for CurrentCard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("CurrentCard").field(&self.get().name).finish()
    }
}
