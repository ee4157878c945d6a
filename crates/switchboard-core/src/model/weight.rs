//! What a piece of a task weighs in a reply: bytes of JSON, counted without writing them. Limits on replies use it; the
//! form is A2A's, but which version spells it makes no difference at this grain.

use super::{Artifact, Json, Message, Part, PartContent};

/// Braces, keys and the like around one thing.
const FRAME_BYTES: u64 = 96;

impl Part {
    #[must_use]
    pub fn weight(&self) -> u64 {
        let content = match &self.content {
            PartContent::Text(text) | PartContent::Url(text) => text_weight(text),
            PartContent::Raw(bytes) => (bytes.len() as u64).div_ceil(3) * 4,
            PartContent::Data(json) => json.as_str().len() as u64,
        };
        let names = [&self.filename, &self.media_type].into_iter().flatten();
        FRAME_BYTES + content + names.map(|name| text_weight(name)).sum::<u64>() + json_weight(self.metadata.as_ref())
    }
}

impl Message {
    #[must_use]
    pub fn weight(&self) -> u64 {
        3 * FRAME_BYTES + parts_weight(&self.parts) + json_weight(self.metadata.as_ref())
    }
}

impl Artifact {
    #[must_use]
    pub fn weight(&self) -> u64 {
        let names = [&self.name, &self.description].into_iter().flatten();
        FRAME_BYTES
            + parts_weight(&self.parts)
            + names.map(|name| text_weight(name)).sum::<u64>()
            + json_weight(self.metadata.as_ref())
    }
}

/// Whether parts weigh more than so many bytes. Counting stops there, and most need no counting at all.
#[must_use]
pub fn outweighs(parts: &[Part], bytes_max: u64) -> bool {
    // A control character is six characters of JSON; nothing is more.
    let at_most: u64 = parts.iter().map(|part| 6 * part.content_bytes() as u64 + 6 * FRAME_BYTES).sum();
    at_most > bytes_max && parts_weight(parts) > bytes_max
}

fn parts_weight(parts: &[Part]) -> u64 {
    parts.iter().map(Part::weight).sum()
}

fn json_weight(json: Option<&Json>) -> u64 {
    json.map_or(0, |json| FRAME_BYTES + json.as_str().len() as u64)
}

fn text_weight(text: &str) -> u64 {
    let escaped = |byte: u8| match byte {
        b'"' | b'\\' | b'\n' | b'\r' | b'\t' => 2,
        0..0x20 | 0x7f => 6,
        _ => 1,
    };
    text.bytes().map(escaped).sum()
}
