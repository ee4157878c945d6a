//! Any endpoint behind the server: a double that is no engine, called over every binding. A server that has nothing else opens no
//! store, keeps nothing, and stops in order.

use std::sync::{Arc, Mutex};

use bytes::Bytes;
use futures_util::stream;
use http::{Request as HttpRequest, StatusCode};
use http_body_util::{BodyExt, Full};
use serde_json::{Value, json};
use switchboard::call::{BoxFuture, Caller, Endpoint, Frame, Reply, Request, SharedUpdate};
use switchboard::model::{AgentCapabilities, AgentCard, Message, Part, Role, Update};
use switchboard::{A2aService, AgentClient, ProtocolError, Server, ServerBuilder, Tokens};
use switchboard_core::dialect::v1_0::proto::generated as wire;
use tower::ServiceExt;

use super::grpc_calls::say;
use crate::support::callers::soon;
use crate::support::edge::{echo, events, get, message, old_message, post, rpc_body, unversioned, with};
use crate::support::grpc::Served;

/// Says who asked for what. A text `wait` begins a stream that says one thing and never ends.
#[derive(Default)]
struct Double {
    asked: Mutex<Vec<String>>,
}

impl Endpoint for Double {
    fn call(&self, caller: Caller, request: Request) -> BoxFuture<'_, Result<Reply, ProtocolError>> {
        let said = match &request {
            Request::SendMessage(send) | Request::SendStreamingMessage(send) => send.message.text(),
            _ => String::new(),
        };
        let Caller { owner, dialect, scopes, .. } = caller;
        let line = format!("{} {} {} {scopes:?} {said}", request.operation(), dialect.name(), owner.principal.as_str());
        self.asked.lock().unwrap().push(line);
        let answer = Arc::new(Message::new(Role::Agent, "answer", vec![Part::text(format!("heard {said}"))]));
        Box::pin(async move {
            match request {
                Request::SendMessage(_) => Ok(Reply::SentMessage(answer)),
                Request::SendStreamingMessage(_) => {
                    let update = SharedUpdate::new(Update::Message(answer));
                    let first = stream::iter([Ok(Frame { seq: None, truncated: false, update })]);
                    match said.as_str() {
                        "wait" => Ok(Reply::Stream(Box::pin(stream::pending()))),
                        _ => Ok(Reply::Stream(Box::pin(first))),
                    }
                }
                _ => Err(ProtocolError::unsupported("the double has no tasks")),
            }
        })
    }

    fn card(&self) -> Arc<AgentCard> {
        Arc::new(AgentCard {
            name: "Double".to_owned(),
            description: "Says what it was asked".to_owned(),
            version: "7.0".to_owned(),
            capabilities: AgentCapabilities { streaming: Some(true), ..AgentCapabilities::default() },
            ..AgentCard::default()
        })
    }
}

fn mounted(double: &Arc<Double>) -> ServerBuilder {
    Server::builder().mount("double", double.clone()).public_url("http://127.0.0.1:8080")
}

async fn ask(service: &A2aService, request: HttpRequest<Full<Bytes>>) -> (StatusCode, String) {
    let response = soon(service.clone().oneshot(request)).await.unwrap();
    let status = response.status();
    let body = soon(response.into_body().collect()).await.unwrap().to_bytes();
    (status, String::from_utf8(body.to_vec()).unwrap())
}

async fn answer(service: &A2aService, request: HttpRequest<Full<Bytes>>) -> Value {
    serde_json::from_str(&ask(service, request).await.1).unwrap()
}

#[tokio::test]
async fn every_binding_and_version_reaches_a_mounted_endpoint() {
    let double = Arc::new(Double::default());
    let service = mounted(&double).build().unwrap().into_service().unwrap();
    let call = |path: &str, method: &str, params: Value| post(path, rpc_body(method, params));

    let said = answer(&service, call("/", "SendMessage", message("rpc"))).await;
    assert_eq!(said["result"]["message"]["parts"], json!([{"text": "heard rpc"}]));
    let said = answer(&service, post("/agents/double/message:send", message("rest").to_string())).await;
    assert_eq!(said["message"]["parts"], json!([{"text": "heard rest"}]));
    let said = answer(&service, unversioned(call("/rpc", "message/send", old_message("old")))).await;
    assert_eq!(said["result"]["parts"][0]["text"], "heard old");
    let (status, stream) = ask(&service, post("/message:stream", message("sse").to_string())).await;
    assert_eq!(status, StatusCode::OK);
    assert_eq!(events(&stream)[0]["message"]["parts"], json!([{"text": "heard sse"}]));
    let stream = ask(&service, unversioned(call("/", "message/stream", old_message("old sse")))).await.1;
    assert_eq!(events(&stream)[0]["result"]["parts"][0]["text"], "heard old sse");
    let nexus = json!({"message": {"role": "user", "parts": [{"type": "text", "data": "nexus"}]}});
    let said = answer(&service, unversioned(call("/dialects/nexus", "message/send", nexus))).await;
    assert_eq!(said.get("error"), None, "{said}");

    let asked = std::mem::take(&mut *double.asked.lock().unwrap());
    assert_eq!(
        asked,
        [
            "SendMessage 1.0  [] rpc",
            "SendMessage 1.0  [] rest",
            "SendMessage 0.3  [] old",
            "SendStreamingMessage 1.0  [] sse",
            "SendStreamingMessage 0.3  [] old sse",
            "SendMessage nexus  [] nexus",
        ]
    );
}

#[tokio::test]
async fn grpc_reaches_a_mounted_endpoint() {
    let double = Arc::new(Double::default());
    let served = Served::start(Server::builder().mount("double", double.clone())).await;
    let client = served.client().await;
    let sent: wire::SendMessageResponse = client.call("SendMessage", &say("unary")).await.unwrap();
    let Some(wire::send_message_response::Payload::Message(said)) = sent.payload else { panic!("a message") };
    assert_eq!(said.parts[0].content, Some(wire::part::Content::Text("heard unary".to_owned())));
    let stream = client.open("SendStreamingMessage", &say("stream")).await.whole().await;
    assert_eq!((stream.ending(), stream.messages.len()), (Ok(()), 1));
    let refused = client.refusal("GetTask", &wire::GetTaskRequest { id: "x".to_owned(), ..Default::default() }).await;
    assert_eq!(refused.gist(), "9 UNSUPPORTED_OPERATION");
    drop(client);
    soon(served.stop()).await.unwrap();
}

#[tokio::test]
async fn the_card_of_a_mounted_endpoint_names_this_server_and_what_it_checks() {
    let double = Arc::new(Double::default());
    let tokens = Tokens::parse("a-token-of-alice-for-tests alice").unwrap();
    let service = mounted(&double).tokens(tokens).build().unwrap().into_service().unwrap();
    let card = answer(&service, get("/agents/double/.well-known/agent-card.json")).await;
    assert_eq!((&card["name"], &card["version"]), (&json!("Double"), &json!("7.0")));
    assert_eq!(card["supportedInterfaces"][0]["url"], "http://127.0.0.1:8080/agents/double");
    assert_eq!(card["securityRequirements"], json!([{"schemes": {"bearer": {}}}]));
    let send = || post("/message:send", message("hi").to_string());
    assert_eq!(ask(&service, send()).await.0, StatusCode::UNAUTHORIZED);
    let (status, _) = ask(&service, with(send(), "authorization", "Bearer a-token-of-alice-for-tests")).await;
    assert_eq!(status, StatusCode::OK);
    assert_eq!(*double.asked.lock().unwrap(), ["SendMessage 1.0 alice [] hi"]);
}

#[tokio::test]
async fn what_an_endpoint_has_not_is_not_found_or_empty() {
    let double = Arc::new(Double::default());
    let server = mounted(&double).host_check(true).operator_key("k-key-of-operators-for-tests").build().unwrap();
    assert!(server.engine().is_none());
    let service = server.into_service().unwrap();
    let by_operator = |request| with(request, "authorization", "Bearer k-key-of-operators-for-tests");
    let local = |path: &str| by_operator(with(get(path), "host", "127.0.0.1:8080"));
    let (status, download) = ask(&service, local("/agents/double/tasks/1/artifacts/1")).await;
    assert_eq!(status, StatusCode::NOT_FOUND);
    let (_, unknown) = ask(&service, local("/agents/double/nothing/of/this")).await;
    let shape = |text: &str| text.replace("tasks/1/artifacts/1", "nothing/of/this");
    assert_eq!(shape(&download), unknown);
    assert_eq!(answer(&service, local("/api/outbox")).await, json!({"deliveries": [], "nextPageToken": ""}));
    assert_eq!(answer(&service, local("/api/outbox/endpoints")).await, json!({"endpoints": []}));
    assert_eq!(ask(&service, local("/api/outbox/7")).await.0, StatusCode::NOT_FOUND);
    let purge = by_operator(with(post("/api/outbox:purge", r#"{"all":true}"#), "host", "127.0.0.1:8080"));
    assert_eq!(answer(&service, purge).await, json!({"changed": 0, "nextPageToken": ""}));
    assert_eq!(ask(&service, local("/readyz")).await, (StatusCode::OK, "ready\n".to_owned()));
    let metrics = ask(&service, local("/metrics")).await.1;
    assert!(metrics.contains("\nswitchboard_ready 1\n") && !metrics.contains("switchboard_runs_alive"), "{metrics}");
}

#[tokio::test]
async fn a_server_of_mounted_endpoints_ends_their_streams_and_stops() {
    let double = Arc::new(Double::default());
    let served = Served::start(Server::builder().mount("double", double)).await;
    let client = served.client().await;
    let url = format!("http://{}/message:stream", served.address);
    let mut stream = {
        let tcp = tokio::net::TcpStream::connect(served.address).await.unwrap();
        let io = hyper_util::rt::TokioIo::new(tcp);
        let (mut sender, connection) = hyper::client::conn::http1::handshake(io).await.unwrap();
        tokio::spawn(connection);
        let mut request = post(&url, message("wait").to_string());
        request.headers_mut().insert("host", served.address.to_string().parse().unwrap());
        soon(sender.send_request(request)).await.unwrap().into_body()
    };
    let stopped = served.stop();
    while let Some(frame) = soon(stream.frame()).await {
        frame.expect("a stream that ends in order");
    }
    drop(client);
    soon(stopped).await.unwrap();
}

#[tokio::test]
async fn agents_and_mounted_endpoints_are_served_side_by_side() {
    let double = Arc::new(Double::default());
    let server = Server::builder().agent(echo()).mount("double", double.clone());
    let server = server.public_url("http://127.0.0.1:8080").build().unwrap();
    assert_eq!(server.engine().unwrap().agents().len(), 1);
    let local = server.local("double").unwrap();
    assert_eq!(local.send_text("hi").await.unwrap().into_message().unwrap().text(), "heard hi");
    let service = server.into_service().unwrap();
    let said = answer(&service, post("/message:send", message("first").to_string())).await;
    assert_eq!(said["task"]["artifacts"][0]["parts"], json!([{"text": "first"}]));
    let said = answer(&service, post("/agents/double/message:send", message("second").to_string())).await;
    assert_eq!(said["message"]["parts"], json!([{"text": "heard second"}]));
}

#[tokio::test]
async fn names_of_agents_and_endpoints_are_one_list() {
    let build = |name: &str| Server::builder().agent(echo()).mount(name, Arc::new(Double::default())).build();
    assert_eq!(build("echo").unwrap_err().to_string(), "two agents have the slug \"echo\"");
    assert_eq!(build("tasks").unwrap_err().to_string(), "agent slug \"tasks\" is reserved; choose another name");
}

#[tokio::test]
async fn a_client_in_this_process_calls_any_endpoint() {
    let double = Arc::new(Double::default());
    let client = AgentClient::new(double.clone()).as_caller("acme", "alice");
    assert_eq!(client.send_text("hi").await.unwrap().into_message().unwrap().text(), "heard hi");
    assert_eq!(*double.asked.lock().unwrap(), ["SendMessage 1.0 alice [] hi"]);
}
