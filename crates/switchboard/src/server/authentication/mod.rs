//! Who calls. A request is authenticated once, from its head and its connection alone, before a byte of its body is read. What
//! comes out is an [`Identity`]; the tenant a request names only selects among the tenants of its identity.
//!
//! Each kind of credential has a file: `tokens` (bearer tokens of this server, which are also its API keys and the passwords of
//! HTTP Basic), `shared_secret` (tokens that the apps of agent-native sign), `issuer` (tokens of an identity provider, with the keys
//! of `key_set`) and `certificate` (of a TLS client). `verifiers` asks them in turn and `schemes` says which of them are enough.
//! `application` is the login of the embedding program, in place of all these. `ending` ends streams whose credential ends.

mod application;
mod certificate;
mod claims;
mod ending;
mod identity;
mod issuer;
mod key_set;
mod org_secrets;
mod schemes;
mod shared_secret;
#[cfg(test)]
mod tests;
pub(crate) mod tokens;
mod verified;
mod verifiers;

use std::fmt;
use std::sync::Arc;

use http::request::Parts;
use http::{HeaderMap, HeaderName, HeaderValue, header};
use switchboard_core::call::UpdateStream;
use switchboard_core::error::ProtocolError;
use switchboard_core::model::{SecurityScheme, Tenant};
use switchboard_engine::ports::Clock;
use switchboard_engine::supervisor::{Kind, Supervisor};
use switchboard_engine::system::SystemClock;

use crate::outbound::Client;
use crate::reloaded::Reload;

pub use application::{Authenticator, IdentityFromExtensions};
pub use certificate::ClientCertificate;
pub(crate) use ending::OnRefusal;
pub use identity::Identity;
pub use issuer::Issuer;
pub(crate) use schemes::{SchemeSet, Schemes, SkillRules};
pub use shared_secret::SharedSecret;
pub(crate) use tokens::Tokens;
pub(crate) use verifiers::{ApiKeyNames, Unidentified, Verifiers};

/// How a server finds out who calls.
pub(crate) enum Authentication {
    /// Everybody may call, as this one anonymous caller.
    Open(Identity),
    Configured(Box<Verifiers>),
    Custom(Arc<dyn Authenticator>),
}

/// What came of authentication.
pub(crate) enum Authenticated {
    Now(Result<Identified, ProtocolError>),
    /// Somebody has to be asked, which may take time; [`Authentication::ask`] does.
    Asking,
}

/// Whom a request comes from. On an open server it is always the same identity, whose users need not be counted.
#[derive(Debug)]
pub(crate) enum Identified {
    Anonymous,
    /// The caller, and all that it has proven itself by.
    Known(Arc<Identity>, SchemeSet),
}

impl Identified {
    pub(crate) fn proven(&self) -> SchemeSet {
        match self {
            Self::Anonymous => SchemeSet::NONE,
            Self::Known(_, proven) => *proven,
        }
    }
}

impl Authentication {
    pub(crate) fn open(tenants: Vec<Tenant>) -> Self {
        let tenants = if tenants.is_empty() { vec![Tenant::default()] } else { tenants };
        Self::Open(Identity::anonymous().tenants(tenants))
    }

    /// The tokens of this server, if it has any.
    pub(crate) fn tokens(&self) -> Option<&Tokens> {
        match self {
            Self::Configured(verifiers) => verifiers.tokens(),
            Self::Open(_) | Self::Custom(_) => None,
        }
    }

    /// The secrets that callers sign tokens with, if they do.
    pub(crate) fn shared_secret(&self) -> Option<&SharedSecret> {
        match self {
            Self::Configured(verifiers) => verifiers.shared_secret(),
            Self::Open(_) | Self::Custom(_) => None,
        }
    }

    /// The header that tokens may stand in beside `Authorization`.
    pub(crate) fn api_key_header(&self) -> Option<&HeaderName> {
        match self {
            Self::Configured(verifiers) => verifiers.api_key_header(),
            Self::Open(_) | Self::Custom(_) => None,
        }
    }

    /// Whether callers may prove themselves by what other parties gave out.
    pub(crate) fn takes_foreign_credentials(&self) -> bool {
        matches!(self, Self::Configured(verifiers) if verifiers.takes_foreign_credentials())
    }

    pub(crate) fn is_open(&self) -> bool {
        matches!(self, Self::Open(_))
    }

    pub(crate) fn is_configured(&self) -> bool {
        matches!(self, Self::Configured(_))
    }

    /// What callers may prove themselves by and what is required of them, for the cards. Only an application knows what it accepts,
    /// so it declares that itself.
    pub(crate) fn schemes(&self, declared: Vec<(String, SecurityScheme)>) -> Schemes {
        match self {
            Self::Open(_) => Schemes::default(),
            Self::Configured(verifiers) => verifiers.schemes().clone(),
            Self::Custom(_) => Schemes::of_application(declared),
        }
    }

    /// The updates of a stream up to the moment at which the credential of its caller ends.
    pub(crate) fn guard(
        &self,
        updates: UpdateStream,
        identity: &Identity,
        on_refusal: Option<OnRefusal>,
    ) -> UpdateStream {
        ending::until_the_credential_ends(updates, identity, on_refusal, || (SystemClock.now(), self.refusal()))
    }

    /// Has keys fetched again while the server runs.
    pub(crate) fn keep_fresh(&self, supervisor: &Supervisor, client: &Client) {
        let Self::Configured(verifiers) = self else { return };
        for key_set in verifiers.key_sets() {
            supervisor.spawn(Kind::Sweep, key_set.keep_fresh(client.clone()));
        }
    }

    /// What was read from files.
    pub(crate) fn sources(&self) -> Vec<Arc<dyn Reload>> {
        match self {
            Self::Configured(verifiers) => verifiers.sources(),
            Self::Open(_) | Self::Custom(_) => Vec::new(),
        }
    }

    /// The addresses of the server, which tokens may be bound to.
    pub(crate) fn set_addresses<'a>(&mut self, urls: impl Iterator<Item = &'a str>) {
        if let Self::Configured(verifiers) = self {
            verifiers.set_addresses(urls);
        }
    }

    /// The identity of a request's sender. What the server can tell by itself takes no waiting.
    pub(crate) fn identify(&self, head: &Parts) -> Authenticated {
        match self {
            Self::Open(_) => Authenticated::Now(Ok(Identified::Anonymous)),
            Self::Configured(verifiers) => match verifiers.identify(head, SystemClock.now()) {
                Ok(identified) => Authenticated::Now(Ok(identified)),
                Err(Unidentified::Refused(error)) => Authenticated::Now(Err(error)),
                Err(Unidentified::KeysNeeded(_)) => Authenticated::Asking,
            },
            Self::Custom(_) => Authenticated::Asking,
        }
    }

    /// The identity of a sender about whom somebody has to be asked.
    pub(crate) async fn ask(&self, head: &Parts, wait_s_max: u32) -> Result<Identified, ProtocolError> {
        match self {
            Self::Custom(authenticator) => application::ask(&**authenticator, head, wait_s_max).await,
            Self::Configured(verifiers) => verifiers.ask(head, wait_s_max).await,
            Self::Open(_) => Ok(Identified::Anonymous),
        }
    }

    /// The refusal of everybody without a credential that is known.
    pub(crate) fn refusal(&self) -> ProtocolError {
        match self {
            Self::Configured(verifiers) => verifiers.refusal(),
            Self::Open(_) | Self::Custom(_) => unauthenticated(BEARER_HINT),
        }
    }

    /// Has a refusal say how to log in here, where it says how to log in at all.
    pub(crate) fn set_challenge(&self, headers: &mut HeaderMap) {
        if self.is_open() {
            return;
        }
        let Some(challenge) = headers.get_mut(header::WWW_AUTHENTICATE) else { return };
        match self {
            Self::Open(_) => {}
            Self::Configured(verifiers) => *challenge = verifiers.challenge(),
            Self::Custom(authenticator) => *challenge = authenticator.challenge(),
        }
    }

    pub(crate) fn identity<'a>(&'a self, identified: &'a Identified) -> &'a Identity {
        match (identified, self) {
            (Identified::Known(identity, _), _) => identity,
            (Identified::Anonymous, Self::Open(identity)) => identity,
            // Only an open server makes anonymous callers, so this is never asked.
            (Identified::Anonymous, Self::Configured(_) | Self::Custom(_)) => &NOBODY,
        }
    }
}

/// A caller who may act for no tenant that has a name.
static NOBODY: std::sync::LazyLock<Identity> = std::sync::LazyLock::new(Identity::anonymous);

/// The challenge of a server that takes bearer tokens.
pub(crate) const BEARER_CHALLENGE: HeaderValue = HeaderValue::from_static("Bearer realm=\"switchboard\"");

/// What a refused caller of a server that takes bearer tokens is told.
pub(crate) const BEARER_HINT: &str = "send a token of this server as Authorization: Bearer TOKEN";

/// One text for all causes: a caller that guesses learns nothing from it.
pub(crate) fn unauthenticated(hint: &str) -> ProtocolError {
    ProtocolError::Unauthenticated { reason: hint.to_owned() }
}

impl fmt::Debug for Authentication {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Open(_) => "Open",
            Self::Configured(_) => "Configured",
            Self::Custom(_) => "Custom",
        })
    }
}
