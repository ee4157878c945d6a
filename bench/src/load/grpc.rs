//! The same send over gRPC: HTTP/2 by prior knowledge, one call at a time on each connection, the message written by hand.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Instant;

use anyhow::{Context as _, Result, ensure};
use bytes::{Bytes, BytesMut};
use h2::client::{SendRequest, handshake};
use http::{HeaderMap, HeaderValue, Method, Request, Uri, Version, header};
use tokio::net::TcpStream;
use tokio::task::JoinSet;

use super::outcome::{Outcome, Tally};
use super::request::{Template, message_id, next_serial, text, text_template};
use super::{Limit, Until};

const PATH: &str = "/lf.a2a.v1.A2AService/SendMessage";

/// Open connections that outlive a run.
pub struct GrpcPool {
    address: SocketAddr,
    connections: Vec<SendRequest<Bytes>>,
}

impl GrpcPool {
    pub async fn open(address: SocketAddr, count: usize) -> Result<GrpcPool> {
        let mut connections = Vec::with_capacity(count);
        for _ in 0..count {
            let stream = TcpStream::connect(address).await.with_context(|| format!("cannot reach {address}"))?;
            stream.set_nodelay(true)?;
            let (sender, connection) = handshake(stream).await?;
            tokio::spawn(connection);
            connections.push(sender);
        }
        Ok(GrpcPool { address, connections })
    }

    /// Sends over every connection until the end, and says what came of it.
    pub async fn run(&mut self, until: Until) -> Outcome {
        let limit = Arc::new(Limit::new(until));
        let started = Instant::now();
        let mut drivers = JoinSet::new();
        for sender in &self.connections {
            drivers.spawn(drive(sender.clone(), self.address, Arc::clone(&limit)));
        }
        let mut total = Tally::default();
        while let Some(ended) = drivers.join_next().await {
            total.add(ended.expect("a driver returns its errors and does not panic"));
        }
        total.finish(started.elapsed())
    }
}

async fn drive(mut sender: SendRequest<Bytes>, address: SocketAddr, limit: Arc<Limit>) -> Tally {
    let mut tally = Tally::default();
    let mut template = Template::of(send_message());
    let head = head(address);
    let mut begun = Instant::now();
    while limit.allows_one_more(begun) {
        let serial = next_serial();
        let body = Bytes::copy_from_slice(template.with(serial));
        let result = call(&mut sender, &head, body, serial).await.map(|bytes| (bytes, 0));
        let ended = Instant::now();
        tally.record(ended - begun, result.map_err(|error| format!("{error:#}")));
        begun = ended;
    }
    tally
}

/// What every call begins with, made once: a slow client would measure itself.
fn head(address: SocketAddr) -> (Uri, HeaderMap) {
    let uri = format!("http://{address}{PATH}").parse().expect("an address and a path are a URI");
    let mut headers = HeaderMap::new();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/grpc"));
    headers.insert(header::TE, HeaderValue::from_static("trailers"));
    headers.insert("a2a-version", HeaderValue::from_static("1.0"));
    (uri, headers)
}

/// One call; gives back the length of its answer.
async fn call(
    sender: &mut SendRequest<Bytes>,
    (uri, headers): &(Uri, HeaderMap),
    body: Bytes,
    serial: u64,
) -> Result<usize> {
    let mut request = Request::new(());
    *request.method_mut() = Method::POST;
    *request.uri_mut() = uri.clone();
    *request.version_mut() = Version::HTTP_2;
    *request.headers_mut() = headers.clone();
    std::future::poll_fn(|cx| sender.poll_ready(cx)).await?;
    let (response, mut sending) = sender.send_request(request, false)?;
    sending.send_data(body, true)?;
    let mut body = response.await?.into_body();
    let mut answer = BytesMut::new();
    while let Some(data) = body.data().await {
        let data = data?;
        body.flow_control().release_capacity(data.len())?;
        answer.extend_from_slice(&data);
    }
    let status = body.trailers().await?.and_then(|lines| lines.get("grpc-status").cloned());
    ensure!(status.as_ref().is_some_and(|status| status == "0"), "ended with status {status:?}");
    let wanted = text(serial);
    let times = answer.windows(wanted.len()).filter(|window| *window == wanted.as_bytes()).count();
    ensure!(times >= 2, "the text that was sent is there {times} times");
    ensure!(answer.windows(2).any(|window| window == COMPLETED), "not completed");
    Ok(answer.len())
}

/// `TaskStatus.state` = completed.
const COMPLETED: [u8; 2] = [1 << 3, 3];

/// `SendMessageRequest { message: { message_id, role: ROLE_USER, parts: [{ text }] } }` with its gRPC prefix.
fn send_message() -> Vec<u8> {
    let part = field(1, text_template().as_bytes());
    let mut message = field(1, message_id().as_bytes());
    message.extend([4 << 3, 1]);
    message.extend(field(5, &part));
    let request = field(2, &message);
    let mut framed = vec![0];
    framed.extend(u32::try_from(request.len()).expect("short").to_be_bytes());
    framed.extend(request);
    framed
}

/// A field of bytes. All of ours are shorter than two bytes of length can say.
fn field(number: u8, bytes: &[u8]) -> Vec<u8> {
    let mut out = vec![number << 3 | 2];
    match u8::try_from(bytes.len()) {
        Ok(length @ 0..=127) => out.push(length),
        _ => out.extend([0x80 | (bytes.len() & 0x7f) as u8, (bytes.len() >> 7) as u8]),
    }
    out.extend_from_slice(bytes);
    out
}
