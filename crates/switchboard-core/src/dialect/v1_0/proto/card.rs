//! The agent card of 1.0.

use std::fmt::Arguments;

use bytes::Bytes;

use crate::dialect::json::{Check, DecodeLimits};
use crate::dialect::protobuf::card::{entries, generated as shared, read_schemes, schemes_of};
use crate::dialect::protobuf::{Holds, ListField, Lists, decode_answer, list, optional, write};
use crate::error::ProtocolError;
use crate::model::{AgentCapabilities, AgentCard, AgentInterface};

use super::generated as wire;

/// The lists of a card.
const CARD: Lists = &[
    ListField(wire::AgentCard::SUPPORTED_INTERFACES, "supportedInterfaces", Holds::Many("entries", &[])),
    ListField(wire::AgentCard::CAPABILITIES, "capabilities", Holds::One(CAPABILITIES)),
    ListField(wire::AgentCard::SECURITY_SCHEMES, "securitySchemes", Holds::Many("entries", &[])),
    ListField(wire::AgentCard::SECURITY_REQUIREMENTS, "securityRequirements", Holds::Many("entries", &[])),
    ListField(wire::AgentCard::DEFAULT_INPUT_MODES, "defaultInputModes", Holds::Texts),
    ListField(wire::AgentCard::DEFAULT_OUTPUT_MODES, "defaultOutputModes", Holds::Texts),
    ListField(wire::AgentCard::SKILLS, "skills", Holds::Many("entries", &[])),
    ListField(wire::AgentCard::SIGNATURES, "signatures", Holds::Many("entries", &[])),
];
const CAPABILITIES: Lists =
    &[ListField(wire::AgentCapabilities::EXTENSIONS, "extensions", Holds::Many("entries", &[]))];

/// Appends a card.
pub fn write_card(card: &AgentCard, out: &mut Vec<u8>) {
    write(&wire::AgentCard::of(card), out);
}

/// Reads a card. What it leaves out has a default: lists are empty, capabilities absent, its version is 1.0.0.
///
/// # Errors
/// [`ProtocolError::InvalidAgentResponse`] when the bytes are no card, else [`ProtocolError::InvalidParams`] naming the fields
/// at fault.
pub fn read_card(message: Bytes, limits: &DecodeLimits) -> Result<AgentCard, ProtocolError> {
    let mut check = Check::new(limits);
    let card = decode_answer::<wire::AgentCard>(message, CARD, limits)?.read(&mut check);
    check.finish(card)
}

impl wire::AgentCard {
    fn of(card: &AgentCard) -> Self {
        let capabilities = wire::AgentCapabilities {
            streaming: card.capabilities.streaming,
            push_notifications: card.capabilities.push_notifications,
            extensions: card.capabilities.extensions.iter().map(shared::AgentExtension::of).collect(),
            extended_agent_card: card.capabilities.extended_agent_card,
        };
        Self {
            name: card.name.clone(),
            description: card.description.clone(),
            supported_interfaces: card.supported_interfaces.iter().map(wire::AgentInterface::of).collect(),
            provider: card.provider.as_ref().map(shared::AgentProvider::of),
            version: card.version.clone(),
            documentation_url: card.documentation_url.clone(),
            capabilities: Some(capabilities),
            security_schemes: schemes_of(&card.security_schemes),
            security_requirements: card.security_requirements.iter().map(shared::SecurityRequirement::of).collect(),
            default_input_modes: card.default_input_modes.clone(),
            default_output_modes: card.default_output_modes.clone(),
            skills: card.skills.iter().map(shared::AgentSkill::of).collect(),
            signatures: card.signatures.iter().map(shared::AgentCardSignature::of).collect(),
            icon_url: card.icon_url.clone(),
        }
    }

    fn read(self, check: &mut Check<'_>) -> AgentCard {
        let interfaces = format_args!("supportedInterfaces");
        let capabilities = self.capabilities.unwrap_or_default();
        let extensions = format_args!("capabilities.extensions");
        AgentCard {
            name: self.name,
            description: self.description,
            version: optional(self.version).unwrap_or_else(|| "1.0.0".to_owned()),
            supported_interfaces: entries(check, interfaces, self.supported_interfaces, wire::AgentInterface::read),
            provider: self.provider.map(shared::AgentProvider::read),
            documentation_url: self.documentation_url,
            icon_url: self.icon_url,
            capabilities: AgentCapabilities {
                streaming: capabilities.streaming,
                push_notifications: capabilities.push_notifications,
                extended_agent_card: capabilities.extended_agent_card,
                extensions: entries(check, extensions, capabilities.extensions, shared::AgentExtension::read),
            },
            security_schemes: read_schemes(check, self.security_schemes),
            security_requirements: self
                .security_requirements
                .into_iter()
                .map(shared::SecurityRequirement::read)
                .collect(),
            default_input_modes: check.lines(format_args!("defaultInputModes"), list(self.default_input_modes)),
            default_output_modes: check.lines(format_args!("defaultOutputModes"), list(self.default_output_modes)),
            skills: entries(check, format_args!("skills"), self.skills, shared::AgentSkill::read),
            signatures: entries(check, format_args!("signatures"), self.signatures, shared::AgentCardSignature::read),
        }
    }
}

impl wire::AgentInterface {
    fn of(interface: &AgentInterface) -> Self {
        Self {
            url: interface.url.clone(),
            protocol_binding: interface.protocol_binding.clone(),
            tenant: interface.tenant.clone().unwrap_or_default(),
            protocol_version: interface.protocol_version.clone(),
        }
    }

    fn read(self, check: &mut Check<'_>, at: Arguments<'_>) -> AgentInterface {
        if self.url.is_empty() {
            check.violation(format_args!("{at}.url"), "is required");
        }
        AgentInterface {
            url: self.url,
            protocol_binding: self.protocol_binding,
            protocol_version: self.protocol_version,
            tenant: optional(self.tenant),
        }
    }
}
