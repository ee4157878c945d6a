//! The second stage: where a request goes. `paths` has found what the path names; this stage finds the agent and the
//! binding for it. What needs no caller, such as cards, probes and refusals, is answered at once. Which dialect a request is in is decided
//! by `version`.

use std::sync::Arc;

use http::request::Parts;
use http::{HeaderMap, HeaderValue, Method, Response, StatusCode, header};
use switchboard_core::dialect::Dialect;
use switchboard_core::dialect::detect::{Ingress, Mount};
use switchboard_core::dialect::json::excerpt;
use switchboard_core::error::ProtocolError;
use switchboard_core::nearest::nearest;

use crate::server::bindings::compat::{self, Addressee, CompatBinding, CompatDialect, CompatPath};
use crate::server::bindings::http_json::HttpJson;
use crate::server::bindings::jsonrpc::JsonRpc;
use crate::server::bindings::version::{card_dialect, claimed};
use crate::server::downloads::ArtifactPath;
use crate::server::edge::admit::preflight;
use crate::server::edge::paths::{AgentPath, NamedPath, name_grpc_path, name_path};
use crate::server::exchange::headers::{ContentType, PresentHeaders};
use crate::server::exchange::request::Head;
use crate::server::exchange::respond::{A2A_JSON, ReplyBody, http_error, json, takes};
use crate::server::internal::InternalRoute;
use crate::server::internal::door::DoorPath;
use crate::server::metrics::{BindingKind, Operation};
use crate::server::operator::health;
use crate::server::operator::outbox::OutboxPath;
use crate::server::organizations::OrgRoute;
use crate::server::ports::Downloads;
use crate::server::shared::{Mounted, Shared, Site};
use crate::signing_keys::SigningKeys;

#[cfg(feature = "grpc")]
use crate::server::bindings::grpc::{self, Grpc};

/// Where a request goes.
pub(crate) enum Target {
    /// Nowhere: it is answered without knowing who asks.
    Answered(Response<ReplyBody>),
    JsonRpc(Arc<Mounted>, JsonRpc),
    HttpJson(Arc<Mounted>, HttpJson),
    #[cfg(feature = "grpc")]
    Grpc(Arc<Mounted>, Grpc),
    Compat(Arc<Mounted>, Mount, CompatBinding),
    Download(Arc<Mounted>, Arc<dyn Downloads>, ArtifactPath),
    /// A card of a server that shows its cards to known callers only.
    Card(Response<ReplyBody>),
    Outbox(OutboxPath),
    /// Its sender is known by a token of its own kind.
    Internal(InternalRoute),
    Door(DoorPath),
    Organization(OrgRoute),
    Metrics,
}

/// What the path of a request names. A gRPC call is known by its content type.
pub(crate) fn named<'a>(shared: &Shared, parts: &'a Parts, present: PresentHeaders) -> NamedPath<'a> {
    let base = shared.mount.base_of(parts);
    match present.content_type == ContentType::Grpc {
        true => name_grpc_path(parts.uri.path(), base),
        false => name_path(parts.uri.path(), base),
    }
}

/// Finds the agent and the binding. `admitted` is what the first stage said; a refusal is written as the path has it.
pub(crate) fn route(
    shared: &Shared,
    head: &Head<'_>,
    parts: &Parts,
    authority: Option<&str>,
    named: NamedPath<'_>,
    admitted: Result<(), &'static str>,
) -> Target {
    let admitted = admitted.map_err(|why| ProtocolError::PermissionDenied { reason: why.to_owned() });
    let site = shared.site(authority);
    #[cfg(feature = "grpc")]
    if head.present.content_type == ContentType::Grpc {
        head.note.binding(BindingKind::Grpc);
        return grpc_target(site, head, parts, named, admitted);
    }
    #[cfg(not(feature = "grpc"))]
    let _ = parts;
    if let Err(error) = admitted {
        return Target::Answered(http_error(Dialect::V1_0, &error, A2A_JSON));
    }
    if *head.method == Method::OPTIONS && !is_probe(&named, head.headers) {
        return Target::Answered(preflight(&shared.cors));
    }
    let reads = *head.method == Method::GET || *head.method == Method::HEAD;
    let (operation, target) = match named {
        NamedPath::Agent { agent, place } => return agent_target(shared, site, head, agent.as_deref(), place),
        NamedPath::Health if reads => (Operation::Probe, Target::Answered(health::health())),
        NamedPath::Ready if reads => (Operation::Probe, Target::Answered(health::ready(shared))),
        NamedPath::Health | NamedPath::Ready => (Operation::Probe, Target::Answered(takes("GET"))),
        NamedPath::Metrics if reads => (Operation::Metrics, Target::Metrics),
        NamedPath::Metrics => (Operation::Metrics, Target::Answered(takes("GET"))),
        NamedPath::JwkSet if shared.signing_keys.is_none() => return not_found(shared, head),
        NamedPath::JwkSet if reads => (Operation::GetAgentCard, Target::Answered(jwk_set(shared))),
        NamedPath::JwkSet => (Operation::GetAgentCard, Target::Answered(takes("GET"))),
        NamedPath::Outbox(place) => (Operation::Outbox, Target::Outbox(place)),
        NamedPath::Internal(route) => (Operation::Probe, Target::Internal(route)),
        NamedPath::Door(place) => (Operation::AgentCall, Target::Door(place)),
        NamedPath::Organization(route) => (Operation::OrgSecret, Target::Organization(route)),
        NamedPath::Unknown => return not_found(shared, head),
    };
    head.note.operation(operation);
    target
}

/// The public keys of the server. They may be kept for as long as cards may.
fn jwk_set(shared: &Shared) -> Response<ReplyBody> {
    let set = shared.signing_keys.as_ref().map_or_else(String::new, SigningKeys::jwk_set);
    let mut response = json(StatusCode::OK, HeaderValue::from_static("application/jwk-set+json"), set.into_bytes());
    let max_age = format!("public, max-age={}", shared.limits.card_max_age_s);
    if let Ok(max_age) = HeaderValue::try_from(max_age) {
        response.headers_mut().insert(header::CACHE_CONTROL, max_age);
    }
    response
}

#[cfg(feature = "grpc")]
fn grpc_target(
    site: &Site,
    head: &Head<'_>,
    parts: &Parts,
    named: NamedPath<'_>,
    admitted: Result<(), ProtocolError>,
) -> Target {
    use switchboard_core::dialect::Package;

    if let Some(response) = grpc::misused(parts) {
        return Target::Answered(response);
    }
    let (agent, package) = match named {
        NamedPath::Agent { agent, place: AgentPath::Grpc(package) } => (site.agent(agent.as_deref()), package),
        _ => (None, Package::V1_0),
    };
    let unknown = || ProtocolError::MethodNotFound { method: format!("{:.200}", head.uri.path()), hint: None };
    match admitted.and_then(|()| agent.ok_or_else(unknown)) {
        Ok(agent) => {
            head.note.agent(agent.place);
            Target::Grpc(agent.clone(), Grpc::new(package))
        }
        Err(error) => Target::Answered(grpc::refused(package, &error)),
    }
}

/// A path of an agent, or of the default one if none is named.
fn agent_target(shared: &Shared, site: &Site, head: &Head<'_>, name: Option<&str>, place: AgentPath) -> Target {
    let place = match place {
        AgentPath::Compat { dialect, is_own, place } => match (place, compat::of(dialect)) {
            (place @ (CompatPath::Endpoint | CompatPath::Card), _) => AgentPath::Compat { dialect, is_own, place },
            // It need not be an agent of this name that is meant.
            (place, Some(compat)) => return compat_target(shared, compat, site, head, name, place),
            (_, None) => return not_found(shared, head),
        },
        place => place,
    };
    let Some(agent) = site.agent(name) else { return not_found(shared, head) };
    head.note.agent(agent.place);
    let is_head = *head.method == Method::HEAD;
    let reads = *head.method == Method::GET || is_head;
    match place {
        AgentPath::Root if reads => Target::Answered(health::welcome(site)),
        AgentPath::Root | AgentPath::JsonRpc => rpc_target(shared, agent, head, Mount::Shared { claim: agent.claim }),
        AgentPath::Compat { dialect, place: CompatPath::Card, .. } => {
            head.note.operation(Operation::GetAgentCard);
            card_target(
                shared,
                match reads {
                    true => agent.cards().on_mount(dialect).answer(head.headers, is_head),
                    false => takes("GET"),
                },
            )
        }
        AgentPath::Compat { dialect, is_own, .. } => {
            let mount = if is_own { Mount::Own(dialect) } else { Mount::Shared { claim: Some(dialect) } };
            rpc_target(shared, agent, head, mount)
        }
        AgentPath::Card => {
            head.note.operation(Operation::GetAgentCard);
            card_target(
                shared,
                match reads {
                    true => agent.cards().of(card_dialect(head)).answer(head.headers, is_head),
                    false => takes("GET"),
                },
            )
        }
        AgentPath::Artifact(place) => match &agent.downloads {
            Some(downloads) => {
                head.note.operation(Operation::DownloadArtifact);
                Target::Download(agent.clone(), downloads.clone(), place)
            }
            None => not_found(shared, head),
        },
        AgentPath::Rest { tenant, place } => {
            head.note.binding(BindingKind::HttpJson);
            Target::HttpJson(agent.clone(), HttpJson::new(Ingress::Http, tenant, place))
        }
        AgentPath::RestV1(place) => {
            head.note.binding(BindingKind::HttpJson);
            Target::HttpJson(agent.clone(), HttpJson::new(Ingress::HttpV1, None, place))
        }
        // Only a call of gRPC has such a path.
        AgentPath::Grpc(_) => not_found(shared, head),
    }
}

/// A JSON-RPC endpoint, of A2A or of the compat dialect that the path or the agent's settings claim it for.
fn rpc_target(shared: &Shared, agent: &Arc<Mounted>, head: &Head<'_>, mount: Mount) -> Target {
    let posts = *head.method == Method::POST;
    let Some(compat) = claimed(head, mount).filter(|dialect| dialect.is_compat_rpc()).and_then(compat::of) else {
        if !posts {
            return Target::Answered(takes("POST"));
        }
        head.note.binding(BindingKind::JsonRpc);
        return Target::JsonRpc(agent.clone(), JsonRpc::new());
    };
    head.note.binding(BindingKind::JsonRpc);
    if !posts {
        return Target::Answered(compat.refuse_verb(&CompatPath::Endpoint));
    }
    if shared.authentication.is_configured() && !compat.takes_credential(head.headers) {
        return Target::Answered(compat.refuse(&shared.authentication.refusal(), "null"));
    }
    Target::Compat(agent.clone(), Mount::Own(compat.dialect()), CompatBinding::call(compat))
}

/// A path of a compat dialect that has no envelope.
fn compat_target(
    shared: &Shared,
    compat: &'static dyn CompatDialect,
    site: &Site,
    head: &Head<'_>,
    name: Option<&str>,
    place: CompatPath,
) -> Target {
    let is_head = *head.method == Method::HEAD && place.is_public();
    if head.method.as_str() != place.verb() && !is_head {
        return Target::Answered(compat.refuse_verb(&place));
    }
    head.note.operation(match &place {
        CompatPath::Send => Operation::SendMessage,
        CompatPath::Task { .. } => Operation::GetTask,
        CompatPath::ListedCard | CompatPath::Card | CompatPath::Endpoint => Operation::GetAgentCard,
    });
    head.note.binding(BindingKind::HttpJson);
    let agent = compat.agent(site, name);
    if let Some(agent) = agent {
        head.note.agent(agent.place);
    }
    if place.is_public() {
        return card_target(
            shared,
            match agent {
                Some(agent) => agent.cards().listed(compat.dialect()).answer(head.headers, is_head),
                None => compat.no_agent(),
            },
        );
    }
    let addressee = match (agent, name) {
        (Some(_), _) => Addressee::Found,
        (None, Some(_)) => Addressee::Unknown,
        (None, None) => Addressee::Unnamed,
    };
    // A request to no known agent is refused after its body was read; until then it is treated as one to the first
    // agent.
    let Some(agent) = agent.or(site.agents.first()) else { return Target::Answered(compat.no_agent()) };
    let binding = CompatBinding::at(compat, place, addressee);
    Target::Compat(agent.clone(), Mount::Own(compat.dialect()), binding)
}

/// A card for everybody or, on a server that protects its cards, for callers that are known.
fn card_target(shared: &Shared, mut response: Response<ReplyBody>) -> Target {
    if !shared.protect_cards {
        return Target::Answered(response);
    }
    // What is for some must not be kept by a cache that serves others.
    response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("private, no-cache"));
    Target::Card(response)
}

/// Whether the client only asks if there is an endpoint of a compat dialect here.
fn is_probe(named: &NamedPath<'_>, headers: &HeaderMap) -> bool {
    matches!(named, NamedPath::Agent { place: AgentPath::Compat { dialect, .. }, .. } if compat::is_probe(*dialect, headers))
}

fn not_found(shared: &Shared, head: &Head<'_>) -> Target {
    let path = head.uri.path();
    let error = ProtocolError::MethodNotFound { method: excerpt(path, 200), hint: meant_agent(shared, path) };
    let mut response = http_error(Dialect::V1_0, &error, A2A_JSON);
    *response.status_mut() = StatusCode::NOT_FOUND;
    Target::Answered(response)
}

/// The agent that a path was probably meant for. Which agents there are is no secret: the page at the root lists them.
fn meant_agent(shared: &Shared, path: &str) -> Option<String> {
    // Before it may stand the path of the public URL, or that of the router which the server is nested in.
    let (_, below) = path.split_once("/agents/")?;
    let name = below.split('/').next()?;
    let meant = nearest(name, shared.own_site.agents.iter().map(|agent| agent.name.as_str()))?;
    (meant != name).then(|| format!("did you mean /agents/{meant}?"))
}
