//! The login of the application that the server is part of, which decides who calls in place of what is configured.

use std::sync::Arc;
use std::time::Duration;

use http::HeaderValue;
use http::request::Parts;
use switchboard_core::call::BoxFuture;
use switchboard_core::error::ProtocolError;

use super::identity::Identity;
use super::schemes::SchemeSet;
use super::{BEARER_CHALLENGE, Identified};

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
    Ok(Identified::Known(Arc::new(identity), SchemeSet::ALL))
}
