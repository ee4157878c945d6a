//! A server without a public URL names the loopback name that it was asked under: on every card, and in links.

use http::Request;
use http_body_util::{BodyExt, Full};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use serde_json::Value;
use switchboard::{AgentBuilder, CardForm, Limits, Part, ProtocolBinding, Server, ServerBuilder, Turn};
use switchboard_core::dialect::v1_0::proto::generated as wire;
use tokio::net::TcpStream;

use crate::support::callers::soon;
use crate::support::edge::{Answer, echo, get, message, post, rpc_body, unversioned, with};
use crate::support::grpc::{Client, Served, V1_0};

const CARD: &str = "/.well-known/agent-card.json";

/// Sends a request to the server under this name, `:PORT` standing for its port.
async fn ask(served: &Served, host: &str, request: Request<Full<bytes::Bytes>>) -> Answer {
    let stream = soon(TcpStream::connect(served.address)).await.unwrap();
    let (mut sender, connection) = soon(http1::handshake(TokioIo::new(stream))).await.unwrap();
    tokio::spawn(connection);
    let request = with(request, "host", &at(served, host));
    let (parts, body) = soon(sender.send_request(request)).await.unwrap().into_parts();
    let body = soon(body.collect()).await.unwrap().to_bytes();
    Answer { status: parts.status, headers: parts.headers, body }
}

fn at(served: &Served, host: &str) -> String {
    host.replace("PORT", &served.address.port().to_string())
}

/// Every URL on a card, whatever member it stands in.
fn urls(card: &Value) -> Vec<String> {
    let mut found = Vec::new();
    let mut rest = vec![card];
    while let Some(value) = rest.pop() {
        match value {
            Value::Object(members) => {
                rest.extend(members.values());
                let url = |(name, value): (&String, &Value)| {
                    let is_url = matches!(name.as_str(), "url" | "endpoint");
                    value.as_str().filter(|_| is_url).map(str::to_owned)
                };
                found.extend(members.iter().filter_map(url));
            }
            Value::Array(values) => rest.extend(values),
            _ => {}
        }
    }
    found
}

fn everything() -> ServerBuilder {
    let other = AgentBuilder::from_fn("Other", |_| async { Ok(()) });
    let extended = echo().extended_card(|card| card.description.push_str(", and more")).extended_card_for_anyone();
    Server::builder().agent(extended).agent(other).interfaces(ProtocolBinding::ALL)
}

#[tokio::test]
async fn every_card_names_the_host_it_was_asked_under() {
    let served = Served::start(everything()).await;
    let paths = [
        CARD,
        "/.well-known/agent.json",
        "/agents/other/.well-known/agent-card.json",
        "/extendedAgentCard",
        "/v1/card",
        "/dialects/agent-native/.well-known/agent-card.json",
        "/dialects/corvid/.well-known/agent-card.json",
        "/dialects/nexus/.well-known/agent-card.json",
        "/api/agents/echo/agent-card",
    ];
    for host in ["127.0.0.1:PORT", "localhost:PORT", "[::1]:PORT"] {
        let own = at(&served, host);
        for path in paths {
            for request in [get(path), unversioned(get(path))] {
                let answer = ask(&served, host, request).await;
                if answer.status == 404 || answer.status == 400 {
                    continue;
                }
                let urls = urls(&answer.json());
                assert!(!urls.is_empty(), "{path}: {answer:?}");
                for url in urls {
                    let address = url.strip_prefix("http://").unwrap_or(&url);
                    let after = address.strip_prefix(&own).unwrap_or_else(|| panic!("{path} of {own} names {url}"));
                    assert!(after.is_empty() || after.starts_with('/'), "{path} of {own} names {url}");
                }
            }
        }
        let rpc = ask(&served, host, post("/", rpc_body("GetExtendedAgentCard", serde_json::json!({})))).await.json();
        assert_eq!(rpc["result"]["supportedInterfaces"][0]["url"], format!("http://{own}"), "{rpc}");
        let welcome = ask(&served, host, get("/")).await.text();
        assert!(welcome.contains(&format!("http://{own}/agents/other{CARD}")), "{welcome}");
    }
}

#[tokio::test]
async fn each_name_has_a_card_with_a_tag_of_its_own() {
    let served = Served::start(everything()).await;
    let mut tags = Vec::new();
    for host in ["127.0.0.1:PORT", "localhost:PORT", "[::1]:PORT"] {
        let card = ask(&served, host, get(CARD)).await;
        assert_eq!(card.header("vary"), "a2a-version");
        let known = with(get(CARD), "if-none-match", card.header("etag"));
        assert_eq!(ask(&served, host, known).await.status, 304);
        tags.push(card.header("etag").to_owned());
    }
    let stale = with(get(CARD), "if-none-match", &tags[0]);
    assert_eq!(ask(&served, "localhost:PORT", stale).await.status, 200, "the tag of another name's card");
    tags.sort_unstable();
    tags.dedup();
    assert_eq!(tags.len(), 3, "{tags:?}");
}

#[tokio::test]
async fn a_name_that_is_not_followed_gets_the_servers_own() {
    let served = Served::start(everything()).await;
    let own = format!("http://{}", served.address);
    for host in ["localhost:1", "localhost", "127.0.0.2:PORT", "localhost.:PORT"] {
        let card = ask(&served, host, get(CARD)).await.json();
        assert_eq!(card["supportedInterfaces"][0]["url"], own, "{host}");
    }
    assert_eq!(ask(&served, "evil.example:PORT", get(CARD)).await.gist(), "403 PERMISSION_DENIED");
}

#[tokio::test]
async fn a_public_url_stands_whatever_name_is_asked_under() {
    let served = Served::start(everything().public_url("http://localhost:4711")).await;
    for host in ["127.0.0.1:PORT", "localhost:PORT"] {
        let card = ask(&served, host, get(CARD)).await.json();
        assert_eq!(card["supportedInterfaces"][0]["url"], "http://localhost:4711");
        assert_eq!(card["supportedInterfaces"][2]["url"], "localhost:4711");
    }
}

#[tokio::test]
async fn the_host_of_a_grpc_call_is_followed_too() {
    let served = Served::start(everything()).await;
    let authority = at(&served, "localhost:PORT");
    let stream = soon(TcpStream::connect(served.address)).await.unwrap();
    let client = Client::over(stream, "http", authority.clone(), V1_0).await.with("a2a-version", "1.0");
    let card: wire::AgentCard =
        client.call("GetExtendedAgentCard", &wire::GetExtendedAgentCardRequest::default()).await.unwrap();
    let grpc = card.supported_interfaces.iter().find(|interface| interface.protocol_binding == "GRPC").unwrap();
    assert_eq!(grpc.url, authority);
}

/// Writes an artifact that is too large for a reply, in two pieces.
fn writer() -> ServerBuilder {
    let agent = AgentBuilder::from_fn("Writer", |turn: Turn| async move {
        let mut writer = turn.artifact_writer();
        for piece in ["a", "b"] {
            writer.parts(vec![Part::text(piece.repeat(700_000))]).await?;
        }
        Ok(())
    });
    let limits = Limits { reply_bytes_max: 1 << 20, ..Limits::default() };
    Server::builder().agent(agent).engine_limits(limits)
}

#[tokio::test]
async fn links_lead_back_to_the_name_that_was_asked_under() {
    let served = Served::start(writer()).await;
    for host in ["127.0.0.1:PORT", "localhost:PORT", "[::1]:PORT"] {
        let own = format!("http://{}/", at(&served, host));
        let sent = ask(&served, host, post("/message:send", message("go").to_string())).await.json();
        let link = sent["task"]["artifacts"][0]["parts"][0]["url"].as_str().unwrap().to_owned();
        let path = link.strip_prefix(&own).unwrap_or_else(|| panic!("{host}: {link}"));
        let file = ask(&served, host, get(&format!("/{path}"))).await;
        assert_eq!((file.status.as_u16(), file.body.len()), (200, 1_400_000));

        let id = sent["task"]["id"].as_str().unwrap();
        let read = ask(&served, host, get(&format!("/tasks/{id}"))).await.json();
        assert_eq!(read["artifacts"][0]["parts"][0]["url"], link);
        let old = rpc_body("tasks/get", serde_json::json!({"id": id}));
        let old = ask(&served, host, unversioned(post("/", old))).await.json();
        assert_eq!(old["result"]["artifacts"][0]["parts"][0]["file"]["uri"], link, "{old}");
        let context = sent["task"]["contextId"].as_str().unwrap();
        let listed = get(&format!("/tasks?contextId={context}&includeArtifacts=true"));
        let listed = ask(&served, host, listed).await.json();
        assert_eq!(listed["tasks"][0]["artifacts"][0]["parts"][0]["url"], link, "{listed}");
    }
}

#[tokio::test]
async fn what_an_agent_links_to_elsewhere_stays_as_it_is() {
    let agent = AgentBuilder::from_fn("Linker", |turn: Turn| async move {
        let part = Part::url("https://files.example/agents/linker/tasks/x");
        turn.artifact_writer().finish(vec![part]).await?;
        Ok(())
    });
    let served = Served::start(Server::builder().agent(agent)).await;
    let sent = ask(&served, "localhost:PORT", post("/message:send", message("go").to_string())).await.json();
    let link = &sent["task"]["artifacts"][0]["parts"][0]["url"];
    assert_eq!(link, "https://files.example/agents/linker/tasks/x");
}

#[tokio::test]
async fn the_card_of_1_0_alone_follows_with_grpc_on_it() {
    let served = Served::start(Server::builder().agent(echo()).card_form(CardForm::V1_0)).await;
    let card = ask(&served, "localhost:PORT", unversioned(get(CARD))).await.json();
    let grpc: Vec<_> = urls(&card).into_iter().filter(|url| !url.contains("://")).collect();
    assert_eq!(grpc, [at(&served, "localhost:PORT"), at(&served, "localhost:PORT")]);
}
