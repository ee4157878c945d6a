//! GetExtendedAgentCard: the extended card, for authenticated callers.

use switchboard_core::call::{Caller, Reply};
use switchboard_core::error::ProtocolError;

use crate::engine_state::Registered;

pub(crate) fn get_extended_card(agent: &Registered, caller: &Caller) -> Result<Reply, ProtocolError> {
    if agent.card.capabilities.extended_agent_card != Some(true) {
        return Err(ProtocolError::unsupported("This agent has no extended card"));
    }
    // Spec 13.3: the extended card is for authenticated callers. That it exists is no secret, because the public card
    // says so.
    if !caller.authenticated && !agent.extended_card_for_anyone {
        return Err(ProtocolError::Unauthenticated { reason: "the extended card needs a credential".to_owned() });
    }
    let card = agent.extended_card.clone().ok_or(ProtocolError::ExtendedAgentCardNotConfigured)?;
    Ok(Reply::Card(card))
}
