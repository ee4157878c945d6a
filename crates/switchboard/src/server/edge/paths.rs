//! What a path names. Pure: nothing is looked up here. `route` finds the agent and the binding for a path.

use std::borrow::Cow;

use switchboard_core::dialect::{Dialect, Package};

use crate::server::bindings::compat::{self, CompatPath};
use crate::server::bindings::http_json::RestPath;
use crate::server::downloads::ArtifactPath;
use crate::server::internal::InternalRoute;
use crate::server::internal::door::DoorPath;
use crate::server::operator::outbox::OutboxPath;
use crate::server::organizations::OrgRoute;
use crate::server::uri::{RESERVED, decode, segments};

/// What a path names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum NamedPath<'a> {
    Health,
    Ready,
    Metrics,
    /// The public keys of the server.
    JwkSet,
    /// For operators.
    Outbox(OutboxPath),
    /// For the server itself.
    Internal(InternalRoute),
    /// For programs that agents of this server have started.
    Door(DoorPath),
    /// The secret of an organization.
    Organization(OrgRoute),
    /// A path of one agent; none is the default agent.
    Agent {
        agent: Option<Cow<'a, str>>,
        place: AgentPath,
    },
    Unknown,
}

impl NamedPath<'_> {
    /// Whether pages of every origin may read it. Only cards, and the keys that verify them, are public.
    pub(crate) fn is_public(&self) -> bool {
        match self {
            Self::JwkSet => true,
            Self::Agent { place: AgentPath::Card, .. } => true,
            Self::Agent { place: AgentPath::Compat { place, .. }, .. } => place.is_public(),
            _ => false,
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum AgentPath {
    /// The agent's own root, also its JSON-RPC endpoint.
    Root,
    JsonRpc,
    Card,
    Rest {
        tenant: Option<String>,
        place: RestPath,
    },
    /// HTTP+JSON as 0.3 has it.
    RestV1(RestPath),
    /// A method of this service of gRPC; its name is the last segment of the path.
    Grpc(Package),
    /// A path of a compat dialect.
    Compat {
        dialect: Dialect,
        /// Whether the path is on the mount of the dialect, where a version in the request is ignored.
        is_own: bool,
        place: CompatPath,
    },
    Artifact(ArtifactPath),
}

/// Finds what a path below `base`, the path of the public URL, names. A proxy may or may not strip that, so both forms
/// are understood.
pub(crate) fn name_path<'a>(path: &'a str, base: &str) -> NamedPath<'a> {
    let path = match path.strip_prefix(base) {
        Some(rest) if !base.is_empty() && (rest.is_empty() || rest.starts_with('/')) => rest,
        _ => path,
    };
    if path == "/" {
        return NamedPath::Agent { agent: None, place: AgentPath::Root };
    }
    let segments = segments(path);
    if let Some(route) = InternalRoute::at(&segments) {
        return NamedPath::Internal(route);
    }
    if let Some(place) = DoorPath::at(&segments) {
        return NamedPath::Door(place);
    }
    if let Some(route) = OrgRoute::at(&segments) {
        return NamedPath::Organization(route);
    }
    match segments.as_slice() {
        ["healthz"] => NamedPath::Health,
        ["readyz"] => NamedPath::Ready,
        ["metrics"] => NamedPath::Metrics,
        [".well-known", "jwks.json"] => NamedPath::JwkSet,
        ["api", rest @ ..] => {
            let listed = compat::ALL.into_iter().find_map(|compat| Some((compat.dialect(), compat.api_place(rest)?)));
            match listed {
                Some((dialect, (name, place))) => {
                    NamedPath::Agent { agent: Some(name), place: AgentPath::Compat { dialect, is_own: false, place } }
                }
                None => OutboxPath::at(rest).map_or(NamedPath::Unknown, NamedPath::Outbox),
            }
        }
        // The apps of a workspace call each other at the second.
        ["agents" | "apps", name, rest @ ..] => of_agent(name, rest),
        rest => match place(rest) {
            Some(place) => NamedPath::Agent { agent: None, place },
            None => app_place(rest),
        },
    }
}

fn of_agent<'a>(name: &'a str, rest: &[&str]) -> NamedPath<'a> {
    match (decode(name), place(rest)) {
        (Some(name), Some(place)) => NamedPath::Agent { agent: Some(name), place },
        _ => NamedPath::Unknown,
    }
}

/// An agent as an app of a workspace, directly below the address: `/{name}/…`. A path that names a tenant of the default agent was
/// found before, so only what HTTP+JSON does not have is served there: the card, and the endpoints of JSON-RPC and of the
/// compat dialects.
fn app_place<'a>(segments: &[&'a str]) -> NamedPath<'a> {
    match segments {
        [name, rest @ ..] if !rest.is_empty() && !RESERVED.contains(name) => match of_agent(name, rest) {
            NamedPath::Agent { place: AgentPath::Rest { .. } | AgentPath::RestV1(_), .. } => NamedPath::Unknown,
            named => named,
        },
        _ => NamedPath::Unknown,
    }
}

/// Finds what the path of a gRPC call names: `/{service}/{method}`; before it may stand the path of the public URL, and
/// `/agents/{name}`, for clients that can call below a path.
pub(crate) fn name_grpc_path<'a>(path: &'a str, base: &str) -> NamedPath<'a> {
    grpc_place(path, base).unwrap_or(NamedPath::Unknown)
}

fn grpc_place<'a>(path: &'a str, base: &str) -> Option<NamedPath<'a>> {
    let path = path.strip_prefix(base).filter(|rest| rest.starts_with('/')).unwrap_or(path);
    let (place, _method) = path.rsplit_once('/')?;
    let (place, service) = place.rsplit_once('/')?;
    let agent = match place {
        "" => None,
        place => Some(decode(place.strip_prefix("/agents/").filter(|name| !name.contains('/'))?)?),
    };
    let package = match service {
        "lf.a2a.v1.A2AService" => Package::V1_0,
        "a2a.v1.A2AService" => Package::V0_3,
        _ => return None,
    };
    Some(NamedPath::Agent { agent, place: AgentPath::Grpc(package) })
}

fn place(segments: &[&str]) -> Option<AgentPath> {
    match segments {
        [] => Some(AgentPath::Root),
        ["rpc" | "a2a"] => Some(AgentPath::JsonRpc),
        // The second is where 0.2 has it.
        [".well-known", "agent-card.json" | "agent.json"] => Some(AgentPath::Card),
        ["v1", "card"] => Some(AgentPath::RestV1(RestPath::ExtendedCard)),
        // 0.2 has this one plain path beside its JSON-RPC, `../agent/authenticatedExtendedCard` from its endpoint.
        ["agent", "authenticatedExtendedCard"] => Some(AgentPath::RestV1(RestPath::ExtendedCard)),
        ["v1", "extendedAgentCard"] => None,
        ["v1", rest @ ..] => RestPath::at(rest).map(AgentPath::RestV1),
        ["dialects", name, rest @ ..] => {
            let dialect = Dialect::compat(name)?;
            let place = compat::own_place(compat::of(dialect)?, rest)?;
            Some(AgentPath::Compat { dialect, is_own: true, place })
        }
        _ => {
            let compat = compat::ALL.into_iter().find_map(|own| Some((own.dialect(), own.shared_place(segments)?)));
            if let Some((dialect, place)) = compat {
                return Some(AgentPath::Compat { dialect, is_own: false, place });
            }
            if let Some(place) = RestPath::at(segments) {
                return Some(AgentPath::Rest { tenant: None, place });
            }
            if let ["tasks", task, "artifacts", artifact] = segments {
                return ArtifactPath::new(None, task, artifact).map(AgentPath::Artifact);
            }
            let (tenant, rest) = segments.split_first()?;
            let tenant = decode(tenant).filter(|tenant| !tenant.is_empty() && !RESERVED.contains(&tenant.as_ref()))?;
            let tenant = tenant.into_owned();
            match rest {
                ["tasks", task, "artifacts", artifact] => {
                    ArtifactPath::new(Some(tenant), task, artifact).map(AgentPath::Artifact)
                }
                _ => Some(AgentPath::Rest { tenant: Some(tenant), place: RestPath::at(rest)? }),
            }
        }
    }
}
