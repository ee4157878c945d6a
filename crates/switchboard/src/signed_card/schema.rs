//! The members of an agent card of A2A 1.0, as far as its signature depends on them: of what kind each is, and when it is there
//! (specification 4.4 and 8.4.1); and those of a card of 0.3, for which only the names matter.

/// A member: its name, its kind, and when it is there.
pub(super) type Field = (&'static str, Kind, Presence);

pub(super) enum Kind {
    Text,
    Bool,
    Texts,
    Message(&'static [Field]),
    Messages(&'static [Field]),
    /// Names and messages.
    Map(&'static [Field]),
    /// Names and texts.
    Texted,
    /// Free-form JSON, which is left as it is.
    Free,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Presence {
    /// Always there.
    Required,
    /// There if it was set, also to its default. Messages are.
    Explicit,
    /// There unless it has its default.
    Implicit,
}

use Kind::{Bool, Free, Map, Message, Messages, Text, Texted, Texts};
use Presence::{Explicit, Implicit, Required};

pub(super) const CARD: &[Field] = &[
    ("name", Text, Required),
    ("description", Text, Required),
    ("supportedInterfaces", Messages(INTERFACE), Required),
    ("provider", Message(PROVIDER), Explicit),
    ("version", Text, Required),
    ("documentationUrl", Text, Explicit),
    ("capabilities", Message(CAPABILITIES), Required),
    ("securitySchemes", Map(SCHEME), Implicit),
    ("securityRequirements", Messages(REQUIREMENT), Implicit),
    ("defaultInputModes", Texts, Required),
    ("defaultOutputModes", Texts, Required),
    ("skills", Messages(SKILL), Required),
    ("iconUrl", Text, Explicit),
];

const INTERFACE: &[Field] = &[
    ("url", Text, Required),
    ("protocolBinding", Text, Required),
    ("tenant", Text, Implicit),
    ("protocolVersion", Text, Required),
];

const PROVIDER: &[Field] = &[("url", Text, Required), ("organization", Text, Required)];

const CAPABILITIES: &[Field] = &[
    ("streaming", Bool, Explicit),
    ("pushNotifications", Bool, Explicit),
    ("extensions", Messages(EXTENSION), Implicit),
    ("extendedAgentCard", Bool, Explicit),
];

const EXTENSION: &[Field] = &[
    ("uri", Text, Implicit),
    ("description", Text, Implicit),
    ("required", Bool, Implicit),
    ("params", Free, Explicit),
];

const SKILL: &[Field] = &[
    ("id", Text, Required),
    ("name", Text, Required),
    ("description", Text, Required),
    ("tags", Texts, Required),
    ("examples", Texts, Implicit),
    ("inputModes", Texts, Implicit),
    ("outputModes", Texts, Implicit),
    ("securityRequirements", Messages(REQUIREMENT), Implicit),
];

const REQUIREMENT: &[Field] = &[("schemes", Map(&[("list", Texts, Implicit)]), Implicit)];

const SCHEME: &[Field] = &[
    ("apiKeySecurityScheme", Message(API_KEY), Explicit),
    ("httpAuthSecurityScheme", Message(HTTP_AUTH), Explicit),
    ("oauth2SecurityScheme", Message(OAUTH2), Explicit),
    ("openIdConnectSecurityScheme", Message(OPEN_ID_CONNECT), Explicit),
    ("mtlsSecurityScheme", Message(&[("description", Text, Implicit)]), Explicit),
];

const API_KEY: &[Field] = &[("description", Text, Implicit), ("location", Text, Required), ("name", Text, Required)];

const HTTP_AUTH: &[Field] =
    &[("description", Text, Implicit), ("scheme", Text, Required), ("bearerFormat", Text, Implicit)];

const OAUTH2: &[Field] =
    &[("description", Text, Implicit), ("flows", Message(FLOWS), Required), ("oauth2MetadataUrl", Text, Implicit)];

const OPEN_ID_CONNECT: &[Field] = &[("description", Text, Implicit), ("openIdConnectUrl", Text, Required)];

const FLOWS: &[Field] = &[
    (
        "authorizationCode",
        Message(&[
            ("authorizationUrl", Text, Required),
            ("tokenUrl", Text, Required),
            ("refreshUrl", Text, Implicit),
            ("scopes", Texted, Required),
            ("pkceRequired", Bool, Implicit),
        ]),
        Explicit,
    ),
    (
        "clientCredentials",
        Message(&[("tokenUrl", Text, Required), ("refreshUrl", Text, Implicit), ("scopes", Texted, Required)]),
        Explicit,
    ),
    (
        "implicit",
        Message(&[("authorizationUrl", Text, Implicit), ("refreshUrl", Text, Implicit), ("scopes", Texted, Implicit)]),
        Explicit,
    ),
    (
        "password",
        Message(&[("tokenUrl", Text, Implicit), ("refreshUrl", Text, Implicit), ("scopes", Texted, Implicit)]),
        Explicit,
    ),
    (
        "deviceCode",
        Message(&[
            ("deviceAuthorizationUrl", Text, Required),
            ("tokenUrl", Text, Required),
            ("refreshUrl", Text, Implicit),
            ("scopes", Texted, Required),
        ]),
        Explicit,
    ),
];

/// The members of a card of 0.3.0 (specification 5.5). Presence has no meaning in 0.3: every member counts as it was written.
pub(super) const CARD_OF_0_3: &[Field] = &[
    ("protocolVersion", Text, Explicit),
    ("name", Text, Explicit),
    ("description", Text, Explicit),
    ("url", Text, Explicit),
    ("preferredTransport", Text, Explicit),
    ("additionalInterfaces", Messages(&[("url", Text, Explicit), ("transport", Text, Explicit)]), Explicit),
    ("iconUrl", Text, Explicit),
    ("provider", Message(PROVIDER), Explicit),
    ("version", Text, Explicit),
    ("documentationUrl", Text, Explicit),
    ("capabilities", Message(CAPABILITIES_OF_0_3), Explicit),
    ("securitySchemes", Map(SCHEME_OF_0_3), Explicit),
    ("security", Free, Explicit),
    ("defaultInputModes", Texts, Explicit),
    ("defaultOutputModes", Texts, Explicit),
    ("skills", Messages(SKILL_OF_0_3), Explicit),
    ("supportsAuthenticatedExtendedCard", Bool, Explicit),
];

const CAPABILITIES_OF_0_3: &[Field] = &[
    ("streaming", Bool, Explicit),
    ("pushNotifications", Bool, Explicit),
    ("stateTransitionHistory", Bool, Explicit),
    ("extensions", Messages(EXTENSION), Explicit),
];

const SKILL_OF_0_3: &[Field] = &[
    ("id", Text, Explicit),
    ("name", Text, Explicit),
    ("description", Text, Explicit),
    ("tags", Texts, Explicit),
    ("examples", Texts, Explicit),
    ("inputModes", Texts, Explicit),
    ("outputModes", Texts, Explicit),
    ("security", Free, Explicit),
];

const SCHEME_OF_0_3: &[Field] = &[
    ("type", Text, Explicit),
    ("description", Text, Explicit),
    ("name", Text, Explicit),
    ("in", Text, Explicit),
    ("scheme", Text, Explicit),
    ("bearerFormat", Text, Explicit),
    ("flows", Message(FLOWS_OF_0_3), Explicit),
    ("oauth2MetadataUrl", Text, Explicit),
    ("openIdConnectUrl", Text, Explicit),
];

const FLOWS_OF_0_3: &[Field] = &[
    ("authorizationCode", Message(FLOW_OF_0_3), Explicit),
    ("clientCredentials", Message(FLOW_OF_0_3), Explicit),
    ("implicit", Message(FLOW_OF_0_3), Explicit),
    ("password", Message(FLOW_OF_0_3), Explicit),
];

const FLOW_OF_0_3: &[Field] = &[
    ("authorizationUrl", Text, Explicit),
    ("tokenUrl", Text, Explicit),
    ("refreshUrl", Text, Explicit),
    ("scopes", Texted, Explicit),
];
