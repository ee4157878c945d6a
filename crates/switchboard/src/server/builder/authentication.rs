//! The settings of a server that say who may call.

use std::sync::Arc;

use switchboard_core::model::{SecurityRequirement, SecurityScheme};

use super::ServerBuilder;
use crate::server::authentication::tokens::Tokens;
use crate::server::authentication::{Authenticator, Issuer, SharedSecret};
use crate::server::organizations::OrgPeers;
use crate::server::serve_error::ServeError;

impl ServerBuilder {
    /// Only holders of one of these tokens may call.
    #[must_use]
    pub fn tokens(mut self, tokens: Tokens) -> Self {
        self.tokens = Some(tokens);
        self
    }

    /// Has an [`Authenticator`] decide who calls: the login of your application, in place of [tokens](Self::tokens) and of an
    /// [API key](Self::api_key). What callers must present, the cards say only if [`security_scheme`](Self::security_scheme) does.
    ///
    /// [`IdentityFromExtensions`](crate::IdentityFromExtensions) is for applications that have authenticated a request in a layer
    /// around the server.
    #[must_use]
    pub fn authenticate(mut self, authenticator: impl Authenticator) -> Self {
        self.authenticator = Some(Arc::new(authenticator));
        self
    }

    /// Declares on every card how callers of [`authenticate`](Self::authenticate) prove who they are; of several schemes, any one
    /// is enough. Servers with tokens declare those themselves.
    #[must_use]
    pub fn security_scheme(mut self, name: impl Into<String>, scheme: SecurityScheme) -> Self {
        self.security_schemes.push((name.into(), scheme));
        self
    }

    /// Only holders of this key may call, or of one of the [`tokens`](Self::tokens). All of them are the same
    /// principal, `api-key`, and see the same tasks. A key of fewer than 16 characters can be guessed: it is accepted,
    /// with a warning, only while no other machine can reach the server.
    #[must_use]
    pub fn api_key(mut self, key: impl Into<String>) -> Self {
        self.api_key = Some(ApiKey::Given(key.into()));
        self
    }

    /// As [`api_key`](Self::api_key), with the key in an environment variable of this name, which is read when the server is
    /// built.
    #[must_use]
    pub fn api_key_env(mut self, name: impl Into<String>) -> Self {
        self.api_key = Some(ApiKey::Named(name.into()));
        self
    }

    /// Takes [tokens](Self::tokens) in this header, too: a scheme of the kind `apiKey` on the cards, beside bearer tokens.
    ///
    /// ```
    /// use switchboard::{AgentBuilder, Server, Tokens, Turn};
    ///
    /// # tokio::runtime::Runtime::new().unwrap().block_on(async {
    /// # use tower::ServiceExt;
    /// let echo = AgentBuilder::from_fn("Echo", |turn: Turn| async move { Ok(turn.answer(turn.text()).await?) });
    /// let tokens = Tokens::parse("s3cret-token-of-alice alice").unwrap();
    /// let server = Server::builder().agent(echo).tokens(tokens).api_key_header("X-API-Key");
    /// let service = server.public_url("http://127.0.0.1:3000").build()?.into_service()?;
    /// let request = http::Request::get("/tasks").header("A2A-Version", "1.0").header("X-API-Key", "s3cret-token-of-alice");
    /// assert_eq!(service.oneshot(request.body(String::new()).unwrap()).await.unwrap().status(), 200);
    /// # Ok::<(), switchboard::ServeError>(())
    /// # }).unwrap();
    /// ```
    #[must_use]
    pub fn api_key_header(mut self, name: impl Into<String>) -> Self {
        self.api_key_places.header = Some(name.into());
        self
    }

    /// As [`api_key_header`](Self::api_key_header), in a query parameter. URLs are logged and kept in many places, so use it only
    /// for clients that can do nothing else.
    #[must_use]
    pub fn api_key_query(mut self, name: impl Into<String>) -> Self {
        self.api_key_places.query = Some(name.into());
        self
    }

    /// As [`api_key_header`](Self::api_key_header), in a cookie.
    #[must_use]
    pub fn api_key_cookie(mut self, name: impl Into<String>) -> Self {
        self.api_key_places.cookie = Some(name.into());
        self
    }

    /// Takes [tokens](Self::tokens) by HTTP Basic, too: the name is the principal of the token, and the password is the token.
    #[must_use]
    pub fn basic(mut self, on: bool) -> Self {
        self.basic = on;
        self
    }

    /// Lets callers in whose tokens are signed with a secret that both sides know, as apps of agent-native do
    /// (`A2A_SECRET`). Their principal is `a2a-secret#SUB`, and their tenant the organization that the token names.
    #[must_use]
    pub fn shared_secret(mut self, secret: SharedSecret) -> Self {
        self.shared_secret = Some(secret);
        self
    }

    /// The other apps of the organizations whose secrets this server has in a file
    /// ([`SharedSecret::with_orgs_of`]): an operator has a secret passed on to them by
    /// `POST /_agent-native/org/a2a-secret/sync`.
    #[must_use]
    pub fn org_peers(mut self, peers: impl OrgPeers) -> Self {
        self.org_peers = Some(Arc::new(peers));
        self
    }

    /// Lets callers in who have a token of this identity provider. Its keys are fetched under the same rules as webhooks go out:
    /// a provider at a private address must be in [`outbound_allow`](Self::outbound_allow).
    #[must_use]
    pub fn issuer(mut self, issuer: Issuer) -> Self {
        self.issuers.push(issuer);
        self
    }

    /// Lets callers in whom a [`ClientCertificate`](crate::ClientCertificate) in the extensions of the request names. It is for
    /// applications with a TLS listener of their own; a port with [`Tls::with_client_authority`](crate::Tls::with_client_authority) does this by itself.
    #[must_use]
    pub fn client_certificates(mut self, on: bool) -> Self {
        self.client_certificates = on;
        self
    }

    /// What every caller must present, by the names that the cards have for the schemes: all of one requirement, which names the
    /// caller by its first scheme. Call it again for other requirements, any one of which is then enough. Without it, one
    /// scheme of those that are configured is enough.
    ///
    /// ```
    /// use switchboard::model::SecurityRequirement;
    /// use switchboard::{AgentBuilder, Server, Tokens, Turn};
    ///
    /// # tokio::runtime::Runtime::new().unwrap().block_on(async {
    /// let echo = AgentBuilder::from_fn("Echo", |turn: Turn| async move { Ok(turn.answer(turn.text()).await?) });
    /// let tokens = Tokens::parse("s3cret-token-of-alice alice").unwrap();
    /// let both = SecurityRequirement { schemes: vec![("bearer".to_owned(), vec![]), ("apiKey".to_owned(), vec![])] };
    /// let server = Server::builder().agent(echo).tokens(tokens).api_key_header("X-API-Key").require(both).build()?;
    /// # drop(server);
    /// # Ok::<(), switchboard::ServeError>(())
    /// # }).unwrap();
    /// ```
    #[must_use]
    pub fn require(mut self, requirement: SecurityRequirement) -> Self {
        self.requirements.push(requirement);
        self
    }

    /// Lets every client call that reaches a public URL beyond this machine, without a token. All of them are one
    /// principal and share all tasks. Say so where an app of yours, or a proxy, has checked who calls.
    #[must_use]
    pub fn allow_unauthenticated(mut self, allowed: bool) -> Self {
        self.allow_unauthenticated = allowed;
        self
    }

    /// Tenants that callers without a token may name. The first is the default one.
    #[must_use]
    pub fn tenants<T: Into<String>>(mut self, tenants: impl IntoIterator<Item = T>) -> Self {
        self.tenants = tenants.into_iter().map(Into::into).collect();
        self
    }
}

/// Where the key that all callers share comes from.
pub(crate) enum ApiKey {
    Given(String),
    /// The variable that holds it.
    Named(String),
}

impl ApiKey {
    /// The key. What is wrong with it is said without it.
    pub(crate) fn read(self) -> Result<String, ServeError> {
        let (key, name) = match self {
            Self::Given(key) => (key, None),
            Self::Named(name) => {
                let missing =
                    || ServeError::new(format!("the variable {name}, which is to hold the API key, is not set"));
                (std::env::var(&name).map_err(|_| missing())?, Some(name))
            }
        };
        // Files that variables are read from end with a line break.
        let key = key.trim();
        if key.is_empty() {
            let place = name.map_or("it".to_owned(), |name| format!("the variable {name}"));
            return Err(ServeError::new(format!("the API key is empty; set {place} to a long random text")));
        }
        Ok(key.to_owned())
    }
}
