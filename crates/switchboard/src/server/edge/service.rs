//! One request through the stages, in order: admit, route, authenticate, and then the binding that reads it, calls the agent and
//! answers.

use std::convert::Infallible;
use std::fmt;
use std::future::ready;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::request::Parts;
use http::{HeaderMap, Request, Response, StatusCode, Version};
use http_body::Body;
use switchboard_core::dialect::Dialect;
use switchboard_core::dialect::detect::Mount;
use switchboard_core::error::ProtocolError;
use switchboard_core::model::Tenant;
use tracing::{Instrument, Span};

use crate::server::authentication::{Authenticated, ClientCertificate, Identified, Identity, SchemeSet};
use crate::server::bindings::{self, Binding};
use crate::server::downloads;
use crate::server::edge::admit::{CommonHeaders, admit};
use crate::server::edge::request_log::{InFlight, ReplyWatch};
use crate::server::edge::route::{Target, named, route};
use crate::server::exchange::headers::{PresentHeaders, drop_identity_headers};
use crate::server::exchange::refused::Refused;
use crate::server::exchange::request::Head;
use crate::server::exchange::request_record::RequestRecord;
use crate::server::exchange::respond::{A2A_JSON, JSON, ReplyBody, http_error};
use crate::server::exposure::operator_check::check_operator;
use crate::server::exposure::origins::named_authority;
use crate::server::internal::door::{self, DoorPath};
use crate::server::internal::{self, InternalRoute};
use crate::server::operator::{health, outbox};
use crate::server::organizations::serve::Asking;
use crate::server::organizations::{self, OrgRoute};
use crate::server::ports::Operations;
use crate::server::shared::{Incoming, Mounted, Shared};
use crate::server::transport::unread::UnreadReplies;

/// The whole server as a tower service: serve it yourself, or mount it in an axum router.
#[derive(Clone)]
pub struct A2aService {
    shared: Arc<Shared>,
    /// The other end of the connection, where it is known.
    peer: Option<SocketAddr>,
    /// The answers of the connection that are not read yet, where the connection is ours.
    unread: Option<Arc<UnreadReplies>>,
    /// The certificate of the client, where it has shown one.
    certificate: Option<ClientCertificate>,
}

impl fmt::Debug for A2aService {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("A2aService").field("peer", &self.peer).finish_non_exhaustive()
    }
}

impl A2aService {
    pub(crate) fn new(shared: Arc<Shared>) -> Self {
        Self { shared, peer: None, unread: None, certificate: None }
    }

    /// The same service for one connection.
    pub(crate) fn of_connection(
        shared: Arc<Shared>,
        peer: SocketAddr,
        unread: Arc<UnreadReplies>,
        certificate: Option<ClientCertificate>,
    ) -> Self {
        Self { shared, peer: Some(peer), unread: Some(unread), certificate }
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
        let mut note = RequestRecord::new(self.peer);
        let (mut parts, body) = request.into_parts();
        let present = PresentHeaders::of(&parts.headers);
        if present.identity {
            drop_identity_headers(&mut parts.headers);
        }
        if let Some(certificate) = &self.certificate {
            parts.extensions.insert(certificate.clone());
        }
        // The path is read first, because every page may read a card. Nothing is looked up before the request is admitted.
        let named = named(&shared, &parts, present);
        let authority = named_authority(&parts.uri, &parts.headers);
        let (admitted, common) = admit(&shared, &parts, present, authority, named.is_public());
        note.keep_line(shared.access_log.is_some(), &parts, &common.request_id);
        if present.trace || shared.tracer.is_some() {
            note.begin_trace(shared.tracer.as_ref(), &parts.headers);
        }
        let target = route(&shared, &head(&parts, present, &note), &parts, authority, named, admitted);
        let unread = match &self.unread {
            Some(unread) if parts.version == Version::HTTP_2 => ReplyWatch::Streams(unread.clone()),
            Some(_) => ReplyWatch::Socket,
            None => ReplyWatch::Service(shared.unread.of_service.clone()),
        };
        let in_flight = InFlight::new(shared, note, unread);
        let exchange = Box::new(Exchange { in_flight, common, parts, present, body });
        if let Target::Answered(response) = target {
            return exchange.answered(response);
        }
        if let Err(error) = exchange.in_flight.shared.budgets.admit_address(&exchange.in_flight.note) {
            let response = exchange.refuse(target, &error);
            return exchange.answered(response);
        }
        match target {
            Target::Internal(route) => return exchange.internal(route),
            Target::Door(place) => return exchange.door(place),
            // The other app proves itself by a token that callers have no use for.
            Target::Organization(OrgRoute::Receive) => return exchange.org_secret_received(),
            _ => {}
        }
        if exchange.in_flight.shared.is_closed {
            return exchange.proceed(target, Err(closed()));
        }
        if let Some(known) = exchange.known_peer(&target) {
            return exchange.proceed(target, Ok(Identified::Known(known, SchemeSet::NONE)));
        }
        match exchange.in_flight.shared.authentication.identify(&exchange.parts) {
            Authenticated::Now(identified) => exchange.proceed(target, identified),
            Authenticated::Asking => Box::pin(async move {
                let shared = &exchange.in_flight.shared;
                let wait_s_max = shared.limits.authenticate_s_max;
                let identified = shared.authentication.ask(&exchange.parts, wait_s_max).await;
                exchange.proceed(target, identified).await
            }),
        }
    }
}

fn head<'a>(parts: &'a Parts, present: PresentHeaders, note: &'a RequestRecord) -> Head<'a> {
    Head { method: &parts.method, uri: &parts.uri, headers: &parts.headers, present, note }
}

/// A request on its way, with its body. It is boxed, so that a call to an agent passes on its address instead of copying it.
struct Exchange<B> {
    in_flight: InFlight,
    common: CommonHeaders,
    parts: Parts,
    present: PresentHeaders,
    body: B,
}

impl<B> Exchange<B>
where
    B: Body<Data = Bytes> + Send + Unpin + 'static,
    B::Error: fmt::Display,
{
    /// A caller at a path of its dialect who is known by its address, if there are such callers.
    fn known_peer(&self, target: &Target) -> Option<Arc<Identity>> {
        let open_peers = self.in_flight.shared.open_peers.as_ref()?;
        let Target::Compat(_, _, binding) = target else { return None };
        open_peers.identify(binding.dialect(), self.in_flight.note.address(), &self.parts.headers)
    }

    /// The answer is there already.
    fn answered(self, response: Response<ReplyBody>) -> Answering {
        let (in_flight, common) = (self.in_flight, self.common);
        let span = common.span();
        Box::pin(ready(Ok(span.in_scope(|| in_flight.answered(common, response)))))
    }

    /// Continues after authentication. Each way is boxed by itself: one box for all would be as large as the largest of
    /// them at every request.
    fn proceed(self: Box<Self>, target: Target, identified: Result<Identified, ProtocolError>) -> Answering {
        let identified = match identified {
            Ok(identified) => identified,
            Err(error) => {
                let is_compat = matches!(target, Target::Compat(..));
                let mut response = self.refuse(target, &error);
                if self.in_flight.shared.is_closed {
                    // Some compat dialects answer every refusal with 200, and probes read nothing but the status.
                    if is_compat {
                        *response.status_mut() = StatusCode::SERVICE_UNAVAILABLE;
                    }
                    // No caller is known here, so that this refusal stands for all that would be about who asked.
                    Refused::audit(&mut response);
                }
                return self.answered(response);
            }
        };
        let shared = &self.in_flight.shared;
        self.in_flight.note.principal(shared.authentication.identity(&identified));
        if let Err(error) = shared.budgets.admit_caller(&self.in_flight.note) {
            let response = self.refuse(target, &error);
            return self.answered(response);
        }
        match target {
            Target::Answered(response) | Target::Card(response) => self.answered(response),
            Target::JsonRpc(agent, binding) => self.call_agent(agent, Mount::FREE, binding, identified),
            Target::HttpJson(agent, binding) => self.call_agent(agent, Mount::FREE, binding, identified),
            #[cfg(feature = "grpc")]
            Target::Grpc(agent, binding) => self.call_agent(agent, Mount::FREE, binding, identified),
            Target::Compat(agent, mount, binding) => self.call_agent(agent, mount, binding, identified),
            Target::Download(agent, files, place) => {
                let Self { in_flight, common, parts, present, .. } = *self;
                boxed(common.span(), async move {
                    let (shared, head) = (&*in_flight.shared, head(&parts, present, &in_flight.note));
                    let identity = shared.authentication.identity(&identified);
                    let mut response =
                        downloads::serve::serve(shared, agent.name.as_str(), &files, &head, identity, place).await;
                    if let Err(error) = response.body_mut().hold(&shared.budgets, &in_flight.note, None, None) {
                        response = downloads::serve::refuse(&error);
                    }
                    Ok(in_flight.answered(common, response))
                })
            }
            Target::Internal(route) => self.internal(route),
            Target::Door(place) => self.door(place),
            Target::Organization(route) => {
                let Self { in_flight, common, parts, present, body } = *self;
                boxed(common.span(), async move {
                    let (shared, head) = (&*in_flight.shared, head(&parts, present, &in_flight.note));
                    let identity = shared.authentication.identity(&identified);
                    let asking = Asking {
                        principal: identity.principal.as_str(),
                        tenant: identity.tenants.first().map_or("", Tenant::as_str),
                        is_operator: is_operator(shared, identity, head.headers).is_ok(),
                    };
                    let record = |entry| in_flight.audit_operator(entry);
                    let response =
                        organizations::serve::serve(&shared.organizations, route, &head, &asking, body, &record).await;
                    Ok(in_flight.answered(common, response))
                })
            }
            Target::Outbox(place) => {
                let Self { in_flight, common, parts, present, body } = *self;
                boxed(common.span(), async move {
                    let (shared, head) = (&*in_flight.shared, head(&parts, present, &in_flight.note));
                    let identity = shared.authentication.identity(&identified);
                    let response = match is_operator(shared, identity, head.headers) {
                        Ok(()) => {
                            let desk = shared.operations.as_deref().map(Operations::outbox);
                            let record = |entry| in_flight.audit_operator(entry);
                            outbox::serve(desk.as_ref(), &head, place, body, &record).await
                        }
                        Err(error) => http_error(Dialect::V1_0, &error, JSON),
                    };
                    Ok(in_flight.answered(common, response))
                })
            }
            // Every authenticated caller may read the metrics, which are about all traffic; only operators see the
            // endpoints of webhooks.
            Target::Metrics => {
                let Self { in_flight, common, parts, .. } = *self;
                boxed(common.span(), async move {
                    let shared = &*in_flight.shared;
                    let identity = shared.authentication.identity(&identified);
                    let is_operator = is_operator(shared, identity, &parts.headers).is_ok();
                    let response = health::metrics(shared, is_operator).await;
                    Ok(in_flight.answered(common, response))
                })
            }
        }
    }

    /// A request that the server has posted to itself.
    fn internal(self, route: InternalRoute) -> Answering {
        let Self { in_flight, common, parts, present, body } = self;
        boxed(common.span(), async move {
            let (shared, head) = (&*in_flight.shared, head(&parts, present, &in_flight.note));
            let response = internal::serve::serve(&shared.internal, route, &head, body).await;
            Ok(in_flight.answered(common, response))
        })
    }

    /// A program that an agent of this server has started calls another agent.
    fn door(self, place: DoorPath) -> Answering {
        let Self { in_flight, common, parts, present, body } = self;
        boxed(common.span(), async move {
            let (shared, head) = (&*in_flight.shared, head(&parts, present, &in_flight.note));
            let response = {
                let (door, bytes_max) = (shared.call_door.as_ref(), shared.limits.body_bytes_max);
                door::serve::serve(door, bytes_max, &shared.decode_limits, &place, &head, body).await
            };
            Ok(in_flight.answered(common, response))
        })
    }

    /// Another app passes on the secret of an organization.
    fn org_secret_received(self) -> Answering {
        let Self { in_flight, common, parts, present, body } = self;
        boxed(common.span(), async move {
            let (shared, head) = (&*in_flight.shared, head(&parts, present, &in_flight.note));
            let record = |entry| in_flight.audit_operator(entry);
            let response = organizations::serve::receive(&shared.organizations, &head, body, &record).await;
            Ok(in_flight.answered(common, response))
        })
    }

    /// Takes a call through its binding.
    fn call_agent<P>(
        self: Box<Self>,
        agent: Arc<Mounted>,
        mount: Mount,
        mut binding: P,
        identified: Identified,
    ) -> Answering
    where
        P: Binding + 'static,
    {
        boxed(self.common.span(), async move {
            let (shared, note) = (&*self.in_flight.shared, &self.in_flight.note);
            let proven = identified.proven();
            let request =
                Incoming { shared, agent: &agent, mount, head: head(&self.parts, self.present, note), proven };
            let identity = shared.authentication.identity(&identified);
            let mut begun = bindings::begin(&mut binding, &request, identity, self.body).await;
            // The connection reads the next request into the same memory.
            drop(self.parts);
            let response = match &mut begun {
                Ok(pending) => bindings::finish(&mut binding, shared, &agent, note, identity, pending).await,
                Err(response) => std::mem::take(&mut **response),
            };
            Ok(self.in_flight.answered(self.common, response))
        })
    }

    /// The refusal of a request whose sender is not known, as path and content type alone have it.
    fn refuse(&self, target: Target, error: &ProtocolError) -> Response<ReplyBody> {
        let shared = &*self.in_flight.shared;
        let head = head(&self.parts, self.present, &self.in_flight.note);
        let request = |agent, mount| Incoming { shared, agent, mount, head, proven: SchemeSet::NONE };
        match target {
            Target::Answered(response) => response,
            Target::JsonRpc(agent, binding) => bindings::refuse(binding, &request(&*agent, Mount::FREE), error),
            Target::HttpJson(agent, binding) => bindings::refuse(binding, &request(&*agent, Mount::FREE), error),
            #[cfg(feature = "grpc")]
            Target::Grpc(agent, binding) => bindings::refuse(binding, &request(&*agent, Mount::FREE), error),
            Target::Compat(agent, mount, binding) => bindings::refuse(binding, &request(&*agent, mount), error),
            Target::Download(..) => downloads::serve::refuse(error),
            Target::Outbox(_) | Target::Internal(_) | Target::Door(_) | Target::Organization(_) => {
                http_error(Dialect::V1_0, error, JSON)
            }
            Target::Metrics | Target::Card(_) => http_error(Dialect::V1_0, error, A2A_JSON),
        }
    }
}

fn is_operator(shared: &Shared, identity: &Identity, headers: &HeaderMap) -> Result<(), ProtocolError> {
    check_operator(&shared.authentication, shared.operator_key.as_ref(), identity, headers)
}

/// Attaches the request's span, if there is one, to what is logged while it is answered.
fn boxed<F>(span: Span, answer: F) -> Answering
where
    F: Future<Output = Result<Response<ReplyBody>, Infallible>> + Send + 'static,
{
    if span.is_disabled() { Box::pin(answer) } else { Box::pin(answer.instrument(span)) }
}

/// The refusal of every operation on a server that fails closed.
fn closed() -> ProtocolError {
    let reason = "this server is in production and has no authentication configured, so it takes no calls".to_owned();
    ProtocolError::Unavailable { reason, retry_after_s: CLOSED_RETRY_AFTER_S }
}

/// The operator has to configure the server first.
const CLOSED_RETRY_AFTER_S: u32 = 60;
