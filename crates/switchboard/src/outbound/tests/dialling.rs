//! Names that lead inside, change their mind, or lead nowhere.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use rustls::RootCertStore;
use switchboard_core::call::BoxFuture;
use tokio::net::TcpListener;

use super::receiver::Receiver;
use super::{ErrorKind, Resolve, assert_failed, assert_refused, client_with, post};

const NO_CONTENT: &str = "HTTP/1.1 204 No Content\r\n\r\n";

/// Gives every name these answers, the first one first and the last one from then on.
#[derive(Clone, Default)]
struct Names {
    answers: Vec<Vec<SocketAddr>>,
    asked: Arc<AtomicUsize>,
}

impl Names {
    fn all(addresses: &[SocketAddr]) -> Self {
        Self { answers: vec![addresses.to_vec()], ..Self::default() }
    }
}

impl Resolve for Names {
    fn resolve<'a>(&'a self, _: &'a str, _: u16) -> BoxFuture<'a, io::Result<Vec<SocketAddr>>> {
        let nth = self.asked.fetch_add(1, Ordering::SeqCst).min(self.answers.len() - 1);
        Box::pin(async move { Ok(self.answers[nth].clone()) })
    }
}

/// A name server that keeps its clients waiting.
struct Silent;

impl Resolve for Silent {
    fn resolve<'a>(&'a self, _: &'a str, _: u16) -> BoxFuture<'a, io::Result<Vec<SocketAddr>>> {
        Box::pin(std::future::pending())
    }
}

fn loopback(port: u16) -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], port))
}

#[tokio::test]
async fn one_inside_address_among_public_ones_refuses_the_name() {
    let receiver = Receiver::start(NO_CONTENT).await;
    let (inside, public) = (loopback(receiver.port), SocketAddr::from(([8, 8, 8, 8], receiver.port)));
    for answer in [vec![inside, public], vec![public, inside], vec![public, public, public, public, public, inside]] {
        let client = client_with(&[], Names::all(&answer), RootCertStore::empty());
        for scheme in ["http", "https"] {
            let outcome = post(&client, format!("{scheme}://hooks.example:{}/", receiver.port)).await;
            assert_refused(outcome, "hooks.example (127.0.0.1)");
        }
    }
    assert_eq!(receiver.connections(), 0);
}

#[tokio::test]
async fn a_name_is_resolved_once_and_the_checked_address_is_dialled() {
    let (first, second) = (Receiver::start(NO_CONTENT).await, Receiver::start(NO_CONTENT).await);
    let answers = vec![vec![loopback(first.port)], vec![loopback(second.port)]];
    let names = Names { answers, ..Names::default() };
    let client = client_with(&["hooks.example"], names.clone(), RootCertStore::empty());
    assert_eq!(post(&client, "http://hooks.example/").await.unwrap(), 204);
    assert_eq!(names.asked.load(Ordering::SeqCst), 1);
    assert_eq!((first.connections(), second.connections()), (1, 0));
}

#[tokio::test]
async fn a_kept_connection_stays_where_it_was_checked_and_a_new_one_is_checked_anew() {
    let first = Receiver::start(NO_CONTENT).await;
    let answers = vec![vec![loopback(first.port)], vec![SocketAddr::from(([10, 0, 0, 1], first.port))]];
    let names = Names { answers, ..Names::default() };
    let client = client_with(&["127.0.0.0/8"], names.clone(), RootCertStore::empty());
    // The name leads elsewhere from the second look on, but it is not looked up while the connection is there.
    for _ in 0..3 {
        assert_eq!(post(&client, "http://hooks.example/").await.unwrap(), 204);
    }
    assert_eq!((first.connections(), names.asked.load(Ordering::SeqCst)), (1, 1));
    // Another port is another endpoint, so it is a new connection.
    assert_refused(post(&client, "http://hooks.example:81/").await, "hooks.example (10.0.0.1)");
    assert_eq!(names.asked.load(Ordering::SeqCst), 2);
}

#[tokio::test]
async fn an_address_is_not_looked_up() {
    let receiver = Receiver::start(NO_CONTENT).await;
    let client = client_with(&["127.0.0.1"], Silent, RootCertStore::empty());
    assert_eq!(post(&client, format!("http://127.0.0.1:{}/", receiver.port)).await.unwrap(), 204);
}

#[tokio::test]
async fn the_next_address_is_tried_when_one_is_dead() {
    let dead = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    let receiver = Receiver::start(NO_CONTENT).await;
    let names = Names::all(&[dead, loopback(receiver.port)]);
    let client = client_with(&["127.0.0.0/8"], names, RootCertStore::empty());
    assert_eq!(post(&client, "http://hooks.example/").await.unwrap(), 204);
}

#[tokio::test]
async fn a_name_without_addresses_is_a_failure_that_may_pass() {
    let client = client_with(&[], Names::all(&[]), RootCertStore::empty());
    assert_failed(post(&client, "http://hooks.example/").await, ErrorKind::Connect, "hooks.example has no address");
}

#[tokio::test(start_paused = true)]
async fn a_silent_name_server_is_given_up_on() {
    let client = client_with(&[], Silent, RootCertStore::empty());
    assert_failed(
        post(&client, "http://hooks.example/").await,
        ErrorKind::TimedOut,
        "hooks.example could not be resolved in time",
    );
}

#[tokio::test(start_paused = true)]
async fn a_handshake_that_never_ends_is_given_up_on() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let names = Names::all(&[listener.local_addr().unwrap()]);
    let client = client_with(&["hooks.example"], names, RootCertStore::empty());
    assert_failed(
        post(&client, "https://hooks.example/").await,
        ErrorKind::TimedOut,
        "TLS handshake with hooks.example took too long",
    );
}
