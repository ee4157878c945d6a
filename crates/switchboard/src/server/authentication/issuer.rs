//! Tokens of an identity provider: JSON Web Tokens that it signs with a private key, and that are verified with the public keys that
//! it publishes (RFC 7519, RFC 8725). The algorithm must be one of a list and must fit the kind of the key; secrets play no part
//! here, so a public key can never be taken for one.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use switchboard_core::model::{SecurityScheme, Timestamp};
use switchboard_engine::ports::audit::AuditEvent;

use super::claims::Claims;
use super::identity::Identity;
use super::key_set::{FoundKeys, KEY_SET_BYTES_MAX, KeySet, KeySource, check_key_url, discovery_url, read_keys};
use crate::jwt::{Unverified, has_audience, is_name, seconds, words};
use crate::public_keys::{Algorithm, Key, KeyError};
use crate::reloaded::{WatchedFiles, read_file};
use crate::server::uri::check_name;

/// How far clocks may be apart, unless [`Issuer::leeway`] says otherwise.
const LEEWAY_DEFAULT: Duration = Duration::from_secs(30);
/// More leeway than this makes expiry meaningless.
const LEEWAY_MAX: Duration = Duration::from_secs(600);
/// How many tenants and scopes one token may give.
const TENANTS_MAX: usize = 64;
const SCOPES_MAX: usize = 256;
/// How many keys are tried for a token that names none.
const KEYS_TRIED_MAX: usize = 8;

/// An identity provider whose tokens are accepted: Keycloak, Auth0, Entra, or any other that signs JSON Web Tokens.
///
/// Callers are the principal `ISSUER#SUBJECT`, so that two providers cannot vouch for the same name.
///
/// ```
/// use switchboard::{AgentBuilder, Issuer, Server, Turn};
///
/// let echo = AgentBuilder::from_fn("Echo", |turn: Turn| async move { Ok(turn.answer(turn.text()).await?) });
/// let keycloak = Issuer::new("https://login.example/realms/acme", "agents").scope_claims(["scope", "realm_access.roles"]);
/// # tokio::runtime::Runtime::new().unwrap().block_on(async {
/// let server = Server::builder().agent(echo).issuer(keycloak).build()?;
/// # drop(server);
/// # Ok::<(), switchboard::ServeError>(())
/// # }).unwrap();
/// ```
#[derive(Clone)]
pub struct Issuer {
    name: Option<String>,
    issuer: String,
    audiences: Vec<String>,
    algorithms: Vec<String>,
    leeway: Duration,
    principal_claim: String,
    tenants_claim: Option<String>,
    scope_claims: Vec<String>,
    operator_scope: Option<String>,
    source: KeySource,
    keys: Option<Vec<Key>>,
}

impl fmt::Debug for Issuer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { issuer, audiences, source, .. } = self;
        f.debug_struct("Issuer")
            .field("issuer", issuer)
            .field("audiences", audiences)
            .field("source", source)
            .finish_non_exhaustive()
    }
}

impl Issuer {
    /// The provider that calls itself so (`iss`), and the audience (`aud`) that its tokens for this server have. Its keys are found by
    /// OpenID Connect Discovery, unless another method says where they are.
    #[must_use]
    pub fn new(issuer: impl Into<String>, audience: impl Into<String>) -> Self {
        let issuer = issuer.into();
        Self {
            name: None,
            source: KeySource::Discovery { issuer: issuer.clone() },
            issuer,
            audiences: vec![audience.into()],
            algorithms: Vec::new(),
            leeway: LEEWAY_DEFAULT,
            principal_claim: "sub".to_owned(),
            tenants_claim: None,
            scope_claims: ["scope", "scp"].map(str::to_owned).to_vec(),
            operator_scope: None,
            keys: None,
        }
    }

    /// One more audience that tokens for this server may have.
    #[must_use]
    pub fn and_audience(mut self, audience: impl Into<String>) -> Self {
        self.audiences.push(audience.into());
        self
    }

    /// Fetches the keys from this URL (`jwks_uri`).
    #[must_use]
    pub fn keys_at(mut self, url: impl Into<String>) -> Self {
        self.source = KeySource::Url(url.into());
        self
    }

    /// Reads the keys from a file, a JSON Web Key set or public keys in PEM form. A new file is used within a minute.
    ///
    /// # Errors
    /// When it cannot be read or has no key for signatures.
    pub fn keys_in_file(mut self, path: impl Into<PathBuf>) -> Result<Self, KeyError> {
        let path = path.into();
        let files = WatchedFiles::new("keys of an issuer", AuditEvent::Credentials, vec![path]);
        let text = read_file(files.path(), KEY_SET_BYTES_MAX).map_err(KeyError::new)?;
        self.keys = Some(read_keys(&text)?);
        self.source = KeySource::File(Arc::new(files));
        Ok(self)
    }

    /// Takes these keys, a JSON Web Key set or public keys in PEM form.
    ///
    /// # Errors
    /// When it has no key for signatures.
    pub fn keys(mut self, text: impl AsRef<[u8]>) -> Result<Self, KeyError> {
        self.keys = Some(read_keys(text.as_ref())?);
        self.source = KeySource::Given;
        Ok(self)
    }

    /// The name of the scheme on the cards. Without it, it is `oidc` with discovery and else `jwt`.
    #[must_use]
    pub fn named(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// Which algorithms are accepted, such as `RS256`; by default every asymmetric one that is known.
    #[must_use]
    pub fn algorithms<T: Into<String>>(mut self, names: impl IntoIterator<Item = T>) -> Self {
        self.algorithms = names.into_iter().map(Into::into).collect();
        self
    }

    /// How far the clocks of the provider and of this server may be apart; by default 30 seconds.
    #[must_use]
    pub fn leeway(mut self, leeway: Duration) -> Self {
        self.leeway = leeway;
        self
    }

    /// The claim that names the caller; by default `sub`. Here and in the others a dot leads into an object
    /// (`realm_access.roles`), unless a claim has the whole name.
    #[must_use]
    pub fn principal_claim(mut self, name: impl Into<String>) -> Self {
        self.principal_claim = name.into();
        self
    }

    /// The claim that holds the tenants of the caller, the default one first. A token without it is then refused.
    #[must_use]
    pub fn tenants_claim(mut self, name: impl Into<String>) -> Self {
        self.tenants_claim = Some(name.into());
        self
    }

    /// The claims that hold scopes, as lists or as texts with spaces between them; by default `scope` and `scp`.
    #[must_use]
    pub fn scope_claims<T: Into<String>>(mut self, names: impl IntoIterator<Item = T>) -> Self {
        self.scope_claims = names.into_iter().map(Into::into).collect();
        self
    }

    /// The scope that makes a caller an operator; by default none does.
    #[must_use]
    pub fn operator_scope(mut self, scope: impl Into<String>) -> Self {
        self.operator_scope = Some(scope.into());
        self
    }

    /// Checks what was set.
    pub(super) fn resolve(self) -> Result<TrustedIssuer, String> {
        let wrong = |why: String| format!("the issuer {:?} {why}", self.issuer);
        if !is_name(&self.issuer) || self.issuer.contains('#') {
            return Err(wrong("must be a text without #, as in the iss of its tokens".to_owned()));
        }
        if self.audiences.iter().any(String::is_empty) {
            return Err(wrong("needs an audience, or tokens for other servers would be good here".to_owned()));
        }
        let mut algorithms = Vec::new();
        for name in &self.algorithms {
            let why =
                || wrong(format!("cannot have the algorithm {name:?}; expected RS256, ES256, EdDSA or their like"));
            algorithms.push(Algorithm::named(name).ok_or_else(why)?);
        }
        if algorithms.is_empty() {
            algorithms.extend(Algorithm::ALL);
        }
        if self.leeway > LEEWAY_MAX {
            return Err(wrong(format!("cannot have a leeway of more than {} seconds", LEEWAY_MAX.as_secs())));
        }
        match &self.source {
            KeySource::Url(url) => check_key_url(url).map_err(wrong)?,
            KeySource::Discovery { issuer } => check_key_url(issuer).map_err(wrong)?,
            KeySource::File(_) | KeySource::Given => {}
        }
        let leeway_s = i64::try_from(self.leeway.as_secs()).unwrap_or(0);
        let key_set = Arc::new(KeySet::new(self.source.clone(), self.keys.clone()));
        Ok(TrustedIssuer { algorithms, leeway_s, key_set, settings: self })
    }
}

/// An issuer whose settings are good.
pub(super) struct TrustedIssuer {
    settings: Issuer,
    algorithms: Vec<Algorithm>,
    leeway_s: i64,
    pub(super) key_set: Arc<KeySet>,
}

/// What a token of an issuer is worth.
pub(super) enum Verdict {
    Good(Arc<Identity>),
    Bad,
    /// The keys have to be fetched first.
    KeysNeeded,
    /// There are none, and they cannot be fetched now.
    NoKeys,
}

impl TrustedIssuer {
    /// What the cards call it, and how they describe it.
    pub(super) fn declared(&self) -> (String, SecurityScheme) {
        let Issuer { name, issuer, .. } = &self.settings;
        let description = Some(format!("A token of {issuer}"));
        let (usual, scheme) = match self.key_set.source() {
            KeySource::Discovery { .. } => {
                ("oidc", SecurityScheme::OpenIdConnect { description, url: discovery_url(issuer) })
            }
            KeySource::Url(_) | KeySource::File(_) | KeySource::Given => {
                let (scheme, bearer_format) = ("Bearer".to_owned(), Some("JWT".to_owned()));
                ("jwt", SecurityScheme::Http { description, scheme, bearer_format })
            }
        };
        (name.clone().unwrap_or_else(|| usual.to_owned()), scheme)
    }

    /// Whether a token says that it is of this issuer.
    pub(super) fn is_of(&self, claims: &Claims<'_>) -> bool {
        claims.is_text("iss", &self.settings.issuer)
    }

    pub(super) fn verify(&self, token: &Unverified<'_>, claims: &Claims<'_>, now: Timestamp) -> Verdict {
        let algorithm = Algorithm::named(&token.header.alg).filter(|named| self.algorithms.contains(named));
        let Some(algorithm) = algorithm else { return Verdict::Bad };
        let key_id = token.header.kid.as_deref();
        let keys = match self.key_set.find(key_id) {
            FoundKeys::Keys(keys) => keys,
            FoundKeys::Ask => return Verdict::KeysNeeded,
            FoundKeys::None => return Verdict::NoKeys,
        };
        let is_signed = |key: &Key| key.verifies(algorithm, token.signed, &token.signature);
        if !keys.iter().filter(|key| key.fits(key_id)).take(KEYS_TRIED_MAX).any(is_signed) {
            return Verdict::Bad;
        }
        self.identity(claims, now).map_or(Verdict::Bad, |identity| Verdict::Good(Arc::new(identity)))
    }

    /// The caller whom signed claims name, if they are for this server and at this moment.
    fn identity(&self, claims: &Claims<'_>, now: Timestamp) -> Option<Identity> {
        let Issuer { issuer, audiences, principal_claim, tenants_claim, scope_claims, operator_scope, .. } =
            &self.settings;
        let is_ours = |audience: &str| audiences.iter().any(|own| own == audience);
        if !self.is_of(claims) || !has_audience(&claims.get("aud")?, is_ours) {
            return None;
        }
        let now_s = now.as_ms().div_euclid(1000);
        let expires_s = seconds(&claims.get("exp")?)?.saturating_add(self.leeway_s);
        let is_begun = |name: &str| match claims.get(name) {
            Some(at) => seconds(&at).is_some_and(|at| at <= now_s.saturating_add(self.leeway_s)),
            None => true,
        };
        if expires_s <= now_s || !is_begun("nbf") || !is_begun("iat") {
            return None;
        }
        let subject = claims.at(principal_claim)?;
        let subject = subject.as_str().filter(|subject| is_name(subject))?;
        let mut identity =
            Identity::issued(issuer, subject).expires(Timestamp::from_ms(expires_s.saturating_mul(1000)));
        if let Some(name) = tenants_claim {
            let tenants = words(&claims.at(name)?);
            if tenants.is_empty() || tenants.len() > TENANTS_MAX {
                return None;
            }
            if tenants.iter().any(|tenant| check_name("tenant", tenant).is_err()) {
                return None;
            }
            identity = identity.tenants(tenants);
        }
        let mut scopes = Vec::new();
        for scope in scope_claims.iter().filter_map(|name| claims.at(name)).flat_map(|claim| words(&claim)) {
            if !scopes.contains(&scope) {
                scopes.push(scope);
            }
            if scopes.len() > SCOPES_MAX {
                return None;
            }
        }
        identity.scopes = scopes.into();
        identity.operator = operator_scope.as_ref().is_some_and(|scope| identity.scopes.contains(scope));
        Some(identity)
    }
}

#[cfg(test)]
#[path = "issuer_tests.rs"]
mod tests;
