//! Escapes text from outside for log lines, so that a line break in it cannot imitate a second log line, and control
//! characters cannot change the terminal.

use std::fmt::{self, Display, Formatter, Write as _};

/// Displays a text on one line, cut to a number of bytes. Control characters, and characters that reorder or break the
/// terminal's output, are written as escapes.
pub struct Escaped<'a> {
    text: &'a str,
    bytes_max: usize,
}

/// Large enough for the end of a command's standard error.
const BYTES_MAX: usize = 8 * 1024;

impl<'a> Escaped<'a> {
    #[must_use]
    pub fn new(text: &'a str) -> Self {
        Self { text, bytes_max: BYTES_MAX }
    }

    /// The same, with another limit.
    #[must_use]
    pub fn at_most(text: &'a str, bytes_max: usize) -> Self {
        Self { text, bytes_max }
    }
}

impl Display for Escaped<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let mut end = self.bytes_max.min(self.text.len());
        while !self.text.is_char_boundary(end) {
            end -= 1;
        }
        let shown = &self.text[..end];
        if end == self.text.len() && shown.bytes().fold(true, |all, byte| all & is_plain(byte)) {
            return f.write_str(shown);
        }
        let mut unwritten = 0;
        for (place, letter) in shown.char_indices() {
            if !needs_escape(letter) {
                continue;
            }
            f.write_str(&shown[unwritten..place])?;
            unwritten = place + letter.len_utf8();
            match letter {
                '\n' => f.write_str("\\n")?,
                '\r' => f.write_str("\\r")?,
                '\t' => f.write_str("\\t")?,
                '\\' => f.write_str("\\\\")?,
                other => write!(f, "\\u{{{:x}}}", u32::from(other))?,
            }
        }
        f.write_str(&shown[unwritten..])?;
        match self.text.len() - end {
            0 => Ok(()),
            more => {
                f.write_char('…')?;
                write!(f, " ({more} bytes more)")
            }
        }
    }
}

/// Whether this ASCII character needs no escape. This fast path covers nearly all text; without branches, the compiler looks at many
/// bytes at once.
fn is_plain(byte: u8) -> bool {
    (0x20..0x7f).contains(&byte) & (byte != b'\\')
}

fn needs_escape(letter: char) -> bool {
    let breaks_lines = matches!(letter, '\u{2028}' | '\u{2029}');
    let reorders = matches!(letter, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    letter == '\\' || letter.is_control() || breaks_lines || reorders
}

#[cfg(test)]
mod tests {
    use super::Escaped;

    #[test]
    fn a_text_stays_on_its_line() {
        let text = "a\nb\r\t\\ \u{1b}[31mred\u{85}\u{2028}\u{202e}ü";
        let shown = r"a\nb\r\t\\ \u{1b}[31mred\u{85}\u{2028}\u{202e}ü";
        assert_eq!(Escaped::new(text).to_string(), shown);
        assert_eq!(Escaped::new("plain text").to_string(), "plain text");
    }

    #[test]
    fn a_long_text_is_cut_between_characters() {
        assert_eq!(Escaped::at_most("üüü", 3).to_string(), "ü… (4 bytes more)");
        assert_eq!(Escaped::at_most("abc", 3).to_string(), "abc");
    }
}
