//! A server on a real port, and a small gRPC client of our own: HTTP/2 by prior knowledge, messages of the generated code.

use std::net::SocketAddr;
use std::time::Duration;

use bytes::{BufMut, Bytes, BytesMut};
use http::{HeaderMap, Method, Request, Response, Version};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::client::conn::http2;
use hyper_util::rt::{TokioExecutor, TokioIo};
use prost::Message;
use switchboard::ServerBuilder;
use switchboard_core::dialect::protobuf::generated as rpc;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use super::callers::soon;
use super::edge::{request, with};

pub(crate) const V1_0: &str = "/lf.a2a.v1.A2AService";
pub(crate) const V0_3: &str = "/a2a.v1.A2AService";

/// A server that runs until it is told to stop.
pub(crate) struct Served {
    pub(crate) address: SocketAddr,
    stop: oneshot::Sender<()>,
    running: JoinHandle<()>,
}

impl Served {
    pub(crate) async fn start(builder: ServerBuilder) -> Self {
        let bound = builder.build().unwrap().bind(([127, 0, 0, 1], 0).into()).await.unwrap();
        let address = bound.local_addr();
        let (stop, stopped) = oneshot::channel();
        let running = tokio::spawn(async move {
            let stopped = async {
                let _ = stopped.await;
            };
            bound.run_until(stopped, Duration::from_secs(10)).await;
        });
        Self { address, stop, running }
    }

    /// Tells the server to stop; what it hands back is done when it has.
    pub(crate) fn stop(self) -> JoinHandle<()> {
        let _ = self.stop.send(());
        self.running
    }

    /// A client of the service of A2A 1.0.
    pub(crate) async fn client(&self) -> Client {
        self.client_of(V1_0).await.with("a2a-version", "1.0")
    }

    /// A client that names no version.
    pub(crate) async fn client_of(&self, service: &'static str) -> Client {
        let stream = TcpStream::connect(self.address).await.unwrap();
        Client::over(stream, "http", self.address.to_string(), service).await
    }
}

#[derive(Clone)]
pub(crate) struct Client {
    sender: http2::SendRequest<Full<Bytes>>,
    scheme: &'static str,
    authority: String,
    service: &'static str,
    metadata: Vec<(&'static str, String)>,
}

/// How a call ended that did not end well.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Refused {
    pub(crate) code: u8,
    pub(crate) message: String,
    /// Of the `ErrorInfo`.
    pub(crate) reason: String,
    /// Of the `BadRequest`.
    pub(crate) fields: Vec<String>,
}

impl Refused {
    pub(crate) fn gist(&self) -> String {
        format!("{} {}", self.code, self.reason).trim_end().to_owned()
    }
}

impl Client {
    /// A client of a service at the other end of a connection.
    pub(crate) async fn over<S>(stream: S, scheme: &'static str, authority: String, service: &'static str) -> Self
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let (sender, connection) = http2::handshake(TokioExecutor::new(), TokioIo::new(stream)).await.unwrap();
        tokio::spawn(connection);
        Self { sender, scheme, authority, service, metadata: Vec::new() }
    }

    /// The same with one more line of metadata.
    pub(crate) fn with(&self, name: &'static str, value: impl ToString) -> Self {
        let mut client = self.clone();
        client.metadata.retain(|(known, _)| *known != name);
        client.metadata.push((name, value.to_string()));
        client
    }

    /// The same at another host, as far as the request says.
    pub(crate) fn at(&self, authority: &str) -> Self {
        Self { authority: authority.to_owned(), ..self.clone() }
    }

    pub(crate) async fn call<M: Message + Default>(&self, method: &str, sent: &impl Message) -> Result<M, Refused> {
        let answer = self.open(method, sent).await.whole().await;
        answer.ending()?;
        let [message] = answer.messages.as_slice() else { panic!("{} messages", answer.messages.len()) };
        Ok(M::decode(message.clone()).unwrap())
    }

    /// Why a call is refused.
    pub(crate) async fn refusal(&self, method: &str, sent: &impl Message) -> Refused {
        self.open(method, sent).await.whole().await.ending().expect_err("refused")
    }

    /// Begins a call; its messages are yet to be read.
    pub(crate) async fn open(&self, method: &str, sent: &impl Message) -> Stream {
        self.raw(&format!("{}/{method}", self.service), framed(&sent.encode_to_vec())).await
    }

    /// Begins a call with these bytes as its body.
    pub(crate) async fn raw(&self, path: &str, body: Bytes) -> Stream {
        let target = format!("{}://{}{path}", self.scheme, self.authority);
        let request = Request::post(target).version(Version::HTTP_2);
        let mut request = request.header("content-type", "application/grpc").header("te", "trailers");
        for (name, value) in &self.metadata {
            request = request.header(*name, value);
        }
        let sending = self.sender.clone().send_request(request.body(Full::new(body)).unwrap());
        Stream::new(soon(sending).await.unwrap())
    }
}

/// A call of A2A 1.0 for a server without a socket.
pub(crate) fn grpc_request(path: &str, message: &impl Message) -> Request<Full<Bytes>> {
    let mut request =
        with(request(Method::POST, path, framed(&message.encode_to_vec())), "content-type", "application/grpc");
    *request.version_mut() = Version::HTTP_2;
    request
}

/// A message with its prefix.
pub(crate) fn framed(message: &[u8]) -> Bytes {
    let mut out = BytesMut::new();
    out.put_u8(0);
    out.put_u32(u32::try_from(message.len()).unwrap());
    out.put_slice(message);
    out.freeze()
}

/// An answer that is being read.
pub(crate) struct Stream {
    pub(crate) head: HeaderMap,
    body: Incoming,
    buffer: BytesMut,
    pub(crate) trailers: Option<HeaderMap>,
}

/// A whole answer.
pub(crate) struct Whole {
    pub(crate) head: HeaderMap,
    pub(crate) messages: Vec<Bytes>,
    pub(crate) trailers: HeaderMap,
}

impl Stream {
    fn new(response: Response<Incoming>) -> Self {
        assert_eq!(response.status(), 200);
        let (parts, body) = response.into_parts();
        assert_eq!(parts.headers["content-type"], "application/grpc");
        Self { head: parts.headers, body, buffer: BytesMut::new(), trailers: None }
    }

    /// The next message; none at the end.
    pub(crate) async fn next(&mut self) -> Option<Bytes> {
        loop {
            if let Some(prefix) = self.buffer.first_chunk::<5>() {
                let [flag, length @ ..] = *prefix;
                assert_eq!(flag, 0);
                let length = u32::from_be_bytes(length) as usize;
                if self.buffer.len() >= 5 + length {
                    let mut frame = self.buffer.split_to(5 + length).freeze();
                    return Some(frame.split_off(5));
                }
            }
            let Some(frame) = soon(self.body.frame()).await else {
                assert!(self.buffer.is_empty(), "half a message");
                return None;
            };
            match frame.unwrap().into_data() {
                Ok(data) => self.buffer.extend_from_slice(&data),
                Err(frame) => self.trailers = frame.into_trailers().ok(),
            }
        }
    }

    pub(crate) async fn next_of<M: Message + Default>(&mut self) -> Option<M> {
        Some(M::decode(self.next().await?).unwrap())
    }

    pub(crate) async fn whole(mut self) -> Whole {
        let mut messages = Vec::new();
        while let Some(message) = self.next().await {
            messages.push(message);
        }
        // An answer without messages has no trailers: its head is its end.
        let trailers = self.trailers.unwrap_or_else(|| self.head.clone());
        Whole { head: self.head, messages, trailers }
    }
}

impl Whole {
    pub(crate) fn ending(&self) -> Result<(), Refused> {
        let text = |name: &str| self.trailers.get(name).map_or("", |value| value.to_str().unwrap());
        let code: u8 = text("grpc-status").parse().unwrap();
        if code == 0 {
            return Ok(());
        }
        let mut refused =
            Refused { code, message: unescaped(text("grpc-message")), reason: String::new(), fields: Vec::new() };
        let details = switchboard_core::dialect::json::decode_base64(text("grpc-status-details-bin")).unwrap();
        let status = rpc::Status::decode(details.as_slice()).unwrap();
        for detail in status.details {
            if detail.type_url.ends_with(".ErrorInfo") {
                let info = rpc::ErrorInfo::decode(detail.value.as_slice()).unwrap();
                assert_eq!(info.domain, "a2a-protocol.org");
                refused.reason = info.reason;
            } else if detail.type_url.ends_with(".BadRequest") {
                let request = rpc::BadRequest::decode(detail.value.as_slice()).unwrap();
                refused.fields = request.field_violations.into_iter().map(|violation| violation.field).collect();
            }
        }
        Err(refused)
    }

    /// The number in a line of metadata.
    pub(crate) fn number(lines: &HeaderMap, name: &str) -> Option<u64> {
        lines.get(name)?.to_str().unwrap().parse().ok()
    }
}

fn unescaped(text: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        if byte == b'%' {
            let digits = [rest.next().unwrap(), rest.next().unwrap()];
            bytes.push(u8::from_str_radix(std::str::from_utf8(&digits).unwrap(), 16).unwrap());
        } else {
            bytes.push(byte);
        }
    }
    String::from_utf8(bytes).unwrap()
}
