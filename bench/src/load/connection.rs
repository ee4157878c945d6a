//! One HTTP/1.1 keep-alive connection: a request out, a whole reply in. Knows lengths and chunks, nothing of A2A.

use std::net::SocketAddr;

use anyhow::{Context as _, Result, bail};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

const BUFFER_BYTES: usize = 16 * 1024;

pub struct Connection {
    stream: TcpStream,
    /// What was read; the reply in hand begins at 0.
    buffer: Vec<u8>,
    filled: usize,
    /// The reply's body with its chunk frames taken out, when it came in chunks.
    unchunked: Vec<u8>,
    closing: bool,
}

pub struct Reply<'a> {
    pub status: u16,
    pub body: &'a [u8],
}

#[derive(Clone, Copy)]
struct Head {
    status: u16,
    bytes: usize,
    body: Framing,
    closes: bool,
}

#[derive(Clone, Copy)]
enum Framing {
    Length(usize),
    Chunks,
}

impl Connection {
    pub async fn open(address: SocketAddr) -> Result<Connection> {
        let stream = TcpStream::connect(address).await.with_context(|| format!("cannot reach {address}"))?;
        stream.set_nodelay(true)?;
        let buffer = vec![0; BUFFER_BYTES];
        Ok(Connection { stream, buffer, filled: 0, unchunked: Vec::new(), closing: false })
    }

    /// True when the server said that it closes after the last reply.
    pub fn must_close(&self) -> bool {
        self.closing
    }

    /// Sends a request and reads its reply to the end.
    pub async fn exchange(&mut self, request: &[u8]) -> Result<Reply<'_>> {
        let head = self.begin(request).await?;
        let body = match head.body {
            Framing::Length(length) => {
                while self.filled < head.bytes + length {
                    self.read_more().await?;
                }
                &self.buffer[head.bytes..head.bytes + length]
            }
            Framing::Chunks => {
                let mut at = head.bytes;
                while !self.take_chunks(&mut at)? {
                    self.read_more().await?;
                }
                &self.unchunked
            }
        };
        Ok(Reply { status: head.status, body })
    }

    /// Sends a request whose reply is a stream and reads until its first event is complete. The stream stays open for
    /// as long as the connection is kept.
    pub async fn open_stream(&mut self, request: &[u8]) -> Result<Reply<'_>> {
        let head = self.begin(request).await?;
        let Framing::Chunks = head.body else { bail!("answered {} without a stream", head.status) };
        let mut at = head.bytes;
        while !self.unchunked.ends_with(b"\n\n") {
            if self.take_chunks(&mut at)? {
                bail!("the stream ended at once");
            }
            if !self.unchunked.ends_with(b"\n\n") {
                self.read_more().await?;
            }
        }
        Ok(Reply { status: head.status, body: &self.unchunked })
    }

    async fn begin(&mut self, request: &[u8]) -> Result<Head> {
        self.filled = 0;
        self.unchunked.clear();
        self.stream.write_all(request).await?;
        loop {
            self.read_more().await?;
            if let Some(head) = parse_head(&self.buffer[..self.filled])? {
                self.closing = head.closes;
                return Ok(head);
            }
        }
    }

    async fn read_more(&mut self) -> Result<()> {
        if self.filled == self.buffer.len() {
            self.buffer.resize(self.filled * 2, 0);
        }
        let count = self.stream.read(&mut self.buffer[self.filled..]).await?;
        if count == 0 {
            bail!("the server closed in the middle of a reply");
        }
        self.filled += count;
        Ok(())
    }

    /// Moves the whole chunks from `at` on into `unchunked`; true when the last chunk was among them.
    fn take_chunks(&mut self, at: &mut usize) -> Result<bool> {
        loop {
            let rest = &self.buffer[*at..self.filled];
            let Some(line) = find(rest, b"\r\n") else { return Ok(false) };
            let size = std::str::from_utf8(&rest[..line])?.split(';').next().unwrap_or_default();
            let size = usize::from_str_radix(size.trim(), 16).context("a chunk without a size")?;
            let data = line + 2;
            let Some(chunk) = rest.get(data..data + size + 2) else { return Ok(false) };
            self.unchunked.extend_from_slice(&chunk[..size]);
            *at += data + size + 2;
            if size == 0 {
                return Ok(true);
            }
        }
    }
}

fn parse_head(bytes: &[u8]) -> Result<Option<Head>> {
    let Some(end) = find(bytes, b"\r\n\r\n") else { return Ok(None) };
    let mut lines = std::str::from_utf8(&bytes[..end])?.split("\r\n");
    let status = lines.next().and_then(|line| line.get(9..12)).context("no status line")?.parse()?;
    let mut head = Head { status, bytes: end + 4, body: Framing::Length(0), closes: false };
    for line in lines {
        let Some((name, value)) = line.split_once(':') else { bail!("a header without a colon") };
        if name.eq_ignore_ascii_case("content-length") {
            head.body = Framing::Length(value.trim().parse()?);
        } else if name.eq_ignore_ascii_case("transfer-encoding") {
            head.body = Framing::Chunks;
        } else if name.eq_ignore_ascii_case("connection") {
            head.closes = value.trim().eq_ignore_ascii_case("close");
        }
    }
    Ok(Some(head))
}

fn find(bytes: &[u8], wanted: &[u8]) -> Option<usize> {
    bytes.windows(wanted.len()).position(|window| window == wanted)
}
