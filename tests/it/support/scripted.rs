//! A server that answers each request with bytes of the test's choosing, and remembers what it was asked.

use std::sync::{Arc, Mutex};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// A request as it came.
#[derive(Clone, Debug)]
pub(crate) struct Asked {
    /// Method and path.
    pub(crate) line: String,
    /// In lower case.
    pub(crate) head: String,
    pub(crate) body: String,
}

impl Asked {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.head.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "))
    }
}

/// What the server does with a request.
pub(crate) enum Script {
    /// Answers and waits for the next request.
    Answer(Vec<u8>),
    /// Writes and closes the connection.
    Cut(Vec<u8>),
    /// Writes and then nothing more.
    Stall(Vec<u8>),
    /// Writes, and then the second again and again.
    Endless(Vec<u8>, Vec<u8>),
}

/// A whole answer.
pub(crate) fn answer(status: u16, headers: &str, body: &str) -> Script {
    let lines = headers.split('\n').filter(|line| !line.is_empty()).map(|line| format!("{line}\r\n"));
    let lines: String = lines.collect();
    let head = format!("HTTP/1.1 {status} X\r\ncontent-length: {}\r\n{lines}\r\n", body.len());
    Script::Answer([head.as_bytes(), body.as_bytes()].concat())
}

pub(crate) fn json(body: &str) -> Script {
    answer(200, "content-type: application/json", body)
}

/// The head of a stream whose length is not known, and what it begins with.
pub(crate) fn events(body: &str) -> Vec<u8> {
    format!("HTTP/1.1 200 X\r\ncontent-type: text/event-stream\r\n\r\n{body}").into_bytes()
}

pub(crate) struct Scripted {
    pub(crate) url: String,
    asked: Arc<Mutex<Vec<Asked>>>,
}

impl Scripted {
    /// The script is told how many requests came before.
    pub(crate) async fn start(script: impl Fn(usize, &Asked) -> Script + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let asked = Arc::new(Mutex::new(Vec::new()));
        let (script, all) = (Arc::new(script), asked.clone());
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (script, all) = (script.clone(), all.clone());
                tokio::spawn(async move { serve(stream, &*script, &all).await });
            }
        });
        Self { url, asked }
    }

    pub(crate) fn asked(&self) -> Vec<Asked> {
        self.asked.lock().unwrap().clone()
    }

    /// Methods and paths.
    pub(crate) fn lines(&self) -> Vec<String> {
        self.asked().into_iter().map(|asked| asked.line).collect()
    }
}

async fn serve(mut stream: TcpStream, script: &(impl Fn(usize, &Asked) -> Script + ?Sized), all: &Mutex<Vec<Asked>>) {
    while let Some(asked) = read(&mut stream).await {
        let before = {
            let mut all = all.lock().unwrap();
            all.push(asked.clone());
            all.len() - 1
        };
        match script(before, &asked) {
            Script::Answer(bytes) => {
                if stream.write_all(&bytes).await.is_err() {
                    return;
                }
            }
            Script::Cut(bytes) => {
                let _ = stream.write_all(&bytes).await;
                return;
            }
            Script::Stall(bytes) => {
                let _ = stream.write_all(&bytes).await;
                std::future::pending::<()>().await;
            }
            Script::Endless(first, again) => {
                let _ = stream.write_all(&first).await;
                while stream.write_all(&again).await.is_ok() {}
                return;
            }
        }
    }
}

async fn read(stream: &mut TcpStream) -> Option<Asked> {
    let mut text = Vec::new();
    while !text.ends_with(b"\r\n\r\n") {
        text.push(stream.read_u8().await.ok()?);
    }
    let head = String::from_utf8(text).ok()?;
    let line = head.lines().next()?.rsplit_once(' ')?.0.to_owned();
    let head = head.to_ascii_lowercase();
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")?.parse().ok()).unwrap_or(0);
    let mut body = vec![0; length];
    stream.read_exact(&mut body).await.ok()?;
    Some(Asked { line, head, body: String::from_utf8(body).ok()? })
}
