//! Where requests go, and how each place refuses.

use crate::support::shapes::Refusal::{self, Http0_3, Http1_0, Rpc0_3, Rpc1_0, RpcPlain, Text};

pub(super) struct Place {
    pub(super) method: &'static str,
    pub(super) path: &'static str,
    /// What a request may say of its version; empty for nothing.
    pub(super) versions: &'static [&'static str],
    /// Whether answers have the envelope of JSON-RPC.
    pub(super) is_rpc: bool,
    /// The forms of a refusal to a request that names this version.
    pub(super) refusals: fn(&str) -> &'static [Refusal],
}

const ALL: &[&str] = &["", "0.3", "0.2", "1.0", "9.9", "one"];

/// On shared paths, a request that names no version may be of any dialect, and 1.0's methods are refused in 1.0's form.
const SHARED: fn(&str) -> &'static [Refusal] = |version| match version {
    "1.0" => &[Rpc1_0],
    "" => &[Rpc0_3, Rpc1_0, RpcPlain],
    _ => &[Rpc0_3, Rpc1_0],
};

const NEW: fn(&str) -> &'static [Refusal] = |_| &[Http1_0];

/// A request that names 1.0 is refused in its form.
const OLD: fn(&str) -> &'static [Refusal] = |version| match version {
    "1.0" => &[Http1_0],
    _ => &[Http0_3],
};

const fn rpc(path: &'static str, refusals: fn(&str) -> &'static [Refusal]) -> Place {
    Place { method: "POST", path, versions: ALL, is_rpc: true, refusals }
}

const fn http(method: &'static str, path: &'static str, refusals: fn(&str) -> &'static [Refusal]) -> Place {
    Place { method, path, versions: ALL, is_rpc: false, refusals }
}

const PLAIN: fn(&str) -> &'static [Refusal] = |_| &[RpcPlain];
const TEXT: fn(&str) -> &'static [Refusal] = |_| &[Text];
/// Claimed by agent-native for those who name no version.
const CLAIMED: fn(&str) -> &'static [Refusal] = |version| match version {
    "" => &[RpcPlain],
    "1.0" => &[Rpc1_0],
    _ => &[Rpc0_3, Rpc1_0],
};

pub(super) const PLACES: &[Place] = &[
    rpc("/", SHARED),
    rpc("/rpc", SHARED),
    rpc("/a2a", SHARED),
    rpc("/agents/echo/rpc", SHARED),
    rpc("/_agent-native/a2a", CLAIMED),
    rpc("/dialects/agent-native/a2a", PLAIN),
    rpc("/dialects/selectools/a2a", PLAIN),
    rpc("/dialects/nexus", PLAIN),
    rpc("/dialects/nexus/rpc", PLAIN),
    http("POST", "/a2a/tasks/send", TEXT),
    http("POST", "/dialects/corvid/a2a/tasks/send", TEXT),
    http("POST", "/agents/echo/a2a/tasks/send", TEXT),
    http("GET", "/a2a/tasks/none", TEXT),
    http("PUT", "/a2a/tasks/none", TEXT),
    http("POST", "/message:send", NEW),
    http("POST", "/message:stream", NEW),
    http("POST", "/a-tenant/message:send", NEW),
    http("POST", "/tasks/none:cancel", NEW),
    http("POST", "/tasks/none:subscribe", NEW),
    http("POST", "/tasks/none:shout", NEW),
    http("POST", "/tasks/none/pushNotificationConfigs", NEW),
    http("GET", "/tasks?pageSize=0", NEW),
    http("DELETE", "/tasks/none", NEW),
    http("POST", "/v1/message:send", OLD),
    http("POST", "/v1/message:stream", OLD),
    http("POST", "/v1/tasks/none:cancel", OLD),
    http("POST", "/v1/tasks/none:subscribe", OLD),
    http("POST", "/v1/tasks/none/pushNotificationConfigs", OLD),
    http("GET", "/v1/tasks", OLD),
    http("PATCH", "/v1/tasks/none", OLD),
];

/// The methods of both services, and one of neither.
pub(super) const GRPC_METHODS: [&str; 14] = [
    "SendMessage",
    "SendStreamingMessage",
    "GetTask",
    "ListTasks",
    "CancelTask",
    "SubscribeToTask",
    "TaskSubscription",
    "CreateTaskPushNotificationConfig",
    "GetTaskPushNotificationConfig",
    "ListTaskPushNotificationConfigs",
    "ListTaskPushNotificationConfig",
    "DeleteTaskPushNotificationConfig",
    "GetExtendedAgentCard",
    "Shout",
];
