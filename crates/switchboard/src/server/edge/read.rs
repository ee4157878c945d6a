//! Reading the body of a request within bounds of size and time.

use std::fmt;
use std::future::poll_fn;
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http::{HeaderMap, header};
use http_body::Body;
use http_body_util::BodyExt;
use switchboard_core::error::ProtocolError;

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
    read_while(headers, body, bytes_max, patience, |_| Ok(()))
}

/// As [`read`], but shows `watch` what has come so far, whenever more of it comes: what it refuses is not read further.
#[expect(clippy::manual_async_fn, reason = "an `async fn` holds each of its arguments twice")]
pub(crate) fn read_while<B>(
    headers: &HeaderMap,
    mut body: B,
    bytes_max: usize,
    patience: Duration,
    watch: impl Fn(&[u8]) -> Result<(), ProtocolError> + Send + Sync,
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
