//! What others publish under our subject is not taken for a hint, and a server that is not there costs nothing but hints.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};
use std::time::Duration;

use switchboard_core::model::TaskId;
use switchboard_engine::ports::{Hint, HintSink, Hints, News};
use switchboard_test_servers::Nats;

use super::super::{NatsHints, NatsOptions};

struct Sink(Sender<(String, News)>);

impl HintSink for Sink {
    fn hint(&self, hint: Hint<'_>) {
        let _ = self.0.send((hint.task.as_str().to_owned(), hint.news));
    }
}

/// Another client, which publishes what it likes.
fn publish(server: &Nats, subject: &str, payload: &[u8]) {
    let mut stream = TcpStream::connect(server.host()).unwrap();
    let mut lines = format!("CONNECT {{\"verbose\":false}}\r\nPUB {subject} {}\r\n", payload.len()).into_bytes();
    lines.extend_from_slice(payload);
    lines.extend_from_slice(b"\r\nPING\r\n");
    stream.write_all(&lines).unwrap();
    let mut said = Vec::new();
    while !said.ends_with(b"PONG\r\n") {
        let mut byte = [0];
        stream.read_exact(&mut byte).unwrap();
        said.push(byte[0]);
    }
}

#[test]
#[ignore = "starts NATS"]
fn what_others_publish_is_not_taken_for_a_hint_and_does_not_stop_hints() {
    let server = Nats::start();
    let hints = NatsHints::start(&NatsOptions::new(server.url()).subject("ours"), "group").unwrap();
    let (sender, heard) = channel();
    hints.listen(Arc::new(Sink(sender)));
    let large = vec![b'x'; 900_000];
    let told = std::iter::repeat_with(|| {
        publish(&server, "ours.group.h0", &large);
        publish(&server, "ours.group.h0", b"name\nx y\n99999999999999999999 t");
        publish(&server, "ours.group.h1", &[0xFF, b'\n', 0xFE]);
        publish(&server, "ours.other.h0", b"name\n1 of others");
        publish(&server, "theirs.group.h0", b"name\n1 of others");
        publish(&server, "ours.group.h0", b"name\n7 t");
        heard.recv_timeout(Duration::from_millis(500))
    });
    let told = told.take(100).find_map(Result::ok).expect("the hint after them arrives");
    assert_eq!(told, ("t".to_owned(), News::Event(7)));
}

#[test]
fn a_server_that_is_not_there_keeps_nobody_waiting() {
    let hints = NatsHints::start(&NatsOptions::new("nats://127.0.0.1:1"), "group").unwrap();
    for seq in 0..100_000 {
        hints.notify(Hint { task: &TaskId::from(&*format!("t{seq}")), news: News::Event(seq) });
    }
}
