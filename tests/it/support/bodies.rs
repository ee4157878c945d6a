//! Request bodies that behave badly.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Body, Frame};

/// A body that must not be read.
pub(crate) struct Untouched;

impl Body for Untouched {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        panic!("the body was read");
    }
}

/// A body in pieces.
pub(crate) enum Chunks {
    Endless {
        chunk: Bytes,
        taken: Arc<AtomicUsize>,
    },
    Of(std::vec::IntoIter<Bytes>),
    /// One piece, and then nothing for ever.
    Stuck {
        begun: bool,
    },
}

impl Chunks {
    /// The same piece again and again; counts how often it was taken.
    pub(crate) fn endless(chunk: Bytes, taken: Arc<AtomicUsize>) -> Self {
        Self::Endless { chunk, taken }
    }

    pub(crate) fn of(pieces: Vec<Bytes>) -> Self {
        Self::Of(pieces.into_iter())
    }

    pub(crate) fn stuck() -> Self {
        Self::Stuck { begun: false }
    }
}

impl Body for Chunks {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        match self.get_mut() {
            Self::Endless { chunk, taken } => {
                taken.fetch_add(1, Ordering::SeqCst);
                Poll::Ready(Some(Ok(Frame::data(chunk.clone()))))
            }
            Self::Of(pieces) => Poll::Ready(pieces.next().map(|piece| Ok(Frame::data(piece)))),
            Self::Stuck { begun: begun @ false } => {
                *begun = true;
                Poll::Ready(Some(Ok(Frame::data(Bytes::from_static(b"{")))))
            }
            Self::Stuck { begun: true } => Poll::Pending,
        }
    }
}
