//! What proves to an agent who calls, and in which form its card asks for it. A secret is never shown by `Debug`, and travels in
//! headers that are marked as sensitive, which a redirect to another origin leaves out.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::header::{AUTHORIZATION, COOKIE};
use http::{HeaderMap, HeaderName, HeaderValue};
use switchboard_core::model::{AgentCard, SecurityRequirement, SecurityScheme};

use crate::call_error::{CallError, CallErrorKind};

/// The header of an API key where the card does not name one.
const API_KEY: HeaderName = HeaderName::from_static("x-api-key");

/// What proves to an agent who calls. Several can be held; which is sent, and where, is chosen by the security schemes of the card.
/// Where a card says nothing about it, all are sent: a token or password as `Authorization`, a key as `X-API-Key`.
///
/// ```
/// use switchboard::client::Credentials;
///
/// let credentials = Credentials::bearer("s3cret").and_api_key("k3y").and_header("x-team", "blue");
/// assert!(!format!("{credentials:?}").contains("s3cret"));
/// ```
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Credentials {
    bearer: Option<String>,
    basic: Option<(String, String)>,
    /// Each with the name of its scheme, or of its header, parameter or cookie; none fits all.
    api_keys: Vec<(Option<String>, String)>,
    /// Sent as they are, whatever the card says.
    headers: Vec<(String, String)>,
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let hidden = |is_there: bool| if is_there { "(hidden)" } else { "none" };
        f.debug_struct("Credentials")
            .field("bearer", &hidden(self.bearer.is_some()))
            .field("basic", &hidden(self.basic.is_some()))
            .field("api_keys", &self.api_keys.iter().map(|(name, _)| name).collect::<Vec<_>>())
            .field("headers", &self.headers.iter().map(|(name, _)| name).collect::<Vec<_>>())
            .finish()
    }
}

impl Credentials {
    /// None at all.
    #[must_use]
    pub fn none() -> Self {
        Self::default()
    }

    /// A bearer token. It also serves for schemes of OAuth 2.0 and OpenID Connect.
    #[must_use]
    pub fn bearer(token: impl Into<String>) -> Self {
        Self::none().and_bearer(token)
    }

    /// A user name and password.
    #[must_use]
    pub fn basic(user: impl Into<String>, password: impl Into<String>) -> Self {
        Self::none().and_basic(user, password)
    }

    /// An API key, for whichever place the card asks for one in.
    #[must_use]
    pub fn api_key(key: impl Into<String>) -> Self {
        Self::none().and_api_key(key)
    }

    /// A header that is sent with every call, whatever the card says.
    #[must_use]
    pub fn header(name: impl Into<String>, value: impl Into<String>) -> Self {
        Self::none().and_header(name, value)
    }

    /// Adds a bearer token.
    #[must_use]
    pub fn and_bearer(mut self, token: impl Into<String>) -> Self {
        self.bearer = Some(token.into());
        self
    }

    /// Adds a user name and password.
    #[must_use]
    pub fn and_basic(mut self, user: impl Into<String>, password: impl Into<String>) -> Self {
        self.basic = Some((user.into(), password.into()));
        self
    }

    /// Adds an API key.
    #[must_use]
    pub fn and_api_key(mut self, key: impl Into<String>) -> Self {
        self.api_keys.push((None, key.into()));
        self
    }

    /// Adds an API key for the scheme of this name, or for the header, parameter or cookie of this name.
    #[must_use]
    pub fn and_api_key_for(mut self, name: impl Into<String>, key: impl Into<String>) -> Self {
        self.api_keys.push((Some(name.into()), key.into()));
        self
    }

    /// Adds a header that is sent with every call, whatever the card says.
    #[must_use]
    pub fn and_header(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.headers.push((name.into(), value.into()));
        self
    }

    /// Whether something secret would be sent.
    pub(super) fn is_empty(&self) -> bool {
        self.bearer.is_none() && self.basic.is_none() && self.api_keys.is_empty() && self.headers.is_empty()
    }

    /// What to send to the agent of this card.
    pub(super) fn for_card(&self, card: &AgentCard) -> Result<Proof, CallError> {
        let mut proof = Proof::default();
        for (name, value) in &self.headers {
            proof.put(name, value)?;
        }
        let schemes = &card.security_schemes;
        let find = |name: &str| schemes.iter().find(|(known, _)| known == name).map(|(_, scheme)| scheme);
        let fits = |requirement: &&SecurityRequirement| {
            let mut named = requirement.schemes.iter();
            named.all(|(name, _)| find(name).is_some_and(|scheme| self.has(name, scheme)))
        };
        if let Some(requirement) = card.security_requirements.iter().find(fits) {
            for (name, _) in &requirement.schemes {
                if let Some(scheme) = find(name) {
                    self.prove(name, scheme, &mut proof)?;
                }
            }
            return Ok(proof);
        }
        // A card that lists schemes and requires none of them is taken to mean any one of them.
        if let Some((name, scheme)) = schemes.iter().find(|(name, scheme)| self.has(name, scheme)) {
            self.prove(name, scheme, &mut proof)?;
            return Ok(proof);
        }
        self.prove_unasked(&mut proof)?;
        Ok(proof)
    }

    /// What to send where no card says what is asked for.
    pub(super) fn without_card(&self) -> Result<Proof, CallError> {
        self.for_card(&AgentCard::default())
    }

    fn key(&self, scheme: &str, place: &str) -> Option<&str> {
        let of = |name: &str| self.api_keys.iter().find(|(known, _)| known.as_deref() == Some(name));
        let any = || self.api_keys.iter().find(|(known, _)| known.is_none());
        of(scheme).or_else(|| of(place)).or_else(any).map(|(_, key)| key.as_str())
    }

    fn has(&self, name: &str, scheme: &SecurityScheme) -> bool {
        match scheme {
            SecurityScheme::ApiKey { name: place, .. } => self.key(name, place).is_some(),
            SecurityScheme::Http { scheme, .. } if scheme.eq_ignore_ascii_case("basic") => self.basic.is_some(),
            SecurityScheme::Http { scheme, .. } => scheme.eq_ignore_ascii_case("bearer") && self.bearer.is_some(),
            SecurityScheme::OAuth2 { .. } | SecurityScheme::OpenIdConnect { .. } => self.bearer.is_some(),
            SecurityScheme::MutualTls { .. } => false,
        }
    }

    fn prove(&self, name: &str, scheme: &SecurityScheme, proof: &mut Proof) -> Result<(), CallError> {
        match scheme {
            SecurityScheme::ApiKey { name: place, location, .. } => {
                let key = self.key(name, place).unwrap_or_default();
                match location.as_str() {
                    "query" => proof.query.push((place.clone(), key.to_owned())),
                    "cookie" => proof.put(COOKIE.as_str(), &format!("{place}={key}"))?,
                    _ => proof.put(place, key)?,
                }
                Ok(())
            }
            SecurityScheme::Http { scheme, .. } if scheme.eq_ignore_ascii_case("basic") => self.prove_basic(proof),
            SecurityScheme::Http { .. } | SecurityScheme::OAuth2 { .. } | SecurityScheme::OpenIdConnect { .. } => {
                self.prove_bearer(proof)
            }
            SecurityScheme::MutualTls { .. } => Ok(()),
        }
    }

    fn prove_unasked(&self, proof: &mut Proof) -> Result<(), CallError> {
        match self.bearer {
            Some(_) => self.prove_bearer(proof)?,
            None => self.prove_basic(proof)?,
        }
        match self.key(API_KEY.as_str(), API_KEY.as_str()) {
            Some(key) => proof.put(API_KEY.as_str(), key),
            None => Ok(()),
        }
    }

    fn prove_bearer(&self, proof: &mut Proof) -> Result<(), CallError> {
        match &self.bearer {
            Some(token) => proof.put(AUTHORIZATION.as_str(), &format!("Bearer {token}")),
            None => Ok(()),
        }
    }

    fn prove_basic(&self, proof: &mut Proof) -> Result<(), CallError> {
        match &self.basic {
            Some((user, password)) => {
                let pair = STANDARD.encode(format!("{user}:{password}"));
                proof.put(AUTHORIZATION.as_str(), &format!("Basic {pair}"))
            }
            None => Ok(()),
        }
    }
}

/// Credentials in the form that they are sent in.
#[derive(Clone, Default)]
pub(super) struct Proof {
    pub(super) headers: HeaderMap,
    /// Parameters of the query.
    pub(super) query: Vec<(String, String)>,
}

impl Proof {
    fn put(&mut self, name: &str, value: &str) -> Result<(), CallError> {
        // The text names no value, because it is secret.
        let unfit =
            || CallError::new(CallErrorKind::InvalidRequest, format!("the credential for {name} is no header value"));
        let header = HeaderName::from_bytes(name.as_bytes()).map_err(|_| unfit())?;
        let mut value = HeaderValue::from_str(value).map_err(|_| unfit())?;
        value.set_sensitive(true);
        self.headers.insert(header, value);
        Ok(())
    }

    pub(super) fn is_empty(&self) -> bool {
        self.headers.is_empty() && self.query.is_empty()
    }
}

#[cfg(test)]
#[path = "credentials_tests.rs"]
mod tests;
