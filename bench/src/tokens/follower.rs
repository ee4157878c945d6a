//! Clients that each ask for one stream and read it to its end, checking every chunk.

use std::net::SocketAddr;
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::{Context as _, Result, bail, ensure};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

/// What one stream gave.
#[derive(Debug, Default)]
pub(super) struct Seen {
    pub(super) events: u64,
    /// From the writing of a chunk to its arrival, in microseconds.
    pub(super) latencies: Vec<u32>,
}

pub(super) struct Follower {
    socket: TcpStream,
    number: usize,
}

impl Follower {
    pub(super) async fn connect(address: SocketAddr, number: usize) -> Result<Follower> {
        let socket = TcpStream::connect(address).await?;
        socket.set_nodelay(true)?;
        Ok(Follower { socket, number })
    }

    /// Asks for a stream of so many chunks and reads it to its end.
    pub(super) async fn follow(mut self, chunks: u32) -> Result<Seen> {
        self.socket.write_all(request(self.number).as_bytes()).await?;
        let mut seen = Seen::default();
        let mut buffer = Vec::with_capacity(8 * 1024);
        let mut next = 1;
        loop {
            let read = self.socket.read_buf(&mut buffer).await?;
            ensure!(read > 0, "stream {} broke off after {} events", self.number, seen.events);
            let now = now_us();
            let mut begin = 0;
            while let Some(length) = buffer[begin..].iter().position(|byte| *byte == b'\n') {
                let line = &buffer[begin..begin + length];
                begin += length + 1;
                // Other lines are the head of the answer, the frames of its body, and what separates events.
                let Some(data) = line.strip_prefix(b"data: ") else { continue };
                let data = std::str::from_utf8(data)?;
                seen.events += 1;
                if let Some((_, text)) = data.split_once(r#""text":""#)
                    && data.contains("artifactUpdate")
                {
                    let mut words = text.split(' ');
                    let written_ns: u128 = words.next().context("a chunk is empty")?.parse()?;
                    let number: u32 = words.next().context("a chunk has no number")?.parse()?;
                    ensure!(number == next, "stream {}: chunk {number} came where {next} was due", self.number);
                    next += 1;
                    let late = now.saturating_sub(written_ns / 1000);
                    seen.latencies.push(u32::try_from(late).unwrap_or(u32::MAX));
                } else if data.contains("TASK_STATE_COMPLETED") {
                    ensure!(next == chunks + 1, "stream {} ended before chunk {next}", self.number);
                    return Ok(seen);
                } else if data.contains("\"error\"") || data.contains("TASK_STATE_FAILED") {
                    bail!("stream {}: {data}", self.number);
                }
            }
            buffer.drain(..begin);
        }
    }
}

fn now_us() -> u128 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_micros()
}

fn request(number: usize) -> String {
    let session = std::process::id();
    let body = format!(
        r#"{{"jsonrpc":"2.0","id":"r-{number}","method":"SendStreamingMessage","params":{{"message":{{"messageId":"{session}-{number}-{}","role":"ROLE_USER","parts":[{{"text":"write"}}]}}}}}}"#,
        now_us()
    );
    let head =
        "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nA2A-Version: 1.0\r\nContent-Length: ";
    format!("{head}{}\r\n\r\n{body}", body.len())
}
