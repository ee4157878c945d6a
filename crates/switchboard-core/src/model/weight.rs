//! What a piece of a task weighs in a reply, counted without writing it: no form of any dialect, JSON or protobuf, takes
//! more bytes than this. Limits on replies use it; which version spells it makes no difference at this grain.

use super::{Artifact, Json, Message, Part, PartContent};

/// Braces, keys and the like around one thing.
const FRAME_BYTES: u64 = 96;

/// What one byte of content weighs at most: a control character is six characters of JSON, and a list of one-digit numbers
/// takes seven times its JSON in protobuf, where every number has eight bytes.
pub const WEIGHT_PER_BYTE_MAX: u64 = 8;

impl Part {
    #[must_use]
    pub fn weight(&self) -> u64 {
        let content = match &self.content {
            PartContent::Text(text) | PartContent::Url(text) => text_weight(text),
            PartContent::Raw(bytes) => (bytes.len() as u64).div_ceil(3) * 4,
            PartContent::Data(json) => free_form_weight(json),
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
    let at_most: u64 = parts.iter().map(|part| WEIGHT_PER_BYTE_MAX * (part.content_bytes() as u64 + FRAME_BYTES)).sum();
    at_most > bytes_max && parts_weight(parts) > bytes_max
}

fn parts_weight(parts: &[Part]) -> u64 {
    parts.iter().map(Part::weight).sum()
}

fn json_weight(json: Option<&Json>) -> u64 {
    json.map_or(0, |json| FRAME_BYTES + free_form_weight(json))
}

/// In protobuf every value of free-form JSON has a tag and a length before it, and every number takes nine bytes.
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
        // The first bytes of U+0085, U+2028 and U+2029, which streams escape.
        0xc2 => 5,
        0xe2 => 4,
        _ => 1,
    };
    text.bytes().map(escaped).sum()
}
