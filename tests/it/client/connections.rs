//! Connections of gRPC: shared by the calls to one origin, and replaced when they are gone.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::Poll;

use futures_util::future::join_all;
use switchboard::{AgentClient, ProtocolBinding, Server, TaskState};
use tokio::sync::oneshot;

use super::quick;
use crate::support::callers::soon;
use crate::support::edge::echo;
use crate::support::grpc::Served;
use crate::support::proxy::Proxy;

/// An agent that is called over gRPC through a proxy, and how many connections there were.
async fn agent(
    bytes_of: impl Fn(usize) -> Option<usize> + Send + Sync + 'static,
) -> (Served, AgentClient, Arc<AtomicUsize>) {
    let proxy = Proxy::bind().await;
    let url = proxy.url();
    let served = Served::start(Server::builder().agent(echo()).public_url(&url).interfaces(ProtocolBinding::ALL)).await;
    let count = proxy.start(served.address, bytes_of);
    let agent = quick().bindings([ProtocolBinding::Grpc]).build().unwrap().agent(&url).await.unwrap();
    // The card came over HTTP/1.1.
    assert_eq!(count.swap(0, Ordering::SeqCst), 1);
    (served, agent, count)
}

#[tokio::test]
async fn calls_share_one_connection_whether_they_follow_each_other_or_not() {
    let (_served, agent, count) = agent(|_| None).await;
    for answer in join_all((0..20).map(|_| soon(agent.send_text("hello")))).await {
        assert_eq!(answer.unwrap().text(), "hello");
    }
    for _ in 0..3 {
        soon(agent.send_text("hello")).await.unwrap();
        let mut stream = soon(agent.stream_text("chunks 3")).await.unwrap();
        while let Some(frame) = soon(stream.next()).await {
            frame.unwrap();
        }
    }
    assert_eq!(count.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn a_stream_that_nobody_reads_holds_no_call_up() {
    let (_served, agent, count) = agent(|_| None).await;
    let mut streams = Vec::new();
    for _ in 0..3 {
        let mut stream = soon(agent.stream_text("wait")).await.unwrap();
        soon(stream.next()).await.unwrap().unwrap();
        let id = stream.task().unwrap().id.clone();
        let (go_on, may_go_on) = oneshot::channel();
        let (left, is_left) = oneshot::channel();
        let reading = tokio::spawn(async move {
            // It waits for more, and is then left alone.
            while let Poll::Ready(frame) = futures_util::poll!(Box::pin(stream.next())) {
                frame.unwrap().unwrap();
            }
            left.send(()).unwrap();
            may_go_on.await.unwrap();
            while let Some(frame) = soon(stream.next()).await {
                frame.unwrap();
            }
            stream.task().unwrap().state()
        });
        is_left.await.unwrap();
        streams.push((id, go_on, reading));
        assert_eq!(soon(agent.send_text("hello")).await.unwrap().text(), "hello");
    }
    // All of them go on.
    for (id, go_on, reading) in streams {
        soon(agent.cancel(&id)).await.unwrap();
        go_on.send(()).unwrap();
        assert_eq!(soon(reading).await.unwrap(), TaskState::Canceled);
    }
    assert_eq!(count.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn a_connection_carries_a_limited_number_of_calls() {
    let (_served, agent, count) = agent(|_| None).await;
    let mut streams = Vec::new();
    for _ in 0..33 {
        let mut stream = soon(agent.stream_text("wait")).await.unwrap();
        soon(stream.next()).await.unwrap().unwrap();
        streams.push(stream);
    }
    assert_eq!(count.load(Ordering::SeqCst), 2);
    drop(streams);
    soon(agent.send_text("hello")).await.unwrap();
    assert_eq!(count.load(Ordering::SeqCst), 2);
}

#[tokio::test]
async fn a_connection_that_is_gone_is_replaced() {
    // The first one has the card, and the second is cut in the middle.
    let accepted = AtomicUsize::new(0);
    let (_served, agent, count) = agent(move |_| (accepted.fetch_add(1, Ordering::SeqCst) == 1).then_some(700)).await;
    let mut answers = 0;
    while count.load(Ordering::SeqCst) < 2 {
        answers += usize::from(soon(agent.send_text("hello")).await.is_ok());
        assert!(answers < 100, "it is never cut");
    }
    for _ in 0..3 {
        soon(agent.send_text("hello")).await.unwrap();
    }
    assert_eq!(count.load(Ordering::SeqCst), 2);
}

#[tokio::test]
async fn a_server_that_says_goodbye_is_called_over_a_new_connection() {
    let proxy = Proxy::bind().await;
    let url = proxy.url();
    let served = Served::start(Server::builder().agent(echo()).public_url(&url).interfaces(ProtocolBinding::ALL)).await;
    let address = served.address;
    let count = proxy.start(address, |_| None);
    let agent = quick().bindings([ProtocolBinding::Grpc]).build().unwrap().agent(&url).await.unwrap();
    soon(agent.send_text("hello")).await.unwrap();
    // GOAWAY, and then the end of the connection. The client answers although it makes no call, so that the server need not wait.
    let started = std::time::Instant::now();
    soon(served.stop()).await.unwrap();
    assert!(started.elapsed() < std::time::Duration::from_secs(5), "{:?}", started.elapsed());
    let server = Server::builder().agent(echo()).public_url(&url).interfaces(ProtocolBinding::ALL);
    let bound = server.build().unwrap().bind(address).await.unwrap();
    let running = tokio::spawn(bound.run_until(std::future::pending(), std::time::Duration::ZERO));
    assert_eq!(soon(agent.send_text("again")).await.unwrap().text(), "again");
    assert_eq!(count.load(Ordering::SeqCst), 3);
    running.abort();
}

#[tokio::test]
async fn a_connection_that_is_not_used_is_closed() {
    let (_served, agent, count) = agent(|_| None).await;
    let mut stream = soon(agent.stream_text("wait")).await.unwrap();
    soon(stream.next()).await.unwrap().unwrap();
    for connections in [1, 2] {
        tokio::time::pause();
        tokio::time::advance(std::time::Duration::from_secs(31)).await;
        tokio::time::advance(std::time::Duration::from_secs(31)).await;
        tokio::time::resume();
        soon(agent.send_text("hello")).await.unwrap();
        // A stream that is open is a use.
        assert_eq!(count.load(Ordering::SeqCst), connections);
        let id = stream.task().unwrap().id.clone();
        let _ = soon(agent.cancel(&id)).await;
        while let Some(frame) = soon(stream.next()).await {
            frame.unwrap();
        }
    }
}
