//! Tokens that callers sign themselves with a secret that both sides know (`A2A_SECRET`), as the apps of agent-native do: JSON Web
//! Tokens with HS256. The client's side is `client::SignedTokens`.
//!
//! A token is good under the secret that all apps share or, if it names an organization (`org_domain`), under the secret of that
//! one. Whoever knows the secret of an organization can sign for each of its members and for nobody else: the organization is the
//! tenant. Stricter than the original: HS256 alone, and a token must say when it expires.

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use http::Uri;
use http::request::Parts;
use serde::Deserialize;
use serde_json::Value;
use switchboard_core::model::Timestamp;
use switchboard_engine::ports::Clock as _;
use switchboard_engine::system::SystemClock;

use super::claims::Text;
use super::identity::Identity;
use super::identity::Revocation;
use super::org_secrets::{KnownSecrets, OrgSecrets, OrgSignature, SECRET_BYTES_MIN, TokenKey, check_secret};
use crate::jwt::{Unverified, has_audience, is_name, seconds};
use crate::reloaded::{ListError, ListOfLines as _, Reload, ReloadedList};
use crate::server::uri::check_name;

/// Who vouches for the callers: everybody who knows the secret.
const ISSUER: &str = "a2a-secret";

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
    global: Option<TokenKey>,
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

/// What a token says.
#[derive(Deserialize)]
struct Claims<'a> {
    #[serde(borrow)]
    sub: Option<Text<'a>>,
    org_domain: Option<Text<'a>>,
    iss: Option<Text<'a>>,
    aud: Option<Value>,
    exp: Option<Value>,
    nbf: Option<Value>,
    scope: Option<Text<'a>>,
}

impl SharedSecret {
    /// The secret that all apps share. Spaces around it do not count.
    #[must_use]
    pub fn new(secret: impl AsRef<str>) -> Self {
        let secret = secret.as_ref().trim();
        let global = (!secret.is_empty()).then(|| TokenKey::new(secret));
        Self { is_short: global.is_some() && secret.len() < SECRET_BYTES_MIN, global, ..Self::default() }
    }

    /// The secret of one organization, which is good for tokens that name its domain.
    #[must_use]
    pub fn with_org(mut self, domain: impl AsRef<str>, secret: impl AsRef<str>) -> Self {
        let (domain, secret) = (domain.as_ref().trim().to_ascii_lowercase(), secret.as_ref().trim());
        if !secret.is_empty() {
            self.orgs.insert(domain, secret);
        }
        self
    }

    /// Adds the secrets of organizations from a file: on each line a domain and its secret. `#` begins a line that is a comment. The
    /// secrets of the first file can be replaced while the server runs
    /// ([`ServerBuilder::org_peers`](crate::ServerBuilder::org_peers)); what was replaced stays good for an hour.
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

    /// The name by which apps of a workspace know the principal of a caller: `alice@example.com` for `a2a-secret#alice@example.com`. Names that others
    /// vouch for stay as they are.
    #[must_use]
    pub fn subject_of(principal: &str) -> &str {
        principal.strip_prefix(ISSUER).and_then(|rest| rest.strip_prefix('#')).unwrap_or(principal)
    }

    /// The secrets of an organization that are good now, the newest first, for calls to its other apps.
    #[must_use]
    pub fn secrets_of(&self, domain: &str) -> Vec<String> {
        let (domain, now) = (domain.to_ascii_lowercase(), SystemClock.now());
        let in_files = self.files.iter().find_map(|file| file.read(|orgs| orgs.known(&domain, now)));
        let known = self.orgs.known(&domain, now).or(in_files);
        let all = known.into_iter().flat_map(|known| std::iter::once(known.newest).chain(known.previous));
        all.map(|secret| secret.to_string()).collect()
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
        let is_shared = global.is_some_and(|key| key.has_signed(token));
        if !is_shared && self.orgs.is_empty() && self.files.is_empty() {
            return None;
        }
        let claims: Claims<'_> = serde_json::from_str(&token.claims).ok()?;
        let org = claims.org_domain.as_deref().filter(|org| !org.is_empty()).map(str::to_ascii_lowercase);
        let signature = match is_shared {
            true => OrgSignature { revocation: Revocation::default(), until: None },
            false => self.verify_org(org.as_deref()?, token, now)?,
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
            is_for_all = has_audience(&audiences, |audience| self.is_server(audience));
            if !is_for_all && !has_audience(&audiences, |audience| self.is_called(audience, head)) {
                return None;
            }
        }
        let subject = claims.sub.filter(|subject| is_name(subject))?;
        // A token under a secret that was replaced is good no longer than that secret.
        let expires = Timestamp::from_ms(expires_s.saturating_mul(1000));
        let expires = signature.until.map_or(expires, |until| until.min(expires));
        let mut identity = Identity::issued(ISSUER, &subject).expires(expires);
        if let Some(org) = org {
            check_name("tenant", &org).ok()?;
            identity = identity.tenants([org]);
        }
        identity.revocation = signature.revocation;
        identity.scopes =
            claims.scope.iter().flat_map(|scope| scope.split_ascii_whitespace()).map(str::to_owned).collect();
        Some(SignedCaller { identity, is_for_all })
    }

    fn verify_org(&self, org: &str, token: &Unverified<'_>, now: Timestamp) -> Option<OrgSignature> {
        let in_files = || self.files.iter().find_map(|file| file.read(|orgs| orgs.verify(org, token, now)));
        self.orgs.verify(org, token, now).or_else(in_files)
    }

    /// Whether a token was signed by this organization, names it and is good now, under a secret of its own.
    pub(crate) fn is_of_org(&self, token: &str, org: &str, now: Timestamp) -> bool {
        let is_good = || {
            let token = Unverified::read(token.as_bytes()).filter(|token| token.header.alg == "HS256")?;
            self.verify_org(org, &token, now)?;
            let claims: Claims<'_> = serde_json::from_str(&token.claims).ok()?;
            let now_s = now.as_ms().div_euclid(1000);
            let not_before = claims.nbf.map_or(Some(0), |not_before| seconds(&not_before))?;
            Some(seconds(&claims.exp?)? > now_s && not_before <= now_s)
        };
        is_good().unwrap_or(false)
    }

    /// The organizations whose secrets can be replaced.
    pub(crate) fn org_domains(&self) -> Vec<String> {
        self.files.first().map(|file| file.read(OrgSecrets::domains)).unwrap_or_default()
    }

    /// The secrets of an organization that can be replaced.
    pub(crate) fn org_secrets(&self, domain: &str, now: Timestamp) -> Option<KnownSecrets> {
        self.files.first()?.read(|orgs| orgs.known(domain, now))
    }

    /// Replaces the secret of an organization, in the file and here. The one before stays good for a while.
    ///
    /// # Errors
    /// When there is no file of secrets, it cannot be written, or the secret cannot be one. Then nothing has changed.
    pub(crate) async fn replace_org_secret(&self, domain: &str, secret: &str, now: Timestamp) -> Result<(), String> {
        check_name("domain", domain)?;
        check_secret(secret)?;
        let Some(file) = self.files.first() else {
            return Err("there is no file of secrets of organizations".to_owned());
        };
        file.edit(|orgs, text| orgs.replaced(text, domain, secret, now)).await.map_err(|error| error.to_string())
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
