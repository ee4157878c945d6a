//! Resuming over HTTP: `Last-Event-ID` or `?after=`, on both bindings, for subscriptions and for sends.

use http::Request;
use http_body_util::Full;
use serde_json::json;
use switchboard::{Limits, Server, Tokens};

use crate::support::edge::{Edge, echo, get, message, post, rpc_body, with};

const TOKEN: &str = "a-token-of-alice-for-tests";

/// The numbers of the events of an answer.
async fn ids(edge: &Edge, request: Request<Full<bytes::Bytes>>) -> Vec<u64> {
    let answer = edge.ask(request).await;
    assert_eq!(answer.header("content-type"), "text/event-stream", "{}", answer.text());
    answer.text().lines().filter_map(|line| line.strip_prefix("id: ")?.parse().ok()).collect()
}

#[tokio::test(start_paused = true)]
async fn a_subscription_resumes_by_header_or_query() {
    let edge = Edge::usual();
    let id = edge.task("chunks 4").await;
    let path = format!("/tasks/{id}:subscribe");
    let subscribe = || post("/", rpc_body("SubscribeToTask", json!({"id": id})));
    for (after, expected) in [(0, vec![1, 2, 3, 4, 5, 6]), (4, vec![5, 6]), (6, Vec::new())] {
        let number = after.to_string();
        assert_eq!(ids(&edge, with(get(&path), "last-event-id", &number)).await, expected);
        assert_eq!(ids(&edge, with(post(&path, ""), "last-event-id", &number)).await, expected);
        assert_eq!(ids(&edge, get(&format!("{path}?after={number}"))).await, expected);
        assert_eq!(ids(&edge, with(subscribe(), "last-event-id", &number)).await, expected);
    }
    // The header is what a browser sends by itself, so it is the newer word.
    assert_eq!(ids(&edge, with(get(&format!("{path}?after=0")), "last-event-id", "5")).await, [6]);
}

#[tokio::test(start_paused = true)]
async fn a_number_that_is_none_is_refused() {
    let edge = Edge::usual();
    let id = edge.task("hello").await;
    for bad in ["x", "-1", "4", "1 2", "1.5", "né", "0x1"] {
        let answer = edge.ask(with(get(&format!("/tasks/{id}:subscribe")), "last-event-id", bad)).await;
        assert_eq!(answer.gist(), "400 INVALID_PARAMS", "{bad}");
        assert_eq!(answer.json()["error"]["details"][1]["fieldViolations"][0]["field"], "Last-Event-ID");
        let call = with(post("/", rpc_body("SubscribeToTask", json!({"id": id}))), "last-event-id", bad);
        assert_eq!(edge.ask(call).await.gist(), "200 INVALID_PARAMS", "{bad}");
    }
    // Whatever stands there, a send that is to be resumed never becomes a new one.
    let before = edge.get("/tasks").await.json()["totalSize"].clone();
    for bad in ["x", "né", "0"] {
        let resend = with(post("/message:stream", message("hello").to_string()), "last-event-id", bad);
        assert_eq!(edge.ask(resend).await.gist(), "400 INVALID_PARAMS", "{bad}");
    }
    assert_eq!(edge.get("/tasks").await.json()["totalSize"], before);
}

#[tokio::test(start_paused = true)]
async fn a_send_resumes_by_key_or_by_who_sent_it() {
    let edge = Edge::usual();
    let send = || with(post("/message:stream", message("chunks 2").to_string()), "idempotency-key", "k-1");
    assert_eq!(ids(&edge, send()).await, [1, 2, 3, 4]);
    assert_eq!(ids(&edge, with(send(), "last-event-id", "2")).await, [3, 4]);

    let tokens = Tokens::parse(&format!("{TOKEN} alice")).unwrap();
    let edge = Edge::new(Server::builder().agent(echo()).tokens(tokens));
    let bearer = |request| with(request, "authorization", &format!("Bearer {TOKEN}"));
    let send = || bearer(post("/", rpc_body("SendStreamingMessage", message("chunks 2"))));
    assert_eq!(ids(&edge, send()).await, [1, 2, 3, 4]);
    assert_eq!(ids(&edge, with(send(), "last-event-id", "2")).await, [3, 4]);
    assert_eq!(ids(&edge, send()).await, [1, 2, 3, 4], "a repeat is played again");
    assert_eq!(edge.ask(bearer(get("/tasks"))).await.json()["totalSize"], 1);
}

#[tokio::test(start_paused = true)]
async fn a_key_is_compared_as_it_was_sent() {
    let edge = Edge::usual();
    let send = |key: &str, text: &str| with(post("/message:send", message(text).to_string()), "idempotency-key", key);
    // Keys are bytes to a client; one that is not ASCII is a key all the same.
    let mut tasks = Vec::new();
    for key in ["schlüssel", "schlüssel", "k"] {
        tasks.push(edge.ask(send(key, "hello")).await.json()["task"]["id"].clone());
    }
    assert_eq!(tasks[0], tasks[1]);
    assert_ne!(tasks[1], tasks[2]);
    let mixed = edge.ask(send("schlüssel", "another")).await;
    assert_eq!(mixed.gist(), "400 INVALID_PARAMS");
    assert_eq!(mixed.json()["error"]["details"][1]["fieldViolations"][0]["field"], "Idempotency-Key");
}

#[tokio::test(start_paused = true)]
async fn a_snapshot_that_stands_for_lost_events_says_so() {
    use std::time::Duration;
    // Events are kept for no time at all; the clock of a server is the wall's, so only the loop is waited for.
    let limits = Limits { retention_events_s: 0, resume_window_s: 0, ..Limits::default() };
    let edge = Edge::new(Server::builder().agent(echo()).engine_limits(limits));
    let id = edge.task("hello").await;
    tokio::time::sleep(Duration::from_secs(61)).await;
    let answer = edge.ask(with(get(&format!("/tasks/{id}:subscribe")), "last-event-id", "1")).await.text();
    let expected = ": earlier events are no longer kept; this is the task as it stands\nid: 3\ndata: {\"task\":";
    assert!(answer.starts_with(expected), "{answer}");
}
