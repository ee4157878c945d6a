//! Who calls the agents of the directory: tokens that are signed with the secret that all apps of a workspace share.

use std::fmt;

use switchboard::SharedSecret;
use switchboard::call::Owner;
use switchboard::client::{Credentials, SignedTokens};

use super::entry::DirectoryEntry;

/// What this program signs the tokens with that it shows to apps of its workspace: the shared secret (`A2A_SECRET`), and the organization
/// of its users. A token names the user whom the call is for (`sub`) and the organization (`org_domain`).
///
/// ```
/// use switchboard_hub::directory::{Directory, Sources, WorkspaceCaller};
///
/// # tokio::runtime::Runtime::new().unwrap().block_on(async {
/// let manifest = r#"[{"id": "mail", "path": "/mail"}]"#;
/// let directory = Directory::open(Sources::new("/nowhere").manifest(manifest).gateway("https://ws.example")).await;
/// let caller = WorkspaceCaller::new("a-long-random-secret").with_org("example.com", None);
/// let credentials = caller.credentials("alice@example.com", directory.known().find("mail").unwrap());
/// assert!(credentials.is_some());
/// # });
/// ```
#[derive(Clone, Default)]
pub struct WorkspaceCaller {
    secret: Option<String>,
    org: Option<(String, OrgSecret)>,
    /// The secrets of the organizations that tenants are.
    orgs: Option<Box<SharedSecret>>,
    issuer: Option<String>,
    is_bound: bool,
}

/// The secret of an organization.
#[derive(Clone)]
enum OrgSecret {
    None,
    Given(String),
    /// As a server has them, which may replace them.
    Of(Box<SharedSecret>),
}

impl OrgSecret {
    fn now(&self, domain: &str) -> Vec<String> {
        match self {
            Self::None => Vec::new(),
            Self::Given(secret) => vec![secret.clone()],
            Self::Of(secrets) => secrets.secrets_of(domain),
        }
    }
}

impl fmt::Debug for WorkspaceCaller {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let org = self.org.as_ref().map(|(domain, _)| domain);
        f.debug_struct("WorkspaceCaller").field("org", &org).field("issuer", &self.issuer).finish_non_exhaustive()
    }
}

impl WorkspaceCaller {
    /// Signs with the secret that all apps share. A blank one is none.
    #[must_use]
    pub fn new(secret: impl Into<String>) -> Self {
        let secret: String = secret.into();
        Self { secret: Some(secret).filter(|secret| !secret.trim().is_empty()), ..Self::default() }
    }

    /// The organization of the users, and its own secret: an app that refuses a token under the shared secret is shown one under
    /// this.
    #[must_use]
    pub fn with_org(mut self, domain: impl Into<String>, secret: Option<String>) -> Self {
        let secret = secret.filter(|secret| !secret.trim().is_empty()).map_or(OrgSecret::None, OrgSecret::Given);
        self.org = Some((domain.into(), secret));
        self
    }

    /// As [`WorkspaceCaller::with_org`], with the secrets that a server has of the organization: when one is replaced, tokens are signed
    /// with the new one, and an app that was not told yet is shown one under the secret before.
    #[must_use]
    pub fn with_org_of(mut self, domain: impl Into<String>, secrets: &SharedSecret) -> Self {
        self.org = Some((domain.into(), OrgSecret::Of(Box::new(secrets.clone()))));
        self
    }

    /// The organization is the tenant of the owner that a call is made for ([`WorkspaceCaller::credentials_for`]), with the secrets that a
    /// server has of it.
    #[must_use]
    pub fn with_orgs_of_owners(mut self, secrets: &SharedSecret) -> Self {
        self.orgs = Some(Box::new(secrets.clone()));
        self
    }

    /// The address of this program (`iss`).
    #[must_use]
    pub fn with_issuer(mut self, url: impl Into<String>) -> Self {
        self.issuer = Some(url.into());
        self
    }

    /// Binds each token to the app that it is for (`aud`), so that this app cannot show it to another one. Apps of agent-native that do
    /// not know their own address refuse such tokens, so it is off by default.
    #[must_use]
    pub fn bind_to_audience(mut self, on: bool) -> Self {
        self.is_bound = on;
        self
    }

    /// What proves the owner of a task to an agent: as [`WorkspaceCaller::credentials`], under the name that apps of the workspace know the owner by
    /// ([`SharedSecret::subject_of`]), and with the tenant as the organization if [`WorkspaceCaller::with_orgs_of_owners`] says so.
    #[must_use]
    pub fn credentials_for(&self, owner: &Owner, agent: &DirectoryEntry) -> Option<Credentials> {
        let (user, tenant) = (SharedSecret::subject_of(owner.principal.as_str()), owner.tenant.as_str());
        match &self.orgs {
            Some(secrets) if !tenant.is_empty() => self.clone().with_org_of(tenant, secrets).credentials(user, agent),
            _ => self.credentials(user, agent),
        }
    }

    /// What proves a user to an agent. None for an agent outside the workspace: it does not know the secret, and a token that is good for
    /// every app must not get there. Such an agent is called with credentials of its own.
    #[must_use]
    pub fn credentials(&self, user: &str, agent: &DirectoryEntry) -> Option<Credentials> {
        let org = self.org.as_ref().map(|(domain, secret)| (domain, secret.now(domain)));
        let has_secret = self.secret.is_some() || org.as_ref().is_some_and(|(_, secrets)| !secrets.is_empty());
        if !agent.is_app() || !has_secret {
            return None;
        }
        let mut tokens = SignedTokens::new(user);
        if let Some(secret) = &self.secret {
            tokens = tokens.with_secret(secret);
        }
        if let Some((domain, secrets)) = org {
            let mut secrets = secrets.iter();
            tokens = tokens.with_org(domain, secrets.next());
            tokens = secrets.fold(tokens, SignedTokens::with_earlier_org_secret);
        }
        if let Some(issuer) = &self.issuer {
            tokens = tokens.with_issuer(issuer);
        }
        if self.is_bound {
            tokens = tokens.with_audience(agent.audience());
        }
        Some(Credentials::signed(tokens))
    }
}

#[cfg(test)]
#[path = "caller_tests.rs"]
mod tests;
