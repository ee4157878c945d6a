//! A receiver of webhooks on loopback: answers every request with the same bytes, and remembers what it was sent.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;

pub(crate) struct Receiver {
    pub(crate) port: u16,
    connections: Arc<AtomicUsize>,
    requests: mpsc::UnboundedReceiver<String>,
}

impl Receiver {
    pub(crate) async fn start(answer: &'static str) -> Self {
        Self::on("127.0.0.1:0", answer).await.unwrap()
    }

    #[expect(clippy::disallowed_methods, reason = "the receiver ends with the runtime of its test")]
    pub(crate) async fn on(address: &str, answer: &'static str) -> std::io::Result<Self> {
        let listener = TcpListener::bind(address).await?;
        let port = listener.local_addr()?.port();
        let connections = Arc::new(AtomicUsize::new(0));
        let (sender, requests) = mpsc::unbounded_channel();
        let counter = connections.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                counter.fetch_add(1, Ordering::SeqCst);
                tokio::spawn(serve(stream, answer, sender.clone()));
            }
        });
        Ok(Self { port, connections, requests })
    }

    pub(crate) fn connections(&self) -> usize {
        self.connections.load(Ordering::SeqCst)
    }

    pub(crate) async fn request(&mut self) -> String {
        self.requests.recv().await.unwrap()
    }
}

async fn serve(mut stream: TcpStream, answer: &'static str, requests: mpsc::UnboundedSender<String>) {
    while let Some(request) = read_request(&mut stream).await {
        let _ = requests.send(request);
        if stream.write_all(answer.as_bytes()).await.is_err() {
            return;
        }
    }
}

/// One request with its body, which every test here makes two bytes long; a GET has none.
pub(crate) async fn read_request(stream: &mut TcpStream) -> Option<String> {
    let mut text = Vec::new();
    while !text.windows(4).any(|end| end == b"\r\n\r\n") {
        text.push(stream.read_u8().await.ok()?);
    }
    if !text.starts_with(b"GET ") {
        let mut body = [0; 2];
        stream.read_exact(&mut body).await.ok()?;
        text.extend(body);
    }
    String::from_utf8(text).ok()
}
