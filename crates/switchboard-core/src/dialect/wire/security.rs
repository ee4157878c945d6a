//! How a card says that callers are to authenticate: in 1.0 an object whose one member says of what kind it is, in 0.3 a flat
//! object with a `type`.

use serde::{Deserialize, Serialize};

use crate::dialect::json::{Check, List, NamedMembers, Obj, Text};
use crate::model::{OAuthFlow, OAuthFlowKind, SecurityRequirement, SecurityScheme};

/// A scheme in either form; a card of several versions has both in one object.
#[derive(Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Scheme<'a> {
    #[serde(borrow)]
    api_key_security_scheme: Option<Obj<Kind<'a>>>,
    #[serde(borrow)]
    http_auth_security_scheme: Option<Obj<Kind<'a>>>,
    #[serde(borrow)]
    oauth2_security_scheme: Option<Obj<Kind<'a>>>,
    #[serde(borrow)]
    open_id_connect_security_scheme: Option<Obj<Kind<'a>>>,
    #[serde(borrow)]
    mtls_security_scheme: Option<Obj<Kind<'a>>>,
    #[serde(borrow, rename = "type")]
    kind: Option<Text<'a>>,
    #[serde(borrow, rename = "in")]
    location: Option<Text<'a>>,
    #[serde(borrow)]
    name: Option<Text<'a>>,
    #[serde(borrow)]
    scheme: Option<Text<'a>>,
    #[serde(borrow)]
    bearer_format: Option<Text<'a>>,
    #[serde(borrow)]
    flows: Option<Obj<Flows<'a>>>,
    #[serde(borrow)]
    oauth2_metadata_url: Option<Text<'a>>,
    #[serde(borrow)]
    open_id_connect_url: Option<Text<'a>>,
    #[serde(borrow)]
    description: Option<Text<'a>>,
}

/// What stands in the one member of a scheme of 1.0.
#[derive(Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
struct Kind<'a> {
    #[serde(borrow)]
    description: Option<Text<'a>>,
    #[serde(borrow)]
    location: Option<Text<'a>>,
    #[serde(borrow)]
    name: Option<Text<'a>>,
    #[serde(borrow)]
    scheme: Option<Text<'a>>,
    #[serde(borrow)]
    bearer_format: Option<Text<'a>>,
    #[serde(borrow)]
    flows: Option<Obj<Flows<'a>>>,
    #[serde(borrow)]
    oauth2_metadata_url: Option<Text<'a>>,
    #[serde(borrow)]
    open_id_connect_url: Option<Text<'a>>,
}

/// 1.0 allows one of them, 0.3 several.
#[derive(Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
struct Flows<'a> {
    #[serde(borrow)]
    authorization_code: Option<Obj<Flow<'a>>>,
    #[serde(borrow)]
    client_credentials: Option<Obj<Flow<'a>>>,
    #[serde(borrow)]
    implicit: Option<Obj<Flow<'a>>>,
    #[serde(borrow)]
    password: Option<Obj<Flow<'a>>>,
    #[serde(borrow)]
    device_code: Option<Obj<Flow<'a>>>,
}

#[derive(Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
struct Flow<'a> {
    #[serde(borrow)]
    device_authorization_url: Option<Text<'a>>,
    #[serde(borrow)]
    authorization_url: Option<Text<'a>>,
    #[serde(borrow)]
    token_url: Option<Text<'a>>,
    #[serde(borrow)]
    refresh_url: Option<Text<'a>>,
    #[serde(borrow)]
    scopes: Option<NamedMembers<'a, Text<'a>>>,
    pkce_required: Option<bool>,
}

/// The schemes that are all needed, in 1.0. In 0.3 it is the inner object alone.
#[derive(Deserialize, Serialize)]
pub(super) struct Requirement<'a> {
    #[serde(borrow)]
    schemes: Option<NamedMembers<'a, Obj<Scopes<'a>>>>,
}

#[derive(Default, Deserialize, Serialize)]
struct Scopes<'a> {
    #[serde(borrow)]
    list: Option<List<Text<'a>>>,
}

/// The words of HTTP authentication for the schemes of a card.
#[derive(Deserialize, Serialize)]
pub(super) struct Authentication<'a> {
    #[serde(borrow)]
    schemes: Option<List<Text<'a>>>,
}

impl<'a> Authentication<'a> {
    pub(super) fn of(schemes: &'a [(String, SecurityScheme)]) -> Option<Self> {
        let mut words: Vec<&str> = schemes.iter().filter_map(|(_, scheme)| http_scheme(scheme)).collect();
        words.sort_unstable();
        words.dedup();
        (!schemes.is_empty()).then(|| Self { schemes: Some(words.into_iter().map(Text::from).collect()) })
    }
}

impl Authentication<'_> {
    /// The words that are told apart: HTTP does not mind their case.
    fn words(&self) -> impl Iterator<Item = (String, &str)> {
        let all = self.schemes.iter().flat_map(|list| &list.items).map(|Text(word)| word.as_ref());
        let mut seen = Vec::new();
        all.filter(|word| !word.is_empty()).filter_map(move |word| {
            let name = word.to_ascii_lowercase();
            let is_new = !seen.contains(&name);
            is_new.then(|| {
                seen.push(name.clone());
                (name, word)
            })
        })
    }

    pub(super) fn read_schemes(&self) -> Vec<(String, SecurityScheme)> {
        let read = |(name, word): (String, &str)| {
            (name, SecurityScheme::Http { description: None, scheme: word.to_owned(), bearer_format: None })
        };
        self.words().map(read).collect()
    }

    pub(super) fn read_requirements(&self) -> Vec<SecurityRequirement> {
        self.words().map(|(name, _)| SecurityRequirement { schemes: vec![(name, Vec::new())] }).collect()
    }
}

/// The word of HTTP authentication for a scheme; a certificate is not shown in a header.
fn http_scheme(scheme: &SecurityScheme) -> Option<&str> {
    match scheme {
        SecurityScheme::ApiKey { .. } => Some("ApiKey"),
        SecurityScheme::Http { scheme, .. } => Some(scheme),
        SecurityScheme::OAuth2 { .. } | SecurityScheme::OpenIdConnect { .. } => Some("Bearer"),
        SecurityScheme::MutualTls { .. } => None,
    }
}

pub(super) fn schemes_of(schemes: &[(String, SecurityScheme)]) -> Option<NamedMembers<'_, Obj<Scheme<'_>>>> {
    (!schemes.is_empty())
        .then(|| schemes.iter().map(|(name, scheme)| (name.as_str(), Obj(Scheme::of(scheme)))).collect())
}

pub(super) fn schemes_of_0_3(schemes: &[(String, SecurityScheme)]) -> Option<NamedMembers<'_, Obj<Scheme<'_>>>> {
    (!schemes.is_empty())
        .then(|| schemes.iter().map(|(name, scheme)| (name.as_str(), Obj(Scheme::of_0_3(scheme)))).collect())
}

impl<'a> Scheme<'a> {
    /// A scheme is a oneof, so its member is written even when there is nothing in it.
    fn of(scheme: &'a SecurityScheme) -> Self {
        let optional = |text: &'a Option<String>| text.as_deref().map(Text::from);
        let required = |text: &'a String| Some(Text::from(text.as_str()));
        match scheme {
            SecurityScheme::ApiKey { description, location, name } => Self {
                api_key_security_scheme: Some(Obj(Kind {
                    description: optional(description),
                    location: required(location),
                    name: required(name),
                    ..Kind::default()
                })),
                ..Self::default()
            },
            SecurityScheme::Http { description, scheme, bearer_format } => Self {
                http_auth_security_scheme: Some(Obj(Kind {
                    description: optional(description),
                    scheme: required(scheme),
                    bearer_format: optional(bearer_format),
                    ..Kind::default()
                })),
                ..Self::default()
            },
            SecurityScheme::OAuth2 { description, flow, metadata_url } => Self {
                oauth2_security_scheme: Some(Obj(Kind {
                    description: optional(description),
                    flows: Some(Obj(Flows::of(flow))),
                    oauth2_metadata_url: optional(metadata_url),
                    ..Kind::default()
                })),
                ..Self::default()
            },
            SecurityScheme::OpenIdConnect { description, url } => Self {
                open_id_connect_security_scheme: Some(Obj(Kind {
                    description: optional(description),
                    open_id_connect_url: required(url),
                    ..Kind::default()
                })),
                ..Self::default()
            },
            SecurityScheme::MutualTls { description } => Self {
                mtls_security_scheme: Some(Obj(Kind { description: optional(description), ..Kind::default() })),
                ..Self::default()
            },
        }
    }

    fn of_0_3(scheme: &'a SecurityScheme) -> Self {
        let optional = |text: &'a Option<String>| text.as_deref().map(Text::from);
        let required = |text: &'a String| Some(Text::from(text.as_str()));
        let (description, written) = match scheme {
            SecurityScheme::ApiKey { description, location, name } => (
                description,
                Self {
                    kind: Some(Text::from("apiKey")),
                    location: required(location),
                    name: required(name),
                    ..Self::default()
                },
            ),
            SecurityScheme::Http { description, scheme, bearer_format } => (
                description,
                Self {
                    kind: Some(Text::from("http")),
                    scheme: required(scheme),
                    bearer_format: optional(bearer_format),
                    ..Self::default()
                },
            ),
            SecurityScheme::OAuth2 { description, flow, metadata_url } => (
                description,
                Self {
                    kind: Some(Text::from("oauth2")),
                    flows: Some(Obj(Flows::of_0_3(flow))),
                    oauth2_metadata_url: optional(metadata_url),
                    ..Self::default()
                },
            ),
            SecurityScheme::OpenIdConnect { description, url } => (
                description,
                Self { kind: Some(Text::from("openIdConnect")), open_id_connect_url: required(url), ..Self::default() },
            ),
            SecurityScheme::MutualTls { description } => {
                (description, Self { kind: Some(Text::from("mutualTLS")), ..Self::default() })
            }
        };
        Self { description: optional(description), ..written }
    }

    /// The schemes that it is: one, or one for each of its flows.
    fn read(self) -> Vec<SecurityScheme> {
        let string = |text: Option<Text<'_>>| text.map(String::from).unwrap_or_default();
        let optional = |text: Option<Text<'_>>| text.map(String::from);
        // The form of 1.0 comes first, where both are there.
        let (kind, own) = match (
            self.api_key_security_scheme,
            self.http_auth_security_scheme,
            self.oauth2_security_scheme,
            self.open_id_connect_security_scheme,
            self.mtls_security_scheme,
        ) {
            (Some(Obj(own)), ..) => ("apiKey", own),
            (_, Some(Obj(own)), ..) => ("http", own),
            (_, _, Some(Obj(own)), ..) => ("oauth2", own),
            (_, _, _, Some(Obj(own)), _) => ("openIdConnect", own),
            (_, _, _, _, Some(Obj(own))) => ("mutualTLS", own),
            (None, None, None, None, None) => {
                let Self { location, name, scheme, bearer_format, flows, description, .. } = self;
                let (oauth2_metadata_url, open_id_connect_url) = (self.oauth2_metadata_url, self.open_id_connect_url);
                let kind = match self.kind.as_ref().map(|kind| kind.0.as_ref()) {
                    Some("apiKey") => "apiKey",
                    Some("http") => "http",
                    Some("oauth2") => "oauth2",
                    Some("openIdConnect") => "openIdConnect",
                    Some("mutualTLS") => "mutualTLS",
                    _ => return Vec::new(),
                };
                let own = Kind {
                    description,
                    location,
                    name,
                    scheme,
                    bearer_format,
                    flows,
                    oauth2_metadata_url,
                    open_id_connect_url,
                };
                (kind, own)
            }
        };
        let description = optional(own.description);
        match kind {
            "apiKey" => {
                vec![SecurityScheme::ApiKey { description, location: string(own.location), name: string(own.name) }]
            }
            "http" => {
                let bearer_format = optional(own.bearer_format);
                vec![SecurityScheme::Http { description, scheme: string(own.scheme), bearer_format }]
            }
            "oauth2" => {
                let metadata_url = optional(own.oauth2_metadata_url);
                let flows = own.flows.map(|Obj(flows)| flows.read()).unwrap_or_default();
                let of = |flow| SecurityScheme::OAuth2 {
                    description: description.clone(),
                    flow,
                    metadata_url: metadata_url.clone(),
                };
                flows.into_iter().map(of).collect()
            }
            "openIdConnect" => {
                vec![SecurityScheme::OpenIdConnect { description, url: string(own.open_id_connect_url) }]
            }
            _ => vec![SecurityScheme::MutualTls { description }],
        }
    }
}

impl<'a> Flows<'a> {
    fn of(flow: &'a OAuthFlow) -> Self {
        let written = Some(Obj(Flow::of(flow)));
        match flow.kind {
            OAuthFlowKind::AuthorizationCode => Self { authorization_code: written, ..Self::default() },
            OAuthFlowKind::ClientCredentials => Self { client_credentials: written, ..Self::default() },
            OAuthFlowKind::Implicit => Self { implicit: written, ..Self::default() },
            OAuthFlowKind::Password => Self { password: written, ..Self::default() },
            OAuthFlowKind::DeviceCode => Self { device_code: written, ..Self::default() },
        }
    }

    /// One that 0.3 does not know is left out, and the object is then empty.
    fn of_0_3(flow: &'a OAuthFlow) -> Self {
        let (has_authorization, has_token) = match flow.kind {
            OAuthFlowKind::AuthorizationCode => (true, true),
            OAuthFlowKind::ClientCredentials | OAuthFlowKind::Password => (false, true),
            OAuthFlowKind::Implicit => (true, false),
            OAuthFlowKind::DeviceCode => return Self::default(),
        };
        let url = |has: bool, url: &'a Option<String>| has.then(|| Text::from(url.as_deref().unwrap_or_default()));
        let written = Some(Obj(Flow {
            device_authorization_url: None,
            authorization_url: url(has_authorization, &flow.authorization_url),
            token_url: url(has_token, &flow.token_url),
            refresh_url: flow.refresh_url.as_deref().map(Text::from),
            scopes: Some(scopes_of(flow)),
            pkce_required: None,
        }));
        match flow.kind {
            OAuthFlowKind::AuthorizationCode => Self { authorization_code: written, ..Self::default() },
            OAuthFlowKind::ClientCredentials => Self { client_credentials: written, ..Self::default() },
            OAuthFlowKind::Implicit => Self { implicit: written, ..Self::default() },
            OAuthFlowKind::Password => Self { password: written, ..Self::default() },
            OAuthFlowKind::DeviceCode => Self::default(),
        }
    }

    fn read(self) -> Vec<OAuthFlow> {
        let flows = [
            (OAuthFlowKind::AuthorizationCode, self.authorization_code),
            (OAuthFlowKind::ClientCredentials, self.client_credentials),
            (OAuthFlowKind::DeviceCode, self.device_code),
            (OAuthFlowKind::Implicit, self.implicit),
            (OAuthFlowKind::Password, self.password),
        ];
        flows.into_iter().filter_map(|(kind, flow)| Some(flow?.0.read(kind))).collect()
    }
}

fn scopes_of(flow: &OAuthFlow) -> NamedMembers<'_, Text<'_>> {
    flow.scopes.iter().map(|(name, description)| (name.as_str(), Text::from(description.as_str()))).collect()
}

impl<'a> Flow<'a> {
    fn of(flow: &'a OAuthFlow) -> Self {
        /// Whether a kind of flow has a member, and needs it.
        #[derive(Clone, Copy, PartialEq)]
        enum Member {
            Required,
            Optional,
            Unknown,
        }
        use Member::{Optional, Required, Unknown};
        let (authorization, device, token, scopes) = match flow.kind {
            OAuthFlowKind::AuthorizationCode => (Required, Unknown, Required, Required),
            OAuthFlowKind::ClientCredentials => (Unknown, Unknown, Required, Required),
            OAuthFlowKind::Implicit => (Optional, Unknown, Unknown, Optional),
            OAuthFlowKind::Password => (Unknown, Unknown, Optional, Optional),
            OAuthFlowKind::DeviceCode => (Unknown, Required, Required, Required),
        };
        let url = |member, url: &'a Option<String>| match member {
            Required => Some(Text::from(url.as_deref().unwrap_or_default())),
            Optional => url.as_deref().map(Text::from),
            Unknown => None,
        };
        let is_pkce = flow.pkce_required && flow.kind == OAuthFlowKind::AuthorizationCode;
        Self {
            device_authorization_url: url(device, &flow.device_authorization_url),
            authorization_url: url(authorization, &flow.authorization_url),
            token_url: url(token, &flow.token_url),
            refresh_url: url(Optional, &flow.refresh_url),
            scopes: (scopes == Required || !flow.scopes.is_empty()).then(|| scopes_of(flow)),
            pkce_required: is_pkce.then_some(true),
        }
    }

    fn read(self, kind: OAuthFlowKind) -> OAuthFlow {
        let optional = |text: Option<Text<'_>>| text.map(String::from);
        let scopes = self.scopes.map(|NamedMembers(scopes)| scopes).unwrap_or_default();
        OAuthFlow {
            kind,
            authorization_url: optional(self.authorization_url),
            device_authorization_url: optional(self.device_authorization_url),
            token_url: optional(self.token_url),
            refresh_url: optional(self.refresh_url),
            scopes: scopes.into_iter().map(|(name, description)| (name.into_owned(), description.into())).collect(),
            pkce_required: self.pkce_required.unwrap_or_default(),
        }
    }
}

/// Any one of the requirements suffices; inside one, every scheme is needed.
pub(super) fn requirements_of(requirements: &[SecurityRequirement]) -> Option<List<Obj<Requirement<'_>>>> {
    (!requirements.is_empty()).then(|| requirements.iter().map(|own| Obj(Requirement::of(own))).collect())
}

impl<'a> Requirement<'a> {
    fn of(requirement: &'a SecurityRequirement) -> Self {
        let schemes = requirement.schemes.iter().map(|(name, scopes)| {
            let list = (!scopes.is_empty()).then(|| scopes.iter().map(|scope| Text::from(scope.as_str())).collect());
            (name.as_str(), Obj(Scopes { list }))
        });
        Self { schemes: Some(schemes.collect()) }
    }
}

/// The requirements as 0.3 has them.
pub(super) fn security_of(requirements: &[SecurityRequirement]) -> Option<List<NamedMembers<'_, List<Text<'_>>>>> {
    (!requirements.is_empty()).then(|| {
        requirements
            .iter()
            .map(|own| own.schemes.iter().map(|(name, scopes)| (name.as_str(), texts(scopes))).collect())
            .collect()
    })
}

fn texts(list: &[String]) -> List<Text<'_>> {
    list.iter().map(|text| Text::from(text.as_str())).collect()
}

fn strings(list: Option<List<Text<'_>>>) -> Vec<String> {
    list.map(|list| list.items.into_iter().map(String::from).collect()).unwrap_or_default()
}

/// Reads the schemes of a card. One that has several flows becomes several; the further ones are named after their
/// flow. One of an unknown kind is left out: the requirements still name it, so a client sees that it lacks a scheme.
pub(super) fn read_schemes(
    check: &mut Check<'_>,
    schemes: Option<NamedMembers<'_, Obj<Scheme<'_>>>>,
) -> Vec<(String, SecurityScheme)> {
    let NamedMembers(schemes) = schemes.unwrap_or_default();
    if schemes.len() > check.limits.list_items_max {
        check.violation(format_args!("securitySchemes"), format!("has {} entries", schemes.len()));
        return Vec::new();
    }
    let mut read = Vec::with_capacity(schemes.len());
    for (name, Obj(scheme)) in schemes {
        for (i, scheme) in scheme.read().into_iter().enumerate() {
            let name = match (i, &scheme) {
                (1.., SecurityScheme::OAuth2 { flow, .. }) => format!("{name}-{}", flow_name(flow.kind)),
                _ => name.to_string(),
            };
            read.push((name, scheme));
        }
    }
    read
}

fn flow_name(kind: OAuthFlowKind) -> &'static str {
    match kind {
        OAuthFlowKind::AuthorizationCode => "authorizationCode",
        OAuthFlowKind::ClientCredentials => "clientCredentials",
        OAuthFlowKind::Implicit => "implicit",
        OAuthFlowKind::Password => "password",
        OAuthFlowKind::DeviceCode => "deviceCode",
    }
}

pub(super) fn read_requirements(requirements: List<Obj<Requirement<'_>>>) -> Vec<SecurityRequirement> {
    let read = |Obj(own): Obj<Requirement<'_>>| {
        let NamedMembers(schemes) = own.schemes.unwrap_or_default();
        let schemes = schemes.into_iter().map(|(name, Obj(scopes))| (name.into_owned(), strings(scopes.list)));
        SecurityRequirement { schemes: schemes.collect() }
    };
    requirements.items.into_iter().map(read).collect()
}

/// The requirements as 0.3 has them.
pub(super) fn read_security(security: Option<List<NamedMembers<'_, List<Text<'_>>>>>) -> Vec<SecurityRequirement> {
    let read = |NamedMembers(schemes): NamedMembers<'_, List<Text<'_>>>| {
        let schemes = schemes.into_iter().map(|(name, scopes)| (name.into_owned(), strings(Some(scopes))));
        SecurityRequirement { schemes: schemes.collect() }
    };
    security.map(|list| list.items.into_iter().map(read).collect()).unwrap_or_default()
}
