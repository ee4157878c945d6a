//! Outlines of artifacts that are too large to be shown with their task. A caller tells the store how many bytes it can
//! take. The store does not read the contents that do not fit and reports what it left out, so that showing a task
//! never loads a large file.

use switchboard_core::lifecycle::{ArtifactHead, Head};
use switchboard_core::model::{Artifact, Part, PartContent, PartDetails};

/// What one part takes in addition to its content, in memory or in a reply, whichever is more.
const PART_BYTES: u64 = 256;

/// Contents up to this size are kept when an artifact of several different parts is too large as a whole.
const KEPT_BYTES_MAX: usize = 32 << 10;

/// An artifact of more parts than this is one long content in pieces.
pub const PARTS_APART_MAX: u64 = 32;

/// The artifacts of a task that do not fit into `bytes_max`, judged by their heads alone. The largest are chosen, and
/// as few as possible.
#[must_use]
pub fn too_large(head: &Head, bytes_max: u64) -> Vec<&ArtifactHead> {
    let mut left = bytes_max;
    if head.artifacts.iter().all(|artifact| take(&mut left, weight(artifact))) {
        return Vec::new();
    }
    let mut by_weight: Vec<_> = head.artifacts.iter().collect();
    by_weight.sort_by_key(|artifact| weight(artifact));
    let mut left = bytes_max;
    by_weight.retain(|artifact| !take(&mut left, weight(artifact)));
    by_weight
}

fn take(left: &mut u64, weight: u64) -> bool {
    let fits = weight <= *left;
    if fits {
        *left -= weight;
    }
    fits
}

/// The size of an artifact in a reply, estimated from its head: bytes are written in base64.
fn weight(artifact: &ArtifactHead) -> u64 {
    (artifact.bytes / 3 * 4).saturating_add(artifact.parts.saturating_mul(PART_BYTES)).saturating_add(PART_BYTES)
}

/// An artifact without the contents that do not fit. It is built from the artifact's writes, oldest first.
#[derive(Clone, Debug, PartialEq)]
pub struct Outline {
    /// Everything but its parts.
    artifact: Artifact,
    parts: Vec<OutlinedPart>,
    count: u64,
    /// Whether all parts are pieces of one content: they have the same kind, and no part has another name or media type
    /// than the first.
    alike: bool,
}

/// What is known about a part whose content is not read.
#[derive(Clone, Debug, PartialEq)]
pub struct OutlinedPart {
    pub kind: PartKind,
    /// Only if it is small.
    pub content: Option<PartContent>,
    pub details: PartDetails,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PartKind {
    Text,
    Raw,
    Url,
    Data,
}

impl PartKind {
    #[must_use]
    pub fn of(content: &PartContent) -> Self {
        match content {
            PartContent::Text(_) => Self::Text,
            PartContent::Raw(_) => Self::Raw,
            PartContent::Url(_) => Self::Url,
            PartContent::Data(_) => Self::Data,
        }
    }

    /// The media type of a part of this kind that names none.
    #[must_use]
    pub fn media_type(self) -> &'static str {
        match self {
            Self::Text => "text/plain; charset=utf-8",
            Self::Data => "application/json",
            Self::Raw | Self::Url => "application/octet-stream",
        }
    }
}

impl OutlinedPart {
    #[must_use]
    pub fn of(part: &Part) -> Self {
        let is_small = part.content_bytes() <= KEPT_BYTES_MAX;
        Self {
            kind: PartKind::of(&part.content),
            content: is_small.then(|| part.content.clone()),
            details: part.details().cloned().unwrap_or_default(),
        }
    }

    /// The part with its content, or with a link.
    fn shown(self, url: impl FnOnce() -> String) -> Part {
        match self.content {
            None => self.linked(url()),
            Some(content) => Part::new(content).with_details(self.details),
        }
    }

    fn linked(self, url: String) -> Part {
        let mut details = self.details;
        details.media_type.get_or_insert_with(|| self.kind.media_type().to_owned());
        Part::url(url).with_details(details)
    }
}

impl Outline {
    /// Begins with the parts of a first write. `artifact` has none.
    #[must_use]
    pub fn new(artifact: Artifact) -> Self {
        Self { artifact, parts: Vec::new(), count: 0, alike: true }
    }

    /// The outline of an artifact whose contents are in memory.
    #[must_use]
    pub fn of(artifact: &Artifact) -> Self {
        let mut outline = Self::new(artifact.copy_with_parts(Vec::new()));
        for part in &artifact.parts {
            outline.add(OutlinedPart::of(part));
        }
        outline
    }

    /// Adds a later write, which is given without its parts.
    pub fn append(&mut self, chunk: &Artifact) {
        self.artifact.append(chunk);
    }

    pub fn add(&mut self, part: OutlinedPart) {
        if let Some(first) = self.parts.first() {
            let same = |name: &Option<String>, known: &Option<String>| name.is_none() || name == known;
            self.alike &= part.kind == first.kind
                && same(&part.details.filename, &first.details.filename)
                && same(&part.details.media_type, &first.details.media_type);
        }
        self.count += 1;
        if self.count <= PARTS_APART_MAX {
            self.parts.push(part);
        }
    }

    /// Called when some writes are not known: the parts cannot be counted then, so there is one link for all of them.
    pub fn leave_out_the_rest(&mut self) {
        self.alike = true;
    }

    /// The artifact without its parts.
    #[must_use]
    pub fn bare(&self) -> &Artifact {
        &self.artifact
    }

    /// The artifact with links in the place of contents: one for the whole, or one for each part that is not small if
    /// the parts are different things. `url` gives the address of the whole, or of a part.
    #[must_use]
    pub fn linked_by(self, url: impl Fn(Option<u64>) -> String) -> Artifact {
        let Self { mut artifact, parts, count, alike } = self;
        artifact.parts = if alike || count > PARTS_APART_MAX {
            vec![parts.into_iter().next().map_or_else(|| Part::url(url(None)), |first| first.linked(url(None)))]
        } else {
            (0..).zip(parts).map(|(number, part)| part.shown(|| url(Some(number)))).collect()
        };
        artifact
    }
}
