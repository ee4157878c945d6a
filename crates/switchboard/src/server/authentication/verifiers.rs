//! What is configured: reads the credentials of a request, has each verified, and decides whether they are enough. A credential that
//! is there and not good refuses the request, even if another one is good; so does one that is there twice, because it could be
//! read in two ways.

use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::header::{AUTHORIZATION, COOKIE};
use http::request::Parts;
use http::{HeaderMap, HeaderName, HeaderValue};
use switchboard_core::error::ProtocolError;
use switchboard_core::model::{SecurityRequirement, SecurityScheme, Timestamp};
use switchboard_engine::ports::Clock;
use switchboard_engine::system::SystemClock;

use super::certificate::ClientCertificate;
use super::claims::Claims;
use super::identity::Identity;
use super::issuer::{Issuer, TrustedIssuer, Verdict};
use super::key_set::KeySet;
use super::schemes::{SchemeSet, Schemes, lacks_scope};
use super::shared_secret::{SharedSecret, SignedCaller};
use super::tokens::Tokens;
use super::verified::{Hashed, Verified, VerifiedTokens};
use super::{BEARER_CHALLENGE, BEARER_HINT, Identified, unauthenticated};
use crate::jwt::Unverified;
use crate::reloaded::Reload;
use crate::server::uri::query_pairs;
use Failed::Bad;

/// Where the tokens of this server may stand beside the `Authorization` header.
#[derive(Clone, Debug, Default)]
pub(crate) struct ApiKeyPlaces {
    pub(crate) header: Option<HeaderName>,
    pub(crate) query: Option<String>,
    pub(crate) cookie: Option<String>,
}

impl ApiKeyPlaces {
    fn is_empty(&self) -> bool {
        self.header.is_none() && self.query.is_none() && self.cookie.is_none()
    }
}

/// The names of such places, as they were set.
#[derive(Clone, Debug, Default)]
pub(crate) struct ApiKeyNames {
    pub(crate) header: Option<String>,
    pub(crate) query: Option<String>,
    pub(crate) cookie: Option<String>,
}

/// Headers that mean something else.
const HEADERS_TAKEN: [&str; 6] = ["authorization", "cookie", "host", "origin", "content-type", "a2a-version"];
/// Query parameters that mean something else.
const PARAMETERS_TAKEN: [&str; 5] = ["tenant", "after", "historyLength", "pageSize", "pageToken"];

impl ApiKeyNames {
    /// # Errors
    /// When a name cannot be that of a header, a query parameter or a cookie, or means something else there.
    pub(crate) fn resolve(self) -> Result<Option<ApiKeyPlaces>, String> {
        let Self { header, query, cookie } = self;
        if header.is_none() && query.is_none() && cookie.is_none() {
            return Ok(None);
        }
        let header = header.map(|name| {
            let parsed = HeaderName::from_bytes(name.as_bytes()).ok();
            let free = parsed.filter(|parsed| !HEADERS_TAKEN.contains(&parsed.as_str()));
            free.ok_or_else(|| format!("{name:?} cannot be the header of API keys; use one such as X-API-Key"))
        });
        let is_token = |name: &str| {
            let is_letter = |letter: char| letter.is_ascii_alphanumeric() || "-_.".contains(letter);
            !name.is_empty() && name.chars().all(is_letter)
        };
        let check = |name: Option<String>, what: &str| match name {
            Some(name) if !is_token(&name) || PARAMETERS_TAKEN.contains(&name.as_str()) => {
                Err(format!("{name:?} cannot be the {what} of API keys; use one such as api_key"))
            }
            name => Ok(name),
        };
        let (query, cookie) = (check(query, "query parameter")?, check(cookie, "cookie")?);
        Ok(Some(ApiKeyPlaces { header: header.transpose()?, query, cookie }))
    }
}

/// Everything that callers may prove themselves by.
#[derive(Default)]
pub(crate) struct Verifiers {
    tokens: Option<Tokens>,
    basic: bool,
    api_keys: ApiKeyPlaces,
    shared_secret: Option<SharedSecret>,
    issuers: Vec<TrustedIssuer>,
    certificates: bool,
    verified: VerifiedTokens,
    schemes: Schemes,
    challenge: Option<HeaderValue>,
    hint: String,
}

/// A credential that is good: what it is, and whose.
type Proof = (SchemeSet, Arc<Identity>);

/// Why a credential proves nothing.
enum Failed {
    Bad,
    /// The keys of the issuer at this place have to be fetched first.
    KeysNeeded(usize),
    /// They cannot be fetched now.
    NoKeys,
}

/// Why it is not known who sends a request.
pub(crate) enum Unidentified {
    Refused(ProtocolError),
    /// It may be known once the keys of the issuer at this place were fetched.
    KeysNeeded(usize),
}

/// What is there of a credential: nothing, or whose it is.
type Found = Result<Option<Proof>, Failed>;

/// Every place where a credential may stand.
const PLACES: usize = 5;

impl Verifiers {
    pub(crate) fn add_tokens(&mut self, tokens: Tokens) {
        let described = "A token given out by the operator of this server";
        self.schemes.add("bearer", SchemeSet::BEARER, http_scheme(described, "Bearer", None));
        self.tokens = Some(tokens);
    }

    pub(crate) fn add_shared_secret(&mut self, secret: SharedSecret) {
        let described = "A token that the caller signs with the secret it shares with this server (HS256)";
        self.schemes.add("jwtBearer", SchemeSet::SHARED_SECRET, http_scheme(described, "Bearer", Some("JWT")));
        self.shared_secret = Some(secret);
    }

    /// # Errors
    /// When its settings are wrong, another scheme has its name, or there are too many of them.
    pub(crate) fn add_issuer(&mut self, issuer: Issuer) -> Result<(), String> {
        let issuer = issuer.resolve()?;
        let (name, declared) = issuer.declared();
        if self.schemes.has(&name) {
            return Err(format!("two security schemes are called {name:?}; give the issuers names (Issuer::named)"));
        }
        if self.issuers.len() >= SchemeSet::ISSUERS_MAX {
            return Err(format!("a server takes the tokens of at most {} issuers", SchemeSet::ISSUERS_MAX));
        }
        self.schemes.add(&name, SchemeSet::of_issuer(self.issuers.len()), declared);
        self.issuers.push(issuer);
        Ok(())
    }

    /// What was read from files.
    pub(super) fn sources(&self) -> Vec<Arc<dyn Reload>> {
        let mut sources: Vec<Arc<dyn Reload>> = self.tokens.iter().map(Tokens::source).collect();
        sources.extend(self.shared_secret.iter().flat_map(SharedSecret::sources));
        sources.extend(self.issuers.iter().map(|issuer| issuer.key_set.clone() as Arc<dyn Reload>));
        sources
    }

    /// The keys that have to be kept up to date while the server runs.
    pub(super) fn key_sets(&self) -> impl Iterator<Item = Arc<KeySet>> {
        self.issuers.iter().map(|issuer| issuer.key_set.clone())
    }

    pub(crate) fn add_basic(&mut self) {
        let described = "The principal of a token of this server as the name, and the token as the password";
        self.schemes.add("basic", SchemeSet::BASIC, http_scheme(described, "Basic", None));
        self.basic = true;
    }

    pub(crate) fn add_api_keys(&mut self, places: ApiKeyPlaces) {
        let mut add = |name: &str, set, location: &str, place: Option<&str>| {
            let Some(place) = place else { return };
            let description = Some("A token given out by the operator of this server".to_owned());
            let (location, place) = (location.to_owned(), place.to_owned());
            self.schemes.add(name, set, SecurityScheme::ApiKey { description, location, name: place });
        };
        add("apiKey", SchemeSet::API_KEY_HEADER, "header", places.header.as_ref().map(HeaderName::as_str));
        add("apiKeyQuery", SchemeSet::API_KEY_QUERY, "query", places.query.as_deref());
        add("apiKeyCookie", SchemeSet::API_KEY_COOKIE, "cookie", places.cookie.as_deref());
        self.api_keys = places;
    }

    pub(crate) fn add_certificates(&mut self) {
        let description = Some("A client certificate of an authority that this server trusts".to_owned());
        self.schemes.add("mtls", SchemeSet::CERTIFICATE, SecurityScheme::MutualTls { description });
        self.certificates = true;
    }

    /// Says what every caller must present, once everything was added.
    ///
    /// # Errors
    /// When a requirement names a scheme that was not.
    pub(crate) fn require(&mut self, requirements: Vec<SecurityRequirement>) -> Result<(), String> {
        self.schemes.require(requirements)?;
        let mut challenges: Vec<&str> = Vec::new();
        let mut hints: Vec<String> = Vec::new();
        if self.takes_bearer() {
            challenges.push("Bearer realm=\"switchboard\"");
            hints.push(BEARER_HINT.to_owned());
        }
        if self.basic {
            challenges.push("Basic realm=\"switchboard\", charset=\"UTF-8\"");
            hints.push("your name and your token by HTTP Basic".to_owned());
        }
        let ApiKeyPlaces { header, query, cookie } = &self.api_keys;
        hints.extend(header.as_ref().map(|name| format!("a token in the header {name}")));
        hints.extend(query.as_ref().map(|name| format!("a token in the query parameter {name}")));
        hints.extend(cookie.as_ref().map(|name| format!("a token in the cookie {name}")));
        if self.certificates {
            hints.push("a client certificate in the TLS handshake".to_owned());
        }
        // There is no registered challenge for certificates, and every refusal with 401 has one (RFC 9110, 15.5.2).
        if challenges.is_empty() {
            challenges.push("Certificate realm=\"switchboard\"");
        }
        self.challenge = HeaderValue::from_str(&challenges.join(", ")).ok();
        self.hint = hints.join(", or ");
        Ok(())
    }

    fn takes_bearer(&self) -> bool {
        self.tokens.is_some() || self.takes_jwt()
    }

    fn takes_jwt(&self) -> bool {
        self.shared_secret.is_some() || !self.issuers.is_empty()
    }

    /// Whether there is nothing to prove oneself by.
    pub(crate) fn is_empty(&self) -> bool {
        !self.takes_bearer() && !self.certificates
    }

    /// Whether callers may prove themselves by what other parties gave out.
    pub(crate) fn takes_foreign_credentials(&self) -> bool {
        self.takes_jwt() || self.certificates
    }

    /// How to log in here: the value of `WWW-Authenticate`.
    pub(crate) fn challenge(&self) -> HeaderValue {
        self.challenge.clone().unwrap_or(BEARER_CHALLENGE)
    }

    /// The header that tokens may stand in beside `Authorization`.
    pub(crate) fn api_key_header(&self) -> Option<&HeaderName> {
        self.api_keys.header.as_ref()
    }

    pub(crate) fn shared_secret(&self) -> Option<&SharedSecret> {
        self.shared_secret.as_ref()
    }

    pub(crate) fn tokens(&self) -> Option<&Tokens> {
        self.tokens.as_ref()
    }

    pub(crate) fn schemes(&self) -> &Schemes {
        &self.schemes
    }

    pub(crate) fn refusal(&self) -> ProtocolError {
        unauthenticated(&self.hint)
    }

    pub(crate) fn set_addresses<'a>(&mut self, urls: impl Iterator<Item = &'a str>) {
        if let Some(secret) = &mut self.shared_secret {
            secret.set_addresses(urls);
        }
    }

    /// Who sends a request.
    pub(crate) fn identify(&self, head: &Parts, now: Timestamp) -> Result<Identified, Unidentified> {
        let decided = match self.api_keys.is_empty() && !self.certificates {
            true => self.authorization(head, now).map(|proof| self.decide(&[proof])),
            false => self.proofs(head, now).map(|proofs| self.decide(&proofs)),
        };
        let decided = decided.map_err(|failed| match failed {
            Bad => Unidentified::Refused(self.refusal()),
            Failed::KeysNeeded(issuer) => Unidentified::KeysNeeded(issuer),
            Failed::NoKeys => Unidentified::Refused(no_keys()),
        })?;
        decided.map_err(Unidentified::Refused)
    }

    /// Who sends a request, once the keys that are missing were fetched.
    pub(crate) async fn ask(&self, head: &Parts, wait_s_max: u32) -> Result<Identified, ProtocolError> {
        let now = || SystemClock.now();
        let place = match self.identify(head, now()) {
            Ok(identified) => return Ok(identified),
            Err(Unidentified::Refused(error)) => return Err(error),
            Err(Unidentified::KeysNeeded(place)) => place,
        };
        let Some(issuer) = self.issuers.get(place) else { return Err(self.refusal()) };
        issuer.key_set.ask(Duration::from_secs(u64::from(wait_s_max))).await;
        self.identify(head, now()).map_err(|unidentified| match unidentified {
            Unidentified::Refused(error) => error,
            Unidentified::KeysNeeded(_) if issuer.key_set.has_keys() => self.refusal(),
            Unidentified::KeysNeeded(_) => no_keys(),
        })
    }

    fn proofs(&self, head: &Parts, now: Timestamp) -> Result<[Option<Proof>; PLACES], Failed> {
        let ApiKeyPlaces { header, query, cookie } = &self.api_keys;
        Ok([
            self.authorization(head, now)?,
            match header {
                Some(name) => self.api_key(only(&head.headers, name)?, SchemeSet::API_KEY_HEADER)?,
                None => None,
            },
            match query {
                Some(name) => {
                    let key = query_key(head, name)?;
                    self.api_key(key.as_deref().map(str::as_bytes), SchemeSet::API_KEY_QUERY)?
                }
                None => None,
            },
            match cookie {
                Some(name) => {
                    self.api_key(cookie_key(&head.headers, name)?.map(str::as_bytes), SchemeSet::API_KEY_COOKIE)?
                }
                None => None,
            },
            if self.certificates { certificate(head, now)? } else { None },
        ])
    }

    /// Whether what was proven is enough, and who the caller is by it.
    fn decide(&self, proofs: &[Option<Proof>]) -> Result<Identified, ProtocolError> {
        let proven = proofs.iter().flatten().fold(SchemeSet::NONE, |proven, (scheme, _)| proven.and(*scheme));
        let mut lacks = false;
        for requirement in self.schemes.requirements() {
            if !proven.contains(requirement.schemes) {
                continue;
            }
            let of = |wanted: SchemeSet| proofs.iter().flatten().find(move |(scheme, _)| *scheme == wanted);
            let Some((_, first)) = of(requirement.first) else { continue };
            let identity = match requirement.first == requirement.schemes {
                true => first.clone(),
                false => Arc::new(together(first, proofs, requirement.schemes)),
            };
            if requirement.has_scopes(&identity) {
                return Ok(Identified::Known(identity, proven));
            }
            lacks = true;
        }
        Err(if lacks { lacks_scope() } else { self.refusal() })
    }

    fn authorization(&self, head: &Parts, now: Timestamp) -> Found {
        if !self.takes_bearer() && !self.basic {
            return Ok(None);
        }
        let Some(value) = only(&head.headers, &AUTHORIZATION)? else { return Ok(None) };
        if let Some(token) = credential_of(b"bearer", value) {
            return self.bearer(token, head, now).map(Some);
        }
        match credential_of(b"basic", value).filter(|_| self.basic) {
            Some(credential) => self.basic(credential).map(Some).ok_or(Bad),
            None => Err(Bad),
        }
    }

    fn bearer(&self, token: &[u8], head: &Parts, now: Timestamp) -> Result<Proof, Failed> {
        if !self.takes_jwt() {
            return self.token(token).map(|identity| (SchemeSet::BEARER, identity)).ok_or(Bad);
        }
        let hashed = self.verified.hashed(token);
        if let Some(Verified { identity, scheme, generation }) = self.verified.get(hashed, now)
            && self.generation(scheme) == generation
        {
            return Ok((scheme, identity));
        }
        if let Some(identity) = self.token(token) {
            return Ok((SchemeSet::BEARER, identity));
        }
        let token = Unverified::read(token).ok_or(Bad)?;
        match token.header.alg.starts_with("HS") {
            true => self.shared(&token, hashed, head, now).ok_or(Bad),
            false => self.issued(&token, hashed, now),
        }
    }

    /// Of the keys that tokens of this scheme are verified with.
    fn generation(&self, scheme: SchemeSet) -> u64 {
        if scheme == SchemeSet::SHARED_SECRET {
            return self.shared_secret.as_ref().map_or(0, SharedSecret::generation);
        }
        let issuer = self.issuers.iter().enumerate().find(|(place, _)| SchemeSet::of_issuer(*place) == scheme);
        issuer.map_or(0, |(_, issuer)| issuer.key_set.generation())
    }

    /// A token that its caller has signed.
    fn shared(&self, token: &Unverified<'_>, hashed: Hashed<'_>, head: &Parts, now: Timestamp) -> Option<Proof> {
        // Read before the secrets are: a token that is verified with older ones is verified once more.
        let generation = self.generation(SchemeSet::SHARED_SECRET);
        let SignedCaller { identity, is_for_all } = self.shared_secret.as_ref()?.verify(token, head, now)?;
        let (identity, scheme) = (Arc::new(identity), SchemeSet::SHARED_SECRET);
        if is_for_all {
            self.verified.saw(hashed, Verified { identity: identity.clone(), scheme, generation });
        }
        Some((scheme, identity))
    }

    /// A token of an identity provider.
    fn issued(&self, token: &Unverified<'_>, hashed: Hashed<'_>, now: Timestamp) -> Result<Proof, Failed> {
        if self.issuers.is_empty() {
            return Err(Bad);
        }
        let claims = Claims::read(&token.claims).ok_or(Bad)?;
        let issuer = self.issuers.iter().enumerate().find(|(_, issuer)| issuer.is_of(&claims));
        let (place, issuer) = issuer.ok_or(Bad)?;
        // Read before the keys are: a token that is verified with older ones is verified once more.
        let generation = issuer.key_set.generation();
        let identity = match issuer.verify(token, &claims, now) {
            Verdict::Good(identity) => identity,
            Verdict::Bad => return Err(Bad),
            Verdict::KeysNeeded => return Err(Failed::KeysNeeded(place)),
            Verdict::NoKeys => return Err(Failed::NoKeys),
        };
        let scheme = SchemeSet::of_issuer(place);
        self.verified.saw(hashed, Verified { identity: identity.clone(), scheme, generation });
        Ok((scheme, identity))
    }

    /// The password is a token, and the name is the principal that it proves.
    fn basic(&self, credential: &[u8]) -> Option<Proof> {
        let decoded = STANDARD.decode(credential).ok()?;
        let (name, password) = std::str::from_utf8(&decoded).ok()?.split_once(':')?;
        let identity = self.token(password.as_bytes())?;
        (identity.principal.as_str() == name).then_some((SchemeSet::BASIC, identity))
    }

    fn api_key(&self, key: Option<&[u8]>, scheme: SchemeSet) -> Found {
        let Some(key) = key else { return Ok(None) };
        self.token(key).map(|identity| Some((scheme, identity))).ok_or(Bad)
    }

    fn token(&self, token: &[u8]) -> Option<Arc<Identity>> {
        self.tokens.as_ref()?.find(token)
    }
}

fn http_scheme(description: &str, scheme: &str, format: Option<&str>) -> SecurityScheme {
    SecurityScheme::Http {
        description: Some(description.to_owned()),
        scheme: scheme.to_owned(),
        bearer_format: format.map(str::to_owned),
    }
}

/// The refusal of a token that nobody can verify at the moment.
fn no_keys() -> ProtocolError {
    let reason = "the keys that your token is verified with are not to be had at the moment".to_owned();
    ProtocolError::Unavailable { reason, retry_after_s: 5 }
}

/// The caller by several credentials: the name is that of the first; it may do what it may do by any of them, until the first of
/// them ends.
fn together(first: &Identity, proofs: &[Option<Proof>], schemes: SchemeSet) -> Identity {
    let mut identity = first.clone();
    let mut scopes = identity.scopes.to_vec();
    for (_, other) in proofs.iter().flatten().filter(|(scheme, _)| schemes.contains(*scheme)) {
        identity.expires = [identity.expires, other.expires].into_iter().flatten().min();
        identity.revocation = identity.revocation.and(&other.revocation);
        let new = other.scopes.iter().filter(|scope| !scopes.contains(scope));
        scopes.extend(new.cloned().collect::<Vec<_>>());
    }
    Identity { scopes: scopes.into(), ..identity }
}

/// A connection may last longer than the certificate that it began with.
fn certificate(head: &Parts, now: Timestamp) -> Found {
    let Some(shown) = head.extensions.get::<ClientCertificate>() else { return Ok(None) };
    let is_good = shown.identity().expires.is_none_or(|expires| expires > now);
    if is_good { Ok(Some((SchemeSet::CERTIFICATE, shown.identity().clone()))) } else { Err(Bad) }
}

/// What follows the name of a scheme in an `Authorization` header, if it is of this one.
fn credential_of<'a>(scheme: &[u8], value: &'a [u8]) -> Option<&'a [u8]> {
    let (named, credential) = value.split_at_checked(scheme.len())?;
    named.eq_ignore_ascii_case(scheme).then_some(credential)?.strip_prefix(b" ").map(<[u8]>::trim_ascii)
}

/// The value of a header that is there at most once. Whether it is text shows when something is made of it.
fn only<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Result<Option<&'a [u8]>, Failed> {
    let mut given = headers.get_all(name).iter();
    match (given.next(), given.next()) {
        (None, _) => Ok(None),
        (Some(value), None) => Ok(Some(value.as_bytes())),
        (Some(_), Some(_)) => Err(Bad),
    }
}

fn query_key(head: &Parts, name: &str) -> Result<Option<String>, Failed> {
    let Some(query) = head.uri.query() else { return Ok(None) };
    let mut found = query_pairs(query).ok_or(Bad)?.into_iter().filter(|(key, _)| key == name);
    match (found.next(), found.next()) {
        (None, _) => Ok(None),
        (Some((_, value)), None) => Ok(Some(value.into_owned())),
        (Some(_), Some(_)) => Err(Bad),
    }
}

/// HTTP/2 may send each cookie in a header of its own (RFC 9113, 8.2.3).
fn cookie_key<'a>(headers: &'a HeaderMap, name: &str) -> Result<Option<&'a str>, Failed> {
    let mut found = None;
    for line in headers.get_all(COOKIE) {
        for pair in line.to_str().map_err(|_| Bad)?.split(';') {
            let (key, value) = pair.trim().split_once('=').unwrap_or((pair.trim(), ""));
            if key == name && found.replace(value.trim_matches('"')).is_some() {
                return Err(Bad);
            }
        }
    }
    Ok(found)
}

#[cfg(test)]
#[path = "verifiers_tests.rs"]
mod tests;
