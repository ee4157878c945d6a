//! Writes one artifact in chunks. Each chunk is its own event, durable and on its way to followers when the call
//! returns.

use switchboard_core::model::{Artifact, ArtifactId, Json, Part};

use super::{Turn, TurnError};

/// An artifact being written. The first chunk begins it, the others are appended.
///
/// [`ArtifactWriter::finish`] marks its chunk as the last one; an agent that does not know which is the last may just
/// stop writing.
pub struct ArtifactWriter {
    turn: Turn,
    artifact: Artifact,
    begun: bool,
}

impl ArtifactWriter {
    pub(crate) fn new(turn: Turn, id: ArtifactId) -> Self {
        Self { turn, artifact: Artifact::new(id, Vec::new()), begun: false }
    }

    /// An id of your own. Use one artifact per turn: should a later turn die and be tried again, its first write replaces
    /// the artifact, including what earlier turns wrote to it.
    #[must_use]
    pub fn with_id(mut self, id: impl Into<ArtifactId>) -> Self {
        self.artifact.artifact_id = id.into();
        self
    }

    #[must_use]
    pub fn with_name(mut self, name: impl Into<String>) -> Self {
        self.artifact.name = Some(name.into());
        self
    }

    #[must_use]
    pub fn with_description(mut self, description: impl Into<String>) -> Self {
        self.artifact.description = Some(description.into());
        self
    }

    #[must_use]
    pub fn with_metadata(mut self, metadata: Json) -> Self {
        self.artifact.metadata = Some(metadata);
        self
    }

    #[must_use]
    pub fn id(&self) -> &ArtifactId {
        &self.artifact.artifact_id
    }

    /// Writes a chunk of text.
    ///
    /// # Errors
    /// When the task has ended, a limit is exceeded, or the store did not take it.
    pub async fn text(&mut self, text: impl Into<String>) -> Result<(), TurnError> {
        self.chunk(vec![Part::text(text)], false).await
    }

    /// Writes a chunk of any parts.
    ///
    /// # Errors
    /// As [`ArtifactWriter::text`].
    pub async fn parts(&mut self, parts: Vec<Part>) -> Result<(), TurnError> {
        self.chunk(parts, false).await
    }

    /// Writes the last chunk.
    ///
    /// # Errors
    /// As [`ArtifactWriter::text`].
    pub async fn finish(mut self, parts: Vec<Part>) -> Result<(), TurnError> {
        self.chunk(parts, true).await
    }

    async fn chunk(&mut self, parts: Vec<Part>, last: bool) -> Result<(), TurnError> {
        let chunk = if self.begun {
            Artifact::new(self.artifact.artifact_id.clone(), parts)
        } else {
            Artifact { parts, ..self.artifact.clone() }
        };
        self.turn.write_artifact(chunk, self.begun, last, None).await?;
        self.begun = true;
        Ok(())
    }
}
