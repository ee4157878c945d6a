//! A receiver of webhooks outside the process that dies, which decides about each call by itself.

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
    stream: TcpStream,
}

impl Call {
    pub(super) fn answer(mut self, status: u16) {
        // The caller may be dead.
        let _ = write!(self.stream, "HTTP/1.1 {status} x\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
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
    let (mut id, mut attempt, mut length) = (String::new(), 0, 0);
    let mut line = String::new();
    while reader.read_line(&mut line).is_ok_and(|read| read > 2) {
        if let Some((name, value)) = line.trim().split_once(": ") {
            match name {
                "a2a-delivery-id" => id = value.to_owned(),
                "a2a-delivery-attempt" => attempt = value.parse().unwrap(),
                "content-length" => length = value.parse().unwrap(),
                _ => {}
            }
        }
        line.clear();
    }
    let mut body = vec![0; length];
    if !id.is_empty() && reader.read_exact(&mut body).is_ok() {
        serde_json::from_slice::<serde_json::Value>(&body).expect("each call is whole JSON");
        let _ = calls.send(Call { id, attempt, stream });
    }
}
