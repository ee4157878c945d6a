//! Many followers of one task: each update is encoded once for all of them, and one that never reads costs nothing.

use std::sync::Arc;

use bytes::Bytes;
use futures_util::future::join_all;
use http::Request;
use http_body_util::{BodyExt, Full};
use switchboard::{AgentBuilder, Server, Turn};
use tokio::sync::Semaphore;

use crate::support::callers::soon;
use crate::support::edge::{Edge, get, message, post, rpc_body, unversioned};

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
async fn an_update_is_encoded_once_per_dialect_for_ten_thousand_followers() {
    let (agent, pace) = paced();
    let edge = Edge::new(Server::builder().agent(agent));
    let mut body = message("hello");
    body["configuration"] = serde_json::json!({"returnImmediately": true});
    let sent = edge.post("/message:send", body.to_string()).await.json();
    let id = sent["task"]["id"].as_str().unwrap();
    let mut followers = Vec::new();
    for number in 0..10_000 {
        let mut body = edge.open(follow(number, id)).await.into_body();
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
    for film in films {
        let film = film.unwrap().to_bytes();
        assert_eq!(film.windows(4).filter(|window| window == b"id: ").count(), 21);
    }
    let encodes = edge.metric("switchboard_update_encodes_total").await - before;
    assert_eq!(encodes, 3 * 21, "twenty chunks and the end in three spellings, whoever follows");
}

/// A subscription: every third in 1.0, in 0.3 over JSON-RPC, in 0.3 over HTTP+JSON.
fn follow(number: usize, id: &str) -> Request<Full<Bytes>> {
    match number % 3 {
        0 => get(&format!("/tasks/{id}:subscribe")),
        1 => unversioned(post("/", rpc_body("tasks/resubscribe", serde_json::json!({"id": id})))),
        _ => unversioned(get(&format!("/v1/tasks/{id}:subscribe"))),
    }
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
