//! TLS on the port: every binding over it, in each version of HTTP and of TLS, what the cards say, renewal, and the end.

use std::net::SocketAddr;

use http_body_util::BodyExt;
use rustls::version::{TLS12, TLS13};
use serde_json::json;
use switchboard::{Server, Tls};
use switchboard_core::dialect::v1_0::proto::generated as wire;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use wire::send_message_response::Payload;

use super::grpc_calls::say;
use crate::support::callers::soon;
use crate::support::edge::{echo, get, message, post, rpc_body, unversioned, with};
use crate::support::grpc::{Client, Served, V1_0, Whole};
use crate::support::tls::{FIRST, Http1, Http2, SECOND, client, connect, connected, protocol, tls};

const CARD: &str = "/.well-known/agent-card.json";

async fn served() -> Served {
    Served::start(Server::builder().agent(echo()).tls(tls(FIRST))).await
}

async fn http1(address: SocketAddr) -> Http1 {
    Http1::over(connected(address, FIRST, &["http/1.1"]).await).await
}

async fn grpc(address: SocketAddr) -> Client {
    let stream = connected(address, FIRST, &["h2"]).await;
    Client::over(stream, "https", format!("localhost:{}", address.port()), V1_0).await.with("a2a-version", "1.0")
}

#[tokio::test]
async fn json_rpc_and_http_json_are_served_over_both_versions_of_http() {
    let served = served().await;
    let mut old = http1(served.address).await;
    let mut new = Http2::over(connected(served.address, FIRST, &["h2"]).await).await;
    let send = || post("/", rpc_body("SendMessage", message("hello")));
    for answer in [old.ask(send()).await, new.ask(send()).await] {
        assert_eq!(answer.json()["result"]["task"]["artifacts"][0]["parts"], json!([{"text": "hello"}]));
    }
    for answer in [old.ask(get("/tasks")).await, new.ask(get("/tasks")).await] {
        assert_eq!(answer.json()["totalSize"], 2);
    }
}

#[tokio::test]
async fn what_is_spoken_is_agreed_in_the_handshake() {
    let served = served().await;
    for (offered, expected) in [
        (&["h2", "http/1.1"][..], Some("h2")),
        (&["http/1.1", "h2"], Some("h2")),
        (&["http/1.1"], Some("http/1.1")),
        (&["spdy/1", "http/1.1"], Some("http/1.1")),
        (&[], None),
    ] {
        let stream = connected(served.address, FIRST, offered).await;
        assert_eq!(protocol(&stream), expected, "{offered:?}");
    }
    // A client that offers no protocol may speak either.
    let mut old = Http1::over(connected(served.address, FIRST, &[]).await).await;
    let mut new = Http2::over(connected(served.address, FIRST, &[]).await).await;
    assert_eq!(old.ask(get("/healthz")).await.status, 200);
    assert_eq!(new.ask(get("/healthz")).await.status, 200);
    let neither = connect(served.address, &client(FIRST, rustls::DEFAULT_VERSIONS, &["spdy/1"])).await.unwrap_err();
    assert!(neither.to_string().contains("NoApplicationProtocol"), "{neither}");
}

#[tokio::test]
async fn both_versions_of_tls_are_served() {
    let served = served().await;
    for version in [&TLS12, &TLS13] {
        let stream = connect(served.address, &client(FIRST, &[version], &["http/1.1"])).await.unwrap();
        assert_eq!(stream.get_ref().1.protocol_version(), Some(version.version));
        assert_eq!(Http1::over(stream).await.ask(get("/healthz")).await.text(), "ok\n");
    }
}

#[tokio::test]
async fn grpc_is_served_with_its_streams() {
    let served = served().await;
    let client = grpc(served.address).await;
    let sent: wire::SendMessageResponse = client.call("SendMessage", &say("hello")).await.unwrap();
    assert!(matches!(sent.payload, Some(Payload::Task(_))), "{sent:?}");
    let stream = client.open("SendStreamingMessage", &say("chunks 4")).await.whole().await;
    stream.ending().unwrap();
    assert_eq!(Whole::number(&stream.trailers, "last-event-id"), Some(6));
    let large = "x".repeat(1 << 20);
    let sent: wire::SendMessageResponse = client.call("SendMessage", &say(&large)).await.unwrap();
    let Some(Payload::Task(task)) = sent.payload else { panic!("no task") };
    assert_eq!(task.artifacts[0].parts[0].content, Some(wire::part::Content::Text(large)));
}

#[tokio::test]
async fn a_stream_is_resumed_on_another_connection() {
    let served = served().await;
    let ids =
        |text: &str| -> Vec<u64> { text.lines().filter_map(|line| line.strip_prefix("id: ")?.parse().ok()).collect() };
    let mut first = http1(served.address).await;
    let send = post("/message:stream", message("wait").to_string());
    let mut body = first.open(send).await.into_body();
    let mut heard = String::new();
    while ids(&heard).len() < 2 {
        let frame = soon(body.frame()).await.unwrap().unwrap();
        heard.push_str(std::str::from_utf8(frame.data_ref().unwrap()).unwrap());
    }
    assert_eq!(ids(&heard), [1, 2]);
    drop((body, first));
    let (_, task) = heard.split_once("{\"task\":{\"id\":\"").unwrap();
    let (task, _) = task.split_once('"').unwrap();

    let mut other = http1(served.address).await;
    assert_eq!(other.ask(post(&format!("/tasks/{task}:cancel"), "{}")).await.status, 200);
    let rest = other.ask(with(get(&format!("/tasks/{task}:subscribe")), "last-event-id", "1")).await;
    assert_eq!(ids(&rest.text()), [2, 3]);
}

#[tokio::test]
async fn cards_name_secure_addresses_and_the_host_of_the_certificate() {
    let served = served().await;
    let card = http1(served.address).await.ask(unversioned(get(CARD))).await.json();
    let port = served.address.port();
    let urls: Vec<_> = card["supportedInterfaces"].as_array().unwrap().iter().map(|one| one["url"].clone()).collect();
    let expected = ["https://H", "https://H", "https://H/rpc", "https://H"];
    let expected = expected.map(|url| json!(url.replace('H', &format!("127.0.0.1:{port}"))));
    assert_eq!(urls, expected, "{card}");
    assert_eq!(card["url"], json!(format!("https://127.0.0.1:{port}/rpc")));

    let named = [include_str!("../../certificates/named.cert.pem"), include_str!("../../certificates/named.key.pem")];
    let bound = Server::builder().agent(echo()).tls(tls(named)).build().unwrap();
    let bound = bound.bind(([127, 0, 0, 1], 0).into()).await.unwrap();
    assert_eq!(bound.url(), format!("https://agents.example:{}", bound.local_addr().port()));
}

#[tokio::test]
async fn a_new_certificate_is_shown_from_the_next_connection_on() {
    let folder = tempfile::tempdir().unwrap();
    let files = ["cert.pem", "key.pem"].map(|name| folder.path().join(name));
    let write = |pair: [&str; 2]| {
        for (file, text) in files.iter().zip(pair) {
            std::fs::write(file, text).unwrap();
        }
    };
    write(FIRST);
    let tls = Tls::from_files(&files[0], &files[1]).unwrap();
    let served = Served::start(Server::builder().agent(echo()).tls(tls.clone())).await;
    let mut before = http1(served.address).await;

    write([SECOND[0], FIRST[1]]);
    tls.reload().await.unwrap_err();
    assert_eq!(http1(served.address).await.ask(get("/healthz")).await.text(), "ok\n", "the old pair stays in use");
    write(SECOND);
    tls.reload().await.unwrap();
    assert_eq!(before.ask(get("/healthz")).await.text(), "ok\n", "what is open stays open");
    let other = client(FIRST, rustls::DEFAULT_VERSIONS, &["http/1.1"]);
    assert!(connect(served.address, &other).await.unwrap_err().to_string().contains("UnknownIssuer"));
    let mut after = Http1::over(connected(served.address, SECOND, &["http/1.1"]).await).await;
    let metrics = after.ask(get("/metrics")).await.text();
    for line in ["tls_reloads_total 1", "tls_reload_failures_total 1", "tls_handshakes_total{outcome=\"failed\"} 1"] {
        assert!(metrics.contains(&format!("switchboard_{line}\n")), "{line} in {metrics}");
    }
}

#[tokio::test]
async fn shutdown_says_goodbye_on_every_connection() {
    let served = served().await;
    let mut idle = connected(served.address, FIRST, &["http/1.1"]).await;
    idle.write_all(b"GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n").await.unwrap();
    let mut heard = [0; 4096];
    assert!(soon(idle.read(&mut heard)).await.unwrap() > 0);
    let silent = tokio::net::TcpStream::connect(served.address).await.unwrap();
    let client = grpc(served.address).await;
    let sent: wire::SendMessageResponse = client.call("SendMessage", &say("ask which one?")).await.unwrap();
    let Some(Payload::Task(asking)) = sent.payload else { panic!("no task") };
    let subscribe = wire::SubscribeToTaskRequest { id: asking.id, ..Default::default() };
    let mut stream = client.open("SubscribeToTask", &subscribe).await;
    stream.next().await.unwrap();
    let stopped = served.stop();
    // The end of TLS comes before that of the connection; without it, this would be an error.
    assert_eq!(soon(idle.read(&mut heard)).await.unwrap(), 0);
    while stream.next().await.is_some() {}
    assert_eq!(stream.trailers.unwrap()["grpc-status"], "0");
    soon(stopped).await.unwrap();
    drop(silent);
}
