//! The body of a download.

use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::{fmt, io};

use bytes::Bytes;
use http_body::{Frame, SizeHint};
use switchboard_core::call::BoxFuture;
use switchboard_core::error::ProtocolError;
use switchboard_engine::budget::Charge;
use switchboard_engine::ports::download::{ArtifactCursor, ArtifactPiece};

use crate::server::exchange::request_record::Holder;
use crate::server::exchange::respond::{ReplyCounting, StreamedBody};
use crate::server::ports::Downloads;

/// The body of a download: one piece is read when the client has taken the one before, so no more than that is held.
pub(crate) struct DownloadBody {
    downloads: Arc<dyn Downloads>,
    cursor: Option<ArtifactCursor>,
    read_bytes: usize,
    reading: Option<BoxFuture<'static, Result<ArtifactPiece, ProtocolError>>>,
    left: u64,
    /// What the piece that is held counts.
    charge: Option<Charge<Holder>>,
}

impl fmt::Debug for DownloadBody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DownloadBody").finish_non_exhaustive()
    }
}

impl DownloadBody {
    pub(super) fn new(downloads: Arc<dyn Downloads>, cursor: ArtifactCursor, read_bytes: usize) -> Self {
        let left = cursor.until - cursor.from;
        Self { downloads, cursor: Some(cursor), read_bytes, reading: None, left, charge: None }
    }
}

impl StreamedBody for DownloadBody {
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        if let Some(cursor) = self.cursor.take().filter(|cursor| !cursor.is_at_end()) {
            self.reading = Some(self.downloads.read(cursor, self.read_bytes));
        }
        let Some(reading) = &mut self.reading else { return Poll::Ready(None) };
        let piece = ready!(reading.as_mut().poll(cx));
        self.reading = None;
        Poll::Ready(Some(match piece {
            Ok(ArtifactPiece { bytes, next }) => {
                self.left = next.until - next.from;
                self.cursor = Some(next);
                Ok(Frame::data(bytes))
            }
            Err(error) => {
                // The status has been sent already. The connection is broken off, so that the client does not take this
                // for the end of the file.
                tracing::warn!(%error, "a download broke off");
                Err(io::Error::other(error))
            }
        }))
    }

    fn is_done(&self) -> bool {
        self.left == 0
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.left)
    }

    /// One piece is held at a time.
    fn hold(&mut self, counting: ReplyCounting<'_>) -> Result<(), ProtocolError> {
        self.charge = Some(counting.piece(self.left.min(self.read_bytes as u64))?);
        Ok(())
    }
}
