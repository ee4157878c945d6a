//! A request: the part before its body ([`Head`]), and reading the body within bounds of size and time.

use std::fmt;
use std::future::poll_fn;
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http::{HeaderMap, Method, Uri, header};
use http_body::Body;
use http_body_util::BodyExt;
use switchboard_core::error::ProtocolError;

use crate::server::exchange::headers::{ContentType, PresentHeaders};
use crate::server::exchange::request_record::RequestRecord;
use crate::server::uri::query_pairs;

/// The part of a request that is there before its body.
#[derive(Clone, Copy)]
pub(crate) struct Head<'a> {
    pub(crate) method: &'a Method,
    pub(crate) uri: &'a Uri,
    pub(crate) headers: &'a HeaderMap,
    /// Which of the headers there are.
    pub(crate) present: PresentHeaders,
    pub(crate) note: &'a RequestRecord,
}

impl Head<'_> {
    pub(crate) fn query(&self, name: &str) -> Option<String> {
        let pairs = query_pairs(self.uri.query()?)?;
        pairs.into_iter().find(|(key, _)| key == name).map(|(_, value)| value.into_owned())
    }
}

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
