//! A result of a task: one or more parts under an id that is unique within the task.

use super::ids::ArtifactId;
use super::json::Json;
use super::part::Part;

/// A result of a task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Artifact {
    /// Unique within the task. A write under an id that exists replaces or extends that artifact.
    pub artifact_id: ArtifactId,
    /// The content, in order. A streamed artifact has a part for each chunk.
    pub parts: Vec<Part>,
    /// In a box of its own and never empty, because most chunks of a streamed artifact have none.
    details: Option<Box<ArtifactDetails>>,
}

/// What an artifact says about its content.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ArtifactDetails {
    /// A name for people, such as a file name.
    pub name: Option<String>,
    /// What it is, for people.
    pub description: Option<String>,
    /// Free-form JSON about it, an object.
    pub metadata: Option<Json>,
    /// URIs of the extensions that shaped it.
    pub extensions: Vec<String>,
}

impl Artifact {
    /// An artifact without name, description or metadata. `Turn::artifact` makes an id for one whose id is empty.
    #[must_use]
    pub fn new(artifact_id: impl Into<ArtifactId>, parts: Vec<Part>) -> Self {
        Self { artifact_id: artifact_id.into(), parts, details: None }
    }

    /// Names it for people.
    #[must_use]
    pub fn with_name(mut self, name: impl Into<String>) -> Self {
        self.change_details(|details| details.name = Some(name.into()));
        self
    }

    /// Says what it is, for people.
    #[must_use]
    pub fn with_description(mut self, description: impl Into<String>) -> Self {
        self.change_details(|details| details.description = Some(description.into()));
        self
    }

    /// Adds free-form JSON about it, which has to be an object.
    #[must_use]
    pub fn with_metadata(mut self, metadata: Json) -> Self {
        self.change_details(|details| details.metadata = Some(metadata));
        self
    }

    /// Says all this about the content, and nothing else.
    #[must_use]
    pub fn with_details(mut self, details: ArtifactDetails) -> Self {
        self.details = (details != ArtifactDetails::default()).then(|| Box::new(details));
        self
    }

    /// The same artifact with other parts. Its own parts are not copied.
    #[must_use]
    pub fn copy_with_parts(&self, parts: Vec<Part>) -> Self {
        Self { artifact_id: self.artifact_id.clone(), parts, details: self.details.clone() }
    }

    /// Changes what is said about the content.
    pub fn change_details(&mut self, change: impl FnOnce(&mut ArtifactDetails)) {
        change(self.details.get_or_insert_default());
        self.details.take_if(|details| **details == ArtifactDetails::default());
    }

    /// All that is said about the content.
    #[must_use]
    pub fn details(&self) -> Option<&ArtifactDetails> {
        self.details.as_deref()
    }

    /// A name for people, such as a file name.
    #[must_use]
    pub fn name(&self) -> Option<&str> {
        self.details()?.name.as_deref()
    }

    /// What it is, for people.
    #[must_use]
    pub fn description(&self) -> Option<&str> {
        self.details()?.description.as_deref()
    }

    /// Free-form JSON about it, an object.
    #[must_use]
    pub fn metadata(&self) -> Option<&Json> {
        self.details()?.metadata.as_ref()
    }

    /// URIs of the extensions that shaped it.
    #[must_use]
    pub fn extensions(&self) -> &[String] {
        self.details().map(|details| &*details.extensions).unwrap_or_default()
    }

    /// All text parts, joined as they stand: chunks of a streamed text are one text.
    #[must_use]
    pub fn text(&self) -> String {
        self.parts.iter().filter_map(Part::as_text).collect()
    }

    /// Extends this artifact by a chunk: parts are appended, metadata keys merged, and what the chunk names anew wins.
    pub fn append(&mut self, chunk: &Artifact) {
        self.parts.extend(chunk.parts.iter().cloned());
        if let Some(new) = chunk.details() {
            self.details.get_or_insert_default().add(new);
        }
    }
}

impl ArtifactDetails {
    fn add(&mut self, new: &Self) {
        self.metadata = match (self.metadata.take(), &new.metadata) {
            (Some(old), Some(new)) => Some(old.merged_with(new)),
            (old, new) => old.or_else(|| new.clone()),
        };
        for uri in &new.extensions {
            if !self.extensions.contains(uri) {
                self.extensions.push(uri.clone());
            }
        }
        if new.name.is_some() {
            self.name.clone_from(&new.name);
        }
        if new.description.is_some() {
            self.description.clone_from(&new.description);
        }
    }
}
