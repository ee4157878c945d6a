//! What a piece of a task takes in a reply, counted without writing it: an upper bound over the forms of all dialects, in JSON
//! and in protobuf. Limits on replies and frames use it; which version spells it makes no difference at this grain.

use super::{Artifact, Json, Message, Part, PartContent};

/// Braces, keys and the like around one thing.
const FRAME_BYTES: u64 = 96;

/// What one byte of content weighs at most: a control character is six characters of JSON, and a list of one-digit numbers
/// takes seven times its JSON in protobuf, where every number has eight bytes.
pub const WEIGHT_PER_BYTE_MAX: u64 = 8;

impl Part {
    /// How many bytes the part takes in a reply at most, in any dialect.
    #[must_use]
    pub fn weight(&self) -> u64 {
        part_weight(self, free_form_weight)
    }
}

impl Message {
    /// How many bytes the message takes in a reply at most, in any dialect.
    #[must_use]
    pub fn weight(&self) -> u64 {
        3 * FRAME_BYTES + parts_weight(&self.parts) + metadata_weight(self.metadata.as_ref(), free_form_weight)
    }
}

impl Artifact {
    /// How many bytes the artifact takes in a reply at most, in any dialect.
    #[must_use]
    pub fn weight(&self) -> u64 {
        let names = [&self.name, &self.description].into_iter().flatten();
        FRAME_BYTES
            + parts_weight(&self.parts)
            + names.map(|name| text_weight(name)).sum::<u64>()
            + metadata_weight(self.metadata.as_ref(), free_form_weight)
    }
}

/// Whether parts take more than so many bytes of JSON. Counting stops there, and most need no counting at all.
#[must_use]
pub fn outweighs(parts: &[Part], bytes_max: u64) -> bool {
    // A control character is six characters of JSON; nothing is more.
    let at_most: u64 = parts.iter().map(|part| 6 * part.content_bytes() as u64 + 6 * FRAME_BYTES).sum();
    at_most > bytes_max && parts.iter().map(|part| part_weight(part, json_length)).sum::<u64>() > bytes_max
}

fn parts_weight(parts: &[Part]) -> u64 {
    parts.iter().map(Part::weight).sum()
}

/// What a part weighs if its free-form JSON weighs what `free_form` says.
fn part_weight(part: &Part, free_form: fn(&Json) -> u64) -> u64 {
    let content = match &part.content {
        PartContent::Text(text) | PartContent::Url(text) => text_weight(text),
        PartContent::Raw(bytes) => (bytes.len() as u64).div_ceil(3) * 4,
        PartContent::Data(json) => free_form(json),
    };
    let names = [&part.filename, &part.media_type].into_iter().flatten().map(|name| text_weight(name)).sum::<u64>();
    FRAME_BYTES + content + names + metadata_weight(part.metadata.as_ref(), free_form)
}

fn metadata_weight(json: Option<&Json>, free_form: fn(&Json) -> u64) -> u64 {
    json.map_or(0, |json| FRAME_BYTES + free_form(json))
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
