//! The route that a server posts to itself, from outside and over a socket.

use std::sync::{Arc, Mutex};

use aws_lc_rs::hmac;
use http::{Method, Request};
use http_body_util::Full;
use serde_json::json;
use switchboard::outbound::{AddressPolicy, Client, RequestLimits};
use switchboard::{AgentBuilder, Server, ServerBuilder, Tokens, Turn};
use switchboard_engine::ports::Clock as _;
use switchboard_engine::system::SystemClock;

use crate::support::callers::soon;
use crate::support::edge::{Edge, echo, get, message, post, request, with};

const PATH: &str = "/_agent-native/a2a/_process-task";
/// The test vector of the original: its time is long past.
const OLD: &str = "1700000000000.86e63ac7de6a6cc4e31de94a96d80a3c305b5e48d47ed3b547d096c43b1684c4";

fn server() -> ServerBuilder {
    Server::builder().agent(echo())
}

fn asked(body: &str, token: &str) -> Request<Full<bytes::Bytes>> {
    let asked = post(PATH, body.to_owned());
    if token.is_empty() { asked } else { with(asked, "authorization", &format!("Bearer {token}")) }
}

#[tokio::test(start_paused = true)]
async fn only_posts_with_a_token_for_the_task_are_taken() {
    let tokens = Tokens::parse("a-token-of-alice-for-tests alice").unwrap();
    let edge = Edge::new(server().tokens(tokens).internal_secret("s3cret"));
    let task = json!({"taskId": "task-1"}).to_string();
    for (name, asked, status, said) in [
        ("another verb", get(PATH), 405, r#"{"error":"Method not allowed"}"#),
        ("no task", asked("{}", OLD), 400, r#"{"error":"taskId required"}"#),
        ("no JSON", asked("taskId=task-1", OLD), 400, r#"{"error":"taskId required"}"#),
        ("no token", asked(&task, ""), 401, r#"{"error":"Invalid or expired processor token"}"#),
        ("an old token", asked(&task, OLD), 401, r#"{"error":"Invalid or expired processor token"}"#),
        // A caller's token is none of this kind.
        (
            "a caller",
            asked(&task, "a-token-of-alice-for-tests"),
            401,
            r#"{"error":"Invalid or expired processor token"}"#,
        ),
    ] {
        let answer = edge.ask(asked).await;
        assert_eq!((answer.status.as_u16(), answer.text().as_str()), (status, said), "{name}");
    }
    let options = edge.ask(with(request(Method::PUT, PATH, ""), "host", "localhost")).await;
    assert_eq!((options.status.as_u16(), options.header("allow")), (405, "POST"));
    // Below it stands the endpoint, which the path does not hide.
    assert_eq!(edge.ask(post("/_agent-native/a2a", "{}")).await.status, 401);
}

#[tokio::test(start_paused = true)]
async fn without_a_secret_it_is_refused() {
    for edge in [Edge::usual(), Edge::new(server().production(true)), Edge::new(server().internal_secret("  "))] {
        let answer = edge.ask(asked(r#"{"taskId":"1"}"#, OLD)).await;
        assert_eq!(answer.status, 503, "{}", answer.text());
    }
    let unsigned = server().self_fire(true).production(true).build().unwrap_err().to_string();
    assert!(unsigned.contains("A2A_SECRET"), "{unsigned}");
}

const CONTINUATION: &str = "/_agent-native/integrations/process-a2a-continuation";

/// A token as apps of agent-native make them.
fn token(secret: &str, row: &str, made_ms: i64) -> String {
    let key = hmac::Key::new(hmac::HMAC_SHA256, secret.as_bytes());
    let mac = hmac::sign(&key, format!("{row}:{made_ms}").as_bytes());
    let mac: String = mac.as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
    format!("{made_ms}.{mac}")
}

/// Asks `mail`, which answers at once, and lets the answer come as the next message. The second is the id of the call.
fn desk() -> (ServerBuilder, Arc<Mutex<Option<String>>>) {
    let noted = Arc::new(Mutex::new(None));
    let note = noted.clone();
    let desk = AgentBuilder::from_fn("Desk", move |turn: Turn| {
        let note = note.clone();
        async move {
            if let Some(back) = turn.called_back().await? {
                return Ok(turn.answer(format!("{} says {}", back.agent, back.text)).await?);
            }
            let call = turn.call("mail", turn.text()).await?;
            *note.lock().unwrap() = Some(call.id().to_owned());
            Ok(turn.ask("I come back to you").await?)
        }
    });
    let mail = AgentBuilder::from_fn("Mail", |turn: Turn| async move { Ok(turn.answer("sent").await?) });
    (Server::builder().agent(desk).agent(mail), noted)
}

/// Where posts of the server to itself do not arrive, only what comes from outside moves a continuation.
#[tokio::test]
async fn a_continuation_is_looked_at_by_a_request_with_a_token_for_it_and_once() {
    let (server, noted) = desk();
    let edge = Edge::new(server.self_fire(true).self_fire_url("http://127.0.0.1:1").internal_secret("s3cret"));
    let id = edge.task("a letter").await;
    let row = noted.lock().unwrap().clone().expect("a call was made");
    let body = json!({"continuationId": row}).to_string();
    let asked = |token: &str| with(post(CONTINUATION, body.clone()), "authorization", &format!("Bearer {token}"));
    let now_ms = SystemClock.now().as_ms();
    let refused = r#"{"error":"Invalid or expired internal token"}"#;
    for (name, token) in [
        ("another secret", token("another", &row, now_ms)),
        ("another row", token("s3cret", "another", now_ms)),
        ("expired", token("s3cret", &row, now_ms - 301_000)),
        ("of the future", token("s3cret", &row, now_ms + 120_000)),
        ("none", "none".to_owned()),
    ] {
        let answer = edge.ask(asked(&token)).await;
        assert_eq!((answer.status.as_u16(), answer.text().as_str()), (401, refused), "{name}");
    }
    let nothing = edge.ask(post(CONTINUATION, "{}")).await;
    assert_eq!((nothing.status.as_u16(), nothing.text().as_str()), (400, r#"{"error":"continuationId required"}"#));
    let read = async || edge.get(&format!("/tasks/{id}")).await.json();
    assert_eq!(read().await["status"]["state"], "TASK_STATE_INPUT_REQUIRED", "nobody has looked");

    // Runs of asynchronous sends wait for posts of their own: that of the other agent, and that for what is delivered.
    let start = async |task: &str| {
        let bearer = format!("Bearer {}", token("s3cret", task, now_ms));
        let asked = with(post(PATH, json!({"taskId": task}).to_string()), "authorization", &bearer);
        assert_eq!(edge.ask(asked).await.status, 200);
    };
    let theirs = edge.get("/agents/mail/tasks").await.json()["tasks"][0]["id"].as_str().unwrap().to_owned();
    start(&theirs).await;
    let good = token("s3cret", &row, now_ms);
    // The run has ended, and its call is handed over a moment later.
    let ended = soon(async {
        loop {
            assert_eq!(edge.ask(asked(&good)).await.status, 200);
            start(&id).await;
            let task = read().await;
            if task["status"]["state"] == "TASK_STATE_COMPLETED" {
                return task;
            }
            tokio::task::yield_now().await;
        }
    });
    let ended = ended.await;
    assert_eq!(ended["artifacts"][0]["parts"][0]["text"], "mail says sent");
    assert_eq!(edge.ask(asked(&good)).await.text(), r#"{"ok":true}"#, "the second does nothing");
    assert_eq!(read().await, ended);
    let unknown = with(
        post(CONTINUATION, r#"{"continuationId":"none"}"#),
        "authorization",
        &format!("Bearer {}", token("s3cret", "none", now_ms)),
    );
    assert_eq!(edge.ask(unknown).await.status, 200);
}

/// The server posts for its own continuations: when a call is handed over, and for each further look.
#[tokio::test]
async fn a_server_looks_at_its_continuations_by_posts_to_itself() {
    let (server, _) = desk();
    let bound = server.self_fire(true).build().unwrap().bind(([127, 0, 0, 1], 0).into()).await.unwrap();
    let url = bound.url().to_owned();
    let serving = tokio::spawn(bound.run_until(std::future::pending(), std::time::Duration::ZERO));
    let agent = switchboard::client::Client::builder().build().unwrap().agent(&url).await.unwrap();
    let task = soon(agent.send_text("a letter")).await.unwrap().into_task().unwrap();
    let ended = soon(async {
        loop {
            let task = agent.task(&task.id).await.unwrap();
            if task.state().is_terminal() {
                return task;
            }
            tokio::task::yield_now().await;
        }
    });
    assert_eq!(ended.await.artifacts[0].text(), "mail says sent");
    serving.abort();
}

#[tokio::test]
async fn a_server_starts_its_tasks_by_posts_to_itself() {
    for (secret, base) in [(Some("s3cret"), ""), (None, "")] {
        let mut server = server().self_fire(true);
        if let Some(secret) = secret {
            server = server.internal_secret(secret);
        }
        let bound = server.build().unwrap().bind(([127, 0, 0, 1], 0).into()).await.unwrap();
        let url = format!("{}{base}", bound.url());
        let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
        let serving = tokio::spawn(bound.run_until(async { drop(stopped.await) }, std::time::Duration::from_secs(1)));
        let client = Client::builder().policy(AddressPolicy::any()).build().unwrap();
        let ask = async |request: Request<bytes::Bytes>| -> serde_json::Value {
            let answer = client.send(request, &RequestLimits::default()).await.unwrap();
            serde_json::from_slice(&answer.into_body().bytes().await.unwrap()).unwrap()
        };
        let versioned = |request: http::request::Builder| request.header("a2a-version", "1.0");
        let mut send = message("hello");
        send["configuration"] = json!({"returnImmediately": true});
        let sent = versioned(Request::post(format!("{url}/message:send"))).header("content-type", "application/json");
        let sent = ask(sent.body(send.to_string().into()).unwrap()).await;
        let id = sent["task"]["id"].as_str().unwrap_or_else(|| panic!("{sent}")).to_owned();
        soon(async {
            loop {
                let read = versioned(Request::get(format!("{url}/tasks/{id}")));
                let task = ask(read.body(bytes::Bytes::new()).unwrap()).await;
                if task["status"]["state"] == "TASK_STATE_COMPLETED" {
                    return;
                }
                tokio::task::yield_now().await;
            }
        })
        .await;
        stop.send(()).unwrap();
        serving.await.unwrap();
    }
}
