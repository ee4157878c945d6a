//! Tokens that callers sign themselves with a secret that both sides know (`A2A_SECRET`), as the apps of agent-native do: JSON Web
//! Tokens with HS256. The client's side is `client::SignedTokens`.
//!
//! A token is good under the secret that all apps share or, if it names an organization (`org_domain`), under the secret of that
//! one. Whoever knows the secret of an organization can sign for each of its members and for nobody else: the organization is the
//! tenant. Stricter than the original: HS256 alone, and a token must say when it expires.

use std::collections::HashMap;
use std::fmt;
use std::path::Path;
use std::sync::Arc;

use aws_lc_rs::hmac;
use http::Uri;
use http::request::Parts;
use serde::Deserialize;
use serde_json::Value;
use sha2::{Digest, Sha256};
use switchboard_core::model::Timestamp;
use switchboard_engine::ports::audit::AuditEvent;

use super::Identity;
use super::ending::Revocation;
use crate::jwt::{Audiences, Unverified, is_name, seconds};
use crate::reloaded::{ListError, ListOfLines, Reload, ReloadedList, reload_and_log};
use crate::server::edge::paths::check_name;

/// Who vouches for the callers: everybody who knows the secret.
const ISSUER: &str = "a2a-secret";
/// Shorter secrets can be found by trying, since each token shows what one makes of it.
const SECRET_BYTES_MIN: usize = 16;
/// How many organizations a file of secrets may have.
const ORG_SECRETS_MAX: usize = 10_000;

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
    orgs: OrgSecrets,
    /// Files of further organizations.
    files: Vec<Arc<ReloadedList<OrgSecrets>>>,
    is_short: bool,
    /// The addresses of this server that a token may be bound to.
    audiences: Vec<String>,
}

impl fmt::Debug for SharedSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SharedSecret").field("orgs", &self.orgs_count()).finish_non_exhaustive()
    }
}

/// The secrets of organizations by their domains, in lower case.
#[derive(Clone, Default)]
struct OrgSecrets(HashMap<String, OrgSecret>);

#[derive(Clone)]
struct OrgSecret {
    key: hmac::Key,
    /// Of the secret, by which a reload knows that it is still the same.
    digest: [u8; 32],
    is_short: bool,
    revocation: Revocation,
}

impl OrgSecret {
    fn new(secret: &str) -> Self {
        Self {
            key: hmac::Key::new(hmac::HMAC_SHA256, secret.as_bytes()),
            digest: Sha256::digest(secret).into(),
            is_short: secret.len() < SECRET_BYTES_MIN,
            revocation: Revocation::possible(),
        }
    }
}

impl ListOfLines for OrgSecrets {
    const WHAT: &'static str = "secrets of organizations";
    const EVENT: AuditEvent = AuditEvent::Credentials;
    const NONE_IN_FILE: &'static str = "no secret in it; expected lines of DOMAIN SECRET";

    fn parse(text: &str) -> Result<Self, ListError> {
        let mut orgs = HashMap::new();
        for (index, line) in text.lines().enumerate() {
            let wrong = |reason: String| ListError { line: index + 1, reason };
            let words: Vec<&str> = line.split_whitespace().collect();
            let (domain, secret) = match words.as_slice() {
                [] => continue,
                [first, ..] if first.starts_with('#') => continue,
                [domain, secret] => (domain.to_ascii_lowercase(), *secret),
                _ => return Err(wrong("expected DOMAIN SECRET".to_owned())),
            };
            check_name("domain", &domain).map_err(wrong)?;
            if orgs.len() == ORG_SECRETS_MAX {
                return Err(wrong(format!("there are more than {ORG_SECRETS_MAX} organizations")));
            }
            if orgs.insert(domain, OrgSecret::new(secret)).is_some() {
                return Err(wrong("this organization has a secret already".to_owned()));
            }
        }
        Ok(Self(orgs))
    }

    fn len(&self) -> usize {
        self.0.len()
    }

    /// Streams of organizations whose secret is gone or another one end; those of the others go on. A server that was started with
    /// secrets that cannot be found by trying may be where other machines reach it, so it takes no short ones later.
    fn succeed(&mut self, before: &Self) -> Result<(), ListError> {
        if self.has_short() && !before.has_short() {
            let reason = format!("a secret is shorter than {SECRET_BYTES_MIN} characters; use a long random one");
            return Err(ListError { line: 0, reason });
        }
        for (domain, earlier) in &before.0 {
            match self.0.get_mut(domain).filter(|secret| secret.digest == earlier.digest) {
                Some(same) => same.revocation = earlier.revocation.clone(),
                None => earlier.revocation.revoke(),
            }
        }
        Ok(())
    }
}

impl OrgSecrets {
    fn has_short(&self) -> bool {
        self.0.values().any(|secret| secret.is_short)
    }

    /// Whether the organization has signed, and what tells that its secret was taken back.
    fn verify(&self, org: &str, token: &Unverified<'_>) -> Option<Revocation> {
        let secret = self.0.get(org)?;
        hmac::verify(&secret.key, token.signed, &token.signature).ok()?;
        Some(secret.revocation.clone())
    }
}

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
        let secret = secret.as_ref().trim();
        let global = (!secret.is_empty()).then(|| hmac::Key::new(hmac::HMAC_SHA256, secret.as_bytes()));
        Self { is_short: global.is_some() && secret.len() < SECRET_BYTES_MIN, global, ..Self::default() }
    }

    /// The secret of one organization, which is good for tokens that name its domain.
    #[must_use]
    pub fn with_org(mut self, domain: impl AsRef<str>, secret: impl AsRef<str>) -> Self {
        let (domain, secret) = (domain.as_ref().trim().to_ascii_lowercase(), secret.as_ref().trim());
        if !secret.is_empty() {
            self.orgs.0.insert(domain, OrgSecret::new(secret));
        }
        self
    }

    /// Adds the secrets of organizations from a file: on each line a domain and its secret. `#` begins a line that is a comment.
    ///
    /// A server looks every minute whether the file has changed, and then uses the new secrets: tokens that were signed with one
    /// that is gone are refused from the next request on, and streams that were opened with them end. If the new file is not good,
    /// or is empty, the server goes on with the secrets it has and says so in the log.
    ///
    /// # Errors
    /// When the file cannot be read, holds no secret, or a line is not a domain that can be a tenant and a secret.
    pub fn with_orgs_of(mut self, file: impl AsRef<Path>) -> Result<Self, ListError> {
        self.files.push(Arc::new(ReloadedList::open(file.as_ref())?));
        Ok(self)
    }

    /// Reads the files of organizations again and tells the log how it went.
    pub async fn reload_and_log(&self) {
        for file in &self.files {
            reload_and_log(&**file).await;
        }
    }

    /// The files as what can be read again.
    pub(super) fn sources(&self) -> impl Iterator<Item = Arc<dyn Reload>> {
        self.files.iter().map(|file| file.clone() as Arc<dyn Reload>)
    }

    /// Grows when secrets were read again.
    pub(super) fn generation(&self) -> u64 {
        self.files.iter().map(|file| file.generation()).sum()
    }

    fn orgs_count(&self) -> usize {
        self.orgs.len() + self.files.iter().map(|file| file.read(OrgSecrets::len)).sum::<usize>()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.global.is_none() && self.orgs_count() == 0
    }

    /// Whether one of the secrets can be found by trying.
    pub(crate) fn is_short(&self) -> bool {
        self.is_short || self.orgs.has_short() || self.files.iter().any(|file| file.read(OrgSecrets::has_short))
    }

    pub(super) fn set_addresses<'a>(&mut self, urls: impl Iterator<Item = &'a str>) {
        self.audiences = urls.filter_map(|url| canonical(url, "")).collect();
    }

    /// The caller whom a token proves at this moment; none for every other token, whatever is wrong with it.
    pub(super) fn verify(&self, token: &Unverified<'_>, head: &Parts, now: Timestamp) -> Option<SignedCaller> {
        if token.header.alg != "HS256" {
            return None;
        }
        let global = self.global.as_ref();
        let is_shared = global.is_some_and(|key| hmac::verify(key, token.signed, &token.signature).is_ok());
        if !is_shared && self.orgs.0.is_empty() && self.files.is_empty() {
            return None;
        }
        let claims: Claims = serde_json::from_slice(&token.claims).ok()?;
        let org = claims.org_domain.as_deref().filter(|org| !org.is_empty()).map(str::to_ascii_lowercase);
        let revocation = match is_shared {
            true => Revocation::default(),
            false => self.verify_org(org.as_deref()?, token)?,
        };
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
        identity.revocation = revocation;
        identity.scopes =
            claims.scope.iter().flat_map(|scope| scope.split_ascii_whitespace()).map(str::to_owned).collect();
        Some(SignedCaller { identity, is_for_all })
    }

    fn verify_org(&self, org: &str, token: &Unverified<'_>) -> Option<Revocation> {
        let in_files = || self.files.iter().find_map(|file| file.read(|orgs| orgs.verify(org, token)));
        self.orgs.verify(org, token).or_else(in_files)
    }

    /// Whether a token for this audience is for an address of this server.
    fn is_server(&self, audience: &str) -> bool {
        canonical(audience, "").is_some_and(|audience| self.audiences.contains(&audience))
    }

    /// Whether a token for this audience is for the very place that is called, such as one agent of several.
    fn is_called(&self, audience: &str, head: &Parts) -> bool {
        let Some(audience) = canonical(audience, "") else { return false };
        let called =
            |own: &String| canonical(own, head.uri.path()).is_some_and(|called| is_same_agent(own, &called, &audience));
        self.audiences.iter().any(called)
    }
}

/// Whether two canonical addresses below `own` are those of one agent, which has three: `/agents/{name}`, and as an app of a
/// workspace `/apps/{name}` and `/{name}`.
fn is_same_agent(own: &str, one: &str, other: &str) -> bool {
    let Some(base) = canonical(own, "") else { return false };
    let place = |url: &str| {
        let below = url.strip_prefix(&*base)?.strip_prefix('/')?.to_owned();
        let name = below.strip_prefix("agents/").or_else(|| below.strip_prefix("apps/"));
        Some(name.map_or(below.clone(), str::to_owned))
    };
    one == other || place(one).is_some_and(|name| place(other) == Some(name))
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
