//! Tokens that callers sign themselves with a secret that both sides know (`A2A_SECRET`), as the apps of agent-native do: JSON Web
//! Tokens with HS256. The client's side is `client::SignedTokens`.
//!
//! A token is good under the secret that all apps share or, if it names an organization (`org_domain`), under the secret of that
//! one. Whoever knows the secret of an organization can sign for each of its members and for nobody else: the organization is the
//! tenant. Stricter than the original: HS256 alone, and a token must say when it expires.

use std::collections::HashMap;
use std::fmt;
use std::io::Read;
use std::path::Path;

use aws_lc_rs::hmac;
use http::Uri;
use http::request::Parts;
use serde::Deserialize;
use serde_json::Value;
use switchboard_core::model::Timestamp;

use super::Identity;
use super::jwt::{Audiences, Unverified, is_name, seconds};
use crate::server::edge::paths::check_name;

/// Who vouches for the callers: everybody who knows the secret.
const ISSUER: &str = "a2a-secret";
/// Shorter secrets can be found by trying, since each token shows what one makes of it.
const SECRET_BYTES_MIN: usize = 16;
/// A larger file cannot be a list of secrets.
const ORG_SECRETS_BYTES_MAX: u64 = 1 << 20;

/// The secrets that the tokens of callers are signed with: one that all apps share, those of organizations, or both.
///
/// ```
/// use switchboard::{AgentBuilder, Server, SharedSecret, Turn};
///
/// let echo = AgentBuilder::from_fn("Echo", |turn: Turn| async move { Ok(turn.answer(turn.text()).await?) });
/// let secrets = SharedSecret::new("a-long-random-text").with_org("example.com", "another-random-text");
/// # tokio::runtime::Runtime::new().unwrap().block_on(async {
/// let server = Server::builder().agent(echo).shared_secret(secrets).build()?;
/// # drop(server);
/// # Ok::<(), switchboard::ServeError>(())
/// # }).unwrap();
/// ```
#[derive(Clone, Default)]
pub struct SharedSecret {
    global: Option<hmac::Key>,
    /// By domain, in lower case.
    orgs: HashMap<String, hmac::Key>,
    is_short: bool,
    /// The addresses of this server that a token may be bound to.
    audiences: Vec<String>,
}

impl fmt::Debug for SharedSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SharedSecret").field("orgs", &self.orgs.len()).finish_non_exhaustive()
    }
}

/// Why a list of the secrets of organizations cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OrgSecretsError(String);

impl fmt::Display for OrgSecretsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for OrgSecretsError {}

/// What a token says.
#[derive(Deserialize)]
struct Claims {
    sub: Option<String>,
    org_domain: Option<String>,
    iss: Option<String>,
    aud: Option<Audiences>,
    exp: Option<Value>,
    nbf: Option<Value>,
    scope: Option<String>,
}

impl SharedSecret {
    /// The secret that all apps share. Spaces around it do not count.
    #[must_use]
    pub fn new(secret: impl AsRef<str>) -> Self {
        let mut made = Self::default();
        made.global = made.key(secret.as_ref());
        made
    }

    /// The secret of one organization, which is good for tokens that name its domain.
    #[must_use]
    pub fn with_org(mut self, domain: impl AsRef<str>, secret: impl AsRef<str>) -> Self {
        if let Some(key) = self.key(secret.as_ref()) {
            self.orgs.insert(domain.as_ref().trim().to_ascii_lowercase(), key);
        }
        self
    }

    /// Adds the secrets of organizations from a file: on each line a domain and its secret. `#` begins a line that is a comment.
    ///
    /// # Errors
    /// When the file cannot be read, or a line is not a domain that can be a tenant and a secret. No secret is quoted.
    pub fn with_orgs_of(mut self, file: impl AsRef<Path>) -> Result<Self, OrgSecretsError> {
        let mut text = String::new();
        let opened = std::fs::File::open(file).map(|file| Read::take(file, ORG_SECRETS_BYTES_MAX + 1));
        opened
            .and_then(|mut file| file.read_to_string(&mut text))
            .map_err(|error| OrgSecretsError(format!("cannot be read: {error}")))?;
        if text.len() as u64 > ORG_SECRETS_BYTES_MAX {
            return Err(OrgSecretsError(format!("is larger than {ORG_SECRETS_BYTES_MAX} bytes")));
        }
        for (index, line) in text.lines().enumerate() {
            let wrong = |why: &str| OrgSecretsError(format!("line {}: {why}", index + 1));
            let words: Vec<&str> = line.split_whitespace().collect();
            match words.as_slice() {
                [] => {}
                [first, ..] if first.starts_with('#') => {}
                [domain, secret] => {
                    check_name("domain", &domain.to_ascii_lowercase()).map_err(|why| wrong(&why))?;
                    self = self.with_org(domain, secret);
                }
                _ => return Err(wrong("expected DOMAIN SECRET")),
            }
        }
        Ok(self)
    }

    fn key(&mut self, secret: &str) -> Option<hmac::Key> {
        let secret = secret.trim();
        self.is_short |= !secret.is_empty() && secret.len() < SECRET_BYTES_MIN;
        (!secret.is_empty()).then(|| hmac::Key::new(hmac::HMAC_SHA256, secret.as_bytes()))
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.global.is_none() && self.orgs.is_empty()
    }

    /// Whether one of the secrets can be found by trying.
    pub(crate) fn is_short(&self) -> bool {
        self.is_short
    }

    pub(super) fn set_addresses<'a>(&mut self, urls: impl Iterator<Item = &'a str>) {
        self.audiences = urls.filter_map(|url| canonical(url, "")).collect();
    }

    /// The caller whom a token proves at this moment; none for every other token, whatever is wrong with it.
    pub(super) fn verify(&self, token: &Unverified<'_>, head: &Parts, now: Timestamp) -> Option<SignedCaller> {
        if token.header.alg != "HS256" {
            return None;
        }
        let is_signed_with = |key: &hmac::Key| hmac::verify(key, token.signed, &token.signature).is_ok();
        let is_shared = self.global.as_ref().is_some_and(is_signed_with);
        if !is_shared && self.orgs.is_empty() {
            return None;
        }
        let claims: Claims = serde_json::from_slice(&token.claims).ok()?;
        let org = claims.org_domain.as_deref().filter(|org| !org.is_empty()).map(str::to_ascii_lowercase);
        if !is_shared && !org.as_ref().and_then(|org| self.orgs.get(org)).is_some_and(is_signed_with) {
            return None;
        }
        let expires_s = seconds(&claims.exp?)?;
        let now_s = now.as_ms().div_euclid(1000);
        if expires_s <= now_s {
            return None;
        }
        if let Some(not_before) = claims.nbf
            && seconds(&not_before)? > now_s
        {
            return None;
        }
        if claims.iss.is_some_and(|issuer| issuer.is_empty()) {
            return None;
        }
        let mut is_for_all = true;
        if let Some(audiences) = claims.aud {
            is_for_all = audiences.has(|audience| self.is_server(audience));
            if !is_for_all && !audiences.has(|audience| self.is_called(audience, head)) {
                return None;
            }
        }
        let subject = claims.sub.filter(|subject| is_name(subject))?;
        let mut identity =
            Identity::issued(ISSUER, &subject).expires(Timestamp::from_ms(expires_s.saturating_mul(1000)));
        if let Some(org) = org {
            check_name("tenant", &org).ok()?;
            identity = identity.tenants([org]);
        }
        identity.scopes =
            claims.scope.iter().flat_map(|scope| scope.split_ascii_whitespace()).map(str::to_owned).collect();
        Some(SignedCaller { identity, is_for_all })
    }

    /// Whether a token for this audience is for an address of this server.
    fn is_server(&self, audience: &str) -> bool {
        canonical(audience, "").is_some_and(|audience| self.audiences.contains(&audience))
    }

    /// Whether a token for this audience is for the very place that is called, such as one agent of several.
    fn is_called(&self, audience: &str, head: &Parts) -> bool {
        let Some(audience) = canonical(audience, "") else { return false };
        let called = |own: &String| canonical(own, head.uri.path());
        self.audiences.iter().any(|own| called(own).as_ref() == Some(&audience))
    }
}

/// Whom a token proves, and whether it does so at every place of the server.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct SignedCaller {
    pub(super) identity: Identity,
    pub(super) is_for_all: bool,
}

/// A URL with a path below it, as the original compares audiences: without a slash at the end, and without the path of the endpoint.
fn canonical(url: &str, below: &str) -> Option<String> {
    let url: Uri = url.parse().ok()?;
    let scheme = url.scheme_str().filter(|scheme| matches!(*scheme, "http" | "https"))?;
    let host = url.host()?.to_ascii_lowercase();
    let port = url.port_u16().filter(|port| *port != if scheme == "http" { 80 } else { 443 });
    let port = port.map_or(String::new(), |port| format!(":{port}"));
    let base = url.path().trim_end_matches('/');
    // A proxy may have left the path of the public URL on the path of the request.
    let below = below.strip_prefix(base).unwrap_or(below).trim_end_matches('/');
    let path = format!("{base}{below}");
    let path = path.strip_suffix("/a2a").unwrap_or(&path);
    let path = path.strip_suffix("/_agent-native").unwrap_or(path);
    Some(format!("{scheme}://{host}{port}{}", path.trim_end_matches('/')))
}

#[cfg(test)]
#[path = "shared_secret_tests.rs"]
mod tests;
