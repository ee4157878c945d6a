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
use crate::support::edge::{Edge, get, message, post, rpc_body, unversioned};
use crate::support::grpc::{V0_3, V1_0, grpc_request};

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
async fn an_update_is_encoded_once_per_spelling_for_ten_thousand_followers() {
    let (agent, pace) = paced();
    let edge = Edge::new(Server::builder().agent(agent));
    let mut body = message("hello");
    body["configuration"] = serde_json::json!({"returnImmediately": true});
    let sent = edge.post("/message:send", body.to_string()).await.json();
    let id = sent["task"]["id"].as_str().unwrap();
    let mut followers = Vec::new();
    for number in 0..10_000 {
        let request = FOLLOWED[number % FOLLOWED.len()].subscribe(id);
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
    for (number, film) in films.into_iter().enumerate() {
        let film = film.unwrap().to_bytes();
        assert_eq!(FOLLOWED[number % FOLLOWED.len()].updates(&film), 21, "follower {number}");
    }
    let encodes = edge.metric("switchboard_update_encodes_total").await - before;
    assert_eq!(encodes, 5 * 21, "twenty chunks and the end in five spellings, whoever follows");
}

/// How a task is followed, one for each spelling that there is.
#[derive(Clone, Copy)]
enum Followed {
    Json1,
    Grpc1,
    Rpc03,
    Rest03,
    Grpc03,
}

const FOLLOWED: [Followed; 5] = [Followed::Json1, Followed::Grpc1, Followed::Rpc03, Followed::Rest03, Followed::Grpc03];

impl Followed {
    fn subscribe(self, id: &str) -> Request<Full<Bytes>> {
        match self {
            Self::Json1 => get(&format!("/tasks/{id}:subscribe")),
            Self::Grpc1 => {
                let subscribe = v1_0::SubscribeToTaskRequest { id: id.to_owned(), ..Default::default() };
                grpc_request(&format!("{V1_0}/SubscribeToTask"), &subscribe)
            }
            Self::Rpc03 => unversioned(post("/", rpc_body("tasks/resubscribe", serde_json::json!({"id": id})))),
            Self::Rest03 => unversioned(get(&format!("/v1/tasks/{id}:subscribe"))),
            Self::Grpc03 => {
                let subscribe = v0_3::TaskSubscriptionRequest { name: format!("tasks/{id}") };
                unversioned(grpc_request(&format!("{V0_3}/TaskSubscription"), &subscribe))
            }
        }
    }

    /// How many updates such a follower was sent.
    fn updates(self, mut film: &[u8]) -> usize {
        match self {
            Self::Json1 | Self::Rpc03 | Self::Rest03 => film.windows(4).filter(|window| window == b"id: ").count(),
            Self::Grpc1 | Self::Grpc03 => {
                let mut count = 0;
                while let Some(([_, length @ ..], rest)) = film.split_first_chunk::<5>() {
                    film = &rest[u32::from_be_bytes(*length) as usize..];
                    count += 1;
                }
                count
            }
        }
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
    // A reader that comes late gets everything, in pieces.
    let (mut body, mut events, mut largest) = (opened.into_body(), 0, 0);
    while let Some(frame) = soon(body.frame()).await {
        let bytes = frame.unwrap().into_data().unwrap();
        events += bytes.windows(4).filter(|window| window == b"id: ").count();
        largest = largest.max(bytes.len());
    }
    assert_eq!(events, 10_002);
    assert!(largest < 70 << 10, "{largest} bytes at once");
}
