//! Clients that connect while a server stops: each is answered, or does not connect.

use std::io::{Read, Write};
use std::net::SocketAddr;
use std::time::Duration;

use switchboard::Server;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::mpsc::{Sender, channel};

use crate::support::edge::echo;

/// A client can be connected before the server has accepted it. If the server stops just then, the client is answered, not cut off.
#[tokio::test]
async fn a_connection_that_waits_to_be_accepted_is_answered_by_a_server_that_stops() {
    let server = Server::builder().agent(echo());
    let bound = server.build().unwrap().bind(([127, 0, 0, 1], 0).into()).await.unwrap();
    let addr = bound.local_addr();
    let mut waiting = Vec::new();
    for _ in 0..20 {
        let mut client = TcpStream::connect(addr).await.unwrap();
        client.write_all(format!("GET /healthz HTTP/1.1\r\nHost: {addr}\r\n\r\n").as_bytes()).await.unwrap();
        waiting.push(client);
    }
    bound.run_until(std::future::ready(()), Duration::from_secs(10)).await;
    for mut client in waiting {
        let mut answer = String::new();
        client.read_to_string(&mut answer).await.unwrap();
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer:?}");
    }
}

/// A client may be in the middle of connecting when the server stops. Which packet comes just then is up to chance, so there are many stops.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_that_connects_to_a_server_that_stops_is_answered() {
    for _ in 0..50 {
        let server = Server::builder().agent(echo());
        let bound = server.build().unwrap().bind(([127, 0, 0, 1], 0).into()).await.unwrap();
        let addr = bound.local_addr();
        let (answered, mut answers) = channel(64);
        let clients = [answered.clone(), answered.clone(), answered]
            .map(|answered| tokio::task::spawn_blocking(move || ask_until_refused(addr, &answered)));
        let stop = async { while answers.recv().await.is_some_and(|number| number < 10) {} };
        bound.run_until(stop, Duration::from_secs(10)).await;
        for client in clients {
            client.await.unwrap();
        }
    }
}

/// Asks over one connection after the other, each of which must be answered, until there is none to be had.
fn ask_until_refused(addr: SocketAddr, answered: &Sender<u32>) {
    // A client whose first packet is dropped would send it again after a second.
    let patience = Duration::from_millis(50);
    let mut number = 0;
    while let Ok(mut client) = std::net::TcpStream::connect_timeout(&addr, patience) {
        let request = format!("GET /healthz HTTP/1.1\r\nHost: {addr}\r\nConnection: close\r\n\r\n");
        let mut answer = String::new();
        client.write_all(request.as_bytes()).and_then(|()| client.read_to_string(&mut answer)).unwrap();
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer:?}");
        number += 1;
        let _ = answered.try_send(number);
    }
}
