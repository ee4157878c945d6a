//! Agent cards: of 1.0, of 0.3 (which readers of 0.2 understand as well), and cards that are both at once.
//!
//! Required members are always written, even empty; optional ones when they are set; everything else when it is not its
//! default. In 1.0 that is also the form a signature is made over. Cards are read generously: they come from other
//! servers, and what they leave out has a default.

use serde::{Deserialize, Serialize};

use crate::dialect::json::{Check, DecodeLimits, List, NamedMembers, Obj, Raw, Text, append, read_body};
use crate::error::ProtocolError;
use crate::model::{
    AgentCapabilities, AgentCard, AgentCardSignature, AgentExtension, AgentInterface, AgentProvider, AgentSkill,
};

use super::message::texts_of;
use super::security::{
    self, Authentication, Requirement, Scheme, requirements_of, schemes_of, schemes_of_0_3, security_of,
};

#[derive(Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
struct CardOf1_0<'a> {
    #[serde(borrow)]
    name: Option<Text<'a>>,
    #[serde(borrow)]
    description: Option<Text<'a>>,
    #[serde(borrow)]
    supported_interfaces: Option<List<Obj<Interface<'a>>>>,
    #[serde(borrow)]
    provider: Option<Obj<ProviderOf1_0<'a>>>,
    #[serde(borrow)]
    version: Option<Text<'a>>,
    #[serde(borrow)]
    documentation_url: Option<Text<'a>>,
    #[serde(borrow)]
    capabilities: Option<Obj<Capabilities<'a>>>,
    #[serde(borrow)]
    security_schemes: Option<NamedMembers<'a, Obj<Scheme<'a>>>>,
    #[serde(borrow)]
    security_requirements: Option<List<Obj<Requirement<'a>>>>,
    #[serde(borrow)]
    default_input_modes: Option<List<Text<'a>>>,
    #[serde(borrow)]
    default_output_modes: Option<List<Text<'a>>>,
    #[serde(borrow)]
    skills: Option<List<Obj<Skill<'a>>>>,
    #[serde(borrow)]
    signatures: Option<List<Obj<Signature<'a>>>>,
    #[serde(borrow)]
    icon_url: Option<Text<'a>>,
}

#[derive(Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
struct CardOf0_3<'a> {
    #[serde(borrow)]
    protocol_version: Option<Text<'a>>,
    #[serde(borrow)]
    name: Option<Text<'a>>,
    #[serde(borrow)]
    description: Option<Text<'a>>,
    #[serde(borrow)]
    url: Option<Text<'a>>,
    #[serde(borrow)]
    preferred_transport: Option<Text<'a>>,
    #[serde(borrow)]
    additional_interfaces: Option<List<Obj<Transport<'a>>>>,
    #[serde(borrow)]
    icon_url: Option<Text<'a>>,
    #[serde(borrow)]
    provider: Option<Obj<ProviderOf0_3<'a>>>,
    #[serde(borrow)]
    version: Option<Text<'a>>,
    #[serde(borrow)]
    documentation_url: Option<Text<'a>>,
    #[serde(borrow)]
    capabilities: Option<Obj<Capabilities<'a>>>,
    #[serde(borrow)]
    security_schemes: Option<NamedMembers<'a, Obj<Scheme<'a>>>>,
    /// A bare list of schemes: the text of 0.2, and what was built after it, reads it.
    #[serde(borrow)]
    authentication: Option<Obj<Authentication<'a>>>,
    #[serde(borrow)]
    security: Option<List<NamedMembers<'a, List<Text<'a>>>>>,
    #[serde(borrow)]
    default_input_modes: Option<List<Text<'a>>>,
    #[serde(borrow)]
    default_output_modes: Option<List<Text<'a>>>,
    #[serde(borrow)]
    skills: Option<List<Obj<Skill<'a>>>>,
    supports_authenticated_extended_card: Option<bool>,
}

#[derive(Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
struct Interface<'a> {
    #[serde(borrow)]
    url: Option<Text<'a>>,
    #[serde(borrow)]
    protocol_binding: Option<Text<'a>>,
    #[serde(borrow)]
    tenant: Option<Text<'a>>,
    #[serde(borrow)]
    protocol_version: Option<Text<'a>>,
}

/// An interface of 0.3.
#[derive(Deserialize, Serialize)]
struct Transport<'a> {
    #[serde(borrow)]
    url: Option<Text<'a>>,
    #[serde(borrow)]
    transport: Option<Text<'a>>,
}

#[derive(Deserialize, Serialize)]
struct ProviderOf1_0<'a> {
    #[serde(borrow)]
    url: Option<Text<'a>>,
    #[serde(borrow)]
    organization: Option<Text<'a>>,
}

#[derive(Deserialize, Serialize)]
struct ProviderOf0_3<'a> {
    #[serde(borrow)]
    organization: Option<Text<'a>>,
    #[serde(borrow)]
    url: Option<Text<'a>>,
}

/// What an agent can do: 1.0 has a word for the extended card, 0.3 for the history of states.
#[derive(Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
struct Capabilities<'a> {
    streaming: Option<bool>,
    push_notifications: Option<bool>,
    state_transition_history: Option<bool>,
    #[serde(borrow)]
    extensions: Option<List<Obj<Extension<'a>>>>,
    extended_agent_card: Option<bool>,
}

#[derive(Deserialize, Serialize)]
struct Extension<'a> {
    #[serde(borrow)]
    uri: Option<Text<'a>>,
    #[serde(borrow)]
    description: Option<Text<'a>>,
    required: Option<bool>,
    #[serde(borrow)]
    params: Option<Raw<'a>>,
}

#[derive(Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
struct Skill<'a> {
    #[serde(borrow)]
    id: Option<Text<'a>>,
    #[serde(borrow)]
    name: Option<Text<'a>>,
    #[serde(borrow)]
    description: Option<Text<'a>>,
    #[serde(borrow)]
    tags: Option<List<Text<'a>>>,
    #[serde(borrow)]
    examples: Option<List<Text<'a>>>,
    #[serde(borrow)]
    input_modes: Option<List<Text<'a>>>,
    #[serde(borrow)]
    output_modes: Option<List<Text<'a>>>,
    /// In 1.0.
    #[serde(borrow)]
    security_requirements: Option<List<Obj<Requirement<'a>>>>,
    /// In 0.3.
    #[serde(borrow)]
    security: Option<List<NamedMembers<'a, List<Text<'a>>>>>,
}

#[derive(Deserialize, Serialize)]
struct Signature<'a> {
    #[serde(borrow)]
    protected: Option<Text<'a>>,
    #[serde(borrow)]
    signature: Option<Text<'a>>,
    #[serde(borrow)]
    header: Option<Raw<'a>>,
}

fn text(text: &str) -> Option<Text<'_>> {
    Some(Text::from(text))
}

fn list(texts: &[String]) -> Option<List<Text<'_>>> {
    Some(texts.iter().map(|text| Text::from(text.as_str())).collect())
}

fn list_if_any(texts: &[String]) -> Option<List<Text<'_>>> {
    texts_of(texts.iter().map(String::as_str))
}

/// Whether an interface is of the family of 0.3.
pub(in crate::dialect) fn is_of_0_3(interface: &AgentInterface) -> bool {
    ["0.3", "0.2"].iter().any(|version| interface.protocol_version.starts_with(version))
}

/// Writes a card of 1.0.
pub fn write_card_1_0(card: &AgentCard, out: &mut Vec<u8>) {
    let card = CardOf1_0::of(card);
    append(out, &card).expect("every key of a card is a text");
}

/// Writes a card of 0.3. Of its interfaces those of this family are written, the first as the preferred one.
pub fn write_card_0_3(card: &AgentCard, out: &mut Vec<u8>) {
    let card = CardOf0_3::of(card);
    append(out, &card).expect("every key of a card is a text");
}

impl<'a> CardOf1_0<'a> {
    fn of(card: &'a AgentCard) -> Self {
        let capabilities = &card.capabilities;
        Self {
            name: text(&card.name),
            description: text(&card.description),
            supported_interfaces: Some(card.supported_interfaces.iter().map(|own| Obj(Interface::of(own))).collect()),
            provider: card
                .provider
                .as_ref()
                .map(|own| Obj(ProviderOf1_0 { url: text(&own.url), organization: text(&own.organization) })),
            version: text(&card.version),
            documentation_url: card.documentation_url.as_deref().map(Text::from),
            capabilities: Some(Obj(Capabilities {
                streaming: capabilities.streaming,
                push_notifications: capabilities.push_notifications,
                state_transition_history: None,
                extensions: extensions_of(capabilities),
                extended_agent_card: capabilities.extended_agent_card,
            })),
            security_schemes: schemes_of(&card.security_schemes),
            security_requirements: requirements_of(&card.security_requirements),
            default_input_modes: list(&card.default_input_modes),
            default_output_modes: list(&card.default_output_modes),
            skills: Some(
                card.skills
                    .iter()
                    .map(|skill| {
                        let security_requirements = requirements_of(&skill.security_requirements);
                        Obj(Skill { security_requirements, ..Skill::of(skill) })
                    })
                    .collect(),
            ),
            signatures: (!card.signatures.is_empty())
                .then(|| card.signatures.iter().map(|own| Obj(Signature::of(own))).collect()),
            icon_url: card.icon_url.as_deref().map(Text::from),
        }
    }
}

impl<'a> CardOf0_3<'a> {
    fn of(card: &'a AgentCard) -> Self {
        let capabilities = &card.capabilities;
        let interfaces: Vec<_> = card.supported_interfaces.iter().filter(|interface| is_of_0_3(interface)).collect();
        let main = interfaces.first();
        Self {
            protocol_version: text("0.3.0"),
            name: text(&card.name),
            description: text(&card.description),
            url: main.map(|main| Text::from(main.url.as_str())),
            preferred_transport: main.map(|main| Text::from(main.protocol_binding.as_str())),
            // The preferred one is listed again: a client may look for its transport only here.
            additional_interfaces: main.map(|_| {
                let of = |own: &&'a AgentInterface| Transport {
                    url: text(&own.url),
                    transport: text(&own.protocol_binding),
                };
                interfaces.iter().map(|own| Obj(of(own))).collect()
            }),
            icon_url: card.icon_url.as_deref().map(Text::from),
            provider: card
                .provider
                .as_ref()
                .map(|own| Obj(ProviderOf0_3 { organization: text(&own.organization), url: text(&own.url) })),
            version: text(&card.version),
            documentation_url: card.documentation_url.as_deref().map(Text::from),
            // All three are always there: what is left out would be read as false anyway.
            capabilities: Some(Obj(Capabilities {
                streaming: Some(capabilities.streaming == Some(true)),
                push_notifications: Some(capabilities.push_notifications == Some(true)),
                state_transition_history: Some(false),
                extensions: extensions_of(capabilities),
                extended_agent_card: None,
            })),
            security_schemes: schemes_of_0_3(&card.security_schemes),
            authentication: Authentication::of(&card.security_schemes).map(Obj),
            security: security_of(&card.security_requirements),
            default_input_modes: list(&card.default_input_modes),
            default_output_modes: list(&card.default_output_modes),
            skills: Some(
                card.skills
                    .iter()
                    .map(|skill| Obj(Skill { security: security_of(&skill.security_requirements), ..Skill::of(skill) }))
                    .collect(),
            ),
            supports_authenticated_extended_card: Some(capabilities.extended_agent_card == Some(true)),
        }
    }
}

impl<'a> Interface<'a> {
    fn of(own: &'a AgentInterface) -> Self {
        Self {
            url: text(&own.url),
            protocol_binding: text(&own.protocol_binding),
            tenant: own.tenant.as_deref().map(Text::from),
            protocol_version: text(&own.protocol_version),
        }
    }
}

impl<'a> Skill<'a> {
    fn of(skill: &'a AgentSkill) -> Self {
        Self {
            id: text(&skill.id),
            name: text(&skill.name),
            description: text(&skill.description),
            tags: list(&skill.tags),
            examples: list_if_any(&skill.examples),
            input_modes: list_if_any(&skill.input_modes),
            output_modes: list_if_any(&skill.output_modes),
            security_requirements: None,
            security: None,
        }
    }
}

impl<'a> Signature<'a> {
    fn of(own: &'a AgentCardSignature) -> Self {
        let header = own.header.as_ref().map(Raw::from);
        Self { protected: text(&own.protected), signature: text(&own.signature), header }
    }
}

fn extensions_of(capabilities: &AgentCapabilities) -> Option<List<Obj<Extension<'_>>>> {
    (!capabilities.extensions.is_empty()).then(|| {
        let extensions = capabilities.extensions.iter();
        extensions
            .map(|own| {
                Obj(Extension {
                    uri: text(&own.uri),
                    description: own.description.as_deref().map(Text::from),
                    required: own.required.then_some(true),
                    params: own.params.as_ref().map(Raw::from),
                })
            })
            .collect()
    })
}

/// Reads a card of any version, or of several at once. What it leaves out has a default: lists are empty, capabilities absent,
/// its version is 1.0.0. Where it has no `securitySchemes`, a list of words in `authentication` stands for them, and each is
/// enough.
///
/// # Errors
/// [`ProtocolError::ParseError`] when it is not JSON, else [`ProtocolError::InvalidParams`] naming each member that cannot be
/// what it is.
pub fn read_card(body: &[u8], limits: &DecodeLimits) -> Result<AgentCard, ProtocolError> {
    read_card_of(body, "0.3.0", limits)
}

/// Reads a card whose interfaces are of this version of the protocol if it does not say of which.
///
/// # Errors
/// As [`read_card`].
pub(in crate::dialect) fn read_card_of(
    body: &[u8],
    version: &str,
    limits: &DecodeLimits,
) -> Result<AgentCard, ProtocolError> {
    let new: CardOf1_0<'_> = read_body(body)?;
    let old: CardOf0_3<'_> = read_body(body)?;
    let mut check = Check::new(limits);
    let interfaces = read_interfaces(&mut check, new.supported_interfaces, &old, version);
    let capabilities = new.capabilities.map(|Obj(own)| own).unwrap_or_default();
    let has_schemes = new.security_schemes.is_some();
    let card = AgentCard {
        name: string(new.name),
        description: string(new.description),
        version: new.version.map_or_else(|| "1.0.0".to_owned(), String::from),
        supported_interfaces: interfaces,
        provider: new
            .provider
            .map(|Obj(own)| AgentProvider { organization: string(own.organization), url: string(own.url) }),
        documentation_url: new.documentation_url.map(String::from),
        icon_url: new.icon_url.map(String::from),
        capabilities: AgentCapabilities {
            streaming: capabilities.streaming,
            push_notifications: capabilities.push_notifications,
            extended_agent_card: capabilities.extended_agent_card.or(old.supports_authenticated_extended_card),
            extensions: read_extensions(&mut check, capabilities.extensions),
        },
        security_schemes: match (new.security_schemes, old.authentication.as_ref()) {
            (None, Some(Obj(words))) => words.read_schemes(),
            (schemes, _) => security::read_schemes(&mut check, schemes),
        },
        security_requirements: match (new.security_requirements, old.security, has_schemes, old.authentication) {
            (Some(requirements), ..) => security::read_requirements(requirements),
            (None, None, false, Some(Obj(words))) => words.read_requirements(),
            (None, security, ..) => security::read_security(security),
        },
        default_input_modes: check.lines(format_args!("defaultInputModes"), new.default_input_modes),
        default_output_modes: check.lines(format_args!("defaultOutputModes"), new.default_output_modes),
        skills: read_skills(&mut check, new.skills),
        signatures: read_signatures(&mut check, new.signatures),
    };
    check.finish(card)
}

fn string(text: Option<Text<'_>>) -> String {
    text.map(String::from).unwrap_or_default()
}

fn items<T>(check: &mut Check<'_>, at: &str, list: Option<List<Obj<T>>>) -> Vec<T> {
    let Some(list) = list else { return Vec::new() };
    let items = check.bounded(format_args!("{at}"), "entries", check.limits.list_items_max, list);
    items.into_iter().map(|Obj(item)| item).collect()
}

/// The interfaces that 1.0 lists, then those of 0.3: the one at `url`, and what is listed beside it.
fn read_interfaces(
    check: &mut Check<'_>,
    listed: Option<List<Obj<Interface<'_>>>>,
    old: &CardOf0_3<'_>,
    version: &str,
) -> Vec<AgentInterface> {
    let mut interfaces: Vec<AgentInterface> = Vec::new();
    for (i, own) in items(check, "supportedInterfaces", listed).into_iter().enumerate() {
        if own.url.is_none() {
            check.violation(format_args!("supportedInterfaces[{i}].url"), "is required");
        }
        interfaces.push(AgentInterface {
            url: string(own.url),
            protocol_binding: string(own.protocol_binding),
            protocol_version: string(own.protocol_version),
            tenant: own.tenant.map(String::from),
        });
    }
    let version = old.protocol_version.as_ref().map_or(version, |version| version.0.as_ref());
    let main =
        old.url.as_ref().map(|url| (url.0.as_ref(), old.preferred_transport.as_ref().map_or("JSONRPC", |t| &t.0)));
    let others = old.additional_interfaces.iter().flat_map(|list| &list.items);
    let others = others.filter_map(|Obj(own)| Some((own.url.as_ref()?.0.as_ref(), own.transport.as_ref()?.0.as_ref())));
    list_interfaces_of_0_3(version, main.into_iter().chain(others), &mut interfaces);
    interfaces
}

/// Adds the interfaces that a card of 0.3 has, as URL and binding, but for those that are there already.
pub(in crate::dialect) fn list_interfaces_of_0_3<'a>(
    version: &str,
    own: impl Iterator<Item = (&'a str, &'a str)>,
    interfaces: &mut Vec<AgentInterface>,
) {
    for (url, binding) in own {
        let is_known = |own: &AgentInterface| {
            own.url == url && own.protocol_binding.eq_ignore_ascii_case(binding) && is_of_0_3(own)
        };
        if !interfaces.iter().any(is_known) {
            let (url, protocol_binding) = (url.to_owned(), binding.to_owned());
            let protocol_version = version.to_owned();
            interfaces.push(AgentInterface { url, protocol_binding, protocol_version, tenant: None });
        }
    }
}

fn read_extensions(check: &mut Check<'_>, extensions: Option<List<Obj<Extension<'_>>>>) -> Vec<AgentExtension> {
    let mut read = Vec::new();
    for (i, own) in items(check, "capabilities.extensions", extensions).into_iter().enumerate() {
        read.push(AgentExtension {
            uri: string(own.uri),
            description: own.description.map(String::from),
            required: own.required.unwrap_or_default(),
            params: check.object(format_args!("capabilities.extensions[{i}].params"), own.params),
        });
    }
    read
}

fn read_skills(check: &mut Check<'_>, skills: Option<List<Obj<Skill<'_>>>>) -> Vec<AgentSkill> {
    let mut read = Vec::new();
    for (i, own) in items(check, "skills", skills).into_iter().enumerate() {
        read.push(AgentSkill {
            id: string(own.id),
            name: string(own.name),
            description: string(own.description),
            tags: check.lines(format_args!("skills[{i}].tags"), own.tags),
            examples: own.examples.map(|list| list.items.into_iter().map(String::from).collect()).unwrap_or_default(),
            input_modes: check.lines(format_args!("skills[{i}].inputModes"), own.input_modes),
            output_modes: check.lines(format_args!("skills[{i}].outputModes"), own.output_modes),
            security_requirements: match own.security_requirements {
                Some(requirements) => security::read_requirements(requirements),
                None => security::read_security(own.security),
            },
        });
    }
    read
}

fn read_signatures(check: &mut Check<'_>, signatures: Option<List<Obj<Signature<'_>>>>) -> Vec<AgentCardSignature> {
    let mut read = Vec::new();
    for (i, own) in items(check, "signatures", signatures).into_iter().enumerate() {
        read.push(AgentCardSignature {
            protected: string(own.protected),
            signature: string(own.signature),
            header: check.object(format_args!("signatures[{i}].header"), own.header),
        });
    }
    read
}
