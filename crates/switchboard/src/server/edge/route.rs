//! Which place a path names. Pure; nothing is looked up but the names of the agents.

use std::borrow::Cow;

use switchboard_core::dialect::Dialect;

use crate::server::bindings::compat::{self, CompatPlace};
use crate::server::edge::percent::decode;

/// First path segments that are ours and therefore neither tenants nor agents.
pub const RESERVED: &[&str] = &[
    "tasks",
    "message",
    "extendedAgentCard",
    "v1",
    "agents",
    "apps",
    "dialects",
    "a2a",
    "rpc",
    "api",
    ".well-known",
    "_agent-native",
    "healthz",
    "readyz",
    "metrics",
];

/// Refuses a name that is to appear as one segment of a path and could be taken for one of ours.
pub(crate) fn check_name(what: &str, name: &str) -> Result<(), String> {
    if RESERVED.contains(&name) {
        return Err(format!("{what} {name:?} is reserved; choose another name"));
    }
    let fits = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '-' | '_' | '.' | '~');
    if name.is_empty() || name.len() > 64 || !name.chars().all(fits) || name.starts_with('.') {
        let why = "must be 1 to 64 letters, digits, '-', '_', '.' or '~', and not begin with a dot";
        return Err(format!("{what} {name:?} {why}"));
    }
    Ok(())
}

/// Where a request is to go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Route<'a> {
    Health,
    Ready,
    Metrics,
    /// For operators.
    Outbox(OutboxPlace<'a>),
    /// A place of one agent; none is the default agent.
    Agent {
        agent: Option<Cow<'a, str>>,
        place: Place<'a>,
    },
    Unknown,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Place<'a> {
    /// The agent's own root, also its JSON-RPC endpoint.
    Root,
    JsonRpc,
    Card,
    Rest {
        tenant: Option<Cow<'a, str>>,
        place: RestPlace<'a>,
    },
    /// HTTP+JSON as 0.3 has it.
    RestV1(RestPlace<'a>),
    /// A place of a compat dialect.
    Compat {
        dialect: Dialect,
        /// Whether it is on the mount that is the dialect's alone, where a version counts for nothing.
        is_own: bool,
        place: CompatPlace<'a>,
    },
    Artifact(ArtifactPlace<'a>),
}

/// `/tasks/{task}/artifacts/{artifact}`, where the bytes of one artifact are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ArtifactPlace<'a> {
    pub(crate) tenant: Option<Cow<'a, str>>,
    pub(crate) task: Cow<'a, str>,
    pub(crate) artifact: Cow<'a, str>,
}

/// The places of the HTTP+JSON binding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum RestPlace<'a> {
    SendMessage,
    StreamMessage,
    Tasks,
    /// `/tasks/{id}` with the verb behind the last colon, if any.
    Task {
        id: Cow<'a, str>,
        verb: Option<&'a str>,
    },
    PushConfigs {
        task_id: Cow<'a, str>,
    },
    PushConfig {
        task_id: Cow<'a, str>,
        id: Cow<'a, str>,
    },
    ExtendedCard,
}

/// The places under `/api/outbox`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OutboxPlace<'a> {
    List,
    Endpoints,
    /// Many at once.
    Change(Change),
    One(&'a str),
    ChangeOne(&'a str, Change),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Change {
    Redrive,
    Purge,
}

impl Change {
    fn from_verb(verb: &str) -> Option<Self> {
        match verb {
            "redrive" => Some(Self::Redrive),
            "purge" => Some(Self::Purge),
            _ => None,
        }
    }
}

/// Finds the place of a path below `base`, the path of the public URL. A proxy may or may not strip that, so both forms
/// are understood.
pub(crate) fn route<'a>(path: &'a str, base: &str) -> Route<'a> {
    let path = match path.strip_prefix(base) {
        Some(rest) if !base.is_empty() && (rest.is_empty() || rest.starts_with('/')) => rest,
        _ => path,
    };
    if path == "/" {
        return Route::Agent { agent: None, place: Place::Root };
    }
    // Percent-encoded slashes stay inside their segment because segments are split first and decoded second.
    let mut segments: Vec<&str> = path.split('/').skip(1).collect();
    if segments.last() == Some(&"") {
        segments.pop();
    }
    match segments.as_slice() {
        ["healthz"] => Route::Health,
        ["readyz"] => Route::Ready,
        ["metrics"] => Route::Metrics,
        ["api", rest @ ..] => {
            let listed = compat::ALL.into_iter().find_map(|compat| Some((compat.dialect(), compat.api_place(rest)?)));
            match listed {
                Some((dialect, (name, place))) => {
                    Route::Agent { agent: Some(name), place: Place::Compat { dialect, is_own: false, place } }
                }
                None => outbox_place(rest).map_or(Route::Unknown, Route::Outbox),
            }
        }
        ["agents", name, rest @ ..] => match (decode(name), place(rest)) {
            (Some(name), Some(place)) => Route::Agent { agent: Some(name), place },
            _ => Route::Unknown,
        },
        rest => place(rest).map_or(Route::Unknown, |place| Route::Agent { agent: None, place }),
    }
}

fn place<'a>(segments: &[&'a str]) -> Option<Place<'a>> {
    match segments {
        [] => Some(Place::Root),
        ["rpc" | "a2a"] => Some(Place::JsonRpc),
        // The second is where 0.2 has it.
        [".well-known", "agent-card.json" | "agent.json"] => Some(Place::Card),
        ["v1", "card"] => Some(Place::RestV1(RestPlace::ExtendedCard)),
        // 0.2 has this one plain path beside its JSON-RPC, `../agent/authenticatedExtendedCard` from its endpoint.
        ["agent", "authenticatedExtendedCard"] => Some(Place::RestV1(RestPlace::ExtendedCard)),
        ["v1", "extendedAgentCard"] => None,
        ["v1", rest @ ..] => rest_place(rest).map(Place::RestV1),
        ["dialects", name, rest @ ..] => {
            let dialect = Dialect::compat(name)?;
            let place = compat::own_place(compat::of(dialect)?, rest)?;
            Some(Place::Compat { dialect, is_own: true, place })
        }
        _ => {
            let compat = compat::ALL.into_iter().find_map(|own| Some((own.dialect(), own.shared_place(segments)?)));
            if let Some((dialect, place)) = compat {
                return Some(Place::Compat { dialect, is_own: false, place });
            }
            if let Some(place) = rest_place(segments) {
                return Some(Place::Rest { tenant: None, place });
            }
            if let ["tasks", task, "artifacts", artifact] = segments {
                return artifact_place(None, task, artifact);
            }
            let (tenant, rest) = segments.split_first()?;
            let tenant = decode(tenant).filter(|tenant| !tenant.is_empty() && !RESERVED.contains(&tenant.as_ref()))?;
            match rest {
                ["tasks", task, "artifacts", artifact] => artifact_place(Some(tenant), task, artifact),
                _ => Some(Place::Rest { tenant: Some(tenant), place: rest_place(rest)? }),
            }
        }
    }
}

fn artifact_place<'a>(tenant: Option<Cow<'a, str>>, task: &'a str, artifact: &'a str) -> Option<Place<'a>> {
    Some(Place::Artifact(ArtifactPlace { tenant, task: decode(task)?, artifact: decode(artifact)? }))
}

/// The place that the segments behind `/api` name.
fn outbox_place<'a>(segments: &[&'a str]) -> Option<OutboxPlace<'a>> {
    match segments {
        ["outbox"] => Some(OutboxPlace::List),
        ["outbox", "endpoints"] => Some(OutboxPlace::Endpoints),
        ["outbox", one] => match one.split_once(':') {
            Some((id, verb)) => Some(OutboxPlace::ChangeOne(id, Change::from_verb(verb)?)),
            None => Some(OutboxPlace::One(one)),
        },
        [all] => Some(OutboxPlace::Change(Change::from_verb(all.strip_prefix("outbox:")?)?)),
        _ => None,
    }
}

fn rest_place<'a>(segments: &[&'a str]) -> Option<RestPlace<'a>> {
    match segments {
        ["message:send"] => Some(RestPlace::SendMessage),
        ["message:stream"] => Some(RestPlace::StreamMessage),
        ["extendedAgentCard"] => Some(RestPlace::ExtendedCard),
        ["tasks"] => Some(RestPlace::Tasks),
        ["tasks", last] => {
            // The verb is what follows the last colon, if it is one we know: an id may hold colons of its own.
            let (id, verb) = match last.rsplit_once(':') {
                Some((id, verb @ ("cancel" | "subscribe"))) => (id, Some(verb)),
                _ => (*last, None),
            };
            Some(RestPlace::Task { id: decode(id)?, verb })
        }
        ["tasks", id, "pushNotificationConfigs"] => Some(RestPlace::PushConfigs { task_id: decode(id)? }),
        ["tasks", id, "pushNotificationConfigs", config] => {
            Some(RestPlace::PushConfig { task_id: decode(id)?, id: decode(config)? })
        }
        _ => None,
    }
}
