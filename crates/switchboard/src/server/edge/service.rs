//! One request through the edge: gate, route, binding. A gRPC call is known by its content type and goes its own way.

use std::convert::Infallible;
use std::fmt;
use std::future::ready;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::request::Parts;
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode, header};
use http_body::Body;
use switchboard_core::dialect::Dialect;
use switchboard_core::dialect::detect::{Door, Mount};
use switchboard_core::dialect::json::excerpt;
use switchboard_core::error::ProtocolError;
use switchboard_core::nearest::nearest;
use tracing::{Instrument, Span};

use crate::server::bindings::compat;
use crate::server::bindings::compat::CompatPlace;
#[cfg(feature = "grpc")]
use crate::server::bindings::grpc;
use crate::server::bindings::http_json;
use crate::server::bindings::jsonrpc;
use crate::server::downloads as download;
use crate::server::edge::body::ReplyBody;
use crate::server::edge::cors::Cors;
use crate::server::edge::header_names::X_REQUEST_ID;
use crate::server::edge::note::{Note, Underway};
use crate::server::edge::origins::named_authority;
use crate::server::edge::respond::{A2A_JSON, JSON, http_error, takes};
use crate::server::edge::route::{Place, Route, route};
use crate::server::edge::shared::{Head, Mounted, Shared, Site, card_dialect, claimed};
use crate::server::operator::health as ops;
use crate::server::operator::metrics::Operation;
use crate::server::operator::outbox as operator;

/// The whole server as a tower service: serve it yourself, or mount it in an axum router.
#[derive(Clone)]
pub struct A2aService {
    shared: Arc<Shared>,
    /// The other end of the connection, where it is known.
    peer: Option<SocketAddr>,
}

impl fmt::Debug for A2aService {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("A2aService").field("peer", &self.peer).finish_non_exhaustive()
    }
}

impl A2aService {
    pub(crate) fn new(shared: Arc<Shared>) -> Self {
        Self { shared, peer: None }
    }

    /// The same service for one connection.
    pub(crate) fn of_peer(shared: Arc<Shared>, peer: SocketAddr) -> Self {
        Self { shared, peer: Some(peer) }
    }
}

type Answering = Pin<Box<dyn Future<Output = Result<Response<ReplyBody>, Infallible>> + Send>>;

impl<B> tower::Service<Request<B>> for A2aService
where
    B: Body<Data = Bytes> + Send + Unpin + 'static,
    B::Error: fmt::Display,
{
    type Response = Response<ReplyBody>;
    type Error = Infallible;
    type Future = Answering;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let shared = self.shared.clone();
        let mut note = Note::new(self.peer);
        let (parts, body) = request.into_parts();
        // Each way is boxed by itself: one box for all would be as large as the largest of them at every request.
        #[cfg(feature = "grpc")]
        if grpc::is_call(&parts.headers) {
            let (gate, stamp) = admit(&shared, &parts, named_authority(&parts.uri, &parts.headers), false);
            note.keep_line(&shared, &parts, &stamp.request_id);
            let (span, underway) = (stamp.span(), Underway::new(shared, note));
            let answer = async move {
                let (shared, note) = (&underway.shared, &underway.note);
                let response = stamp.on(shared, grpc::answer(shared, &parts, note, gate, body).await);
                Ok(underway.answered(response))
            };
            return boxed(span, answer);
        }
        let base = shared.mount.base_of(&parts);
        let place = route(parts.uri.path(), base);
        let public = match &place {
            Route::Agent { place: Place::Card, .. } => true,
            Route::Agent { place: Place::Compat { place, .. }, .. } => place.is_public(),
            _ => false,
        };
        let authority = named_authority(&parts.uri, &parts.headers);
        let (gate, stamp) = admit(&shared, &parts, authority, public);
        note.keep_line(&shared, &parts, &stamp.request_id);
        let (span, underway) = (stamp.span(), Underway::new(shared, note));
        if let Err(why) = gate {
            let error = ProtocolError::PermissionDenied { reason: why.to_owned() };
            let response = stamp.on(&underway.shared, http_error(Dialect::V1_0, &error, A2A_JSON));
            return Box::pin(ready(Ok(span.in_scope(|| underway.answered(response)))));
        }
        if parts.method == Method::OPTIONS && !is_probe(&place, &parts.headers) {
            let response = stamp.on(&underway.shared, preflight());
            return Box::pin(ready(Ok(span.in_scope(|| underway.answered(response)))));
        }
        if let Some(agent) = rpc_agent(&underway.shared, &parts, authority, &place) {
            let answer = async move {
                let shared = &underway.shared;
                let head = Head { uri: &parts.uri, headers: &parts.headers, note: &underway.note };
                let begun = jsonrpc::begin(shared, &agent, &head, body).await;
                drop(parts);
                let response = stamp.on(shared, begun.answer(shared, &agent).await);
                Ok(underway.answered(response))
            };
            return boxed(span, answer);
        }
        let answer = async move {
            let shared = &underway.shared;
            let head = Head { uri: &parts.uri, headers: &parts.headers, note: &underway.note };
            let route = route(parts.uri.path(), shared.mount.base_of(&parts));
            let site = shared.site(named_authority(&parts.uri, &parts.headers));
            let response = stamp.on(shared, dispatch(shared, site, &head, &parts.method, route, body).await);
            Ok(underway.answered(response))
        };
        boxed(span, answer)
    }
}

/// Has what an answer logs carry the request's span, if there is one.
fn boxed<F>(span: Span, answer: F) -> Answering
where
    F: Future<Output = Result<Response<ReplyBody>, Infallible>> + Send + 'static,
{
    if span.is_disabled() { Box::pin(answer) } else { Box::pin(answer.instrument(span)) }
}

/// Whether a request may come in, and what its answer will carry either way.
fn admit(shared: &Shared, parts: &Parts, authority: Option<&str>, public: bool) -> (Result<(), &'static str>, Stamp) {
    let origin = parts.headers.get(header::ORIGIN);
    let gate = shared.gate.admits(authority, origin, &shared.cors, public);
    let request_id = shared.request_ids.name(&parts.headers);
    (gate, Stamp { public, origin: origin.cloned(), request_id })
}

/// What every answer carries beside what was asked for.
struct Stamp {
    public: bool,
    origin: Option<HeaderValue>,
    request_id: HeaderValue,
}

impl Stamp {
    /// What is logged meanwhile carries the request's id. At debug level only: a span at every request costs more than
    /// the rest of the logging, and whoever is told of a failure is given an incident's id besides.
    fn span(&self) -> Span {
        tracing::debug_span!("request", id = self.request_id.to_str().unwrap_or("?"))
    }

    fn on(self, shared: &Shared, mut response: Response<ReplyBody>) -> Response<ReplyBody> {
        let headers = response.headers_mut();
        shared.cors.mark(self.origin.as_ref(), self.public, headers);
        headers.insert(X_REQUEST_ID, self.request_id);
        response
    }
}

/// The agent of a JSON-RPC call whose path belongs to no compat dialect.
fn rpc_agent(shared: &Shared, parts: &Parts, authority: Option<&str>, route: &Route<'_>) -> Option<Arc<Mounted>> {
    let Route::Agent { agent, place: Place::Root | Place::JsonRpc } = route else { return None };
    let agent = shared.site(authority).agent(agent.as_deref())?;
    (parts.method == Method::POST && agent.compat.claim().is_none()).then(|| agent.clone())
}

/// Whether this is somebody who looks if there is an endpoint of a compat dialect here.
fn is_probe(route: &Route<'_>, headers: &HeaderMap) -> bool {
    matches!(route, Route::Agent { place: Place::Compat { dialect, .. }, .. } if compat::is_probe(*dialect, headers))
}

fn preflight() -> Response<ReplyBody> {
    let mut response = Response::new(ReplyBody::Empty);
    *response.status_mut() = StatusCode::NO_CONTENT;
    response.headers_mut().extend(Cors::preflight());
    response
}

async fn dispatch<B>(
    shared: &Shared,
    site: &Site,
    head: &Head<'_>,
    method: &Method,
    route: Route<'_>,
    body: B,
) -> Response<ReplyBody>
where
    B: Body<Data = Bytes> + Send + Unpin,
    B::Error: fmt::Display,
{
    let reads = *method == Method::GET || *method == Method::HEAD;
    match &route {
        Route::Health | Route::Ready => head.note.operation(Operation::Probe),
        Route::Metrics => head.note.operation(Operation::Metrics),
        Route::Outbox(_) => head.note.operation(Operation::Outbox),
        Route::Agent { .. } | Route::Unknown => {}
    }
    let (name, place) = match route {
        Route::Health if reads => return ops::health(),
        Route::Ready if reads => return ops::ready(shared),
        Route::Metrics if reads => return metrics(shared, head).await,
        Route::Health | Route::Ready | Route::Metrics => return takes("GET"),
        Route::Outbox(place) => {
            return match shared.operator(head.headers) {
                Ok(()) => operator::serve(&shared.engine, head, method, place, body).await,
                Err(error) => http_error(Dialect::V1_0, &error, JSON),
            };
        }
        Route::Unknown => return not_found(shared, head),
        Route::Agent { agent, place } => (agent, place),
    };
    let place = match place {
        Place::Compat { dialect, is_own, place } => match (place, compat::of(dialect)) {
            (place @ (CompatPlace::Endpoint | CompatPlace::Card), _) => Place::Compat { dialect, is_own, place },
            // It need not be an agent of this name that is meant.
            (place, Some(compat)) => {
                let at = compat::At { site, agent: name.as_deref(), place };
                return Box::pin(compat::serve_place(compat, shared, head, method, at, body)).await;
            }
            (_, None) => return not_found(shared, head),
        },
        place => place,
    };
    let Some(agent) = site.agent(name.as_deref()) else { return not_found(shared, head) };
    head.note.agent(agent);
    if let Place::Card | Place::Compat { place: CompatPlace::Card, .. } = place {
        head.note.operation(Operation::GetAgentCard);
    }
    let mount = match place {
        Place::Compat { dialect, is_own: true, .. } => Mount::Own(dialect),
        Place::Compat { dialect, is_own: false, .. } => Mount::Shared { claim: Some(dialect) },
        _ => Mount::Shared { claim: agent.compat.claim() },
    };
    match place {
        Place::Root if reads => ops::welcome(site),
        Place::Compat { dialect, place: CompatPlace::Card, .. } if reads => {
            agent.cards.on_mount(dialect).answer(head.headers, *method == Method::HEAD)
        }
        Place::Compat { place: CompatPlace::Card, .. } => takes("GET"),
        Place::Root | Place::JsonRpc | Place::Compat { .. } => match claimed(head, mount).and_then(compat::over_rpc) {
            Some(compat) => Box::pin(compat::serve(compat, shared, agent, head, method, body)).await,
            None if *method == Method::POST => jsonrpc::serve(shared, agent, head, body).await,
            None => takes("POST"),
        },
        Place::Card if reads => agent.cards.of(card_dialect(head)).answer(head.headers, *method == Method::HEAD),
        Place::Card => takes("GET"),
        Place::Artifact(place) => download::serve(shared, agent, head, method, place).await,
        Place::Rest { tenant, place } => {
            let at = http_json::At { door: Door::Http, tenant, place };
            http_json::serve(shared, agent, head, method, at, body).await
        }
        Place::RestV1(place) => {
            let at = http_json::At { door: Door::HttpV1, tenant: None, place };
            http_json::serve(shared, agent, head, method, at, body).await
        }
    }
}

/// Numbers about everybody's traffic are for those who may call.
async fn metrics(shared: &Shared, head: &Head<'_>) -> Response<ReplyBody> {
    match shared.identify(head) {
        // Where others' webhooks go is for operators alone.
        Ok(_) => ops::metrics(shared, shared.operator(head.headers).is_ok()).await,
        Err(error) => http_error(Dialect::V1_0, &error, A2A_JSON),
    }
}

fn not_found(shared: &Shared, head: &Head<'_>) -> Response<ReplyBody> {
    let path = head.uri.path();
    let error = ProtocolError::MethodNotFound { method: excerpt(path, 200), hint: meant_agent(shared, path) };
    let mut response = http_error(Dialect::V1_0, &error, A2A_JSON);
    *response.status_mut() = StatusCode::NOT_FOUND;
    response
}

/// The agent that a path was probably meant for. Which agents there are is no secret: the page at the root lists them.
fn meant_agent(shared: &Shared, path: &str) -> Option<String> {
    // Before it may stand the path of the public URL, or that of the router which the server is nested in.
    let (_, below) = path.split_once("/agents/")?;
    let name = below.split('/').next()?;
    let meant = nearest(name, shared.own_site.agents.iter().map(|agent| agent.name.as_str()))?;
    (meant != name).then(|| format!("did you mean /agents/{meant}?"))
}
