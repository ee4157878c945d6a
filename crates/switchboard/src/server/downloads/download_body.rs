//! The body of a download: however large the file, no more of it is held than one piece.

use std::fmt;
use std::io;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use switchboard_core::call::BoxFuture;
use switchboard_core::error::ProtocolError;
use switchboard_engine::Engine;
use switchboard_engine::ports::download::{ArtifactCursor, ArtifactPiece};

/// One piece is read when the client has taken the one before.
pub struct DownloadBody {
    engine: Engine,
    cursor: Option<ArtifactCursor>,
    read_bytes: usize,
    reading: Option<BoxFuture<'static, Result<ArtifactPiece, ProtocolError>>>,
    left: u64,
}

impl fmt::Debug for DownloadBody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DownloadBody").finish_non_exhaustive()
    }
}

impl DownloadBody {
    pub(crate) fn new(engine: Engine, cursor: ArtifactCursor, read_bytes: usize) -> Self {
        let left = cursor.until - cursor.from;
        Self { engine, cursor: Some(cursor), read_bytes, reading: None, left }
    }

    pub(crate) fn left(&self) -> u64 {
        self.left
    }

    pub(crate) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Option<io::Result<Bytes>>> {
        if let Some(cursor) = self.cursor.take().filter(|cursor| !cursor.is_at_end()) {
            let (engine, read_bytes) = (self.engine.clone(), self.read_bytes);
            self.reading = Some(Box::pin(async move { engine.read_artifact(cursor, read_bytes).await }));
        }
        let Some(reading) = &mut self.reading else { return Poll::Ready(None) };
        let piece = ready!(reading.as_mut().poll(cx));
        self.reading = None;
        Poll::Ready(Some(match piece {
            Ok(ArtifactPiece { bytes, next }) => {
                self.left = next.until - next.from;
                self.cursor = Some(next);
                Ok(bytes)
            }
            Err(error) => {
                // The status is long sent: all that can be done is to break off, so that nobody takes this for the end.
                tracing::warn!(%error, "a download broke off");
                Err(io::Error::other(error))
            }
        }))
    }
}
