//! Events into their stored form. Names of events and fields are part of the format: they are spelled here and in
//! `decode`, and change only with the format number.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use switchboard_core::lifecycle::{Event, Head, Inbound};
use switchboard_core::model::{Artifact, ArtifactId, Dialect, Message, Part, PartContent, Role};

use super::json::JsonText;
use super::{CHUNK_BYTES_MAX, FORMAT, INLINE_BYTES_MAX};
use crate::checksum::ContentHash;

pub(crate) struct Encoded {
    pub(crate) record: String,
    pub(crate) record_hash: ContentHash,
    pub(crate) chunks: Vec<Chunk>,
}

/// A piece of a large content, and where it belongs.
pub(crate) struct Chunk {
    pub(crate) number: i64,
    /// None for the part of a message.
    pub(crate) artifact_id: Option<ArtifactId>,
    /// Which part of the artifact or message.
    pub(crate) part: u64,
    /// Where in the artifact's content, all parts taken together, this piece begins.
    pub(crate) start: u64,
    pub(crate) bytes: Bytes,
    pub(crate) hash: ContentHash,
}

/// Encodes a commit. `take_numbers` gives the first of so many fresh chunk numbers.
pub(crate) fn encode(events: &[Event], head: &Head, take_numbers: &dyn Fn(usize) -> i64) -> Encoded {
    let mut encoder = Encoder { json: JsonText::with_capacity(1024), chunks: Vec::new(), take_numbers };
    encoder.json.open('{').key("format").number(FORMAT.into()).key("events").open('[');
    for (at, event) in events.iter().enumerate() {
        encoder.json.open('{');
        encoder.event(event, || written_before(events, at, head));
        encoder.json.close('}');
    }
    encoder.json.close(']').close('}');
    let record = encoder.json.finish();
    let record_hash = ContentHash::of(record.as_bytes());
    Encoded { record, record_hash, chunks: encoder.chunks }
}

/// How many parts and bytes the artifact held before the write at `at`: what it holds after the commit, less what this
/// write and later ones added.
fn written_before(events: &[Event], at: usize, head: &Head) -> (u64, u64) {
    let Event::ArtifactWritten { artifact: written, .. } = &events[at] else { return (0, 0) };
    let Some(known) = head.artifact(written.artifact_id.as_str()) else { return (0, 0) };
    let (mut parts, mut bytes) = (known.parts, known.bytes);
    for event in events[at..].iter().rev() {
        let Event::ArtifactWritten { artifact, append, .. } = event else { continue };
        if artifact.artifact_id != written.artifact_id {
            continue;
        }
        if !append {
            // Whatever came before a replacing write, that write and its part of the content begin at nothing.
            (parts, bytes) = (artifact.parts.len() as u64, content_bytes(artifact));
        }
        parts = parts.saturating_sub(artifact.parts.len() as u64);
        bytes = bytes.saturating_sub(content_bytes(artifact));
    }
    (parts, bytes)
}

fn content_bytes(artifact: &Artifact) -> u64 {
    artifact.parts.iter().map(|part| part.content_bytes() as u64).sum()
}

struct Encoder<'a> {
    json: JsonText,
    chunks: Vec<Chunk>,
    take_numbers: &'a dyn Fn(usize) -> i64,
}

/// Where a part stands, for its chunks.
struct Place<'a> {
    artifact_id: Option<&'a ArtifactId>,
    part: u64,
    start: u64,
}

impl Encoder<'_> {
    fn event(&mut self, event: &Event, written_before: impl FnOnce() -> (u64, u64)) {
        match event {
            Event::Received { inbound, context_id } => {
                self.json.key("received").open('{').key("context").string(context_id.as_str());
                self.inbound(inbound);
                self.json.close('}');
            }
            Event::Opened { inbound, context_id, at } => {
                self.json.key("opened").open('{').key("at").time(*at).key("context").string(context_id.as_str());
                self.inbound(inbound);
                self.json.close('}');
            }
            Event::MessageAdded { inbound } => {
                self.json.key("message_added").open('{');
                self.inbound(inbound);
                self.json.close('}');
            }
            Event::TurnBegan { turn, fence } => {
                self.json.key("turn_began").open('{').key("turn").number((*turn).into());
                self.json.key("fence").number(*fence).close('}');
            }
            Event::TurnEnded => {
                self.json.key("turn_ended").open('{').close('}');
            }
            Event::StatusChanged { state, message, metadata, at } => {
                self.json.key("status").open('{').key("state").string(state.word()).key("at").time(*at);
                if let Some(message) = message {
                    self.json.key("message");
                    self.message(message);
                }
                if let Some(metadata) = metadata {
                    self.json.key("metadata").raw(metadata);
                }
                self.json.close('}');
            }
            Event::ArtifactWritten { artifact, append, last_chunk, metadata, attempt } => {
                self.json.key("artifact").open('{').key("append").boolean(*append);
                self.json.key("last_chunk").boolean(*last_chunk).key("attempt").number((*attempt).into());
                self.json.key("artifact");
                self.artifact(artifact, written_before);
                if let Some(metadata) = metadata {
                    self.json.key("metadata").raw(metadata);
                }
                self.json.close('}');
            }
            Event::Noted { message } => {
                self.json.key("noted").open('{').key("message");
                self.message(message);
                self.json.close('}');
            }
            Event::Replied { message } => {
                self.json.key("replied").open('{').key("message");
                self.message(message);
                self.json.close('}');
            }
            Event::CancelRequested { metadata, at } => {
                self.json.key("cancel_requested").open('{').key("at").time(*at);
                if let Some(metadata) = metadata {
                    self.json.key("metadata").raw(metadata);
                }
                self.json.close('}');
            }
            Event::Claimed { fence, attempt, at } => {
                self.json.key("claimed").open('{').key("fence").number(*fence);
                self.json.key("attempt").number((*attempt).into()).key("at").time(*at).close('}');
            }
            Event::Checkpoint { value } => {
                self.json.key("checkpoint").open('{').key("value").raw(value).close('}');
            }
        }
    }

    fn inbound(&mut self, inbound: &Inbound) {
        self.json.key("inbound").open('{').key("turn").number(inbound.turn.into()).key("message");
        self.message(&inbound.message);
        // The dialect that most speak goes without saying.
        if inbound.dialect != Dialect::V1_0 {
            self.json.key("dialect").string(inbound.dialect.name());
        }
        if let Some(metadata) = &inbound.metadata {
            self.json.key("metadata").raw(metadata);
        }
        self.strings("accepted_output_modes", inbound.accepted_output_modes.iter().map(String::as_str));
        self.strings("extensions", inbound.extensions.iter().map(String::as_str));
        if let Some(trace_parent) = &inbound.trace_parent {
            self.json.key("trace_parent").string(trace_parent);
        }
        self.json.close('}');
    }

    fn message(&mut self, message: &Message) {
        let role = match message.role {
            Role::User => "user",
            Role::Agent => "agent",
        };
        self.json.open('{').key("id").string(message.message_id.as_str()).key("role").string(role);
        if let Some(context_id) = &message.context_id {
            self.json.key("context").string(context_id.as_str());
        }
        if let Some(task_id) = &message.task_id {
            self.json.key("task").string(task_id.as_str());
        }
        self.json.key("parts").open('[');
        for (part, number) in message.parts.iter().zip(0..) {
            self.part(part, Place { artifact_id: None, part: number, start: 0 });
        }
        self.json.close(']');
        if let Some(metadata) = &message.metadata {
            self.json.key("metadata").raw(metadata);
        }
        self.strings("extensions", message.extensions.iter().map(String::as_str));
        self.strings("references", message.reference_task_ids.iter().map(|id| id.as_str()));
        self.json.close('}');
    }

    fn artifact(&mut self, artifact: &Artifact, written_before: impl FnOnce() -> (u64, u64)) {
        self.json.open('{').key("id").string(artifact.artifact_id.as_str());
        if let Some(name) = &artifact.name {
            self.json.key("name").string(name);
        }
        if let Some(description) = &artifact.description {
            self.json.key("description").string(description);
        }
        self.json.key("parts").open('[');
        let is_large = artifact.parts.iter().any(|part| part.content_bytes() > INLINE_BYTES_MAX);
        let (mut number, mut start) = if is_large { written_before() } else { (0, 0) };
        for part in &artifact.parts {
            self.part(part, Place { artifact_id: Some(&artifact.artifact_id), part: number, start });
            number += 1;
            start += part.content_bytes() as u64;
        }
        self.json.close(']');
        if let Some(metadata) = &artifact.metadata {
            self.json.key("metadata").raw(metadata);
        }
        self.strings("extensions", artifact.extensions.iter().map(String::as_str));
        self.json.close('}');
    }

    fn part(&mut self, part: &Part, place: Place<'_>) {
        let is_large = part.content_bytes() > INLINE_BYTES_MAX;
        self.json.open('{');
        match &part.content {
            PartContent::Text(text) if is_large => {
                self.chunked("text", &Bytes::copy_from_slice(text.as_bytes()), place);
            }
            PartContent::Url(url) if is_large => self.chunked("url", &Bytes::copy_from_slice(url.as_bytes()), place),
            PartContent::Data(json) if is_large => {
                self.chunked("data", &Bytes::copy_from_slice(json.as_str().as_bytes()), place);
            }
            PartContent::Raw(bytes) if is_large => self.chunked("raw", bytes, place),
            PartContent::Text(text) => {
                self.json.key("text").string(text);
            }
            PartContent::Url(url) => {
                self.json.key("url").string(url);
            }
            PartContent::Data(json) => {
                self.json.key("data").raw(json);
            }
            PartContent::Raw(bytes) => {
                self.json.key("raw").plain(|out| STANDARD.encode_string(bytes, out));
            }
        }
        if let Some(filename) = &part.filename {
            self.json.key("filename").string(filename);
        }
        if let Some(media_type) = &part.media_type {
            self.json.key("media_type").string(media_type);
        }
        if let Some(metadata) = &part.metadata {
            self.json.key("metadata").raw(metadata);
        }
        self.json.close('}');
    }

    fn chunked(&mut self, kind: &str, content: &Bytes, place: Place<'_>) {
        let count = content.len().div_ceil(CHUNK_BYTES_MAX);
        let first = (self.take_numbers)(count);
        for (number, at) in (first..).zip((0..content.len()).step_by(CHUNK_BYTES_MAX)) {
            let bytes = content.slice(at..content.len().min(at + CHUNK_BYTES_MAX));
            let start = place.start + at as u64;
            let (artifact_id, hash) = (place.artifact_id.cloned(), ContentHash::of(&bytes));
            self.chunks.push(Chunk { number, artifact_id, part: place.part, start, bytes, hash });
        }
        self.json.key("chunks").open('{').key("of").string(kind).key("first").number(first.unsigned_abs());
        self.json.key("count").number(count as u64).key("bytes").number(content.len() as u64).close('}');
    }

    fn strings<'s>(&mut self, key: &str, texts: impl ExactSizeIterator<Item = &'s str>) {
        if texts.len() == 0 {
            return;
        }
        self.json.key(key).open('[');
        for text in texts {
            self.json.string(text);
        }
        self.json.close(']');
    }
}
