//! What a path names. Pure: nothing is looked up here. `route` finds the agent and the binding for a path.

use std::borrow::Cow;

use switchboard_core::dialect::{Dialect, Package};
use switchboard_core::model::{ArtifactId, ConfigId, TaskId};

use crate::server::bindings::compat::{self, CompatPath};
use crate::server::internal::InternalRoute;
use crate::server::internal::door::DoorPath;
use crate::server::organizations::OrgRoute;
use crate::server::uri::{RESERVED, decode};

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

/// `/tasks/{task}/artifacts/{artifact}`, where the bytes of one artifact are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ArtifactPath {
    pub(crate) tenant: Option<String>,
    pub(crate) task: TaskId,
    pub(crate) artifact: ArtifactId,
}

/// The paths of the HTTP+JSON binding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum RestPath {
    SendMessage,
    StreamMessage,
    Tasks,
    /// `/tasks/{id}` with the verb behind the last colon, if any.
    Task {
        id: TaskId,
        verb: Option<TaskVerb>,
    },
    PushConfigs {
        task_id: TaskId,
    },
    PushConfig {
        task_id: TaskId,
        id: ConfigId,
    },
    ExtendedCard,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TaskVerb {
    Cancel,
    Subscribe,
}

/// The paths under `/api/outbox`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum OutboxPath {
    List,
    Endpoints,
    /// Many at once.
    Change(OutboxChange),
    One(String),
    ChangeOne(String, OutboxChange),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OutboxChange {
    Redrive,
    Purge,
}

impl OutboxChange {
    fn from_verb(verb: &str) -> Option<Self> {
        match verb {
            "redrive" => Some(Self::Redrive),
            "purge" => Some(Self::Purge),
            _ => None,
        }
    }
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
    // Percent-encoded slashes stay inside their segment because segments are split first and decoded second.
    let mut segments: Vec<&str> = path.split('/').skip(1).collect();
    if segments.last() == Some(&"") {
        segments.pop();
    }
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
                None => outbox_place(rest).map_or(NamedPath::Unknown, NamedPath::Outbox),
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
        ["v1", rest @ ..] => rest_place(rest).map(AgentPath::RestV1),
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
            if let Some(place) = rest_place(segments) {
                return Some(AgentPath::Rest { tenant: None, place });
            }
            if let ["tasks", task, "artifacts", artifact] = segments {
                return artifact_place(None, task, artifact);
            }
            let (tenant, rest) = segments.split_first()?;
            let tenant = decode(tenant).filter(|tenant| !tenant.is_empty() && !RESERVED.contains(&tenant.as_ref()))?;
            let tenant = tenant.into_owned();
            match rest {
                ["tasks", task, "artifacts", artifact] => artifact_place(Some(tenant), task, artifact),
                _ => Some(AgentPath::Rest { tenant: Some(tenant), place: rest_place(rest)? }),
            }
        }
    }
}

fn artifact_place(tenant: Option<String>, task: &str, artifact: &str) -> Option<AgentPath> {
    let (task, artifact) = (decode(task)?.as_ref().into(), decode(artifact)?.as_ref().into());
    Some(AgentPath::Artifact(ArtifactPath { tenant, task, artifact }))
}

/// What the segments behind `/api` name.
fn outbox_place(segments: &[&str]) -> Option<OutboxPath> {
    match segments {
        ["outbox"] => Some(OutboxPath::List),
        ["outbox", "endpoints"] => Some(OutboxPath::Endpoints),
        ["outbox", one] => match one.split_once(':') {
            Some((id, verb)) => Some(OutboxPath::ChangeOne(id.to_owned(), OutboxChange::from_verb(verb)?)),
            None => Some(OutboxPath::One((*one).to_owned())),
        },
        [all] => Some(OutboxPath::Change(OutboxChange::from_verb(all.strip_prefix("outbox:")?)?)),
        _ => None,
    }
}

fn rest_place(segments: &[&str]) -> Option<RestPath> {
    let task = |id: &str| Some(TaskId::from(decode(id)?.as_ref()));
    match segments {
        ["message:send"] => Some(RestPath::SendMessage),
        ["message:stream"] => Some(RestPath::StreamMessage),
        ["extendedAgentCard"] => Some(RestPath::ExtendedCard),
        ["tasks"] => Some(RestPath::Tasks),
        ["tasks", last] => {
            // The verb is what follows the last colon, if it is one we know: an id may hold colons of its own.
            let (id, verb) = match last.rsplit_once(':') {
                Some((id, "cancel")) => (id, Some(TaskVerb::Cancel)),
                Some((id, "subscribe")) => (id, Some(TaskVerb::Subscribe)),
                _ => (*last, None),
            };
            Some(RestPath::Task { id: task(id)?, verb })
        }
        ["tasks", id, "pushNotificationConfigs"] => Some(RestPath::PushConfigs { task_id: task(id)? }),
        ["tasks", id, "pushNotificationConfigs", config] => {
            Some(RestPath::PushConfig { task_id: task(id)?, id: decode(config)?.as_ref().into() })
        }
        _ => None,
    }
}
