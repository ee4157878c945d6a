//! Those who connect and do not get to the point: each is sent away in time, and what they began is not answered.

use switchboard::{Server, ServerLimits};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::Instant;

use crate::support::callers::soon;
use crate::support::edge::echo;
use crate::support::grpc::Served;

#[tokio::test(start_paused = true)]
async fn whoever_does_not_say_what_they_speak_is_sent_away() {
    let mut limits = ServerLimits::default();
    limits.head_read_s_max = 7;
    let served = Served::start(Server::builder().agent(echo()).limits(limits)).await;
    // Nothing; how HTTP/2 begins and most of that; the head of a request without its end.
    for begun in ["", "P", "PRI * HTTP/2.0\r\n\r\nSM", "POST / HTTP/1.1\r\nhost: loc"] {
        let start = Instant::now();
        let mut stream = TcpStream::connect(served.address).await.unwrap();
        stream.write_all(begun.as_bytes()).await.unwrap();
        let mut answer = Vec::new();
        soon(stream.read_to_end(&mut answer)).await.unwrap();
        assert!(!String::from_utf8_lossy(&answer).contains(" 200 "), "{begun:?}: {answer:?}");
        assert!(start.elapsed().as_secs() >= 7, "{begun:?} after {:?}", start.elapsed());
    }
}

#[tokio::test]
async fn a_request_in_single_bytes_is_served() {
    let served = Served::start(Server::builder().agent(echo())).await;
    let mut stream = TcpStream::connect(served.address).await.unwrap();
    stream.set_nodelay(true).unwrap();
    // Its first byte is that of HTTP/2, too.
    for byte in b"PUT /healthz HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n" {
        stream.write_all(&[*byte]).await.unwrap();
        tokio::task::yield_now().await;
    }
    let mut answer = String::new();
    soon(stream.read_to_string(&mut answer)).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 405 "), "{answer}");
}
