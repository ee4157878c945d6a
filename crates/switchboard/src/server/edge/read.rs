//! Reading the body of a request within bounds of size and time.
//!
//! The body may be dropped before its end, when its request was answered early. Closing the connection would reset it, and
//! the client, still sending, might never read its answer (RFC 9112, section 9.6). So the rest is read and dropped, for a
//! limited time.

use std::fmt;
use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http::{HeaderMap, Request, Version, header};
use http_body::{Body, Frame, SizeHint};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use switchboard_core::error::ProtocolError;
use switchboard_engine::supervisor::Kind;

use crate::server::edge::headers::ContentType;
use crate::server::edge::shared::{Head, Shared};

/// Reads a request body, at most `bytes_max` of it and for at most `patience`. A body that says it is larger is refused
/// before it is read.
pub(crate) fn read<B>(
    headers: &HeaderMap,
    body: B,
    bytes_max: usize,
    patience: Duration,
) -> impl Future<Output = Result<Bytes, ProtocolError>> + Send
where
    B: Body<Data = Bytes> + Send + Unpin,
    B::Error: fmt::Display,
{
    read_while(headers, body, bytes_max, patience, |_| Ok(()), |_| Ok(()))
}

/// As [`read`], but shows `watch` what has come so far, whenever more of it comes: what it refuses is not read further. `hold` is
/// told how many bytes have come before they are kept, and may refuse them as well.
#[expect(clippy::manual_async_fn, reason = "an `async fn` holds each of its arguments twice")]
pub(crate) fn read_while<B>(
    headers: &HeaderMap,
    mut body: B,
    bytes_max: usize,
    patience: Duration,
    watch: impl Fn(&[u8]) -> Result<(), ProtocolError> + Send + Sync,
    mut hold: impl FnMut(usize) -> Result<(), ProtocolError> + Send,
) -> impl Future<Output = Result<Bytes, ProtocolError>> + Send
where
    B: Body<Data = Bytes> + Send + Unpin,
    B::Error: fmt::Display,
{
    async move {
        let too_large = ProtocolError::TooLarge { what: "request body".into(), bytes_max: bytes_max as u64 };
        // A body that was wrapped on its way may have forgotten its length.
        let in_head = || headers.get(header::CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse().ok());
        if body.size_hint().exact().or_else(in_head).is_some_and(|declared: u64| declared > bytes_max as u64) {
            return Err(too_large);
        }
        let reading = async {
            // Most bodies come in one piece, which is then used as it is.
            let mut whole = Bytes::new();
            let mut pieces = BytesMut::new();
            while let Some(frame) = body.frame().await {
                let frame = frame.map_err(|error| ProtocolError::InvalidRequest {
                    reason: format!("the request body could not be read: {error}"),
                })?;
                let Ok(data) = frame.into_data() else { continue };
                if whole.len() + pieces.len() + data.len() > bytes_max {
                    return Err(too_large.clone());
                }
                hold(whole.len() + pieces.len() + data.len())?;
                if whole.is_empty() && pieces.is_empty() {
                    whole = data;
                } else {
                    if pieces.is_empty() {
                        pieces.extend_from_slice(&std::mem::take(&mut whole));
                    }
                    pieces.extend_from_slice(&data);
                }
                watch(if pieces.is_empty() { &whole } else { &pieces })?;
            }
            Ok(if pieces.is_empty() { whole } else { pieces.freeze() })
        };
        let mut reading = pin!(reading);
        // Most bodies are there already, and need no clock to wait with.
        if let Poll::Ready(read) = poll_fn(|cx| Poll::Ready(reading.as_mut().poll(cx))).await {
            return read;
        }
        match tokio::time::timeout(patience, reading).await {
            Ok(read) => read,
            Err(_) => {
                Err(ProtocolError::InvalidRequest { reason: "the request body did not arrive in time".to_owned() })
            }
        }
    }
}

/// Whether a body says it is JSON. A body without a content type is accepted as JSON. A form or plain text is refused:
/// browsers send those across origins without a preflight request, and pages that may not call must not get around it.
pub(crate) fn check_content_type(head: &Head<'_>) -> Result<(), ProtocolError> {
    if matches!(head.present.content_type, ContentType::Absent | ContentType::Json) {
        return Ok(());
    }
    let value = head.headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or("?");
    let bare = value.split(';').next().unwrap_or_default().trim();
    if ["application/json", "application/a2a+json"].iter().any(|json| bare.eq_ignore_ascii_case(json)) {
        return Ok(());
    }
    let reason = format!("Content-Type {bare:.100} is not supported; send application/json");
    Err(ProtocolError::ContentTypeNotSupported { reason })
}

/// The body of a request on one of our own connections. It may be dropped before its end: the rest is then read in the
/// background.
pub(crate) struct RequestBody {
    /// None at its end.
    body: Option<Incoming>,
    /// None where the rest need not be read.
    drains_rest: Option<Arc<Shared>>,
}

impl RequestBody {
    pub(crate) fn of(request: Request<Incoming>, shared: &Arc<Shared>) -> Request<Self> {
        // HTTP/2 ends a single request without its connection. A client that sent `Expect: 100-continue` has not begun
        // to send its body.
        let drains_rest = request.version() < Version::HTTP_2 && !request.headers().contains_key(header::EXPECT);
        request.map(|body| Self { body: Some(body), drains_rest: drains_rest.then(|| shared.clone()) })
    }
}

impl Body for RequestBody {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let Some(body) = &mut self.body else { return Poll::Ready(None) };
        let next = Pin::new(body).poll_frame(cx);
        if let Poll::Ready(None | Some(Err(_))) = next {
            self.body = None;
        }
        next
    }

    fn is_end_stream(&self) -> bool {
        self.body.as_ref().is_none_or(Body::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        self.body.as_ref().map_or(SizeHint::with_exact(0), Body::size_hint)
    }
}

impl Drop for RequestBody {
    fn drop(&mut self) {
        if let (Some(body), Some(shared)) = (self.body.take(), self.drains_rest.take())
            && !body.is_end_stream()
        {
            read_rest(&shared, body);
        }
    }
}

fn read_rest(shared: &Shared, mut body: Incoming) {
    let supervisor = &shared.supervisor;
    if supervisor.is_draining() || tokio::runtime::Handle::try_current().is_err() {
        return;
    }
    let draining = supervisor.draining().clone();
    let patience = Duration::from_secs(u64::from(shared.limits.unread_body_s_max));
    supervisor.spawn(Kind::Connection, async move {
        let forgetting = async { while let Some(Ok(_)) = body.frame().await {} };
        tokio::select! {
            biased;
            () = draining.cancelled() => {}
            _ = tokio::time::timeout(patience, forgetting) => {}
        }
    });
}
