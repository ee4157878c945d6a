//! Puts together again what an artifact held at a checkpoint, from the writes to it up to then, so that a run can take back
//! what an earlier run wrote after the checkpoint. A2A can replace and append but not cut, so followers are sent the older
//! content anew: in one replacing update or, if that would be too large, in one that replaces and others that append.
//!
//! Does not know where the writes are read from, nor how the pieces are committed.

use crate::model::{Artifact, ArtifactId};

use super::WriteMode;

/// Collects the writes to one artifact, oldest first.
pub struct Restoration {
    id: ArtifactId,
    piece_bytes_max: u64,
    piece: Option<RestoredPiece>,
    piece_bytes: u64,
    /// Whether a piece has been given out that the next one extends.
    begun: bool,
}

/// Several older writes together, to be written again.
#[derive(Debug, PartialEq)]
pub struct RestoredPiece {
    pub artifact: Artifact,
    pub mode: WriteMode,
}

impl Restoration {
    /// Pieces weigh at most `piece_bytes_max`, unless a single write weighed more.
    #[must_use]
    pub fn new(id: ArtifactId, piece_bytes_max: u64) -> Self {
        Self { id, piece_bytes_max, piece: None, piece_bytes: 0, begun: false }
    }

    /// Takes the next write in, if it is one to this artifact. Gives back the piece before it once that is full.
    pub fn take(&mut self, written: &Artifact, append: bool) -> Option<RestoredPiece> {
        if written.artifact_id != self.id {
            return None;
        }
        if !append {
            // It replaced what came before. Pieces given out already are replaced by the next piece.
            self.piece = None;
            self.begun = false;
        }
        let bytes = written.weight();
        match &mut self.piece {
            Some(piece) if self.piece_bytes + bytes <= self.piece_bytes_max => {
                piece.artifact.append(written);
                self.piece_bytes += bytes;
                None
            }
            piece => {
                let full = piece.take();
                self.begun |= full.is_some();
                let mode = if self.begun { WriteMode::Append } else { WriteMode::Replace };
                *piece = Some(RestoredPiece { artifact: written.clone(), mode });
                self.piece_bytes = bytes;
                full
            }
        }
    }

    /// The last piece; none if there were no writes.
    #[must_use]
    pub fn finish(self) -> Option<RestoredPiece> {
        self.piece
    }
}
