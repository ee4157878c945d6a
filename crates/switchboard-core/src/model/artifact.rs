//! A result of a task: one or more parts under an id that is unique within the task.

use super::{ArtifactId, Json, Part};

/// A result of a task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Artifact {
    /// Unique within the task. A write under an id that exists replaces or extends that artifact.
    pub artifact_id: ArtifactId,
    /// A name for people, such as a file name.
    pub name: Option<String>,
    /// What it is, for people.
    pub description: Option<String>,
    /// The content, in order. A streamed artifact has a part for each chunk.
    pub parts: Vec<Part>,
    /// Free-form JSON about it, an object.
    pub metadata: Option<Json>,
    /// URIs of the extensions that shaped it.
    pub extensions: Vec<String>,
}

impl Artifact {
    /// An artifact without name, description or metadata. `Turn::artifact` makes an id for one whose id is empty.
    #[must_use]
    pub fn new(artifact_id: impl Into<ArtifactId>, parts: Vec<Part>) -> Self {
        Self {
            artifact_id: artifact_id.into(),
            name: None,
            description: None,
            parts,
            metadata: None,
            extensions: Vec::new(),
        }
    }

    /// All text parts, joined as they stand: chunks of a streamed text are one text.
    #[must_use]
    pub fn text(&self) -> String {
        self.parts.iter().filter_map(Part::as_text).collect()
    }

    /// Extends this artifact by a chunk: parts are appended, metadata keys merged, and what the chunk names anew wins.
    pub fn append(&mut self, chunk: &Artifact) {
        self.parts.extend(chunk.parts.iter().cloned());
        self.metadata = match (self.metadata.take(), &chunk.metadata) {
            (Some(old), Some(new)) => Some(old.merged_with(new)),
            (old, new) => old.or_else(|| new.clone()),
        };
        for uri in &chunk.extensions {
            if !self.extensions.contains(uri) {
                self.extensions.push(uri.clone());
            }
        }
        if chunk.name.is_some() {
            self.name.clone_from(&chunk.name);
        }
        if chunk.description.is_some() {
            self.description.clone_from(&chunk.description);
        }
    }
}
