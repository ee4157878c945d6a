//! What is known of a caller once it has proven who it is.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Poll;

use switchboard_core::call::{BoxFuture, Owner};
use switchboard_core::error::ProtocolError;
use switchboard_core::model::{Principal, Tenant, Timestamp};
use tokio_util::sync::CancellationToken;

/// Who calls, and what the caller may do: what an [`Authenticator`](crate::Authenticator) finds out about a request.
///
/// ```
/// use switchboard::Identity;
///
/// let alice = Identity::new("alice").tenants(["acme", "globex"]).scopes(["tasks:read"]);
/// assert_eq!(alice.principal.as_str(), "alice");
/// assert!(alice.authenticated && !alice.operator);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Identity {
    /// The name of the caller. Tasks belong to it, within a tenant.
    pub principal: Principal,
    /// Tenants that the caller may act for; the first is used when a request names none. With no entry it is the one tenant
    /// without a name.
    pub tenants: Vec<Tenant>,
    /// What the credential was issued for. The server checks those that a requirement or a skill names
    /// ([`Skill::security`](crate::Skill::security)); the [`Endpoint`](crate::call::Endpoint) that is called finds them in [`Caller::scopes`](crate::call::Caller::scopes).
    pub scopes: Arc<[String]>,
    /// Whether the caller may look after what belongs to others: the outbox, and the endpoints in `/metrics`.
    pub operator: bool,
    /// False for a caller of whom nothing is known. Such callers share one principal, and the extended card is not for them.
    pub authenticated: bool,
    /// Who vouches for the name: the issuer of a JSON Web Token, `a2a-secret`, or `x509`. None for a name that this server or its
    /// application gave out itself. It is the part of [`principal`](Self::principal) before the first `#`.
    pub issuer: Option<String>,
    /// When the credential ends. Streams that were opened with it end then, while their tasks go on.
    pub expires: Option<Timestamp>,
    /// Whether the credential was taken back meanwhile.
    pub(crate) revocation: Revocation,
}

impl Identity {
    /// A caller whose name has been proven.
    pub fn new(principal: impl Into<Principal>) -> Self {
        let principal = principal.into();
        Self {
            principal,
            tenants: Vec::new(),
            scopes: Arc::default(),
            operator: false,
            authenticated: true,
            issuer: None,
            expires: None,
            revocation: Revocation::default(),
        }
    }

    /// A caller whose name another party vouches for. The principal is `ISSUER#SUBJECT`, so that the `alice` of one issuer is
    /// neither the `alice` of another nor the one of a token of this server: the names of tokens have no `#`.
    ///
    /// ```
    /// use switchboard::Identity;
    ///
    /// let alice = Identity::issued("https://login.example", "alice");
    /// assert_eq!(alice.principal.as_str(), "https://login.example#alice");
    /// ```
    #[must_use]
    pub fn issued(issuer: &str, subject: &str) -> Self {
        Self { issuer: Some(issuer.to_owned()), ..Self::new([issuer, "#", subject].concat()) }
    }

    /// When the credential ends.
    #[must_use]
    pub fn expires(mut self, at: Timestamp) -> Self {
        self.expires = Some(at);
        self
    }

    /// A caller of whom nothing is known.
    #[must_use]
    pub fn anonymous() -> Self {
        Self { authenticated: false, ..Self::new(Principal::default()) }
    }

    /// The tenants the caller may act for, the default one first.
    #[must_use]
    pub fn tenants<T: Into<Tenant>>(mut self, tenants: impl IntoIterator<Item = T>) -> Self {
        self.tenants = tenants.into_iter().map(Into::into).collect();
        self
    }

    /// What the caller's credential was issued for.
    #[must_use]
    pub fn scopes<T: Into<String>>(mut self, scopes: impl IntoIterator<Item = T>) -> Self {
        self.scopes = scopes.into_iter().map(Into::into).collect();
        self
    }

    /// Whether the caller is an operator.
    #[must_use]
    pub fn operator(mut self, operator: bool) -> Self {
        self.operator = operator;
        self
    }

    /// About how many bytes it takes in memory.
    pub(super) fn bytes(&self) -> usize {
        // A text that has a place of its own in memory takes more than its letters.
        let text = |text: &str| text.len() + 64;
        let scopes = self.scopes.iter().map(|scope| text(scope));
        let tenants = self.tenants.iter().map(|tenant| text(tenant.as_str()));
        let texts: usize = scopes.chain(tenants).sum();
        size_of::<Self>() + text(self.principal.as_str()) + self.issuer.as_deref().map_or(0, text) + texts
    }

    /// Whose tasks a request may see. The tenant it names is a selector that the credential must grant, never a proof.
    pub(crate) fn owner(&self, named: Option<&str>) -> Result<Owner, ProtocolError> {
        let principal = self.principal.clone();
        let Some(named) = named.filter(|named| !named.is_empty()) else {
            let tenant = self.tenants.first().cloned().unwrap_or_default();
            return Ok(Owner { tenant, principal });
        };
        match self.tenants.iter().find(|tenant| tenant.as_str() == named) {
            Some(tenant) => Ok(Owner { tenant: tenant.clone(), principal }),
            None => Err(ProtocolError::PermissionDenied { reason: "the tenant is not one you may act for".to_owned() }),
        }
    }
}

/// Tells the streams of a credential that it was taken back. Clones tell of the same credential. Every two are equal: what a
/// credential proves does not depend on it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Revocation(Vec<Arc<Revoked>>);

#[derive(Debug, Default)]
struct Revoked {
    /// Read at each event; the other one only wakes.
    flag: AtomicBool,
    waker: CancellationToken,
}

impl PartialEq for Revocation {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for Revocation {}

impl Revocation {
    /// Of a credential that can be taken back.
    pub(crate) fn possible() -> Self {
        Self(vec![Arc::default()])
    }

    pub(crate) fn revoke(&self) {
        for revoked in &self.0 {
            revoked.flag.store(true, Ordering::Release);
            revoked.waker.cancel();
        }
    }

    /// Of several credentials that are needed together.
    pub(crate) fn and(&self, other: &Self) -> Self {
        Self(self.0.iter().chain(&other.0).cloned().collect())
    }

    /// Whether the credential can be taken back at all.
    pub(super) fn is_possible(&self) -> bool {
        !self.0.is_empty()
    }

    pub(super) fn is_revoked(&self) -> bool {
        self.0.iter().any(|revoked| revoked.flag.load(Ordering::Acquire))
    }

    pub(super) async fn revoked(self) {
        let mut waiting: Vec<BoxFuture<'static, ()>> = self
            .0
            .iter()
            .map(|revoked| Box::pin(revoked.waker.clone().cancelled_owned()) as BoxFuture<'static, ()>)
            .collect();
        std::future::poll_fn(|cx| match waiting.iter_mut().any(|waiting| waiting.as_mut().poll(cx).is_ready()) {
            true => Poll::Ready(()),
            false => Poll::Pending,
        })
        .await;
    }
}
