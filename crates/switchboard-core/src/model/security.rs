//! How an agent wants to be authenticated to, as its card says it.

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SecurityScheme {
    ApiKey { description: Option<String>, location: String, name: String },
    Http { description: Option<String>, scheme: String, bearer_format: Option<String> },
    OAuth2 { description: Option<String>, flow: OAuthFlow, metadata_url: Option<String> },
    OpenIdConnect { description: Option<String>, url: String },
    MutualTls { description: Option<String> },
}

/// One OAuth flow. A2A 1.0 allows one per scheme; older versions several, which become several schemes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OAuthFlow {
    pub kind: OAuthFlowKind,
    pub authorization_url: Option<String>,
    pub device_authorization_url: Option<String>,
    pub token_url: Option<String>,
    pub refresh_url: Option<String>,
    pub scopes: Vec<(String, String)>,
    pub pkce_required: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OAuthFlowKind {
    AuthorizationCode,
    ClientCredentials,
    Implicit,
    Password,
    DeviceCode,
}

/// Schemes that must all be satisfied, each with its scopes. A list of requirements means: any one of them.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct SecurityRequirement {
    pub schemes: Vec<(String, Vec<String>)>,
}
