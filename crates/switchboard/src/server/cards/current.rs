//! The cards of an agent at one of its addresses, made again when the agent's card has changed.

use std::sync::{Arc, Mutex, PoisonError};

use switchboard_core::model::redact::redact_card;
use switchboard_core::model::{AgentCard, AgentInterface, Timestamp};
use switchboard_engine::ports::Clock;
use switchboard_engine::system::SystemClock;

use super::signing::SiteSigner;
use super::{CompatCards, ServedCards, Subject};
use crate::agent_settings::{CardForm, Compat};

/// What the cards of an agent say that its own card does not.
pub(crate) struct CardPlace {
    pub(crate) form: CardForm,
    pub(crate) interfaces: Vec<AgentInterface>,
    pub(crate) url: String,
    pub(crate) own_url: String,
    pub(crate) api_url: String,
    pub(crate) compat: Compat,
    pub(crate) compat_cards: CompatCards,
    pub(crate) has_version: bool,
    pub(crate) max_age_s: u32,
    pub(crate) signer: Option<SiteSigner>,
}

pub(crate) struct CurrentCards {
    place: CardPlace,
    /// The cards, and the one that they were made from.
    made: Mutex<(Arc<AgentCard>, Arc<ServedCards>)>,
}

impl CurrentCards {
    pub(crate) fn new(place: CardPlace, card: Arc<AgentCard>, since: Timestamp) -> Self {
        let made = place.make(&card, since);
        Self { place, made: Mutex::new((card, made)) }
    }

    /// The cards for the agent whose card is this one now.
    pub(crate) fn of(&self, card: Arc<AgentCard>) -> Arc<ServedCards> {
        let mut made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        if !Arc::ptr_eq(&made.0, &card) {
            let cards = self.place.make(&card, SystemClock.now());
            *made = (card, cards);
        }
        made.1.clone()
    }
}

impl CardPlace {
    fn make(&self, card: &Arc<AgentCard>, since: Timestamp) -> Arc<ServedCards> {
        let card = redact_card(card.clone());
        let subject = Subject {
            card: &card,
            interfaces: &self.interfaces,
            url: &self.url,
            own_url: &self.own_url,
            api_url: &self.api_url,
            compat: &self.compat,
            compat_cards: self.compat_cards,
            has_version: self.has_version,
        };
        Arc::new(ServedCards::new(self.form, &subject, since, self.max_age_s, self.signer.as_ref()))
    }
}
