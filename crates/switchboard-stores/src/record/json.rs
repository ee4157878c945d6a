//! Writes JSON text directly. The stored form embeds free-form JSON as it stands, and nothing in it needs a tree.

use switchboard_core::model::{Json, Timestamp};

/// A JSON text in the making. Objects and arrays are closed by whoever opened them; commas take care of themselves.
pub(super) struct JsonText {
    out: String,
}

impl JsonText {
    pub(super) fn with_capacity(bytes: usize) -> Self {
        Self { out: String::with_capacity(bytes) }
    }

    pub(super) fn finish(self) -> String {
        self.out
    }

    pub(super) fn open(&mut self, bracket: char) -> &mut Self {
        self.comma();
        self.out.push(bracket);
        self
    }

    pub(super) fn close(&mut self, bracket: char) -> &mut Self {
        self.out.push(bracket);
        self
    }

    /// Names are ours: they need no escaping.
    pub(super) fn key(&mut self, name: &str) -> &mut Self {
        self.out.reserve(name.len() + 4);
        self.comma();
        self.out.push('"');
        self.out.push_str(name);
        self.out.push_str("\":");
        self
    }

    pub(super) fn string(&mut self, text: &str) -> &mut Self {
        self.out.reserve(text.len() + 3);
        self.comma();
        self.out.push('"');
        // Folding over all bytes, rather than stopping at the first hit, lets the compiler take many at a time.
        if text.bytes().fold(false, |found, byte| found | is_special(byte)) {
            self.escape(text);
        } else {
            self.out.push_str(text);
        }
        self.out.push('"');
        self
    }

    pub(super) fn number(&mut self, number: u64) -> &mut Self {
        self.comma();
        let mut digits = [0; 20];
        let mut at = digits.len();
        let mut rest = number;
        loop {
            at -= 1;
            digits[at] = b'0' + (rest % 10) as u8;
            rest /= 10;
            if rest == 0 {
                break;
            }
        }
        self.ascii(&digits[at..]);
        self
    }

    pub(super) fn boolean(&mut self, value: bool) -> &mut Self {
        self.comma();
        self.out.push_str(if value { "true" } else { "false" });
        self
    }

    pub(super) fn time(&mut self, at: Timestamp) -> &mut Self {
        self.comma();
        self.out.push('"');
        self.ascii(&at.to_rfc3339());
        self.out.push('"');
        self
    }

    pub(super) fn raw(&mut self, json: &Json) -> &mut Self {
        self.comma();
        self.out.push_str(json.as_str());
        self
    }

    /// A string that needs no escaping, such as base64.
    pub(super) fn plain(&mut self, write: impl FnOnce(&mut String)) -> &mut Self {
        self.comma();
        self.out.push('"');
        write(&mut self.out);
        self.out.push('"');
        self
    }

    fn ascii(&mut self, bytes: &[u8]) {
        self.out.push_str(std::str::from_utf8(bytes).unwrap_or_default());
    }

    fn comma(&mut self) {
        if !matches!(self.out.as_bytes().last(), None | Some(b'{' | b'[' | b':')) {
            self.out.push(',');
        }
    }

    fn escape(&mut self, text: &str) {
        let mut from = 0;
        for (at, byte) in text.bytes().enumerate().filter(|(_, byte)| is_special(*byte)) {
            self.out.push_str(&text[from..at]);
            match byte {
                b'"' => self.out.push_str("\\\""),
                b'\\' => self.out.push_str("\\\\"),
                b'\n' => self.out.push_str("\\n"),
                b'\r' => self.out.push_str("\\r"),
                b'\t' => self.out.push_str("\\t"),
                _ => {
                    const HEX: &[u8; 16] = b"0123456789abcdef";
                    self.out.push_str("\\u00");
                    self.out.push(char::from(HEX[usize::from(byte >> 4)]));
                    self.out.push(char::from(HEX[usize::from(byte & 15)]));
                }
            }
            from = at + 1;
        }
        self.out.push_str(&text[from..]);
    }
}

fn is_special(byte: u8) -> bool {
    byte < 0x20 || byte == b'"' || byte == b'\\'
}
