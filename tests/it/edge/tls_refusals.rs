//! Those who come to a port with TLS and do not speak it, or not well, or not in time.

use std::net::SocketAddr;

use hyper::client::conn::http2;
use hyper_util::rt::{TokioExecutor, TokioIo};
use switchboard::{Server, ServerBuilder, ServerLimits};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::support::callers::{soon, still_waits};
use crate::support::edge::{echo, get};
use crate::support::grpc::Served;
use crate::support::tls::{FIRST, Http1, connected, tls};

fn builder() -> ServerBuilder {
    Server::builder().agent(echo()).tls(tls(FIRST))
}

/// What is answered to these bytes until the connection ends.
async fn told(address: SocketAddr, bytes: &[u8]) -> Vec<u8> {
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(bytes).await.unwrap();
    let mut answer = Vec::new();
    soon(stream.read_to_end(&mut answer)).await.unwrap();
    answer
}

async fn handshakes(address: SocketAddr, outcome: &str) -> u64 {
    let mut client = Http1::over(connected(address, FIRST, &["http/1.1"]).await).await;
    let metrics = client.ask(get("/metrics")).await.text();
    let name = format!("switchboard_tls_handshakes_total{{outcome=\"{outcome}\"}} ");
    metrics.lines().find_map(|line| line.strip_prefix(&name)).unwrap_or_else(|| panic!("{metrics}")).parse().unwrap()
}

#[tokio::test]
async fn plain_http_is_told_that_the_port_speaks_tls() {
    let served = Served::start(builder()).await;
    for request in [
        "GET / HTTP/1.1\r\nhost: localhost\r\n\r\n",
        "POST /message:send HTTP/1.1\r\nhost: localhost\r\ncontent-length: 2\r\n\r\n{}",
        "PROPFIND / HTTP/1.1\r\n\r\n",
        "DELETE",
    ] {
        let answer = String::from_utf8(told(served.address, request.as_bytes()).await).unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        assert!(head.starts_with("HTTP/1.1 400 Bad Request\r\n"), "{answer}");
        assert!(head.contains(&format!("content-length: {}\r\n", body.len())), "{answer}");
        assert_eq!(body, "this port speaks TLS; use https://\n");
    }
    // A body larger than what the socket holds does not take the answer away.
    let upload = format!("POST / HTTP/1.1\r\ncontent-length: 50000\r\n\r\n{}", "x".repeat(50_000));
    assert!(told(served.address, upload.as_bytes()).await.starts_with(b"HTTP/1.1 400 "));
    assert_eq!(handshakes(served.address, "plain_http").await, 5);
}

#[tokio::test]
async fn http_2_without_tls_fails_at_once() {
    let served = Served::start(builder()).await;
    // What gRPC clients make something of; see there.
    let answer = told(served.address, b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0").await;
    assert!(answer.starts_with(b"HTTP/1.1 400 "), "{answer:?}");
    let stream = TcpStream::connect(served.address).await.unwrap();
    let (executor, io) = (TokioExecutor::new(), TokioIo::new(stream));
    let (mut sender, connection) = http2::handshake(executor, io).await.unwrap();
    let connection = tokio::spawn(connection);
    assert!(soon(sender.send_request(get("http://localhost/"))).await.is_err());
    assert!(soon(connection).await.unwrap().is_err());
    assert_eq!(handshakes(served.address, "plain_http").await, 2);
}

#[tokio::test]
async fn what_is_no_tls_is_answered_with_an_alert_and_counted() {
    let served = Served::start(builder()).await;
    for garbage in [&b"\x17\x03\x03\x00\x05hello"[..], b"\x00\x00\x00\x00\x00\x00", b"\xff\xff\xff\xff\xff\xff"] {
        let answer = told(served.address, garbage).await;
        assert_eq!(answer.first(), Some(&0x15), "an alert to {garbage:?}");
    }
    let stream = TcpStream::connect(served.address).await.unwrap();
    drop(stream);
    soon(async {
        while handshakes(served.address, "failed").await < 4 {
            tokio::task::yield_now().await;
        }
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_handshake_that_does_not_end_is_cut_off() {
    let mut limits = ServerLimits::default();
    limits.tls_handshake_s_max = 7;
    let served = Served::start(builder().limits(limits)).await;
    let start = tokio::time::Instant::now();
    for begun in [&b""[..], b"\x16", b"\x16\x03\x01\x02\x00\x01"] {
        assert_eq!(told(served.address, begun).await, b"", "{begun:?}");
    }
    assert!(start.elapsed().as_secs() >= 3 * 7);
}

#[tokio::test(start_paused = true)]
async fn who_shakes_hands_and_says_nothing_is_sent_away() {
    let mut limits = ServerLimits::default();
    // Time passes here whenever all wait, be it for the other side.
    limits.tls_handshake_s_max = 3_600;
    limits.head_read_s_max = 7;
    let served = Served::start(builder().limits(limits)).await;
    let mut silent = connected(served.address, FIRST, &["h2"]).await;
    assert_eq!(soon(silent.read(&mut [0; 8])).await.unwrap(), 0, "with TLS's own goodbye");
}

#[tokio::test]
async fn those_who_dawdle_hold_up_nobody_but_count_as_connections() {
    let served = Served::start(builder()).await;
    let mut dawdlers = Vec::new();
    for _ in 0..20 {
        dawdlers.push(TcpStream::connect(served.address).await.unwrap());
    }
    assert_eq!(handshakes(served.address, "done").await, 1);

    let mut limits = ServerLimits::default();
    limits.connections_max = 1;
    let served = Served::start(builder().limits(limits)).await;
    let dawdler = TcpStream::connect(served.address).await.unwrap();
    let mut next = Box::pin(handshakes(served.address, "done"));
    assert!(still_waits(&mut next).await);
    drop(dawdler);
    assert_eq!(next.await, 1);
}
