//! A stream ends when its credential does, in the way of its binding, and the task goes on.

use http::Request;
use http_body_util::{BodyExt, Full};
use serde_json::json;
use switchboard::{Server, SharedSecret, Tokens};

use super::super::grpc_calls::say;
use crate::support::callers::soon;
use crate::support::edge::{Edge, echo, events, get, message, old_message, post, rpc_body, unversioned, with};
use crate::support::grpc::{V1_0, grpc_request};
use crate::support::issuers::{hs256, now_s};

const SECRET: &str = "a-secret-that-apps-share";

fn token(expires_s: i64) -> String {
    format!("Bearer {}", hs256(&json!({"sub": "alice", "exp": expires_s}), SECRET))
}

async fn states(edge: &Edge, authorization: &str) -> Vec<String> {
    let tasks = edge.ask(with(get("/tasks"), "authorization", authorization)).await.json();
    let state = |task: &serde_json::Value| task["status"]["state"].as_str().unwrap().to_owned();
    tasks["tasks"].as_array().unwrap().iter().map(state).collect()
}

#[tokio::test(start_paused = true)]
async fn a_stream_ends_when_its_token_expires_and_the_task_goes_on() {
    let edge = Edge::new(Server::builder().agent(echo()).shared_secret(SharedSecret::new(SECRET)));
    type Ask = fn() -> Request<Full<bytes::Bytes>>;
    let asks: [(Ask, &str); 4] = [
        (|| post("/message:stream", message("wait").to_string()), "event: error\ndata: {\"error\":{\"code\":401"),
        (|| post("/", rpc_body("SendStreamingMessage", message("wait"))), "\"error\":{\"code\":-31401"),
        (|| unversioned(post("/", rpc_body("message/stream", old_message("wait")))), "\"error\":{\"code\":-31401"),
        (|| with(grpc_request(&format!("{V1_0}/SendStreamingMessage"), &say("wait")), "a2a-version", "1.0"), ""),
    ];
    for (number, (ask, expected)) in asks.into_iter().enumerate() {
        let started = tokio::time::Instant::now();
        let mut asked = with(ask(), "authorization", &token(now_s() + 4));
        asked.headers_mut().insert("idempotency-key", number.to_string().parse().unwrap());
        let body = soon(edge.open(asked).await.into_body().collect()).await.unwrap();
        let lasted = started.elapsed();
        assert!(lasted.as_secs() >= 2 && lasted.as_secs() <= 5, "{lasted:?}");
        if let Some(trailers) = body.trailers() {
            assert_eq!(trailers["grpc-status"], "16");
            continue;
        }
        let text = String::from_utf8(body.to_bytes().to_vec()).unwrap();
        assert!(text.contains(expected), "{text}");
        assert!(events(&text).len() > 1, "there were events before the end: {text}");
    }
    let states = states(&edge, &token(now_s() + 900)).await;
    assert!(!states.is_empty() && states.iter().all(|state| state == "TASK_STATE_WORKING"), "{states:?}");
}

#[tokio::test(start_paused = true)]
async fn a_stream_ends_when_its_token_is_taken_away_and_others_go_on() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("tokens.txt");
    let (alice, bob) = ("a-token-of-alice-for-tests", "b-token-of-bob-for-tests");
    std::fs::write(&path, format!("{alice} alice\n{bob} bob\n")).unwrap();
    let tokens = Tokens::from_file(&path).unwrap();
    let edge = Edge::new(Server::builder().agent(echo()).tokens(tokens.clone()));
    let open = async |token: &str| {
        let asked =
            with(post("/message:stream", message("wait").to_string()), "authorization", &format!("Bearer {token}"));
        let mut body = edge.open(asked).await.into_body();
        // The stream has begun, and waits.
        soon(body.frame()).await.unwrap().unwrap();
        body
    };
    let (of_alice, mut of_bob) = (open(alice).await, open(bob).await);
    // What is still there, in a line that has moved, is not taken away.
    std::fs::write(&path, format!("# moved\n{bob} bob\n")).unwrap();
    tokens.reload().await.unwrap();
    let rest = soon(of_alice.collect()).await.unwrap().to_bytes();
    let rest = String::from_utf8(rest.to_vec()).unwrap();
    assert!(rest.contains("event: error\ndata: {\"error\":{\"code\":401"), "{rest}");
    let waits = tokio::time::timeout(std::time::Duration::from_secs(3), async {
        loop {
            let frame = of_bob.frame().await.expect("the stream goes on").unwrap();
            let text = String::from_utf8(frame.into_data().unwrap().to_vec()).unwrap();
            assert!(!text.contains("error"), "{text}");
        }
    });
    waits.await.expect_err("it has no end");
    std::fs::write(&path, format!("{alice} alice\n{bob} bob\n")).unwrap();
    tokens.reload().await.unwrap();
    assert_eq!(states(&edge, &format!("Bearer {alice}")).await, ["TASK_STATE_WORKING"]);
    // A token whose line says something else now is taken away, too.
    std::fs::write(&path, format!("{alice} alice\n{bob} bob acme\n")).unwrap();
    tokens.reload().await.unwrap();
    let rest = String::from_utf8(soon(of_bob.collect()).await.unwrap().to_bytes().to_vec()).unwrap();
    assert!(rest.contains("event: error"), "{rest}");
}
