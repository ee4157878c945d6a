//! `docs/errors.md` says what the code does: each row of its tables is found in the code, and the other way round.

use std::collections::BTreeSet;

use bytes::Bytes;
use http::{Method, Request, Version};
use http_body_util::Full;
use serde_json::{Value, json};
use switchboard::{AgentBuilder, Limits, Part, Server, Turn};
use switchboard_core::dialect::{Dialect, codes};
use switchboard_core::error::ProtocolError as E;
use switchboard_core::model::TaskState;

use crate::support::edge::{Edge, echo, get, message, post, request, with};

const PAGE: &str = include_str!("../../../docs/errors.md");

/// The first cells of each row of the table under a heading, without code marks.
fn rows(heading: &str, cells: usize) -> BTreeSet<Vec<String>> {
    let section = PAGE.split("\n## ").find(|section| section.starts_with(heading)).expect("the page has this heading");
    let table = section.lines().filter(|line| line.starts_with("| ")).skip(2);
    let row = |line: &str| line.split('|').skip(1).take(cells).map(|cell| cell.trim().replace('`', "")).collect();
    table.map(row).collect()
}

/// One of each kind. A new kind does not compile until it has a line here.
fn every_error() -> Vec<E> {
    let text = String::new;
    let all = vec![
        E::AgentFailed { reason: text() },
        E::TaskNotFound { id: "t".into() },
        E::PushConfigNotFound { task_id: "t".into(), id: "c".into() },
        E::TaskNotCancelable { id: "t".into(), state: TaskState::Completed },
        E::PushNotificationNotSupported,
        E::UnsupportedOperation { reason: text() },
        E::ContentTypeNotSupported { reason: text() },
        E::InvalidAgentResponse { reason: text() },
        E::ExtendedAgentCardNotConfigured,
        E::ExtensionSupportRequired { uri: text(), header: "A2A-Extensions".into() },
        E::VersionNotSupported { requested: text(), supported: Vec::new(), fix: None },
        E::ParseError { reason: text() },
        E::InvalidRequest { reason: text() },
        E::MethodNotFound { method: text(), hint: None },
        E::InvalidParams { violations: Vec::new() },
        E::Internal { incident: text() },
        E::Unauthenticated { reason: text() },
        E::PermissionDenied { reason: text() },
        E::Unavailable { reason: text(), retry_after_s: 1 },
        E::ResourceExhausted { reason: text(), retry_after_s: 1 },
        E::TooLarge { what: "body".into(), bytes_max: 1 },
    ];
    for error in &all {
        match error {
            E::AgentFailed { .. }
            | E::TaskNotFound { .. }
            | E::PushConfigNotFound { .. }
            | E::TaskNotCancelable { .. }
            | E::PushNotificationNotSupported
            | E::UnsupportedOperation { .. }
            | E::ContentTypeNotSupported { .. }
            | E::InvalidAgentResponse { .. }
            | E::ExtendedAgentCardNotConfigured
            | E::ExtensionSupportRequired { .. }
            | E::VersionNotSupported { .. }
            | E::ParseError { .. }
            | E::InvalidRequest { .. }
            | E::MethodNotFound { .. }
            | E::InvalidParams { .. }
            | E::Internal { .. }
            | E::Unauthenticated { .. }
            | E::PermissionDenied { .. }
            | E::Unavailable { .. }
            | E::ResourceExhausted { .. }
            | E::TooLarge { .. } => {}
        }
    }
    all
}

/// Those that A2A itself can answer with: a task that failed is no refusal there.
fn in_a2a() -> impl Iterator<Item = E> {
    every_error().into_iter().filter(|error| !matches!(error, E::AgentFailed { .. }))
}

/// The code of a JSON-RPC refusal in a dialect; none if it has only an HTTP status.
fn code(dialect: Dialect, error: &E) -> String {
    let mut out = Vec::new();
    dialect.write_rpc_error(error, "1", &mut out);
    let reply: Value = serde_json::from_slice(&out).unwrap();
    reply["error"]["code"].as_i64().map_or_else(|| "–".to_owned(), |code| code.to_string())
}

#[test]
fn the_table_of_accents_is_the_code_s() {
    let expected = every_error().into_iter().map(|error| {
        let row = codes::of(&error);
        let compat = [Dialect::AgentNative, Dialect::Selectools, Dialect::Nexus].map(|dialect| code(dialect, &error));
        [&[row.reason.to_owned()], &compat[..], &[row.http.to_string()]].concat()
    });
    assert_eq!(rows("Compat dialects", 5), expected.collect());
}

/// The HTTP status of a JSON-RPC reply, as this page has it: what has to do with the connection keeps its own.
fn with_status(error: &E, http: u16) -> u16 {
    let is_about_the_connection = matches!(
        error,
        E::Unauthenticated { .. }
            | E::PermissionDenied { .. }
            | E::TooLarge { .. }
            | E::Unavailable { .. }
            | E::ResourceExhausted { .. }
    );
    if is_about_the_connection { http } else { 200 }
}

#[test]
fn the_table_of_1_0_is_the_code_s() {
    let expected = in_a2a().map(|error| {
        let row = codes::of(&error);
        let status = with_status(&error, row.http);
        [&row.jsonrpc.to_string(), &status.to_string(), &row.http.to_string(), row.status, row.reason]
            .map(str::to_owned)
            .to_vec()
    });
    assert_eq!(rows("A2A 1.0", 5), expected.collect());
}

#[test]
fn the_table_of_0_3_is_the_code_s() {
    let expected = in_a2a().map(|error| {
        let (row, http) = (codes::of(&error), codes::http_of_0_3(&error));
        let status = with_status(&error, http);
        [&row.jsonrpc.to_string(), &status.to_string(), &http.to_string(), row.reason].map(str::to_owned).to_vec()
    });
    assert_eq!(rows("A2A 0.3 and 0.2", 4), expected.collect());
}

/// Writes more than a reply holds, so that there is something to download.
fn writer() -> AgentBuilder {
    AgentBuilder::from_fn("Writer", |turn: Turn| async move {
        let mut writer = turn.artifact_writer();
        for _ in 0..15 {
            writer.parts(vec![Part::raw(vec![7; 100_000])]).await?;
        }
        Ok(())
    })
}

/// What compat dialects and gRPC refuse before it is a call.
fn gone_astray() -> Vec<Request<Full<Bytes>>> {
    let grpc = |method, kind: &str, version| {
        let mut asked = with(request(method, "/lf.a2a.v1.A2AService/GetTask", ""), "content-type", kind);
        *asked.version_mut() = version;
        asked
    };
    let corvid =
        |depth: u32| post("/a2a/tasks/send", json!({"params": {"message": "hello", "depth": depth}}).to_string());
    let mut asked = vec![
        grpc(Method::POST, "application/grpc", Version::HTTP_11),
        grpc(Method::GET, "application/grpc", Version::HTTP_2),
        grpc(Method::POST, "application/grpc+json", Version::HTTP_2),
        get("/a2a/tasks/send"),
        get("/api/agents/nobody/agent-card"),
        corvid(9),
    ];
    asked.extend((0..6).map(|_| corvid(1)));
    asked
}

#[tokio::test]
async fn the_table_of_plain_http_is_what_is_answered() {
    let edge = Edge::new(
        Server::builder()
            .agent(echo().compat(|compat| compat.default_project = true))
            .host_check(true)
            .operator_key("k-key-of-operators-for-tests")
            .outbound_allow(["127.0.0.0/8"]),
    );
    let by_operator = |asked| with(asked, "authorization", "Bearer k-key-of-operators-for-tests");
    let local = |asked| by_operator(with(asked, "host", "localhost"));
    let mut seen = BTreeSet::new();
    // A send of corvid's that is taken is no refusal.
    let mut note = |gist: String| gist != "200" && seen.insert(gist);
    for asked in [
        with(get("/tasks"), "host", "evil.example"),
        local(get("/nothing/at/all")),
        local(get("/agents/nobody/rpc")),
        local(get("/rpc")),
        local(request(Method::PUT, "/.well-known/agent-card.json", "")),
        local(request(Method::POST, "/healthz", "")),
        local(request(Method::PUT, "/message:send", "")),
        local(get("/v1/message:send")),
        local(get("/api/outbox/9")),
    ] {
        note(edge.ask(asked).await.gist());
    }
    for asked in gone_astray() {
        note(edge.ask(local(asked)).await.gist());
    }
    // No receiver listens there, so the delivery waits to be tried again.
    let mut hooked = message("hello");
    hooked["configuration"] = json!({"taskPushNotificationConfig": {"url": "http://127.0.0.1:9/"}});
    edge.ask(local(post("/message:send", hooked.to_string()))).await;
    note(edge.ask(local(post("/api/outbox/1:purge", ""))).await.gist());
    edge.engine.begin_drain();
    note(edge.ask(local(get("/readyz"))).await.gist());

    let limits = Limits { reply_bytes_max: 1 << 20, ..Limits::default() };
    let edge = Edge::new(
        Server::builder()
            .agent(writer())
            .engine_limits(limits)
            .allow_unauthenticated(true)
            .public_url("https://agents.example"),
    );
    let task = edge.post("/message:send", message("").to_string()).await.json();
    let url = task["task"]["artifacts"][0]["parts"][0]["url"].as_str().expect("too large for a reply").to_owned();
    let path = url.strip_prefix("https://agents.example").expect("a link to this server");
    note(edge.ask(with(get(path), "if-match", "\"another\"")).await.gist());
    note(edge.ask(with(get(path), "range", "bytes=99999999-")).await.gist());

    let page = rows("Plain HTTP", 2).into_iter().map(|row| row.join(" ").trim_end_matches(" –").to_owned());
    assert_eq!(seen, page.collect());
}
