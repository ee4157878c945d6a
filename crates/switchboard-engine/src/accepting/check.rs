//! Whether an agent can take a message at all: extensions, media types, push, the time it asks for. Nothing is looked up
//! for this.

use switchboard_core::call::{Caller, SendMessage};
use switchboard_core::dialect::{Vocabulary, asks_for_at_most, tells_modes, vocabulary};
use switchboard_core::error::ProtocolError;
use switchboard_core::model::AgentCard;

use crate::house::{House, Registered};

pub(crate) fn check(
    house: &House,
    agent: &Registered,
    caller: &Caller,
    send: &SendMessage,
) -> Result<(), ProtocolError> {
    let (card, words) = (&agent.card, vocabulary(caller.dialect));
    for extension in card.capabilities.extensions.iter().filter(|extension| extension.required) {
        if !caller.extensions.contains(&extension.uri) {
            let (uri, header) = (extension.uri.clone(), words.extensions);
            return Err(ProtocolError::ExtensionSupportRequired { uri, header });
        }
    }
    if let Some(config) = &send.push_config {
        agent.require_push()?;
        let field = || format!("{}.url", words.push_config_of_send);
        house.webhook.check(&config.url).map_err(|why| ProtocolError::invalid(field(), why))?;
    }
    if !asks_for_at_most(caller.dialect) {
        house.check_asked_run_time(agent, send.metadata.as_ref())?;
    }
    if !tells_modes(caller.dialect) {
        return Ok(());
    }
    check_input(card, words, send)?;
    check_output(card, &send.accepted_output_modes)
}

/// Only a media type that a part names is checked: plain text or JSON without one is what everybody sends.
fn check_input(card: &AgentCard, words: &Vocabulary, send: &SendMessage) -> Result<(), ProtocolError> {
    for (index, part) in send.message.parts.iter().enumerate() {
        let Some(named) = &part.media_type else { continue };
        let mut read = card.default_input_modes.iter().chain(card.skills.iter().flat_map(|skill| &skill.input_modes));
        if !read.any(|mode| modes_match(mode, named)) {
            let modes = card.default_input_modes.join(", ");
            let field = format!("{}[{index}].{}", words.parts, words.media_type);
            let reason = format!("{field}: this agent does not read {named} (it reads {modes})");
            return Err(ProtocolError::ContentTypeNotSupported { reason });
        }
    }
    Ok(())
}

fn check_output(card: &AgentCard, accepted: &[String]) -> Result<(), ProtocolError> {
    if accepted.is_empty() {
        return Ok(());
    }
    let mut written = card.default_output_modes.iter().chain(card.skills.iter().flat_map(|skill| &skill.output_modes));
    if written.any(|mode| accepted.iter().any(|wanted| modes_match(mode, wanted))) {
        return Ok(());
    }
    let (wanted, modes) = (accepted.join(", "), card.default_output_modes.join(", "));
    let reason = format!("configuration.acceptedOutputModes: this agent writes {modes}, none of {wanted}");
    Err(ProtocolError::ContentTypeNotSupported { reason })
}

/// Whether two media types can mean the same; either may be a range such as `text/*`. Parameters and case do not count.
/// `text` alone is what some older clients send for `text/plain`.
fn modes_match(one: &str, other: &str) -> bool {
    fn split(mode: &str) -> (&str, &str) {
        let bare = mode.split(';').next().unwrap_or_default().trim();
        bare.split_once('/').unwrap_or((bare, "*"))
    }
    let same = |a: &str, b: &str| a == "*" || b == "*" || a.eq_ignore_ascii_case(b);
    let ((kind, detail), (other_kind, other_detail)) = (split(one), split(other));
    same(kind, other_kind) && same(detail, other_detail)
}

#[cfg(test)]
#[path = "check_tests.rs"]
mod tests;
