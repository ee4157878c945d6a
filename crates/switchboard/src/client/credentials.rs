//! What proves to an agent who calls, and in which form its card asks for it. A secret is never shown by `Debug`, and travels in
//! headers that are marked as sensitive, which a redirect to another origin leaves out.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::header::{AUTHORIZATION, COOKIE};
use http::{HeaderMap, HeaderName, HeaderValue};
use switchboard_core::model::{AgentCard, SecurityRequirement, SecurityScheme};

use super::http::{Http, Named};
use super::oauth::{OAuthClient, StoredToken, TokenSource};
use super::signed_token::SignedTokens;
use super::wall_clock;
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
    /// Bearer tokens that are made when they are needed. They come before the one that was given.
    signed: Option<SignedTokens>,
    oauth: Option<TokenSource>,
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let hidden = |is_there: bool| if is_there { "(hidden)" } else { "none" };
        f.debug_struct("Credentials")
            .field("bearer", &hidden(self.bearer.is_some()))
            .field("basic", &hidden(self.basic.is_some()))
            .field("api_keys", &self.api_keys.iter().map(|(name, _)| name).collect::<Vec<_>>())
            .field("headers", &self.headers.iter().map(|(name, _)| name).collect::<Vec<_>>())
            .field("signed", &self.signed)
            .field("oauth", &self.oauth)
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

    /// Bearer tokens of OAuth 2.0 or OpenID Connect that the application gets in its own name (client credentials), from the
    /// authorization server that the card names. They are renewed when they expire, and once when an agent refuses one.
    #[must_use]
    pub fn oauth(client: OAuthClient) -> Self {
        Self::none().and_oauth(client)
    }

    /// A token of a login ([`Client::login`](super::Client::login)). If it can be renewed, it is, before it expires and once when an
    /// agent refuses it; [`stored_token`](Self::stored_token) then has the new one.
    #[must_use]
    pub fn token(client: OAuthClient, token: StoredToken) -> Self {
        Self::none().and_token(client, token)
    }

    /// Bearer tokens that the caller signs itself, as apps of the agent-native framework do.
    #[must_use]
    pub fn signed(tokens: SignedTokens) -> Self {
        Self::none().and_signed(tokens)
    }

    /// Adds tokens of OAuth 2.0, as [`oauth`](Self::oauth).
    #[must_use]
    pub fn and_oauth(mut self, client: OAuthClient) -> Self {
        self.oauth = Some(TokenSource::client_credentials(client));
        self
    }

    /// Adds the token of a login, as [`token`](Self::token).
    #[must_use]
    pub fn and_token(mut self, client: OAuthClient, token: StoredToken) -> Self {
        self.oauth = Some(TokenSource::given(client, token));
        self
    }

    /// Adds tokens that the caller signs itself, as [`signed`](Self::signed).
    #[must_use]
    pub fn and_signed(mut self, tokens: SignedTokens) -> Self {
        self.signed = Some(tokens);
        self
    }

    /// The newest token of [`oauth`](Self::oauth) or [`token`](Self::token), for a program that keeps it.
    #[must_use]
    pub fn stored_token(&self) -> Option<StoredToken> {
        self.oauth.as_ref().and_then(TokenSource::newest)
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
        let is_static = self.basic.is_some() || !self.api_keys.is_empty() || !self.headers.is_empty();
        !is_static && !self.has_bearer()
    }

    /// Whether there is a token of any kind.
    fn has_bearer(&self) -> bool {
        self.bearer.is_some() || self.oauth.is_some() || self.signed.as_ref().is_some_and(|signed| signed.count() > 0)
    }

    /// What to send to the agent of this card, with this bearer token where one is asked for.
    fn for_card(&self, asked: &Asked<'_>, bearer: Option<&str>) -> Result<Proof, CallError> {
        let Asked { card, has_certificate } = asked;
        let mut proof = Proof::default();
        for (name, value) in &self.headers {
            proof.put(name, value)?;
        }
        let schemes = &card.security_schemes;
        let find = |name: &str| schemes.iter().find(|(known, _)| known == name).map(|(_, scheme)| scheme);
        let fits = |requirement: &&SecurityRequirement| {
            let mut named = requirement.schemes.iter();
            let has = |name: &str| find(name).is_some_and(|scheme| self.has(name, scheme, *has_certificate));
            named.all(|(name, _)| has(name))
        };
        if let Some(requirement) = card.security_requirements.iter().find(fits) {
            for (name, _) in &requirement.schemes {
                if let Some(scheme) = find(name) {
                    self.prove(name, scheme, bearer, &mut proof)?;
                }
            }
            return Ok(proof);
        }
        // A card that lists schemes and requires none of them is taken to mean any one of them.
        if let Some((name, scheme)) = schemes.iter().find(|(name, scheme)| self.has(name, scheme, false)) {
            self.prove(name, scheme, bearer, &mut proof)?;
            return Ok(proof);
        }
        self.prove_unasked(bearer, &mut proof)?;
        Ok(proof)
    }

    fn key(&self, scheme: &str, place: &str) -> Option<&str> {
        let of = |name: &str| self.api_keys.iter().find(|(known, _)| known.as_deref() == Some(name));
        let any = || self.api_keys.iter().find(|(known, _)| known.is_none());
        of(scheme).or_else(|| of(place)).or_else(any).map(|(_, key)| key.as_str())
    }

    fn has(&self, name: &str, scheme: &SecurityScheme, has_certificate: bool) -> bool {
        match scheme {
            SecurityScheme::ApiKey { name: place, .. } => self.key(name, place).is_some(),
            SecurityScheme::Http { scheme, .. } if scheme.eq_ignore_ascii_case("basic") => self.basic.is_some(),
            SecurityScheme::Http { scheme, .. } => scheme.eq_ignore_ascii_case("bearer") && self.has_bearer(),
            SecurityScheme::OAuth2 { .. } | SecurityScheme::OpenIdConnect { .. } => self.has_bearer(),
            SecurityScheme::MutualTls { .. } => has_certificate,
        }
    }

    fn prove(
        &self,
        name: &str,
        scheme: &SecurityScheme,
        bearer: Option<&str>,
        proof: &mut Proof,
    ) -> Result<(), CallError> {
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
                proof.put_bearer(bearer)
            }
            SecurityScheme::MutualTls { .. } => Ok(()),
        }
    }

    fn prove_unasked(&self, bearer: Option<&str>, proof: &mut Proof) -> Result<(), CallError> {
        match self.has_bearer() {
            true => proof.put_bearer(bearer)?,
            false => self.prove_basic(proof)?,
        }
        match self.key(API_KEY.as_str(), API_KEY.as_str()) {
            Some(key) => proof.put(API_KEY.as_str(), key),
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

/// What an agent asks for, and what is proved without a header.
struct Asked<'a> {
    card: &'a AgentCard,
    /// Whether the client has a certificate, which TLS shows.
    has_certificate: bool,
}

/// Proves to one agent who calls, for as long as a call or its stream takes: tokens are made when they are needed, and others when the
/// agent refuses them.
pub(super) struct Prover {
    credentials: Credentials,
    card: Arc<AgentCard>,
    named: Named,
    /// Which of the candidates for a bearer token is shown.
    attempt: AtomicUsize,
}

impl Prover {
    pub(super) fn new(credentials: Credentials, card: Arc<AgentCard>, named: Named) -> Self {
        Self { credentials, card, named, attempt: AtomicUsize::new(0) }
    }

    /// Whether the caller signs its tokens itself.
    pub(super) fn signs(&self) -> bool {
        self.credentials.signed.as_ref().is_some_and(|signed| signed.count() > 0)
    }

    /// Whether there is nothing to show, whatever the agent asks for.
    pub(super) fn is_empty(&self) -> bool {
        self.credentials.is_empty()
    }

    /// What to send now.
    pub(super) async fn proof(&self, http: &Http) -> Result<Proof, CallError> {
        self.proof_without(http, None).await
    }

    async fn proof_without(&self, http: &Http, refused: Option<&str>) -> Result<Proof, CallError> {
        let Self { credentials, card, named, .. } = self;
        let asked = Asked { card, has_certificate: http.has_certificate };
        let given = credentials.for_card(&asked, credentials.bearer.as_deref())?;
        if !given.asks_for_bearer {
            return Ok(given);
        }
        let attempt = self.attempt.load(Ordering::Relaxed);
        let signed = credentials.signed.as_ref().filter(|signed| attempt < signed.count());
        if let Some((token, secret)) = signed.and_then(|signed| signed.token(attempt, wall_clock::now_s())) {
            return Ok(Proof { made: Made::Signed(secret), ..credentials.for_card(&asked, Some(&token))? });
        }
        if let Some(source) = &credentials.oauth {
            // Boxed, so that the futures of calls without such a token stay small.
            let token = Box::pin(source.token(http, card, named, refused)).await?;
            let proof = credentials.for_card(&asked, Some(&token))?;
            return Ok(Proof { made: Made::Issued { token, is_renewed: refused.is_some() }, ..proof });
        }
        Ok(given)
    }

    /// The agent took the proof.
    pub(super) fn believed(&self, proof: &Proof) {
        if let (Made::Signed(secret), Some(signed)) = (&proof.made, &self.credentials.signed) {
            signed.remember(*secret);
        }
    }

    /// What to send after the agent refused a proof; none if there is nothing else to show.
    pub(super) async fn after_refusal(&self, http: &Http, refused: &Proof) -> Result<Option<Proof>, CallError> {
        let Credentials { bearer, signed, oauth, .. } = &self.credentials;
        match &refused.made {
            Made::Given => Ok(None),
            Made::Signed(_) => {
                let next = self.attempt.load(Ordering::Relaxed) + 1;
                let has_next = signed.as_ref().is_some_and(|signed| next < signed.count());
                if !has_next && oauth.is_none() && bearer.is_none() {
                    return Ok(None);
                }
                self.attempt.store(next, Ordering::Relaxed);
                self.proof(http).await.map(Some)
            }
            // One refusal may mean that the token was withdrawn; a second one, that no token will do.
            Made::Issued { token, is_renewed } => match oauth {
                Some(source) if !is_renewed && source.can_renew() => {
                    self.proof_without(http, Some(token)).await.map(Some)
                }
                Some(_) | None => Ok(None),
            },
        }
    }
}

/// Credentials in the form that they are sent in.
#[derive(Clone, Default)]
pub(super) struct Proof {
    pub(super) headers: HeaderMap,
    /// Parameters of the query.
    pub(super) query: Vec<(String, String)>,
    /// Whether a bearer token is asked for.
    asks_for_bearer: bool,
    made: Made,
}

/// Where the bearer token of a proof came from.
#[derive(Clone, Default)]
enum Made {
    /// The user gave it, or there is none.
    #[default]
    Given,
    /// It was signed with this secret.
    Signed(usize),
    /// An authorization server issued it; it may be in place of one that the agent refused.
    Issued { token: String, is_renewed: bool },
}

impl Proof {
    fn put_bearer(&mut self, bearer: Option<&str>) -> Result<(), CallError> {
        self.asks_for_bearer = true;
        match bearer {
            Some(token) => self.put(AUTHORIZATION.as_str(), &format!("Bearer {token}")),
            None => Ok(()),
        }
    }

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
