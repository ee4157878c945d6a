//! The agent card of 0.3.

use bytes::Bytes;

use crate::dialect::json::{Check, DecodeLimits};
use crate::dialect::protobuf::card::generated::o_auth_flows::Flow;
use crate::dialect::protobuf::card::generated::security_scheme::Scheme;
use crate::dialect::protobuf::card::{entries, generated as shared, read_schemes, schemes_of};
use crate::dialect::protobuf::{Holds, ListField, Lists, decode_answer, list, optional, write};
use crate::dialect::wire::{is_of_0_3, list_interfaces_of_0_3};
use crate::error::ProtocolError;
use crate::model::{AgentCapabilities, AgentCard, AgentInterface};

use super::generated as wire;

/// The lists of a card.
const CARD: Lists = &[
    ListField(wire::AgentCard::ADDITIONAL_INTERFACES, "additionalInterfaces", Holds::Many("entries", &[])),
    ListField(wire::AgentCard::CAPABILITIES, "capabilities", Holds::One(CAPABILITIES)),
    ListField(wire::AgentCard::SECURITY_SCHEMES, "securitySchemes", Holds::Many("entries", &[])),
    ListField(wire::AgentCard::SECURITY, "security", Holds::Many("entries", &[])),
    ListField(wire::AgentCard::DEFAULT_INPUT_MODES, "defaultInputModes", Holds::Texts),
    ListField(wire::AgentCard::DEFAULT_OUTPUT_MODES, "defaultOutputModes", Holds::Texts),
    ListField(wire::AgentCard::SKILLS, "skills", Holds::Many("entries", &[])),
    ListField(wire::AgentCard::SIGNATURES, "signatures", Holds::Many("entries", &[])),
];
const CAPABILITIES: Lists =
    &[ListField(wire::AgentCapabilities::EXTENSIONS, "extensions", Holds::Many("entries", &[]))];

/// Appends a card. Of its interfaces those of this family are written, the first as the preferred one. Its signatures are written
/// as they are: the caller must remove signatures that were made over another form of the card.
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
        let interfaces: Vec<_> = card.supported_interfaces.iter().filter(|interface| is_of_0_3(interface)).collect();
        let main = interfaces.first();
        let capabilities = wire::AgentCapabilities {
            streaming: card.capabilities.streaming == Some(true),
            push_notifications: card.capabilities.push_notifications == Some(true),
            extensions: card.capabilities.extensions.iter().map(shared::AgentExtension::of).collect(),
        };
        let mut security_schemes = schemes_of(&card.security_schemes);
        security_schemes.values_mut().for_each(leave_out_newer);
        Self {
            protocol_version: "0.3.0".to_owned(),
            name: card.name.clone(),
            description: card.description.clone(),
            url: main.map(|main| main.url.clone()).unwrap_or_default(),
            preferred_transport: main.map(|main| main.protocol_binding.clone()).unwrap_or_default(),
            // The preferred one is listed again: a client may look for its transport only here.
            additional_interfaces: interfaces.into_iter().map(wire::AgentInterface::of).collect(),
            provider: card.provider.as_ref().map(shared::AgentProvider::of),
            version: card.version.clone(),
            documentation_url: card.documentation_url.clone().unwrap_or_default(),
            capabilities: Some(capabilities),
            security_schemes,
            security: card.security_requirements.iter().map(shared::SecurityRequirement::of).collect(),
            default_input_modes: card.default_input_modes.clone(),
            default_output_modes: card.default_output_modes.clone(),
            skills: card.skills.iter().map(shared::AgentSkill::of).collect(),
            supports_authenticated_extended_card: card.capabilities.extended_agent_card == Some(true),
            signatures: card.signatures.iter().map(shared::AgentCardSignature::of).collect(),
            icon_url: card.icon_url.clone().unwrap_or_default(),
        }
    }

    fn read(self, check: &mut Check<'_>) -> AgentCard {
        let interfaces = self.read_interfaces();
        let capabilities = self.capabilities.unwrap_or_default();
        let extensions = format_args!("capabilities.extensions");
        AgentCard {
            name: self.name,
            description: self.description,
            version: optional(self.version).unwrap_or_else(|| "1.0.0".to_owned()),
            supported_interfaces: entries(
                check,
                format_args!("additionalInterfaces"),
                interfaces,
                |interface, _, _| interface,
            ),
            provider: self.provider.map(shared::AgentProvider::read),
            documentation_url: optional(self.documentation_url),
            icon_url: optional(self.icon_url),
            capabilities: AgentCapabilities {
                streaming: Some(capabilities.streaming),
                push_notifications: Some(capabilities.push_notifications),
                extended_agent_card: Some(self.supports_authenticated_extended_card),
                extensions: entries(check, extensions, capabilities.extensions, shared::AgentExtension::read),
            },
            security_schemes: read_schemes(check, self.security_schemes),
            security_requirements: self.security.into_iter().map(shared::SecurityRequirement::read).collect(),
            default_input_modes: check.lines(format_args!("defaultInputModes"), list(self.default_input_modes)),
            default_output_modes: check.lines(format_args!("defaultOutputModes"), list(self.default_output_modes)),
            skills: entries(check, format_args!("skills"), self.skills, shared::AgentSkill::read),
            signatures: entries(check, format_args!("signatures"), self.signatures, shared::AgentCardSignature::read),
        }
    }

    fn read_interfaces(&self) -> Vec<AgentInterface> {
        fn told<'a>(text: &'a str, default: &'a str) -> &'a str {
            if text.is_empty() { default } else { text }
        }
        let main = (!self.url.is_empty()).then(|| (self.url.as_str(), told(&self.preferred_transport, "JSONRPC")));
        let others = self.additional_interfaces.iter().map(|own| (own.url.as_str(), own.transport.as_str()));
        let mut interfaces = Vec::new();
        list_interfaces_of_0_3(told(&self.protocol_version, "0.3.0"), main.into_iter().chain(others), &mut interfaces);
        interfaces
    }
}

impl wire::AgentInterface {
    fn of(interface: &AgentInterface) -> Self {
        Self { url: interface.url.clone(), transport: interface.protocol_binding.clone() }
    }
}

/// 0.3 has neither the flow of devices nor a word for PKCE.
fn leave_out_newer(scheme: &mut shared::SecurityScheme) {
    if let Some(Scheme::Oauth2SecurityScheme(scheme)) = &mut scheme.scheme
        && let Some(flows) = &mut scheme.flows
    {
        match &mut flows.flow {
            Some(Flow::DeviceCode(_)) => flows.flow = None,
            Some(Flow::AuthorizationCode(flow)) => flow.pkce_required = false,
            Some(Flow::ClientCredentials(_) | Flow::Implicit(_) | Flow::Password(_)) | None => {}
        }
    }
}
