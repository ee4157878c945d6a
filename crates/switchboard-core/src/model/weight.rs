//! The size of a message, artifact, task or update, counted without writing it: one walk over the model, and a
//! [`Measure`] that says how many bytes each kind of content takes. [`Measure::WEIGHT`] is an upper bound over the
//! forms of all dialects, in JSON and in protobuf; limits on replies and frames use it. [`Measure::ABOUT`] is an
//! estimate that is good enough to end a page or to bound a cache.

use super::artifact::Artifact;
use super::json::Json;
use super::message::Message;
use super::part::{Part, PartContent};
use super::task::Task;
use super::update::Update;

/// One way to measure.
#[derive(Clone, Copy, Debug)]
pub struct Measure {
    /// Braces, keys and the like around one thing.
    frame: u64,
    text: fn(&str) -> u64,
    bytes: fn(u64) -> u64,
    free_form: fn(&Json) -> u64,
}

/// Braces, keys and the like around one thing, at most.
const FRAME_BYTES: u64 = 96;

/// What one byte of content weighs at most: a control character is six characters of JSON, and a list of one-digit numbers
/// takes seven times its JSON in protobuf, where every number has eight bytes.
pub const WEIGHT_PER_BYTE_MAX: u64 = 8;

impl Measure {
    /// What a thing takes in a reply at most, in any dialect.
    pub const WEIGHT: Self =
        Self { frame: FRAME_BYTES, text: text_weight, bytes: base64_length, free_form: free_form_weight };

    /// What a thing takes in JSON at most.
    const JSON: Self = Self { free_form: json_length, ..Self::WEIGHT };

    /// What a thing takes about, in memory or in a reply. Contents are not looked at, so it costs next to nothing; eight
    /// times this is no less than its weight.
    pub const ABOUT: Self =
        Self { frame: 256, text: |text| text.len() as u64, bytes: |bytes| bytes, free_form: json_length };

    /// The measure of a part.
    #[must_use]
    pub fn part(self, part: &Part) -> u64 {
        let content = match &part.content {
            PartContent::Text(text) | PartContent::Url(text) => (self.text)(text),
            PartContent::Raw(bytes) => (self.bytes)(bytes.len() as u64),
            PartContent::Data(json) => (self.free_form)(json),
        };
        self.frame + content + self.names([part.filename(), part.media_type()]) + self.metadata(part.metadata())
    }

    /// The measure of parts, taken together.
    #[must_use]
    pub fn parts(self, parts: &[Part]) -> u64 {
        parts.iter().map(|part| self.part(part)).sum()
    }

    /// The measure of a message. Its ids take as much as two things.
    #[must_use]
    pub fn message(self, message: &Message) -> u64 {
        3 * self.frame + self.parts(&message.parts) + self.metadata(message.metadata.as_ref())
    }

    /// The measure of an artifact.
    #[must_use]
    pub fn artifact(self, artifact: &Artifact) -> u64 {
        self.frame
            + self.parts(&artifact.parts)
            + self.names([artifact.name(), artifact.description()])
            + self.metadata(artifact.metadata())
    }

    /// The measure of a task, with its artifacts or without.
    #[must_use]
    pub fn task(self, task: &Task, artifacts: bool) -> u64 {
        let messages = task.history.iter().chain(&task.status.message).map(|message| self.message(message));
        let artifacts = task.artifacts.iter().filter(|_| artifacts).map(|artifact| self.artifact(artifact));
        self.frame + self.metadata(task.metadata.as_ref()) + messages.sum::<u64>() + artifacts.sum::<u64>()
    }

    /// The measure of an update.
    #[must_use]
    pub fn update(self, update: &Update) -> u64 {
        let (content, metadata) = match update {
            Update::Task(view) => (self.task(&view.task, true), None),
            Update::Message(message) => (self.message(message), None),
            Update::Status(update) => {
                (update.status.message.as_deref().map_or(0, |said| self.message(said)), update.metadata.as_ref())
            }
            Update::Artifact(update) => (self.artifact(&update.artifact), update.metadata.as_ref()),
        };
        self.frame + content + self.metadata(metadata)
    }

    /// The measure of free-form JSON beside something.
    #[must_use]
    pub fn metadata(self, json: Option<&Json>) -> u64 {
        json.map_or(0, |json| self.frame + (self.free_form)(json))
    }

    fn names(self, names: [Option<&str>; 2]) -> u64 {
        names.into_iter().flatten().map(|name| (self.text)(name)).sum()
    }
}

impl Part {
    /// How many bytes the part takes in a reply at most, in any dialect.
    #[must_use]
    pub fn weight(&self) -> u64 {
        Measure::WEIGHT.part(self)
    }
}

impl Message {
    /// How many bytes the message takes in a reply at most, in any dialect.
    #[must_use]
    pub fn weight(&self) -> u64 {
        Measure::WEIGHT.message(self)
    }
}

impl Artifact {
    /// How many bytes the artifact takes in a reply at most, in any dialect.
    #[must_use]
    pub fn weight(&self) -> u64 {
        Measure::WEIGHT.artifact(self)
    }
}

/// Bytes of content, exactly, of all parts together: what limits count, and where the next part begins.
#[must_use]
pub fn content_bytes(parts: &[Part]) -> u64 {
    parts.iter().map(|part| part.content_bytes() as u64).sum()
}

/// Whether parts take more than so many bytes of JSON. Counting stops there, and most need no counting at all.
#[must_use]
pub fn outweighs(parts: &[Part], bytes_max: u64) -> bool {
    // A control character is six characters of JSON; nothing is more.
    let at_most = 6 * content_bytes(parts) + 6 * FRAME_BYTES * parts.len() as u64;
    at_most > bytes_max && Measure::JSON.parts(parts) > bytes_max
}

fn base64_length(bytes: u64) -> u64 {
    bytes.div_ceil(3) * 4
}

fn json_length(json: &Json) -> u64 {
    json.as_str().len() as u64
}

/// In protobuf every value of free-form JSON has tags and lengths before it, and every number takes nine bytes.
fn free_form_weight(json: &Json) -> u64 {
    let in_protobuf = |byte: u8| match byte {
        b',' => 12,
        b':' | b'[' | b'{' => 6,
        _ => 0,
    };
    json.as_str().bytes().map(|byte| 1 + in_protobuf(byte)).sum::<u64>() + 12
}

fn text_weight(text: &str) -> u64 {
    let escaped = |byte: u8| match byte {
        b'"' | b'\\' | b'\n' | b'\r' | b'\t' => 2,
        0..0x20 | 0x7f => 6,
        // The first bytes of U+0085, U+2028 and U+2029, which streams write as six characters.
        0xc2 => 5,
        0xe2 => 4,
        _ => 1,
    };
    text.bytes().map(escaped).sum()
}
