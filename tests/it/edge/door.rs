//! The door for programs that agents start, over a socket: what a token lets through, and for how long.

use std::sync::{Arc, Mutex};

use bytes::Bytes;
use http::{Method, Request};
use serde_json::{Value, json};
use switchboard::outbound::{AddressPolicy, Client, RequestLimits};
use switchboard::{AgentBuilder, AgentClient, CallDoor, Server, ServerBuilder, TaskState, Tokens, Turn};
use tokio::sync::mpsc::{Receiver, channel};

use crate::support::callers::{at_once, say, soon};
use crate::support::edge::echo;
use crate::support::grpc::Served;

const REFUSED: &str = r#"{"error":"Invalid or expired call token"}"#;

/// What a program would find in its environment.
#[derive(Clone, Debug)]
struct Pass {
    url: String,
    token: String,
}

/// The agent `desk` works until its task is canceled, and says how it may be called for; `echo` can be called.
struct Desk {
    served: Served,
    passes: Receiver<Pass>,
}

impl Desk {
    async fn start(change: impl FnOnce(ServerBuilder) -> ServerBuilder) -> Self {
        let door = CallDoor::new();
        let (said, passes) = channel(10);
        let opened = door.clone();
        let desk = AgentBuilder::from_fn("Desk", move |turn: Turn| {
            let (door, said) = (opened.clone(), said.clone());
            async move {
                let pass = door.open(&turn).expect("the server has a port");
                said.send(Pass { url: pass.url().to_owned(), token: pass.token().to_owned() }).await?;
                turn.cancelled().await;
                Ok(())
            }
        });
        let server = Server::builder().agent(desk).agent(echo()).call_door(&door);
        Self { served: Served::start(change(server)).await, passes }
    }

    async fn agent(&self, name: &str) -> AgentClient {
        let url = format!("http://{}/agents/{name}/.well-known/agent-card.json", self.served.address);
        switchboard::client::Client::builder().build().unwrap().agent(&url).await.unwrap()
    }

    /// A run of `desk` at work: its client, its task, and its pass.
    async fn begin(&mut self) -> (AgentClient, switchboard::TaskId, Pass) {
        let desk = self.agent("desk").await;
        let task = soon(desk.send_with(at_once(say("go")))).await.unwrap().into_task().unwrap();
        (desk, task.id.clone(), soon(self.passes.recv()).await.unwrap())
    }
}

/// The status and the body of an answer.
async fn ask(request: Request<Bytes>) -> (u16, String) {
    let client = Client::builder().policy(AddressPolicy::any()).build().unwrap();
    let answer = soon(client.send(request, &RequestLimits::default())).await.unwrap();
    let status = answer.status().as_u16();
    (status, String::from_utf8(answer.into_body().bytes().await.unwrap().to_vec()).unwrap())
}

impl Pass {
    fn request(&self, method: Method, path: &str) -> http::request::Builder {
        let request = Request::builder().method(method).uri(format!("{}{path}", self.url));
        request.header("authorization", format!("Bearer {}", self.token))
    }

    async fn say(&self, path: &str, text: &str) -> (u16, String) {
        ask(self.request(Method::POST, path).body(text.to_owned().into()).unwrap()).await
    }

    async fn json(&self, method: Method, path: &str) -> (u16, Value) {
        let (status, body) = ask(self.request(method, path).body(Bytes::new()).unwrap()).await;
        (status, serde_json::from_str(&body).unwrap())
    }
}

#[tokio::test]
async fn a_call_is_made_waited_for_looked_at_and_canceled() {
    let mut desk = Desk::start(|server| server).await;
    let (_client, parent, pass) = desk.begin().await;

    let (status, body) = pass.say("/agents/Echo", "hello").await;
    let answer: Value = serde_json::from_str(&body).unwrap();
    assert_eq!((status, &answer["state"], &answer["text"]), (200, &json!("completed"), &json!("hello")), "{body}");
    assert_eq!((&answer["agent"], &answer["task"]["id"]), (&json!("echo"), &answer["taskId"]));
    assert!(answer["call"].as_str().unwrap().starts_with(&format!("{parent}-1-")), "{body}");
    assert_eq!(answer["task"]["artifacts"][0]["parts"][0]["text"], "hello");

    // One that takes longer than the request waits.
    let (status, body) = pass.say("/agents/echo?wait=0", "wait for it").await;
    let begun: Value = serde_json::from_str(&body).unwrap();
    assert_eq!((status, begun.get("state")), (202, None), "{body}");
    let path = format!("/calls/{}", begun["call"].as_str().unwrap());
    assert_eq!(pass.json(Method::GET, &format!("{path}?wait=0")).await, (202, begun.clone()));
    assert_eq!(pass.json(Method::DELETE, &path).await.0, 200);
    let (status, ended) = pass.json(Method::GET, &path).await;
    assert_eq!((status, &ended["state"]), (200, &json!("canceled")), "{ended}");
    let echo = desk.agent("echo").await;
    let theirs = soon(echo.task(&begun["taskId"].as_str().unwrap().into())).await.unwrap();
    assert_eq!(theirs.state(), TaskState::Canceled);
}

#[tokio::test]
async fn a_shell_gets_the_text_alone_and_only_what_is_completed_is_a_success() {
    let mut desk = Desk::start(|server| server).await;
    let (_client, _, pass) = desk.begin().await;
    let text = async |said: &str| {
        let request = pass.request(Method::POST, "/agents/echo").header("accept", "text/plain");
        ask(request.body(said.to_owned().into()).unwrap()).await
    };
    assert_eq!(text("grüße").await, (200, "grüße".to_owned()));
    assert_eq!(text("fail broken").await, (424, "agent \"echo\": failed: broken\n".to_owned()));
    assert_eq!(text("ask which?").await, (424, "agent \"echo\": input-required: which?\n".to_owned()));
}

#[tokio::test]
async fn a_message_may_be_json_and_go_on_with_a_task() {
    let mut desk = Desk::start(|server| server).await;
    let (_client, _, pass) = desk.begin().await;
    let post = async |message: Value| {
        let request = pass.request(Method::POST, "/agents/echo").header("content-type", "application/json");
        let (status, body) = ask(request.body(message.to_string().into()).unwrap()).await;
        (status, serde_json::from_str::<Value>(&body).unwrap())
    };
    let (_, question) = post(json!({"parts": [{"text": "ask which?"}]})).await;
    assert_eq!((&question["state"], &question["text"]), (&json!("input-required"), &json!("which?")));
    let reply =
        json!({"taskId": question["taskId"], "parts": [{"text": "this"}], "role": "ROLE_AGENT", "messageId": "x"});
    let (status, ended) = post(reply).await;
    assert_eq!((status, &ended["text"], &ended["taskId"]), (200, &json!("this"), &question["taskId"]));
    let (status, wrong) = post(json!({"parts": "none"})).await;
    assert_eq!(status, 400);
    assert!(wrong["error"].as_str().unwrap().contains("parts"), "{wrong}");
    assert_eq!(post(json!(["no object"])).await.0, 400);
}

#[tokio::test]
async fn what_is_wrong_with_a_request_is_said_by_name() {
    let mut desk = Desk::start(|server| server).await;
    let (_client, _, pass) = desk.begin().await;
    for (method, path, status, code, text) in [
        (
            Method::POST,
            "/agents/nobody",
            404,
            json!("UNKNOWN_AGENT"),
            "no agent is called \"nobody\"; there are: desk, echo",
        ),
        (Method::POST, "/agents/DESK", 409, json!("SELF_CALL"), "agent \"desk\" cannot call itself"),
        (
            Method::POST,
            "/agents/echo?wait=soon",
            400,
            Value::Null,
            "wait: expected seconds from 0 to 86400, got \"soon\"",
        ),
        (Method::POST, "/agents/echo?wait=-1", 400, Value::Null, "wait: expected seconds from 0 to 86400, got \"-1\""),
        (Method::GET, "/calls/none", 404, json!("UNKNOWN_CALL"), "this run has made no call \"none\""),
        (Method::GET, "/agents/echo", 405, Value::Null, "Method not allowed"),
    ] {
        let (answered, body) = pass.json(method.clone(), path).await;
        assert_eq!((answered, &body["code"]), (status, &code), "{method} {path}: {body}");
        assert!(body["error"].as_str().unwrap().contains(text), "{method} {path}: {body}");
    }
    let large = pass.request(Method::POST, "/agents/echo").body(Bytes::from(vec![b'x'; (4 << 20) + 1])).unwrap();
    assert_eq!(ask(large).await.0, 413);
    let no_text = pass.request(Method::POST, "/agents/echo").body(Bytes::from_static(b"\xff")).unwrap();
    assert_eq!(ask(no_text).await.0, 400);
}

#[tokio::test]
async fn a_token_is_good_for_its_own_run_and_while_that_is_at_work() {
    // Who may call from outside has no say here, and a caller's token is none of a run.
    let tokens = Tokens::parse("a-token-of-alice-for-tests alice\na-token-of-bob-for-tests-too bob").unwrap();
    let mut desk = Desk::start(|server| server.tokens(tokens)).await;
    let with_token = |agent: AgentClient, token: &str| {
        agent.with_credentials(switchboard::client::Credentials::bearer(token.to_owned()))
    };
    let mut begin = async |token: &str| {
        let client = with_token(desk.agent("desk").await, token);
        let task = soon(client.send_with(at_once(say("go")))).await.unwrap().into_task().unwrap();
        (client, task.id.clone(), soon(desk.passes.recv()).await.unwrap())
    };
    let (alice, alices, first) = begin("a-token-of-alice-for-tests").await;
    let (_bob, _, second) = begin("a-token-of-bob-for-tests-too").await;
    assert_ne!(first.token, second.token);

    let (_, body) = first.say("/agents/echo?wait=0", "wait").await;
    let begun: Value = serde_json::from_str(&body).unwrap();
    let path = format!("/calls/{}", begun["call"].as_str().unwrap());
    assert_eq!(second.json(Method::GET, &path).await.0, 404, "the call of another run");
    let (_, body) = second.say("/agents/echo", "mine").await;
    let theirs: Value = serde_json::from_str(&body).unwrap();
    let echo = desk.agent("echo").await;
    let id = theirs["taskId"].as_str().unwrap().into();
    let as_alice = soon(with_token(echo.clone(), "a-token-of-alice-for-tests").task(&id)).await;
    assert!(as_alice.is_err(), "the task belongs to the owner of the run");
    let as_bob = soon(with_token(echo, "a-token-of-bob-for-tests-too").task(&id)).await.unwrap();
    assert_eq!(as_bob.artifacts[0].text(), "mine");

    // A request that waits when the run ends is not left waiting.
    let waiting = tokio::spawn({
        let (pass, path) = (first.clone(), path.clone());
        async move { ask(pass.request(Method::GET, &path).body(Bytes::new()).unwrap()).await }
    });
    soon(alice.cancel(&alices)).await.unwrap();
    let ended = soon(waiting).await.unwrap();
    assert!(matches!(ended.0, 401 | 409) || ended.1.contains("canceled"), "{ended:?}");
    for (name, pass) in [
        ("over", first.clone()),
        ("none", Pass { token: String::new(), ..first.clone() }),
        ("guessed", Pass { token: "A".repeat(43), ..first.clone() }),
        ("of a caller", Pass { token: "a-token-of-alice-for-tests".to_owned(), ..first.clone() }),
    ] {
        assert_eq!(pass.say("/agents/echo", "hello").await, (401, REFUSED.to_owned()), "{name}");
        let looked = ask(pass.request(Method::GET, &path).body(Bytes::new()).unwrap()).await;
        assert_eq!(looked, (401, REFUSED.to_owned()), "{name}");
    }
    assert_eq!(second.say("/agents/echo", "still").await.0, 200);
}

/// A server without the door has nothing behind its paths, and tells nobody that it has none.
#[tokio::test]
async fn a_server_without_a_door_refuses_in_the_same_way() {
    let served = Served::start(Server::builder().agent(echo())).await;
    let pass = Pass { url: format!("http://{}/_switchboard", served.address), token: "x".to_owned() };
    assert_eq!(pass.say("/agents/echo", "hello").await, (401, REFUSED.to_owned()));
}

/// A server that is mounted in another one has no port that a program could be told of.
#[tokio::test]
async fn without_a_port_there_is_no_pass() {
    let door = CallDoor::new();
    let seen = Arc::new(Mutex::new(None));
    let (opened, noted) = (door.clone(), seen.clone());
    let agent = AgentBuilder::from_fn("Desk", move |turn: Turn| {
        *noted.lock().unwrap() = Some(opened.open(&turn).is_some());
        async move { Ok(turn.answer("done").await?) }
    });
    let server = Server::builder().agent(agent).call_door(&door).build().unwrap();
    soon(server.local("desk").unwrap().send_text("go")).await.unwrap();
    assert_eq!(*seen.lock().unwrap(), Some(false));
}
