//! The route that a server posts to itself, from outside and over a socket.

use http::{Method, Request};
use http_body_util::Full;
use serde_json::json;
use switchboard::outbound::{AddressPolicy, Client, RequestLimits};
use switchboard::{Server, ServerBuilder, Tokens};

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
