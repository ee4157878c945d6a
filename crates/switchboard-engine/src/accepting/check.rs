//! Checks that need no stored data: whether the agent supports the extensions, media types, push notifications and run
//! time that a message asks for.

use switchboard_core::call::{Caller, SendMessage};
use switchboard_core::error::ProtocolError;
use switchboard_core::model::{AgentCard, Vocabulary};

use crate::engine_state::{EngineState, Registered};

pub(crate) fn check(
    engine: &EngineState,
    agent: &Registered,
    caller: &Caller,
    send: &SendMessage,
) -> Result<(), ProtocolError> {
    let (card, words) = (&agent.card, &caller.dialect.rules().words);
    for extension in card.capabilities.extensions.iter().filter(|extension| extension.required) {
        if !caller.extensions.contains(&extension.uri) {
            let (uri, header) = (extension.uri.clone(), words.extensions);
            return Err(ProtocolError::ExtensionSupportRequired { uri, header: header.into() });
        }
    }
    if let Some(config) = &send.push_config {
        agent.require_push()?;
        let field = || format!("{}.url", words.push_config_of_send);
        engine.webhook.check(&config.url).map_err(|why| ProtocolError::invalid(field(), why))?;
    }
    if !caller.dialect.rules().asks_for_at_most {
        engine.check_asked_run_time(agent, send.metadata.as_ref())?;
    }
    if !caller.dialect.rules().tells_modes {
        return Ok(());
    }
    check_input(card, words, send)?;
    if agent.source.traits().strict_output_modes {
        check_output(card, &send.accepted_output_modes)?;
    }
    Ok(())
}

/// Only media types that a part names are checked, because most clients send plain text or JSON without naming one.
fn check_input(card: &AgentCard, words: &Vocabulary, send: &SendMessage) -> Result<(), ProtocolError> {
    for (index, part) in send.message.parts.iter().enumerate() {
        let Some(named) = part.media_type.as_deref().filter(|named| !card.reads(named)) else { continue };
        let modes = card.default_input_modes.join(", ");
        let field = format!("{}[{index}].{}", words.parts, words.media_type);
        let reason = format!("{field}: this agent does not read {named} (it reads {modes})");
        return Err(ProtocolError::ContentTypeNotSupported { reason });
    }
    Ok(())
}

/// Output modes are a preference (spec 3.2.2), and some clients name `application/json` whatever they read. So only an
/// agent that is declared strict refuses a client whose output modes it does not write.
fn check_output(card: &AgentCard, accepted: &[String]) -> Result<(), ProtocolError> {
    if card.writes_any(accepted) {
        return Ok(());
    }
    let (wanted, modes) = (accepted.join(", "), card.default_output_modes.join(", "));
    let reason = format!("configuration.acceptedOutputModes: this agent writes {modes}, none of {wanted}");
    Err(ProtocolError::ContentTypeNotSupported { reason })
}
