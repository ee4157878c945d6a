//! Who calls. A request is authenticated once, from its head alone, before a byte of its body is read: by static tokens, by an
//! [`Authenticator`] of the embedding application, or not at all on an open server. What comes out is an [`Identity`]; the
//! tenant a request names only selects among the tenants of its identity.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use http::request::Parts;
use http::{HeaderMap, HeaderValue, header};
use switchboard_core::call::{BoxFuture, Owner};
use switchboard_core::error::ProtocolError;
use switchboard_core::model::{Principal, Tenant};

use crate::server::edge::tokens::Tokens;

/// Who calls, and what the caller may do: what an [`Authenticator`] finds out about a request.
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
    /// What the credential was issued for. The server itself checks no scope; the [`Endpoint`](crate::call::Endpoint) that is
    /// called finds them in [`Caller::scopes`](crate::call::Caller::scopes).
    pub scopes: Vec<String>,
    /// Whether the caller may look after what belongs to others: the outbox, and the endpoints in `/metrics`.
    pub operator: bool,
    /// False for a caller of whom nothing is known. Such callers share one principal, and the extended card is not for them.
    pub authenticated: bool,
}

impl Identity {
    /// A caller whose name has been proven.
    pub fn new(principal: impl Into<Principal>) -> Self {
        let principal = principal.into();
        Self { principal, tenants: Vec::new(), scopes: Vec::new(), operator: false, authenticated: true }
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

/// Decides who calls, in place of static tokens: the login of the application that the server is part of. Set by
/// [`ServerBuilder::authenticate`](crate::ServerBuilder::authenticate).
///
/// It is asked once for each request that needs to know its caller, before the body is read. Whatever it refuses is answered in
/// the form of the protocol binding that the request came by. Cards, `/healthz` and `/readyz` are for everybody and are
/// answered without asking.
///
/// ```
/// use std::collections::HashMap;
///
/// use switchboard::call::BoxFuture;
/// use switchboard::{AgentBuilder, Authenticator, Identity, ProtocolError, Server, Turn};
///
/// /// Sessions of an application, by the value of a cookie.
/// struct Sessions(HashMap<String, String>);
///
/// impl Authenticator for Sessions {
///     fn authenticate<'a>(
///         &'a self,
///         head: &'a http::request::Parts,
///     ) -> BoxFuture<'a, Result<Identity, ProtocolError>> {
///         Box::pin(async move {
///             // A real application would ask its database here.
///             let cookie = head.headers.get("cookie").and_then(|cookie| cookie.to_str().ok());
///             let user = cookie.and_then(|cookie| self.0.get(cookie));
///             let unknown = || ProtocolError::Unauthenticated { reason: "log in first".to_owned() };
///             Ok(Identity::new(user.ok_or_else(unknown)?.as_str()))
///         })
///     }
/// }
///
/// # tokio::runtime::Runtime::new().unwrap().block_on(async {
/// # use tower::ServiceExt;
/// let echo = AgentBuilder::from_fn("Echo", |turn: Turn| async move { Ok(turn.answer(turn.text()).await?) });
/// let sessions = Sessions(HashMap::from([("session=1".to_owned(), "alice".to_owned())]));
/// let server = Server::builder().agent(echo).authenticate(sessions).public_url("http://127.0.0.1:3000").build()?;
/// let service = server.into_service()?;
/// let ask = |cookie| {
///     let request = http::Request::get("/tasks").header("A2A-Version", "1.0").header("Cookie", cookie);
///     service.clone().oneshot(request.body(String::new()).unwrap())
/// };
/// assert_eq!(ask("session=1").await.unwrap().status(), 200);
/// assert_eq!(ask("session=2").await.unwrap().status(), 401);
/// # Ok::<(), switchboard::ServeError>(())
/// # }).unwrap();
/// ```
pub trait Authenticator: Send + Sync + 'static {
    /// Who sends this request, told from its method, path, headers and extensions.
    ///
    /// A refusal is [`ProtocolError::Unauthenticated`], [`ProtocolError::PermissionDenied`], or
    /// [`ProtocolError::Unavailable`] where it cannot be found out now. One that takes longer than
    /// [`ServerLimits::authenticate_s_max`](crate::ServerLimits::authenticate_s_max) counts as the last of these.
    fn authenticate<'a>(&'a self, head: &'a Parts) -> BoxFuture<'a, Result<Identity, ProtocolError>>;

    /// How a client that was refused with 401 can log in: the value of `WWW-Authenticate` (RFC 9110, 11.6.1). By default it says
    /// that this server takes bearer tokens; a login of another kind names its own scheme, such as
    /// `Basic realm="shop"`.
    fn challenge(&self) -> HeaderValue {
        BEARER_CHALLENGE
    }
}

/// The challenge of a server that takes bearer tokens.
pub(crate) const BEARER_CHALLENGE: HeaderValue = HeaderValue::from_static("Bearer realm=\"switchboard\"");

/// Takes the [`Identity`] that a layer around the server has put into the extensions of the request. A request without one is
/// refused, so a layer that is missing or was passed by lets nobody in.
///
/// ```
/// use axum::{Router, extract::Request, middleware::Next, response::Response};
/// use switchboard::{AgentBuilder, Identity, IdentityFromExtensions, Server, Turn};
///
/// /// The login of the application.
/// async fn log_in(mut request: Request, next: Next) -> Response {
///     if request.headers().get("x-user").is_some_and(|user| user == "alice") {
///         request.extensions_mut().insert(Identity::new("alice"));
///     }
///     next.run(request).await
/// }
///
/// # tokio::runtime::Runtime::new().unwrap().block_on(async {
/// let echo = AgentBuilder::from_fn("Echo", |turn: Turn| async move { Ok(turn.answer(turn.text()).await?) });
/// let agents = Server::builder().agent(echo).authenticate(IdentityFromExtensions);
/// let agents = agents.public_url("http://127.0.0.1:3000/a2a").build()?;
/// let app: Router = Router::new().nest("/a2a", agents.into_router()?).layer(axum::middleware::from_fn(log_in));
/// # drop(app);
/// # Ok::<(), switchboard::ServeError>(())
/// # }).unwrap();
/// ```
#[derive(Clone, Copy, Debug)]
pub struct IdentityFromExtensions;

impl Authenticator for IdentityFromExtensions {
    fn authenticate<'a>(&'a self, head: &'a Parts) -> BoxFuture<'a, Result<Identity, ProtocolError>> {
        let found = head.extensions.get::<Identity>().cloned();
        let missing = || ProtocolError::Unauthenticated { reason: "this application has not let you in".to_owned() };
        Box::pin(std::future::ready(found.ok_or_else(missing)))
    }
}

/// How a server finds out who calls.
pub(crate) enum Authentication {
    /// Everybody may call, as this one anonymous caller.
    Open(Identity),
    Tokens(Tokens),
    Custom(Arc<dyn Authenticator>),
}

/// What came of authentication.
pub(crate) enum Authenticated {
    Now(Result<Identified, ProtocolError>),
    /// The application has to be asked, which may take time.
    Asking(Arc<dyn Authenticator>),
}

/// Whom a request comes from. On an open server it is always the same identity, whose users need not be counted.
pub(crate) enum Identified {
    Anonymous,
    Known(Arc<Identity>),
}

impl Authentication {
    pub(crate) fn open(tenants: Vec<Tenant>) -> Self {
        let tenants = if tenants.is_empty() { vec![Tenant::default()] } else { tenants };
        Self::Open(Identity::anonymous().tenants(tenants))
    }

    /// How many tokens there are.
    pub(crate) fn tokens(&self) -> usize {
        match self {
            Self::Tokens(tokens) => tokens.len(),
            Self::Open(_) | Self::Custom(_) => 0,
        }
    }

    pub(crate) fn is_open(&self) -> bool {
        matches!(self, Self::Open(_))
    }

    /// The identity of a request's sender. What the server can tell by itself takes no waiting and no memory.
    pub(crate) fn identify(&self, headers: &HeaderMap) -> Authenticated {
        match self {
            Self::Open(_) => Authenticated::Now(Ok(Identified::Anonymous)),
            Self::Tokens(tokens) => {
                let found = bearer(headers).and_then(|token| tokens.find(token));
                Authenticated::Now(found.map(Identified::Known).ok_or_else(unauthenticated))
            }
            Self::Custom(authenticator) => Authenticated::Asking(authenticator.clone()),
        }
    }

    /// Has a refusal say how the application's own login works, where it says how to log in at all.
    pub(crate) fn set_challenge(&self, headers: &mut HeaderMap) {
        if let Self::Custom(authenticator) = self
            && let Some(challenge) = headers.get_mut(header::WWW_AUTHENTICATE)
        {
            *challenge = authenticator.challenge();
        }
    }

    pub(crate) fn identity<'a>(&'a self, identified: &'a Identified) -> &'a Identity {
        match (identified, self) {
            (Identified::Known(identity), _) => identity,
            (Identified::Anonymous, Self::Open(identity)) => identity,
            // Only an open server makes anonymous callers, so this is never asked.
            (Identified::Anonymous, Self::Tokens(_) | Self::Custom(_)) => &NOBODY,
        }
    }
}

/// Somebody who may act for no tenant that has a name.
static NOBODY: std::sync::LazyLock<Identity> = std::sync::LazyLock::new(Identity::anonymous);

/// The token of a request. More than one header could be read in two ways, so then there is none.
pub(crate) fn bearer(headers: &HeaderMap) -> Option<&str> {
    let mut given = headers.get_all(header::AUTHORIZATION).iter();
    let only = given.next().filter(|_| given.next().is_none());
    let (scheme, token) = only?.to_str().ok()?.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
}

/// Asks the application, within bounds. An answer that would mix callers up is a refusal.
pub(crate) async fn ask(
    authenticator: &dyn Authenticator,
    head: &Parts,
    wait_s_max: u32,
) -> Result<Identified, ProtocolError> {
    let wait_max = Duration::from_secs(u64::from(wait_s_max));
    let late = |_| {
        tracing::warn!(wait_s_max, "the authenticator did not answer in time");
        ProtocolError::Unavailable { reason: "who you are could not be checked in time".to_owned(), retry_after_s: 1 }
    };
    let identity = tokio::time::timeout(wait_max, authenticator.authenticate(head)).await.map_err(late)??;
    // An empty name is that of all anonymous callers: their tasks would be everybody's.
    if identity.authenticated == identity.principal.as_str().is_empty() {
        tracing::error!("the authenticator gave an identity whose name does not fit; the request was refused");
        return Err(ProtocolError::Unauthenticated { reason: "it could not be told who you are".to_owned() });
    }
    Ok(Identified::Known(Arc::new(identity)))
}

/// The refusal of everybody without a token that is known, whatever is wrong: who guesses at tokens learns nothing from it.
pub(crate) fn unauthenticated() -> ProtocolError {
    ProtocolError::Unauthenticated { reason: "send a token of this server as Authorization: Bearer TOKEN".to_owned() }
}

impl fmt::Debug for Authentication {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Open(_) => "Open",
            Self::Tokens(_) => "Tokens",
            Self::Custom(_) => "Custom",
        })
    }
}
