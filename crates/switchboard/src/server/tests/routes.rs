//! Paths and the places they name.

use switchboard_core::dialect::{Dialect, Package};

use crate::server::bindings::compat::CompatPath;
use crate::server::bindings::http_json::{RestPath, TaskVerb};
use crate::server::downloads::ArtifactPath;
use crate::server::edge::paths::{AgentPath, NamedPath, name_grpc_path, name_path};
use crate::server::internal::InternalRoute;
use crate::server::internal::door::DoorPath;
use crate::server::operator::outbox::{OutboxChange, OutboxPath};
use crate::server::uri::{RESERVED, decode, encode, query_pairs};

fn agent(agent: Option<&str>, place: AgentPath) -> NamedPath<'_> {
    NamedPath::Agent { agent: agent.map(Into::into), place }
}

fn rest(place: RestPath) -> NamedPath<'static> {
    agent(None, AgentPath::Rest { tenant: None, place })
}

fn old(place: RestPath) -> NamedPath<'static> {
    agent(None, AgentPath::RestV1(place))
}

fn rest_of(tenant: &str, place: RestPath) -> NamedPath<'static> {
    agent(None, AgentPath::Rest { tenant: Some(tenant.into()), place })
}

fn compat(dialect: Dialect, is_own: bool, place: CompatPath) -> AgentPath {
    AgentPath::Compat { dialect, is_own, place }
}

fn corvid(name: Option<&str>, is_own: bool, place: CompatPath) -> NamedPath<'_> {
    agent(name, compat(Dialect::Corvid, is_own, place))
}

fn task(id: &str, verb: Option<TaskVerb>) -> RestPath {
    RestPath::Task { id: id.into(), verb }
}

fn artifact(tenant: Option<&str>, task: &str, artifact: &str) -> AgentPath {
    let tenant = tenant.map(Into::into);
    AgentPath::Artifact(ArtifactPath { tenant, task: task.into(), artifact: artifact.into() })
}

#[test]
fn what_is_encoded_is_decoded_to_the_same() {
    for text in ["", "plain-1._~", "a/b?c#d&e=f+g h%", "é漢🦀\0"] {
        let encoded = encode(text);
        assert!(encoded.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._~%".contains(&byte)), "{encoded}");
        assert_eq!(decode(&encoded).as_deref(), Some(text));
    }
}

#[test]
fn an_agent_is_also_an_app_of_a_workspace() {
    let native = || compat(Dialect::AgentNative, false, CompatPath::Endpoint);
    for (path, expected) in [
        ("/apps/mail/_agent-native/a2a", agent(Some("mail"), native())),
        ("/apps/mail/.well-known/agent-card.json", agent(Some("mail"), AgentPath::Card)),
        ("/apps/mail", agent(Some("mail"), AgentPath::Root)),
        ("/apps/mail/tasks", agent(Some("mail"), AgentPath::Rest { tenant: None, place: RestPath::Tasks })),
        ("/mail/_agent-native/a2a", agent(Some("mail"), native())),
        ("/mail/.well-known/agent-card.json", agent(Some("mail"), AgentPath::Card)),
        ("/mail/rpc", agent(Some("mail"), AgentPath::JsonRpc)),
        // The tenant of the default agent.
        ("/mail/tasks", rest_of("mail", RestPath::Tasks)),
        ("/mail", NamedPath::Unknown),
        ("/mail/v1/tasks", NamedPath::Unknown),
        ("/apps", NamedPath::Unknown),
        ("/api/rpc", NamedPath::Unknown),
        ("/tasks/rpc/rpc", NamedPath::Unknown),
    ] {
        assert_eq!(name_path(path, ""), expected, "{path}");
    }
}

#[test]
fn each_path_names_its_place() {
    for (path, expected) in [
        ("", agent(None, AgentPath::Root)),
        ("/", agent(None, AgentPath::Root)),
        ("/rpc", agent(None, AgentPath::JsonRpc)),
        ("/a2a/", agent(None, AgentPath::JsonRpc)),
        ("/.well-known/agent-card.json", agent(None, AgentPath::Card)),
        ("/.well-known/agent.json", agent(None, AgentPath::Card)),
        ("/v1/message:send", old(RestPath::SendMessage)),
        ("/v1/message:stream", old(RestPath::StreamMessage)),
        ("/v1/tasks", old(RestPath::Tasks)),
        ("/v1/tasks/1:cancel", old(task("1", Some(TaskVerb::Cancel)))),
        ("/v1/tasks/1/pushNotificationConfigs", old(RestPath::PushConfigs { task_id: "1".into() })),
        ("/v1/card", old(RestPath::ExtendedCard)),
        ("/agent/authenticatedExtendedCard", old(RestPath::ExtendedCard)),
        ("/agents/echo/v1/tasks/1", agent(Some("echo"), AgentPath::RestV1(task("1", None)))),
        (
            "/agents/echo/agent/authenticatedExtendedCard",
            agent(Some("echo"), AgentPath::RestV1(RestPath::ExtendedCard)),
        ),
        ("/_agent-native/a2a", agent(None, compat(Dialect::AgentNative, false, CompatPath::Endpoint))),
        (
            "/agents/echo/_agent-native/a2a/",
            agent(Some("echo"), compat(Dialect::AgentNative, false, CompatPath::Endpoint)),
        ),
        ("/dialects/selectools", agent(None, compat(Dialect::Selectools, true, CompatPath::Endpoint))),
        ("/dialects/selectools/a2a", agent(None, compat(Dialect::Selectools, true, CompatPath::Endpoint))),
        (
            "/agents/echo/dialects/selectools/a2a",
            agent(Some("echo"), compat(Dialect::Selectools, true, CompatPath::Endpoint)),
        ),
        (
            "/dialects/selectools/.well-known/agent.json",
            agent(None, compat(Dialect::Selectools, true, CompatPath::Card)),
        ),
        (
            "/dialects/agent-native/_agent-native/a2a",
            agent(None, compat(Dialect::AgentNative, true, CompatPath::Endpoint)),
        ),
        ("/dialects/agent-native/a2a", agent(None, compat(Dialect::AgentNative, true, CompatPath::Endpoint))),
        (
            "/dialects/agent-native/.well-known/agent-card.json",
            agent(None, compat(Dialect::AgentNative, true, CompatPath::Card)),
        ),
        ("/dialects/nexus", agent(None, compat(Dialect::Nexus, true, CompatPath::Endpoint))),
        ("/dialects/nexus/rpc", agent(None, compat(Dialect::Nexus, true, CompatPath::Endpoint))),
        ("/dialects/selectools/rpc", NamedPath::Unknown),
        ("/a2a/tasks/send", corvid(None, false, CompatPath::Send)),
        ("/dialects/corvid/a2a/tasks/send/", corvid(None, true, CompatPath::Send)),
        ("/agents/echo/a2a/tasks/send", corvid(Some("echo"), false, CompatPath::Send)),
        ("/a2a/tasks/a%20b", corvid(None, false, CompatPath::Task { id: "a b".into() })),
        ("/a2a/tasks/t:cancel", corvid(None, false, CompatPath::Task { id: "t:cancel".into() })),
        ("/a2a/tasks", NamedPath::Unknown),
        ("/a2a/tasks/t/pushNotificationConfigs", NamedPath::Unknown),
        ("/api/agents/echo/agent-card", corvid(Some("echo"), false, CompatPath::ListedCard)),
        ("/api/agents/echo", NamedPath::Unknown),
        ("/dialects/corvid/.well-known/agent-card.json", agent(None, compat(Dialect::Corvid, true, CompatPath::Card))),
        ("/dialects/corvid", NamedPath::Unknown),
        ("/dialects/corvid/a2a", NamedPath::Unknown),
        ("/dialects", NamedPath::Unknown),
        ("/dialects/1.0/a2a", NamedPath::Unknown),
        ("/dialects/0.3-rest", NamedPath::Unknown),
        ("/dialects/selectools/_agent-native/a2a", NamedPath::Unknown),
        ("/dialects/selectools/tasks/1", NamedPath::Unknown),
        ("/_agent-native", NamedPath::Unknown),
        ("/_agent-native/a2a/_process-task", NamedPath::Internal(InternalRoute::ProcessTask)),
        ("/_switchboard/agents/my%20mail", NamedPath::Door(DoorPath::Agent("my mail".to_owned()))),
        ("/_switchboard/calls/t-1-a-1", NamedPath::Door(DoorPath::Call("t-1-a-1".to_owned()))),
        ("/_switchboard/calls", NamedPath::Unknown),
        ("/agents/echo/_agent-native/a2a/_process-task", NamedPath::Unknown),
        ("/healthz", NamedPath::Health),
        ("/readyz", NamedPath::Ready),
        ("/metrics/", NamedPath::Metrics),
        ("/api/outbox", NamedPath::Outbox(OutboxPath::List)),
        ("/api/outbox/", NamedPath::Outbox(OutboxPath::List)),
        ("/api/outbox/endpoints", NamedPath::Outbox(OutboxPath::Endpoints)),
        ("/api/outbox/7", NamedPath::Outbox(OutboxPath::One("7".into()))),
        ("/api/outbox/7:redrive", NamedPath::Outbox(OutboxPath::ChangeOne("7".into(), OutboxChange::Redrive))),
        ("/api/outbox:purge", NamedPath::Outbox(OutboxPath::Change(OutboxChange::Purge))),
        ("/message:send", rest(RestPath::SendMessage)),
        ("/message:stream", rest(RestPath::StreamMessage)),
        ("/tasks", rest(RestPath::Tasks)),
        ("/tasks/", rest(RestPath::Tasks)),
        ("/tasks/1", rest(task("1", None))),
        ("/tasks/1:cancel", rest(task("1", Some(TaskVerb::Cancel)))),
        ("/tasks/1:subscribe", rest(task("1", Some(TaskVerb::Subscribe)))),
        ("/tasks/a:b:cancel", rest(task("a:b", Some(TaskVerb::Cancel)))),
        ("/tasks/a:b", rest(task("a:b", None))),
        ("/tasks/a%3Acancel", rest(task("a:cancel", None))),
        ("/tasks/a%2Fb", rest(task("a/b", None))),
        ("/tasks/1/pushNotificationConfigs", rest(RestPath::PushConfigs { task_id: "1".into() })),
        (
            "/tasks/1/pushNotificationConfigs/a%20b",
            rest(RestPath::PushConfig { task_id: "1".into(), id: "a b".into() }),
        ),
        ("/tasks/1/artifacts/a%2Fb", agent(None, artifact(None, "1", "a/b"))),
        ("/acme/tasks/1:cancel/artifacts/a", agent(None, artifact(Some("acme"), "1:cancel", "a"))),
        ("/agents/echo/tasks/1/artifacts/a/", agent(Some("echo"), artifact(None, "1", "a"))),
        ("/extendedAgentCard", rest(RestPath::ExtendedCard)),
        ("/acme/tasks", rest_of("acme", RestPath::Tasks)),
        ("/a%2Fb/tasks/1:cancel", rest_of("a/b", task("1", Some(TaskVerb::Cancel)))),
        ("/agents/echo", agent(Some("echo"), AgentPath::Root)),
        ("/agents/echo/", agent(Some("echo"), AgentPath::Root)),
        ("/agents/echo/rpc", agent(Some("echo"), AgentPath::JsonRpc)),
        ("/agents/e%63ho/.well-known/agent-card.json", agent(Some("echo"), AgentPath::Card)),
        (
            "/agents/echo/acme/message:send",
            agent(Some("echo"), AgentPath::Rest { tenant: Some("acme".into()), place: RestPath::SendMessage }),
        ),
    ] {
        assert_eq!(name_path(path, ""), expected, "{path}");
    }
}

#[test]
fn what_names_no_place_is_unknown() {
    for path in [
        "/nothing",
        "/acme",
        "/acme/globex/tasks",
        "/tasks/1/2",
        "/tasks/1/pushNotificationConfigs/2/3",
        "/agents",
        "/agents/%FF/tasks",
        "/message:other",
        "/Message:send",
        "/rpc/more",
        "/v1",
        "/v1/extendedAgentCard",
        "/v1/acme/tasks",
        "/v1/v1/tasks",
        "/agent",
        "/.well-known",
        "//",
        "//tasks",
        "/%FF/tasks",
        "/tasks/%zz",
        "/api",
        "/api/outbox:burn",
        "/api/outbox/7:burn",
        "/api/outbox/7/8",
        "/api/tasks",
        "/agents/echo/api/outbox",
    ] {
        assert_eq!(name_path(path, ""), NamedPath::Unknown, "{path}");
    }
    for reserved in RESERVED {
        assert!(
            !matches!(
                name_path(&format!("/{reserved}/extendedAgentCard"), ""),
                NamedPath::Agent { agent: None, place: AgentPath::Rest { tenant: Some(_), .. } }
            ),
            "{reserved}"
        );
    }
}

#[test]
fn the_path_of_the_public_url_may_be_there_or_not() {
    for path in ["/base/tasks", "/tasks"] {
        assert_eq!(name_path(path, "/base"), rest(RestPath::Tasks), "{path}");
    }
    assert_eq!(name_path("/base", "/base"), agent(None, AgentPath::Root));
    assert_eq!(name_path("/based/tasks", "/base"), rest_of("based", RestPath::Tasks));
    assert_eq!(name_path("/base/base/tasks", "/base"), rest_of("base", RestPath::Tasks));
}

#[test]
fn segments_are_decoded_once() {
    for (segment, expected) in [
        ("plain", Some("plain")),
        ("a%2Fb", Some("a/b")),
        ("%252F", Some("%2F")),
        ("caf%C3%A9", Some("café")),
        ("a+b", Some("a+b")),
        ("%00", Some("\0")),
        ("%", None),
        ("%1", None),
        ("%+1", None),
        ("%gg", None),
        ("%C3", None),
    ] {
        assert_eq!(decode(segment).as_deref(), expected, "{segment}");
    }
}

#[test]
fn a_query_is_pairs() {
    let pairs = |query: &str| -> Option<Vec<(String, String)>> {
        let pairs = query_pairs(query)?;
        Some(pairs.into_iter().map(|(name, value)| (name.into_owned(), value.into_owned())).collect())
    };
    let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    for (query, expected) in [
        ("", Some(vec![])),
        ("&&", Some(vec![])),
        ("a=1&b=2", Some(vec![pair("a", "1"), pair("b", "2")])),
        ("a", Some(vec![pair("a", "")])),
        ("a=1=2", Some(vec![pair("a", "1=2")])),
        ("a=b+c%2Bd", Some(vec![pair("a", "b c+d")])),
        ("%61=%26", Some(vec![pair("a", "&")])),
        ("a=%FF", None),
    ] {
        assert_eq!(pairs(query), expected, "{query}");
    }
}

#[test]
fn the_path_of_a_grpc_call_names_agent_and_service() {
    let called = |name: Option<&'static str>, package| agent(name, AgentPath::Grpc(package));
    for (path, expected) in [
        ("/lf.a2a.v1.A2AService/GetTask", called(None, Package::V1_0)),
        ("/a2a.v1.A2AService/GetTask", called(None, Package::V0_3)),
        ("/base/lf.a2a.v1.A2AService/GetTask", called(None, Package::V1_0)),
        ("/agents/a%20b/a2a.v1.A2AService/X", called(Some("a b"), Package::V0_3)),
        ("/base/agents/x/lf.a2a.v1.A2AService/X", called(Some("x"), Package::V1_0)),
        ("/baself.a2a.v1.A2AService/X", NamedPath::Unknown),
        ("/A2AService/X", NamedPath::Unknown),
        ("/lf.a2a.v1.A2AService/X/", NamedPath::Unknown),
        ("/lf.a2a.v1.A2AService", NamedPath::Unknown),
        ("/agents/%ff/lf.a2a.v1.A2AService/X", NamedPath::Unknown),
        ("/", NamedPath::Unknown),
        ("", NamedPath::Unknown),
    ] {
        assert_eq!(name_grpc_path(path, "/base"), expected, "{path}");
    }
}
