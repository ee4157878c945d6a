//! Bodies: reading a request within bounds, and the shapes of an answer.

use std::fmt;
use std::future::poll_fn;
use std::io;
use std::pin::{Pin, pin};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http::{HeaderMap, header};
use http_body::{Body, Frame, SizeHint};
use http_body_util::BodyExt;
use switchboard_core::error::ProtocolError;

#[cfg(feature = "grpc")]
use crate::server::bindings::grpc::stream::GrpcBody;
use crate::server::bindings::sse::SseBody;
use crate::server::downloads::download_body::DownloadBody;
use crate::server::edge::access_log::FollowedBody;

/// The body of an answer: all of it, a stream of events, a file piece by piece, or what gRPC frames.
#[derive(Default)]
pub enum ReplyBody {
    #[default]
    Empty,
    Whole(Bytes),
    #[doc(hidden)]
    Events(Box<SseBody>),
    #[doc(hidden)]
    Download(Box<DownloadBody>),
    /// One whose end the access log waits for.
    #[doc(hidden)]
    Followed(Box<FollowedBody>),
    #[doc(hidden)]
    #[cfg(feature = "grpc")]
    Grpc(Box<GrpcBody>),
}

// By hand: an answer may hold what people wrote, so its length is shown and not its text.
impl fmt::Debug for ReplyBody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => f.write_str("Empty"),
            Self::Whole(bytes) => write!(f, "Whole({} bytes)", bytes.len()),
            Self::Events(_) => f.write_str("Events(..)"),
            Self::Download(_) => f.write_str("Download(..)"),
            Self::Followed(body) => f.debug_tuple("Followed").field(body).finish(),
            #[cfg(feature = "grpc")]
            Self::Grpc(_) => f.write_str("Grpc(..)"),
        }
    }
}

impl Body for ReplyBody {
    type Data = Bytes;
    /// Only a download can break off.
    type Error = io::Error;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        let this = self.get_mut();
        match this {
            Self::Empty => Poll::Ready(None),
            Self::Whole(_) => match std::mem::take(this) {
                Self::Whole(bytes) => Poll::Ready(Some(Ok(Frame::data(bytes)))),
                _ => Poll::Ready(None),
            },
            Self::Download(download) => download.poll(cx).map(|piece| piece.map(|bytes| bytes.map(Frame::data))),
            Self::Followed(followed) => followed.poll(cx),
            Self::Events(events) => events.poll(cx).map(|bytes| bytes.map(|bytes| Ok(Frame::data(bytes)))),
            #[cfg(feature = "grpc")]
            Self::Grpc(body) => body.poll(cx).map(|frame| frame.map(Ok)),
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Empty => true,
            Self::Whole(_) => false,
            Self::Events(events) => events.is_done(),
            Self::Download(download) => download.left() == 0,
            Self::Followed(followed) => followed.is_done(),
            #[cfg(feature = "grpc")]
            Self::Grpc(body) => body.is_done(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Empty => SizeHint::with_exact(0),
            Self::Whole(bytes) => SizeHint::with_exact(bytes.len() as u64),
            Self::Events(_) => SizeHint::default(),
            Self::Download(download) => SizeHint::with_exact(download.left()),
            Self::Followed(followed) => followed.hint(),
            #[cfg(feature = "grpc")]
            Self::Grpc(_) => SizeHint::default(),
        }
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
    read_while(headers, body, bytes_max, patience, |_| Ok(()))
}

/// As [`read`], but shows `watch` what has come so far, whenever more of it comes: what it refuses is not read further.
pub(crate) async fn read_while<B>(
    headers: &HeaderMap,
    mut body: B,
    bytes_max: usize,
    patience: Duration,
    watch: impl Fn(&[u8]) -> Result<(), ProtocolError>,
) -> Result<Bytes, ProtocolError>
where
    B: Body<Data = Bytes> + Send + Unpin,
    B::Error: fmt::Display,
{
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
        Err(_) => Err(ProtocolError::InvalidRequest { reason: "the request body did not arrive in time".to_owned() }),
    }
}
