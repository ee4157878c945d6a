//! Calls over gRPC whose bodies behave badly, or are not gRPC's: how much of them is read, and what is said.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use http::{Method, Request, Version};
use http_body::Body;
use http_body_util::BodyExt;
use prost::Message as _;
use switchboard::{Server, ServerLimits, Tokens};
use switchboard_core::dialect::v1_0::proto::generated as wire;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::grpc_calls::say;
use crate::support::bodies::{Chunks, Untouched};
use crate::support::callers::soon;
use crate::support::edge::{Edge, echo, with};
use crate::support::grpc::{Served, V1_0, framed, grpc_request};

/// A send with another body than its own.
fn send<B>(body: B) -> Request<B> {
    grpc_request(&format!("{V1_0}/SendMessage"), &say("hello")).map(|_| body)
}

/// The same with another value of a line.
fn instead<B>(request: Request<B>, name: &str, value: &str) -> Request<B> {
    with(with(request, name, ""), name, value)
}

/// How a call ended: in its trailers, or in the head of an answer without messages.
async fn status<B>(edge: &Edge, request: Request<B>) -> String
where
    B: Body<Data = Bytes> + Send + Unpin + 'static,
    B::Error: std::fmt::Display,
{
    let answer = edge.open(request).await;
    let head = answer.headers().clone();
    let rest = soon(answer.into_body().collect()).await.unwrap();
    let status = rest.trailers().unwrap_or(&head).get("grpc-status");
    status.expect("a status at the end of every call").to_str().unwrap().to_owned()
}

#[tokio::test(start_paused = true)]
async fn nothing_is_read_from_somebody_who_may_not_call() {
    let tokens = Tokens::parse("a-token-of-alice-for-tests alice acme").unwrap();
    let edge = Edge::new(Server::builder().agent(echo()).tokens(tokens));
    assert_eq!(status(&edge, send(Untouched)).await, "16");
    let edge = Edge::usual();
    assert_eq!(status(&edge, with(send(Untouched), "grpc-encoding", "gzip")).await, "12");
    assert_eq!(status(&edge, instead(send(Untouched), "a2a-version", "7.0")).await, "9");
    assert_eq!(status(&edge, with(send(Untouched), "grpc-timeout", "soon")).await, "3");
}

#[tokio::test(start_paused = true)]
async fn a_message_that_says_it_is_too_long_is_not_read() {
    let mut limits = ServerLimits::default();
    limits.body_bytes_max = 4_096;
    let edge = Edge::new(Server::builder().agent(echo()).limits(limits));
    for (length, pieces_read) in [(4_097_u32, 1), (u32::MAX, 1), (4_096, 513), (0, 513)] {
        let taken = Arc::new(AtomicUsize::new(0));
        let mut chunk = vec![0];
        chunk.extend_from_slice(&length.to_be_bytes());
        chunk.extend_from_slice(b"xyz");
        let answered = status(&edge, send(Chunks::endless(chunk.into(), taken.clone()))).await;
        assert_eq!((answered.as_str(), taken.load(Ordering::SeqCst)), ("8", pieces_read), "{length} bytes");
    }
}

#[tokio::test(start_paused = true)]
async fn a_body_that_does_not_go_on_is_waited_for_until_the_deadline() {
    let edge = Edge::usual();
    assert_eq!(status(&edge, with(send(Chunks::stuck()), "grpc-timeout", "1S")).await, "4");
    assert_eq!(status(&edge, send(Chunks::stuck())).await, "3", "the limit of the server itself");
}

#[tokio::test(start_paused = true)]
async fn a_message_may_come_in_pieces_but_must_be_whole() {
    let edge = Edge::usual();
    let whole = framed(&say("hello").encode_to_vec());
    let pieces: Vec<Bytes> = (0..whole.len()).map(|at| whole.slice(at..=at)).collect();
    assert_eq!(status(&edge, send(Chunks::of(pieces.clone()))).await, "0");
    for length in 0..whole.len() {
        let answered = status(&edge, send(Chunks::of(pieces[..length].to_vec()))).await;
        // Without its prefix there is no message at all.
        assert_eq!(answered, if length < 5 { "12" } else { "3" }, "{length} bytes");
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_no_grpc_is_told_so_in_http() {
    let edge = Edge::usual();
    let refused = async |request: Request<Untouched>| edge.open(request).await.status().as_u16();
    let mut old = send(Untouched);
    *old.version_mut() = Version::HTTP_11;
    assert_eq!(refused(old).await, 505);
    let mut get = send(Untouched);
    *get.method_mut() = Method::GET;
    assert_eq!(refused(get).await, 405);
    assert_eq!(refused(instead(send(Untouched), "content-type", "application/grpc+json")).await, 415);
}

/// What every connection of HTTP/2 begins with.
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

#[tokio::test]
async fn one_port_serves_both_kinds_of_http_and_survives_what_is_neither() {
    let served = Served::start(Server::builder().agent(echo())).await;
    let spoken = async |said: &[u8]| {
        let mut stream = TcpStream::connect(served.address).await.unwrap();
        stream.write_all(said).await.unwrap();
        stream.shutdown().await.unwrap();
        let mut heard = Vec::new();
        // A connection may be reset for what was said on it.
        let _ = soon(stream.read_to_end(&mut heard)).await;
        heard
    };
    for garbage in
        [&b"\0\x01\xff"[..], &[0xff; 4096], b"\0\0\xff\x01\x05\0\0\0\x01garbage", b"\0\0\x04\x08\0\0\0\0\0\0\0\0\0"]
    {
        spoken(garbage).await;
        spoken(&[PREFACE, garbage].concat()).await;
    }
    let card = spoken(b"GET /.well-known/agent-card.json HTTP/1.1\r\nHost: localhost\r\n\r\n").await;
    assert!(card.starts_with(b"HTTP/1.1 200 OK\r\n"), "{}", String::from_utf8_lossy(&card));
    served.client().await.call::<wire::SendMessageResponse>("SendMessage", &say("hello")).await.unwrap();
}
