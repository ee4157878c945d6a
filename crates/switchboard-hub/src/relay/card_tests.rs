//! What a relay shows of the card of its upstream, and what it leaves out.

use switchboard::IDEMPOTENT_SENDS;
use switchboard::model::{
    AgentCapabilities, AgentCard, AgentCardSignature, AgentExtension, AgentInterface, AgentSkill, SecurityRequirement,
    SecurityScheme,
};

use super::take_over;

fn extension(uri: &str, required: bool) -> AgentExtension {
    AgentExtension { uri: uri.to_owned(), description: None, required, params: None }
}

fn own() -> AgentCard {
    AgentCard {
        name: "relay".to_owned(),
        capabilities: AgentCapabilities {
            streaming: Some(true),
            push_notifications: Some(true),
            extended_agent_card: Some(false),
            extensions: vec![extension(IDEMPOTENT_SENDS, false)],
        },
        ..AgentCard::default()
    }
}

#[test]
fn what_the_upstream_says_is_taken_over_and_what_does_not_hold_here_is_not() {
    let asks = SecurityRequirement { schemes: vec![("theirs".to_owned(), Vec::new())] };
    let scheme = SecurityScheme::Http { description: None, scheme: "bearer".to_owned(), bearer_format: None };
    let interface = AgentInterface {
        url: "http://10.0.0.1/".to_owned(),
        protocol_binding: "JSONRPC".to_owned(),
        protocol_version: "0.3".to_owned(),
        tenant: None,
    };
    let signature = AgentCardSignature { protected: "e30".to_owned(), signature: "x".to_owned(), header: None };
    let skill = AgentSkill { id: "w".to_owned(), security_requirements: vec![asks.clone()], ..AgentSkill::default() };
    let upstream = AgentCard {
        name: "Weather".to_owned(),
        version: "7".to_owned(),
        supported_interfaces: vec![interface],
        capabilities: AgentCapabilities {
            streaming: Some(false),
            push_notifications: None,
            extended_agent_card: Some(true),
            extensions: vec![extension("https://example.com/e", true), extension(IDEMPOTENT_SENDS, true)],
        },
        security_schemes: vec![("theirs".to_owned(), scheme)],
        security_requirements: vec![asks],
        default_input_modes: vec!["text/plain".to_owned()],
        skills: vec![skill],
        signatures: vec![signature],
        ..AgentCard::default()
    };
    let mut card = own();
    // A second time, as when the upstream's card is read again: nothing is left of the first.
    for _ in 0..2 {
        take_over(&mut card, &upstream);
        assert_eq!((card.name.as_str(), card.version.as_str()), ("Weather", "7"));
        let can = &card.capabilities;
        assert_eq!(
            (can.streaming, can.push_notifications, can.extended_agent_card),
            (Some(true), Some(true), Some(false))
        );
        let extensions: Vec<_> = can.extensions.iter().map(|known| (known.uri.as_str(), known.required)).collect();
        assert_eq!(extensions, [(IDEMPOTENT_SENDS, false), ("https://example.com/e", true)]);
        assert!(card.supported_interfaces.is_empty() && card.signatures.is_empty());
        assert!(card.security_schemes.is_empty() && card.security_requirements.is_empty());
        assert!(card.skills[0].security_requirements.is_empty());
        assert_eq!(
            (card.default_input_modes[0].as_str(), card.default_output_modes[0].as_str()),
            ("text/plain", "*/*")
        );
    }
}
