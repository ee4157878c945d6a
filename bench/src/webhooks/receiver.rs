//! The receiver: answers every webhook with 200 and remembers, per task, the number of the last update. It reads heads
//! by hand and bodies not at all, so that it costs little beside the server it measures.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Context as _, Result, bail};
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

const HEAD_BYTES_MAX: usize = 16 * 1024;
const TAKEN: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n";

/// What has arrived.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Report {
    pub(super) tasks: u64,
    /// Each update counted once.
    pub(super) taken: u64,
    pub(super) repeated: u64,
    /// Updates that came before the one they follow.
    pub(super) out_of_order: u64,
}

#[derive(Default)]
struct Counts {
    last: HashMap<Box<str>, u64>,
    report: Report,
}

impl Counts {
    fn take(&mut self, task: &str, seq: u64) {
        let Counts { last, report } = self;
        let known = match last.get_mut(task) {
            Some(known) => known,
            None => {
                report.tasks += 1;
                last.entry(task.into()).or_default()
            }
        };
        if seq <= *known {
            report.repeated += 1;
            return;
        }
        report.taken += 1;
        report.out_of_order += u64::from(seq != *known + 1);
        *known = seq;
    }
}

/// Never returns: the benchmark that started this process ends it.
pub(super) async fn receive(listen: SocketAddr) -> Result<()> {
    let listener = TcpListener::bind(listen).await?;
    let counts = Arc::new(Mutex::new(Counts::default()));
    loop {
        let (stream, _) = listener.accept().await?;
        let counts = counts.clone();
        tokio::spawn(async move {
            if let Err(error) = serve(stream, &counts).await {
                eprintln!("the receiver gave up on a connection: {error:#}");
            }
        });
    }
}

async fn serve(mut stream: TcpStream, counts: &Mutex<Counts>) -> Result<()> {
    stream.set_nodelay(true)?;
    let mut buffer: Vec<u8> = Vec::with_capacity(HEAD_BYTES_MAX);
    loop {
        let end = loop {
            if let Some(end) = buffer.windows(4).position(|window| window == b"\r\n\r\n") {
                break end + 4;
            }
            if buffer.len() > HEAD_BYTES_MAX {
                bail!("a head of more than {HEAD_BYTES_MAX} bytes");
            }
            if stream.read_buf(&mut buffer).await? == 0 {
                return Ok(());
            }
        };
        let head = Head::parse(std::str::from_utf8(&buffer[..end])?)?;
        let answer = {
            let mut counts = counts.lock().unwrap_or_else(PoisonError::into_inner);
            match head.delivery {
                Some((task, seq)) => {
                    counts.take(task, seq);
                    None
                }
                None => Some(serde_json::to_string(&counts.report)?),
            }
        };
        let request = end + head.body_bytes;
        while buffer.len() < request {
            if stream.read_buf(&mut buffer).await? == 0 {
                bail!("closed in the middle of a body");
            }
        }
        buffer.drain(..request);
        match answer {
            None => stream.write_all(TAKEN).await?,
            Some(report) => {
                let reply = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{report}", report.len());
                stream.write_all(reply.as_bytes()).await?;
            }
        }
    }
}

struct Head<'a> {
    body_bytes: usize,
    /// The task and the number of the update; none for the request that asks for the report.
    delivery: Option<(&'a str, u64)>,
}

impl<'a> Head<'a> {
    fn parse(text: &'a str) -> Result<Self> {
        let mut head = Head { body_bytes: 0, delivery: None };
        for line in text.split("\r\n") {
            let Some((name, value)) = line.split_once(": ") else { continue };
            if name.eq_ignore_ascii_case("content-length") {
                head.body_bytes = value.parse()?;
            } else if name.eq_ignore_ascii_case("a2a-delivery-id") {
                let (rest, seq) = value.rsplit_once(':').context("a delivery id without a number")?;
                let (task, _config) = rest.split_once(':').context("a delivery id without a config")?;
                head.delivery = Some((task, seq.parse()?));
            }
        }
        Ok(head)
    }
}

#[cfg(test)]
mod tests {
    use super::{Counts, Head, Report};

    #[test]
    fn repeats_and_gaps_are_told_apart() {
        let mut counts = Counts::default();
        for (task, seq) in [("a", 1), ("b", 1), ("a", 2), ("a", 2), ("b", 3), ("b", 1)] {
            counts.take(task, seq);
        }
        assert_eq!(counts.report, Report { tasks: 2, taken: 4, repeated: 2, out_of_order: 1 });
    }

    #[test]
    fn a_head_says_which_update_it_is() {
        let head = Head::parse("POST / HTTP/1.1\r\nA2A-Delivery-Id: t-1:c:7\r\nContent-Length: 3\r\n\r\n").unwrap();
        assert_eq!((head.delivery, head.body_bytes), (Some(("t-1", 7)), 3));
        assert_eq!(Head::parse("GET /report HTTP/1.1\r\n\r\n").unwrap().delivery, None);
        assert!(Head::parse("POST / HTTP/1.1\r\na2a-delivery-id: 7\r\n\r\n").is_err());
    }
}
