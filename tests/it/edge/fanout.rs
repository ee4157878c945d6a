//! Many followers of one task: each update is encoded once for all of them, and one that never reads costs nothing.

use std::sync::Arc;

use bytes::Bytes;
use futures_util::future::join_all;
use http::Request;
use http_body_util::{BodyExt, Full};
use switchboard::{AgentBuilder, Server, Turn};
use switchboard_core::dialect::v0_3::proto::generated as v0_3;
use switchboard_core::dialect::v1_0::proto::generated as v1_0;
use tokio::sync::Semaphore;

use crate::support::callers::soon;
use crate::support::edge::{Edge, get, message, post, unversioned};
use crate::support::grpc::grpc_request;

/// Writes a chunk for each permit the test gives out, and ends when there are no more to come.
fn paced() -> (AgentBuilder, Arc<Semaphore>) {
    let pace = Arc::new(Semaphore::new(0));
    let own = pace.clone();
    let agent = AgentBuilder::from_fn("Paced", move |turn: Turn| {
        let pace = own.clone();
        async move {
            let mut writer = turn.artifact_writer();
            while let Ok(permit) = pace.acquire().await {
                permit.forget();
                writer.text("chunk").await?;
            }
            Ok(())
        }
    });
    (agent, pace)
}

#[tokio::test(start_paused = true)]
async fn an_update_is_encoded_once_for_a_thousand_followers() {
    let (agent, pace) = paced();
    let edge = Edge::new(Server::builder().agent(agent));
    let mut body = message("hello");
    body["configuration"] = serde_json::json!({"returnImmediately": true});
    let sent = edge.post("/message:send", body.to_string()).await.json();
    let id = sent["task"]["id"].as_str().unwrap();
    let followers = (0..1_000).map(|_| get(&format!("/tasks/{id}:subscribe")));
    let (films, encodes) = follow(&edge, followers, &pace).await;
    for film in films {
        assert_eq!(film.windows(4).filter(|window| window == b"id: ").count(), 21);
    }
    assert_eq!(encodes, 21, "twenty chunks and the end, whoever follows");
}

/// What each follower is sent after the task itself while the agent writes twenty chunks, and how often an update was encoded.
async fn follow(
    edge: &Edge,
    requests: impl Iterator<Item = Request<Full<Bytes>>>,
    pace: &Semaphore,
) -> (Vec<Bytes>, u64) {
    let mut followers = Vec::new();
    for request in requests {
        let mut body = edge.open(request).await.into_body();
        // The first frame is each follower's own: the task as it was when they came.
        soon(body.frame()).await.unwrap().unwrap();
        followers.push(body);
    }
    let before = edge.metric("switchboard_update_encodes_total").await;
    let reading = tokio::spawn(join_all(followers.into_iter().map(BodyExt::collect)));
    for _ in 0..20 {
        pace.add_permits(1);
        tokio::task::yield_now().await;
    }
    while pace.available_permits() > 0 {
        tokio::task::yield_now().await;
    }
    pace.close();
    let films = soon(reading).await.unwrap();
    let encodes = edge.metric("switchboard_update_encodes_total").await - before;
    (films.into_iter().map(|film| film.unwrap().to_bytes()).collect(), encodes)
}

#[tokio::test(start_paused = true)]
async fn followers_in_three_forms_cost_three_encodings_per_update() {
    let (agent, pace) = paced();
    let edge = Edge::new(Server::builder().agent(agent));
    let mut body = message("hello");
    body["configuration"] = serde_json::json!({"returnImmediately": true});
    let sent = edge.post("/message:send", body.to_string()).await.json();
    let id = sent["task"]["id"].as_str().unwrap().to_owned();
    let new = v1_0::SubscribeToTaskRequest { id: id.clone(), ..Default::default() };
    let old = v0_3::TaskSubscriptionRequest { name: format!("tasks/{id}") };
    let requests = (0..999).map(|i| match i % 3 {
        0 => get(&format!("/tasks/{id}:subscribe")),
        1 => grpc_request("/lf.a2a.v1.A2AService/SubscribeToTask", &new),
        _ => unversioned(grpc_request("/a2a.v1.A2AService/TaskSubscription", &old)),
    });
    let (films, encodes) = follow(&edge, requests, &pace).await;
    for (i, film) in films.iter().enumerate() {
        let updates = match i % 3 {
            0 => film.windows(4).filter(|window| window == b"id: ").count(),
            _ => messages(film),
        };
        assert_eq!(updates, 21, "follower {i}");
    }
    assert_eq!(encodes, 3 * 21);
}

/// How many messages of gRPC these are.
fn messages(mut film: &[u8]) -> usize {
    let mut count = 0;
    while let Some(([_, length @ ..], rest)) = film.split_first_chunk::<5>() {
        film = &rest[u32::from_be_bytes(*length) as usize..];
        count += 1;
    }
    count
}

#[tokio::test(start_paused = true)]
async fn a_stream_that_is_never_read_holds_nothing_and_stops_nobody() {
    let edge = Edge::usual();
    let opened = edge.open(post("/message:stream", message("chunks 10000").to_string())).await;
    let encodes_before = edge.metric("switchboard_update_encodes_total").await;
    let id = edge.get("/tasks").await.json()["tasks"][0]["id"].as_str().unwrap().to_owned();
    let state = async || edge.get(&format!("/tasks/{id}?historyLength=0")).await.json()["status"]["state"].clone();
    soon(async {
        while state().await != "TASK_STATE_COMPLETED" {
            tokio::task::yield_now().await;
        }
    })
    .await;
    assert_eq!(edge.metric("switchboard_update_encodes_total").await, encodes_before, "nothing is prepared for it");
    // Whoever reads at last gets everything, in bites.
    let (mut body, mut events, mut largest) = (opened.into_body(), 0, 0);
    while let Some(frame) = soon(body.frame()).await {
        let bytes = frame.unwrap().into_data().unwrap();
        events += bytes.windows(4).filter(|window| window == b"id: ").count();
        largest = largest.max(bytes.len());
    }
    assert_eq!(events, 10_002);
    assert!(largest < 70 << 10, "{largest} bytes at once");
}
