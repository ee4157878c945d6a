//! Writes JSON by appending to a byte buffer. Output is compact and never holds a raw line break, so that a document
//! fits on one `data:` line of an event stream.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use crate::model::{Json, Timestamp};

/// Writes the members of one object.
pub struct Object<'o> {
    out: &'o mut Vec<u8>,
    is_empty: bool,
}

impl<'o> Object<'o> {
    #[inline]
    #[must_use]
    pub fn open(out: &'o mut Vec<u8>) -> Self {
        out.push(b'{');
        Self { out, is_empty: true }
    }

    /// Begins a member whose name needs no escaping; the caller writes its value.
    // Where the name is known at compile time, its copy is a few stores instead of a call.
    #[inline(always)]
    pub fn key(&mut self, name: &'static str) -> &mut Vec<u8> {
        // One reservation for the separator, the name, its quotes and the colon.
        self.out.reserve(name.len() + 4);
        if !self.is_empty {
            self.out.push(b',');
        }
        self.is_empty = false;
        self.out.push(b'"');
        self.out.extend_from_slice(name.as_bytes());
        self.out.extend_from_slice(b"\":");
        self.out
    }

    /// Begins a member whose name comes from outside.
    pub fn named(&mut self, name: &str) -> &mut Vec<u8> {
        if !self.is_empty {
            self.out.push(b',');
        }
        self.is_empty = false;
        write_str(self.out, name);
        self.out.push(b':');
        self.out
    }

    #[inline]
    pub fn str(&mut self, name: &'static str, text: &str) {
        write_str(self.key(name), text);
    }

    #[inline]
    pub fn str_if_set(&mut self, name: &'static str, text: Option<&str>) {
        if let Some(text) = text {
            self.str(name, text);
        }
    }

    #[inline]
    pub fn json_if_set(&mut self, name: &'static str, json: Option<&Json>) {
        if let Some(json) = json {
            write_json(self.key(name), json);
        }
    }

    #[inline]
    pub fn u64(&mut self, name: &'static str, number: u64) {
        write_u64(self.key(name), number);
    }

    #[inline]
    pub fn bool(&mut self, name: &'static str, value: bool) {
        let text: &[u8] = if value { b"true" } else { b"false" };
        self.key(name).extend_from_slice(text);
    }

    /// A boolean without presence: false is spelled by leaving it out.
    #[inline]
    pub fn flag(&mut self, name: &'static str, value: bool) {
        if value {
            self.bool(name, true);
        }
    }

    #[inline]
    pub fn strings_if_any(&mut self, name: &'static str, texts: &[String]) {
        if !texts.is_empty() {
            write_strings(self.key(name), texts);
        }
    }

    #[inline]
    pub fn close(self) {
        self.out.push(b'}');
    }
}

/// Writes an array, each element by `write`.
#[inline]
pub fn write_array<T>(out: &mut Vec<u8>, items: impl IntoIterator<Item = T>, mut write: impl FnMut(&mut Vec<u8>, T)) {
    out.push(b'[');
    let mut is_first = true;
    for item in items {
        if !is_first {
            out.push(b',');
        }
        is_first = false;
        write(out, item);
    }
    out.push(b']');
}

pub fn write_strings(out: &mut Vec<u8>, texts: &[String]) {
    write_array(out, texts, |out, text| write_str(out, text));
}

/// Writes a quoted string. Text that needs no escapes, which is most text, is copied in one piece.
#[inline]
pub fn write_str(out: &mut Vec<u8>, text: &str) {
    out.reserve(text.len() + 2);
    out.push(b'"');
    if needs_escapes(text.as_bytes()) {
        write_escaped(out, text.as_bytes());
    } else {
        out.extend_from_slice(text.as_bytes());
    }
    out.push(b'"');
}

#[inline]
fn is_special(byte: u8) -> bool {
    byte < 0x20 || byte == b'"' || byte == b'\\'
}

#[inline]
fn needs_escapes(bytes: &[u8]) -> bool {
    let (words, rest) = bytes.as_chunks::<8>();
    // The last eight bytes may overlap the word before them: looking twice is cheaper than byte by byte.
    match bytes.last_chunk::<8>() {
        Some(last) => words.iter().chain([last]).fold(0, |found, word| found | specials(*word)) != 0,
        None => rest.iter().any(|byte| is_special(*byte)),
    }
}

/// Not zero if one of eight bytes is special; then the lowest bit that is set belongs to the first of them. All eight are looked at
/// in one register: subtracting borrows into the high bit of a byte that was less than what is subtracted from it.
#[inline]
pub(super) fn specials(word: [u8; 8]) -> u64 {
    const fn all(byte: u8) -> u64 {
        u64::from_le_bytes([byte; 8])
    }
    let word = u64::from_le_bytes(word);
    let less_than = |word: u64, bound: u8| word.wrapping_sub(all(bound)) & !word;
    let equal = |byte: u8| less_than(word ^ all(byte), 1);
    (less_than(word, 0x20) | equal(b'"') | equal(b'\\')) & all(0x80)
}

fn write_escaped(out: &mut Vec<u8>, bytes: &[u8]) {
    const HEX: &[u8; 16] = b"0123456789abcdef";
    let mut plain_from = 0;
    for (at, &byte) in bytes.iter().enumerate() {
        if !is_special(byte) {
            continue;
        }
        out.extend_from_slice(&bytes[plain_from..at]);
        plain_from = at + 1;
        match byte {
            b'"' => out.extend_from_slice(b"\\\""),
            b'\\' => out.extend_from_slice(b"\\\\"),
            b'\n' => out.extend_from_slice(b"\\n"),
            b'\r' => out.extend_from_slice(b"\\r"),
            b'\t' => out.extend_from_slice(b"\\t"),
            0x08 => out.extend_from_slice(b"\\b"),
            0x0c => out.extend_from_slice(b"\\f"),
            control => {
                let (high, low) = (HEX[usize::from(control >> 4)], HEX[usize::from(control & 15)]);
                out.extend_from_slice(&[b'\\', b'u', b'0', b'0', high, low]);
            }
        }
    }
    out.extend_from_slice(&bytes[plain_from..]);
}

/// Writes a free-form value as it came in. Line breaks can stand only between its tokens, where dropping them changes
/// nothing.
#[inline]
pub fn write_json(out: &mut Vec<u8>, json: &Json) {
    write_json_text(out, json.as_str().as_bytes());
}

/// As [`write_json`], of a text that is JSON.
#[inline]
pub(super) fn write_json_text(out: &mut Vec<u8>, bytes: &[u8]) {
    if bytes.iter().fold(false, |found, byte| found | matches!(byte, b'\n' | b'\r')) {
        out.extend(bytes.iter().filter(|byte| !matches!(byte, b'\n' | b'\r')));
    } else {
        out.extend_from_slice(bytes);
    }
}

#[inline]
pub fn write_u64(out: &mut Vec<u8>, mut number: u64) {
    // The longest u64 has 20 digits.
    let mut digits = [0u8; 20];
    let mut at = digits.len();
    loop {
        at -= 1;
        digits[at] = b'0' + u8::try_from(number % 10).expect("a digit fits a byte");
        number /= 10;
        if number == 0 {
            break;
        }
    }
    out.extend_from_slice(&digits[at..]);
}

#[inline]
pub fn write_i64(out: &mut Vec<u8>, number: i64) {
    if number < 0 {
        out.push(b'-');
    }
    write_u64(out, number.unsigned_abs());
}

/// Writes bytes as a quoted string of standard base64 with padding.
pub fn write_base64(out: &mut Vec<u8>, bytes: &[u8]) {
    let len = base64::encoded_len(bytes.len(), true).expect("what fits in memory has a length");
    out.reserve(len + 2);
    out.push(b'"');
    let from = out.len();
    out.resize(from + len, 0);
    STANDARD.encode_slice(bytes, &mut out[from..]).expect("the slice has the encoded length");
    out.push(b'"');
}

#[inline]
pub fn write_timestamp(out: &mut Vec<u8>, timestamp: Timestamp) {
    out.reserve(26);
    out.push(b'"');
    out.extend_from_slice(&timestamp.to_rfc3339());
    out.push(b'"');
}
