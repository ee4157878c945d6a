//! What one caller can hold at once: answers that are not read, bodies that never end, streams, and runs that wait. Each attack
//! is made twice, against a server without the limit, where it succeeds, and against one with it.

use std::future::IntoFuture;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use bytes::Bytes;
use http::{Request, Version};
use http_body_util::{BodyExt, Full};
use hyper::client::conn::http2;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use serde_json::json;
use switchboard::{AgentBuilder, Identity, Limits, Server, ServerBuilder, ServerLimits, Tokens, Turn};
use switchboard_core::dialect::v1_0::proto::generated as wire;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::Instant;
use tower::ServiceExt;

use super::exposure::Naive;
use super::grpc_calls::say;
use crate::support::callers::soon;
use crate::support::edge::{Edge, echo, get, message, post, rpc_body, with};
use crate::support::grpc::Served;

/// No limit that a test could reach.
fn boundless() -> ServerLimits {
    let mut limits = ServerLimits::default();
    limits.reply_stall_s_max = 1_000_000;
    limits.body_bytes_held_max = u64::MAX;
    limits.body_bytes_held_per_caller_max = u64::MAX;
    limits.reply_bytes_held_max = u64::MAX;
    limits.reply_bytes_held_per_caller_max = u64::MAX;
    limits
}

fn server(limits: ServerLimits) -> ServerBuilder {
    Server::builder().agent(echo()).limits(limits)
}

const LARGE: usize = 8 << 20;

/// A request over HTTP/1.1, as bytes.
fn head(served: &Served, line: &str, more: &str) -> String {
    format!("{line} HTTP/1.1\r\nhost: {}\r\na2a-version: 1.0\r\nconnection: close\r\n{more}\r\n", served.address)
}

async fn exchange(served: &Served, request: &[u8]) -> String {
    let mut stream = TcpStream::connect(served.address).await.unwrap();
    stream.write_all(request).await.unwrap();
    let mut answer = Vec::new();
    soon(stream.read_to_end(&mut answer)).await.unwrap();
    String::from_utf8_lossy(&answer).into_owned()
}

/// A task with a large answer, and its id.
async fn large_task(served: &Served) -> String {
    let body = message(&"x".repeat(LARGE)).to_string();
    let length = format!("content-type: application/json\r\ncontent-length: {}\r\n", body.len());
    let request = head(served, "POST /message:send", &length) + &body;
    let answer = exchange(served, request.as_bytes()).await;
    let (_, rest) = answer.split_once("\"task\":{\"id\":\"").unwrap_or_else(|| panic!("no task in {answer:.300}"));
    rest.split_once('"').unwrap().0.to_owned()
}

async fn metric(served: &Served, name: &str) -> u64 {
    let metrics = exchange(served, head(served, "GET /metrics", "").as_bytes()).await;
    let value = metrics.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    value.unwrap_or_else(|| panic!("no {name} in {metrics}")).trim().parse().unwrap()
}

/// How many bytes of an answer come that is left unread for an hour.
async fn read_after_an_hour(limits: ServerLimits) -> (usize, u64) {
    let served = Served::start(server(limits)).await;
    let id = large_task(&served).await;
    let mut stream = TcpStream::connect(served.address).await.unwrap();
    stream.write_all(head(&served, &format!("GET /tasks/{id}"), "").as_bytes()).await.unwrap();
    tokio::time::sleep(Duration::from_secs(3_600)).await;
    let ended = metric(&served, "switchboard_unread_connections_total").await;
    let mut answer = Vec::new();
    // A connection that was cut off may be reset.
    let _ = soon(stream.read_to_end(&mut answer)).await;
    (answer.len(), ended)
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_is_not_read_is_let_go() {
    let (bytes, ended) = read_after_an_hour(boundless()).await;
    assert!(bytes > LARGE && ended == 0, "without the limit it is held for ever: {bytes} bytes, {ended}");
    let (bytes, ended) = read_after_an_hour(ServerLimits::default()).await;
    assert!(bytes < LARGE && ended == 1, "{bytes} bytes, {ended}");
}

/// How many bytes of an answer of a service in an application come that is left unread for an hour, and how many are held then.
async fn read_of_an_application(limits: ServerLimits) -> (usize, u64, u64) {
    let router: Router = server(limits).public_url("http://127.0.0.1:1").build().unwrap().into_router().unwrap();
    let ask = async |request: Request<Full<Bytes>>| {
        let answer = router.clone().oneshot(request.map(axum::body::Body::new)).await.unwrap();
        String::from_utf8(answer.into_body().collect().await.unwrap().to_bytes().to_vec()).unwrap()
    };
    let sent = ask(post("/message:send", message(&"x".repeat(LARGE)).to_string())).await;
    let id = serde_json::from_str::<serde_json::Value>(&sent).unwrap()["task"]["id"].as_str().unwrap().to_owned();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let mut stream = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
    let serving = tokio::spawn(axum::serve(listener, router.clone()).into_future());
    let request =
        format!("GET /tasks/{id} HTTP/1.1\r\nhost: localhost\r\na2a-version: 1.0\r\nconnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    stream.readable().await.unwrap();
    tokio::time::sleep(Duration::from_secs(3_600)).await;
    let metrics = ask(get("/metrics")).await;
    let of = |name: &str| metrics.lines().find_map(|line| line.strip_prefix(name)?.trim().parse().ok()).unwrap();
    let (held, ended) = (of("switchboard_held_bytes{what=\"replies\"} "), of("switchboard_unread_connections_total "));
    let mut answer = Vec::new();
    // An answer that was let go breaks off.
    let _ = soon(stream.read_to_end(&mut answer)).await;
    serving.abort();
    (answer.len(), held, ended)
}

#[tokio::test(start_paused = true)]
async fn an_answer_of_an_application_that_is_not_read_is_let_go() {
    let (bytes, held, ended) = read_of_an_application(boundless()).await;
    assert!(
        bytes > LARGE && held > LARGE as u64 && ended == 0,
        "without the limit: {bytes} bytes, {held} held, {ended}"
    );
    let (bytes, held, ended) = read_of_an_application(ServerLimits::default()).await;
    assert!(bytes < LARGE && held == 0 && ended == 1, "{bytes} bytes, {held} held, {ended}");
}

/// Asks for a task over HTTP/2 on a stream that is given this window, and how the connection ended within two minutes.
async fn over_http2(limits: ServerLimits, window: u32) -> Option<Duration> {
    let served = Served::start(server(limits)).await;
    let id = large_task(&served).await;
    let stream = TcpStream::connect(served.address).await.unwrap();
    let mut builder = http2::Builder::new(TokioExecutor::new());
    builder.timer(TokioTimer::new()).initial_stream_window_size(window);
    let (mut sender, connection) = builder.handshake::<_, Full<Bytes>>(TokioIo::new(stream)).await.unwrap();
    let ending = tokio::spawn(connection);
    let request = Request::get(format!("http://{}/tasks/{id}", served.address)).version(Version::HTTP_2);
    let request = request.header("a2a-version", "1.0").body(Full::default()).unwrap();
    let answer = soon(sender.send_request(request)).await.unwrap();
    assert_eq!(answer.status(), 200);
    // The answer is kept and not read.
    let begun = Instant::now();
    // In steps, because paused time passes at once, and the end has to arrive over a real socket.
    while !ending.is_finished() && begun.elapsed() < Duration::from_secs(120) {
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    drop(answer);
    ending.is_finished().then(|| begun.elapsed())
}

#[tokio::test(start_paused = true)]
async fn a_stream_of_http2_without_a_window_ends_its_connection() {
    for window in [0, 1, 20_000] {
        assert_eq!(over_http2(boundless(), window).await, None, "without the limit it is held for ever");
        let ended = over_http2(ServerLimits::default(), window).await.expect("the connection is ended");
        assert!((30..=60).contains(&ended.as_secs()), "window {window}: after {ended:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_stream_of_http2_that_waits_for_its_agent_is_left_alone() {
    let served = Served::start(server(ServerLimits::default())).await;
    let client = served.client().await;
    let mut stream = client.open("SendStreamingMessage", &say("wait")).await;
    assert!(soon(stream.next()).await.is_some(), "the task");
    // Longer than the time to read, and than pings of HTTP/2 and their answers may take.
    tokio::time::sleep(Duration::from_secs(200)).await;
    assert_eq!(metric(&served, "switchboard_unread_connections_total").await, 0);
    let tasks: wire::ListTasksResponse = client.call("ListTasks", &wire::ListTasksRequest::default()).await.unwrap();
    let cancel = wire::CancelTaskRequest { id: tasks.tasks[0].id.clone(), ..Default::default() };
    let _: wire::Task = client.call("CancelTask", &cancel).await.unwrap();
    assert!(soon(stream.next()).await.is_some(), "the stream goes on over the same connection");
}

#[tokio::test]
async fn answers_that_are_not_read_have_a_budget() {
    let mut limits = ServerLimits::default();
    (limits.reply_bytes_held_max, limits.reply_bytes_held_per_caller_max) = (5 << 20, 3 << 20);
    let tokens = "token-of-ann-for-tests ann\ntoken-of-bob-for-tests bob\n";
    let tokens = || Tokens::parse(tokens).unwrap();
    let of = |name: &str, request| with(request, "authorization", &format!("Bearer token-of-{name}-for-tests"));
    let sent = |name: &str| of(name, post("/message:send", message(&"x".repeat(1 << 20)).to_string()));
    let edge = Edge::new(server(boundless()).tokens(tokens()));
    let mut held = Vec::new();
    for _ in 0..8 {
        held.push(edge.open(sent("ann")).await);
    }
    assert!(held.iter().all(|answer| answer.status() == 200), "without the limit all are held");

    let edge = Edge::new(server(limits).tokens(tokens()));
    let first = edge.open(sent("ann")).await;
    let refused = edge.ask(sent("ann")).await;
    assert_eq!(refused.gist(), "429 RESOURCE_EXHAUSTED", "{}", refused.text());
    assert_eq!(refused.header("retry-after"), "2");
    let _other = edge.open(sent("bob")).await;
    let all = edge.ask(sent("bob")).await;
    assert!(all.text().contains("the answers that are not read yet"), "{}", all.text());
    assert_eq!(edge.ask(of("ann", post("/message:send", message("small").to_string()))).await.status, 200);
    // What is read counts no more.
    assert_eq!(first.into_body().collect().await.unwrap().to_bytes().len() >> 20, 2);
    assert_eq!(edge.ask(sent("ann")).await.status, 200);
    let metrics = edge.ask(of("ann", get("/metrics"))).await.text();
    for line in ["{limit=\"reply_bytes_held_per_caller_max\"} 1", "{limit=\"reply_bytes_held_max\"} 1"] {
        assert!(metrics.contains(line), "{line} in {metrics}");
    }
}

/// Sends most of a body and waits for what comes of it, at most a second.
async fn unfinished(served: &Served) -> (TcpStream, String) {
    let sent = 700 << 10;
    let length = format!("content-type: application/json\r\ncontent-length: {}\r\n", sent + 1);
    let mut stream = TcpStream::connect(served.address).await.unwrap();
    stream.write_all(head(served, "POST /message:send", &length).as_bytes()).await.unwrap();
    stream.write_all(&vec![b' '; sent]).await.unwrap();
    let mut answer = vec![0; 4096];
    let come = tokio::time::timeout(Duration::from_secs(1), stream.read(&mut answer)).await;
    let answer = come.map_or(String::new(), |read| String::from_utf8_lossy(&answer[..read.unwrap()]).into_owned());
    (stream, answer)
}

#[tokio::test]
async fn bodies_that_do_not_end_have_a_budget() {
    let served = Served::start(server(boundless())).await;
    let held = [unfinished(&served).await, unfinished(&served).await];
    assert!(held.iter().all(|(_, answer)| answer.is_empty()), "without the limit both are held: {held:?}");

    let mut limits = ServerLimits::default();
    limits.body_bytes_held_per_caller_max = 1 << 20;
    let served = Served::start(server(limits)).await;
    let (held, answer) = unfinished(&served).await;
    assert_eq!(answer, "");
    let (_, refused) = unfinished(&served).await;
    assert!(refused.starts_with("HTTP/1.1 429 ") && refused.contains("retry-after: 2"), "{refused}");
    assert!(refused.contains("the bodies that you send at once have more than 1048576 bytes"), "{refused}");
    // A request with a small body goes through, and what was held is given back.
    assert_eq!(metric(&served, "switchboard_held_bytes{what=\"bodies\"}").await >> 10, 704);
    drop(held);
    soon(async { while metric(&served, "switchboard_held_bytes{what=\"bodies\"}").await > 0 {} }).await;
    assert_eq!(unfinished(&served).await.1, "");
}

#[tokio::test]
async fn a_caller_has_only_so_many_streams() {
    let wait = || post("/message:stream", message("wait").to_string());
    let mut limits = ServerLimits::default();
    limits.streams_per_caller_max = 2;
    let edge = Edge::new(server(limits));
    let open = [edge.open(wait()).await, edge.open(wait()).await];
    let refused = edge.ask(wait()).await;
    assert_eq!(refused.gist(), "429 RESOURCE_EXHAUSTED");
    assert_eq!(edge.rpc("ListTasks", json!({})).await.json()["result"]["totalSize"], 2, "nothing was begun");
    drop(open);
    assert_eq!(edge.open(wait()).await.status(), 200);
    let edge = Edge::new(server(ServerLimits::default()));
    let open = [edge.open(wait()).await, edge.open(wait()).await, edge.open(wait()).await];
    assert!(open.iter().all(|answer| answer.status() == 200), "without the limit all are open");
}

#[tokio::test]
async fn requests_have_a_rate_for_each_caller_and_each_address() {
    let served = Served::start(server(ServerLimits::default())).await;
    let list = |served: &Served| head(served, "GET /tasks", "");
    for _ in 0..20 {
        assert!(exchange(&served, list(&served).as_bytes()).await.starts_with("HTTP/1.1 200 "));
    }
    for by_address in [false, true] {
        let mut limits = ServerLimits::default();
        let rate = if by_address {
            &mut limits.address_requests_per_second_max
        } else {
            &mut limits.caller_requests_per_second_max
        };
        *rate = Some(1);
        let served = Served::start(server(limits)).await;
        let mut statuses = Vec::new();
        for _ in 0..8 {
            statuses.push(exchange(&served, list(&served).as_bytes()).await[9..12].to_owned());
        }
        assert_eq!(statuses[..5], ["200"; 5], "a burst");
        assert!(statuses[5..].contains(&"429".to_owned()), "{statuses:?}");
        let health = exchange(&served, head(&served, "GET /healthz", "").as_bytes()).await;
        assert!(health.starts_with("HTTP/1.1 200 "), "probes and cards do not count");
    }
}

#[tokio::test]
async fn a_caller_has_only_so_many_runs_that_wait_and_bytes_that_they_hold() {
    let agent = || echo().traits(|traits| traits.with_runs_max(1));
    let send = |text: &str| {
        let mut params = message(text);
        params["configuration"] = json!({"returnImmediately": true});
        post("/", rpc_body("SendMessage", params))
    };
    let limits =
        Limits { runs_queued_per_owner_max: 2, run_message_bytes_per_owner_max: 100 << 10, ..Limits::default() };
    let edge = Edge::new(Server::builder().agent(agent()).engine_limits(limits));
    for _ in 0..3 {
        assert_eq!(edge.ask(send("wait")).await.status, 200);
    }
    let refused = edge.ask(send("wait")).await;
    assert_eq!(refused.gist(), "429 RESOURCE_EXHAUSTED", "{}", refused.text());
    assert_eq!(refused.header("retry-after"), "5");
    assert_eq!(edge.metric("switchboard_run_limit_refusals_total{limit=\"runs_queued_per_owner_max\"}").await, 1);
    let edge = Edge::new(Server::builder().agent(agent()));
    for _ in 0..20 {
        assert_eq!(edge.ask(send("wait")).await.status, 200, "without the limit all are taken");
    }

    let limits = Limits { run_message_bytes_per_owner_max: 100 << 10, ..Limits::default() };
    let large = format!("wait {}", "x".repeat(60 << 10));
    let edge = Edge::new(Server::builder().agent(echo()).engine_limits(limits));
    let first = edge.ask(send(&large)).await;
    let refused = edge.ask(send(&large)).await;
    assert_eq!((first.status.as_u16(), refused.gist()), (200, "429 RESOURCE_EXHAUSTED".to_owned()));
    assert!(refused.text().contains("your tasks at work hold more than 102400 bytes"), "{}", refused.text());
    let id = first.json()["result"]["task"]["id"].clone();
    assert_eq!(edge.rpc("CancelTask", json!({"id": id})).await.status, 200);
    assert_eq!(edge.ask(send(&large)).await.status, 200, "a run that has ended holds nothing");
}

/// Whose turn it was, in order, of runs of which one is at work at a time: one caller has many waiting when another one comes.
async fn order_of_runs(builder: impl FnOnce(AgentBuilder) -> ServerBuilder) -> Vec<String> {
    let (begun, mut order) = tokio::sync::mpsc::channel(100);
    let gate = Arc::new(tokio::sync::Semaphore::new(0));
    let opened = gate.clone();
    let agent = AgentBuilder::from_fn("Queue", move |turn: Turn| {
        let (begun, opened) = (begun.clone(), opened.clone());
        async move {
            begun.send(turn.text()).await?;
            opened.acquire().await?.forget();
            Ok(turn.answer("done").await?)
        }
    });
    let edge = Edge::new(builder(agent.traits(|traits| traits.with_runs_max(1))));
    for (name, count) in [("ann", 20), ("bob", 2)] {
        for number in 0..count {
            let mut params = message(name);
            params["message"]["messageId"] = json!(format!("{name} {number}"));
            params["configuration"] = json!({"returnImmediately": true});
            let send = post("/", rpc_body("SendMessage", params));
            let sent = edge.ask(with(send, "authorization", &format!("Bearer token-of-{name}-for-tests"))).await;
            assert_eq!(sent.gist(), "200", "{}", sent.text());
        }
    }
    let mut names = Vec::new();
    for _ in 0..22 {
        names.push(soon(order.recv()).await.expect("the next run begins"));
        gate.add_permits(1);
    }
    names
}

#[tokio::test(start_paused = true)]
async fn runs_are_shared_out_by_owner_and_not_first_come() {
    // Where nobody asks who calls, all are one owner, and the last to come waits for all others.
    let first_come =
        order_of_runs(|agent| Server::builder().agent(agent).authenticate(Naive(|_| Identity::new("a caller")))).await;
    assert_eq!(first_come[20..], ["bob", "bob"], "{first_come:?}");
    let tokens = "token-of-ann-for-tests ann\ntoken-of-bob-for-tests bob\n";
    let shared = order_of_runs(|agent| Server::builder().agent(agent).tokens(Tokens::parse(tokens).unwrap())).await;
    let turns: Vec<usize> = shared.iter().enumerate().filter(|(_, name)| *name == "bob").map(|(at, _)| at).collect();
    assert!(turns[0] <= 2 && turns[1] <= 4, "{shared:?}");
}
