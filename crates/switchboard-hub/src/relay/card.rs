//! The card of a relay: what the upstream says about itself, as far as it holds through this server. Pure.

use switchboard::IDEMPOTENT_SENDS;
use switchboard::model::{AgentCapabilities, AgentCard};

/// What a relay reads and writes as long as nothing else is known: anything.
pub(super) const ANY_MODE: &str = "*/*";

/// Puts what the upstream says about itself on the card of the relay. Addresses, security and signatures are this server's, and are not
/// taken over. Streaming and webhooks stay as they were: they hold whatever the upstream can do. The extended card of
/// the upstream is for its own callers.
pub(super) fn take_over(card: &mut AgentCard, upstream: &AgentCard) {
    let own = std::mem::take(&mut card.capabilities);
    let is_of_server = |uri: &str| uri == IDEMPOTENT_SENDS;
    let own_extensions = own.extensions.into_iter().filter(|extension| is_of_server(&extension.uri));
    let theirs = upstream.capabilities.extensions.iter().filter(|extension| !is_of_server(&extension.uri)).cloned();
    let capabilities = AgentCapabilities { extensions: own_extensions.chain(theirs).collect(), ..own };
    let mut skills = upstream.skills.clone();
    skills.iter_mut().for_each(|skill| skill.security_requirements.clear());
    let or = |said: &str, own: String| if said.trim().is_empty() { own } else { said.to_owned() };
    let modes = |said: &[String]| if said.is_empty() { vec![ANY_MODE.to_owned()] } else { said.to_vec() };
    *card = AgentCard {
        name: or(&upstream.name, std::mem::take(&mut card.name)),
        description: or(&upstream.description, std::mem::take(&mut card.description)),
        version: or(&upstream.version, std::mem::take(&mut card.version)),
        supported_interfaces: Vec::new(),
        capabilities,
        security_schemes: Vec::new(),
        security_requirements: Vec::new(),
        default_input_modes: modes(&upstream.default_input_modes),
        default_output_modes: modes(&upstream.default_output_modes),
        skills,
        signatures: Vec::new(),
        ..upstream.clone()
    };
}

#[cfg(test)]
#[path = "card_tests.rs"]
mod tests;
