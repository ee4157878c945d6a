//! How an agent wants to be authenticated to, as its card says it.

/// A way to authenticate to an agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SecurityScheme {
    /// A key in a header, a query parameter or a cookie.
    ApiKey {
        /// A description for people.
        description: Option<String>,
        /// `header`, `query` or `cookie`.
        location: String,
        /// The name of the header, parameter or cookie.
        name: String,
    },
    /// A scheme of the `Authorization` header.
    Http {
        /// A description for people.
        description: Option<String>,
        /// The scheme, such as `Bearer` or `Basic`.
        scheme: String,
        /// A hint at the form of bearer tokens, such as `JWT`.
        bearer_format: Option<String>,
    },
    /// OAuth 2.0.
    OAuth2 {
        /// A description for people.
        description: Option<String>,
        /// How a client gets its token.
        flow: OAuthFlow,
        /// Where the metadata of the authorization server is (RFC 8414).
        metadata_url: Option<String>,
    },
    /// OpenID Connect.
    OpenIdConnect {
        /// A description for people.
        description: Option<String>,
        /// Where the discovery document is.
        url: String,
    },
    /// A certificate of the client's.
    MutualTls {
        /// A description for people.
        description: Option<String>,
    },
}

/// One OAuth flow. A2A 1.0 allows one per scheme; older versions several, which become several schemes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OAuthFlow {
    /// Which of the flows of OAuth it is; it decides which URLs are there.
    pub kind: OAuthFlowKind,
    /// Where the user grants access (authorization code, implicit).
    pub authorization_url: Option<String>,
    /// Where a device asks for its code (device code).
    pub device_authorization_url: Option<String>,
    /// Where tokens are issued; none for the implicit flow.
    pub token_url: Option<String>,
    /// Where tokens are renewed; none is at `token_url`.
    pub refresh_url: Option<String>,
    /// The scopes there are, each with what it allows.
    pub scopes: Vec<(String, String)>,
    /// Whether clients must use PKCE (authorization code).
    pub pkce_required: bool,
}

/// The flows of OAuth by which a client gets a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OAuthFlowKind {
    /// The user grants access in a browser, and the client trades a code for the token.
    AuthorizationCode,
    /// The client acts for itself.
    ClientCredentials,
    /// The token comes back with the redirect. Deprecated by OAuth; older cards have it.
    Implicit,
    /// The client holds the user's password. Deprecated by OAuth; older cards have it.
    Password,
    /// The user grants access on another device (RFC 8628).
    DeviceCode,
}

/// Schemes that must all be satisfied, each with its scopes. A list of requirements means: any one of them.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct SecurityRequirement {
    /// The names of schemes on the card, each with the scopes that are needed.
    pub schemes: Vec<(String, Vec<String>)>,
}
