//! A receiver of webhooks outside the process that dies, which decides about each call by itself.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::mpsc::{Receiver as Calls, Sender, channel};
use std::time::Duration;

/// Longer than anything here may take.
const PATIENCE: Duration = Duration::from_secs(30);

/// One call; the test answers it, or lets go of it without an answer.
pub(super) struct Call {
    pub(super) id: String,
    pub(super) attempt: u32,
    pub(super) headers: BTreeMap<String, String>,
    pub(super) body: Vec<u8>,
    stream: TcpStream,
}

impl Call {
    pub(super) fn answer(self, status: u16) {
        self.answer_with(status, "");
    }

    /// Answers that it should be tried again, and not at once.
    pub(super) fn not_before(self, seconds: u32) {
        self.answer_with(503, &format!("Retry-After: {seconds}\r\n"));
    }

    fn answer_with(mut self, status: u16, header: &str) {
        let head = format!("HTTP/1.1 {status} x\r\n{header}Content-Length: 0\r\nConnection: close\r\n\r\n");
        // The caller may be dead.
        let _ = self.stream.write_all(head.as_bytes());
    }

    /// The number of the update, which the id ends with.
    pub(super) fn seq(&self) -> u64 {
        self.id.rsplit(':').next().unwrap().parse().unwrap()
    }
}

pub(super) struct Receiver {
    pub(super) addr: SocketAddr,
    calls: Calls<Call>,
}

impl Receiver {
    pub(super) fn start() -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).expect("loopback has free ports");
        let addr = listener.local_addr().unwrap();
        let (sender, calls) = channel();
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let sender = sender.clone();
                std::thread::spawn(move || serve(stream, &sender));
            }
        });
        Self { addr, calls }
    }

    pub(super) fn url(&self) -> String {
        format!("http://{}/hook", self.addr)
    }

    pub(super) fn next(&self) -> Call {
        self.calls.recv_timeout(PATIENCE).expect("a call comes")
    }

    pub(super) fn is_quiet(&self) -> bool {
        self.calls.try_recv().is_err()
    }
}

fn serve(stream: TcpStream, calls: &Sender<Call>) {
    let mut reader = BufReader::new(stream.try_clone().expect("a socket has two ends"));
    let mut headers = BTreeMap::new();
    let mut line = String::new();
    while reader.read_line(&mut line).is_ok_and(|read| read > 2) {
        if let Some((name, value)) = line.trim().split_once(": ") {
            headers.insert(name.to_owned(), value.to_owned());
        }
        line.clear();
    }
    let number = |name: &str| headers.get(name).map_or(0, |value| value.parse::<u32>().unwrap());
    let (id, attempt) = (headers.get("a2a-delivery-id").cloned(), number("a2a-delivery-attempt"));
    let mut body = vec![0; number("content-length") as usize];
    if let Some(id) = id.filter(|_| reader.read_exact(&mut body).is_ok()) {
        serde_json::from_slice::<serde_json::Value>(&body).expect("each call is whole JSON");
        let _ = calls.send(Call { id, attempt, headers, body, stream });
    }
}
