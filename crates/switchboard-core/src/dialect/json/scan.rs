//! Reads the members of an object without reading what is in them: each value comes as text.
//!
//! It is for the envelope around a call, whose parameters are read afterwards, once it is known what they are. serde_json reads
//! such a value into a `RawValue` at ten instructions per byte, which was a twenty-fifth of a whole send. It takes plain documents
//! only. What it gives up at, serde_json reads again and says what is wrong, if anything is.

use super::write::specials;

/// The members of an object in their order.
#[derive(Debug)]
pub struct ScannedMembers<'a> {
    text: &'a str,
    /// The next byte to look at.
    at: usize,
    is_first: bool,
}

/// The text is not an object, or not one that is read here: names with escapes and values deeper than 64 levels are not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotScanned;

impl<'a> ScannedMembers<'a> {
    /// Begins with an object.
    ///
    /// # Errors
    /// When the text begins with something else.
    pub fn of(text: &'a str) -> Result<Self, NotScanned> {
        let at = skip_spaces(text.as_bytes(), 0);
        match text.as_bytes().get(at) {
            Some(b'{') => Ok(Self { text, at: at + 1, is_first: true }),
            _ => Err(NotScanned),
        }
    }

    /// The name of the next member, whose value must be asked for next; none at the end of the object, after which nothing but
    /// white space may stand.
    ///
    /// # Errors
    /// When the text does not go on as an object does.
    pub fn next_name(&mut self) -> Result<Option<&'a str>, NotScanned> {
        let bytes = self.text.as_bytes();
        let mut at = skip_spaces(bytes, self.at);
        match bytes.get(at) {
            Some(b'}') => {
                let is_end = skip_spaces(bytes, at + 1) == bytes.len();
                return if is_end { Ok(None) } else { Err(NotScanned) };
            }
            Some(b',') if !self.is_first => at = skip_spaces(bytes, at + 1),
            _ if self.is_first => {}
            _ => return Err(NotScanned),
        }
        self.is_first = false;
        let name_end = string_end(bytes, at).ok_or(NotScanned)?;
        let name = self.text.get(at + 1..name_end - 1).filter(|name| !name.contains('\\')).ok_or(NotScanned)?;
        self.at = after_colon(bytes, name_end).ok_or(NotScanned)?;
        Ok(Some(name))
    }

    /// The value of the member whose name came last.
    ///
    /// # Errors
    /// When it is not JSON.
    pub fn value(&mut self) -> Result<&'a str, NotScanned> {
        let end = value_end(self.text.as_bytes(), self.at).ok_or(NotScanned)?;
        let value = self.text.get(self.at..end).ok_or(NotScanned)?;
        self.at = end;
        Ok(value)
    }

    /// The value of the member whose name came last, if it looks like the last member and like an object: all up to the bracket
    /// that closes the text. The scanner does not look into it: the reader that parses it as one object finds out if it was more.
    #[must_use]
    pub fn assumed_last_object(&self) -> Option<&'a str> {
        let value = self.text.get(self.at..)?.trim_ascii_end().strip_suffix('}')?.trim_ascii_end();
        (value.starts_with('{') && value.ends_with('}')).then_some(value)
    }
}

/// The content of a quoted text without escapes.
#[must_use]
pub fn plain_text(value: &str) -> Option<&str> {
    value.strip_prefix('"')?.strip_suffix('"').filter(|text| !text.contains('\\'))
}

#[inline]
fn skip_spaces(bytes: &[u8], mut at: usize) -> usize {
    while let Some(b' ' | b'\n' | b'\r' | b'\t') = bytes.get(at) {
        at += 1;
    }
    at
}

#[inline]
fn after_colon(bytes: &[u8], at: usize) -> Option<usize> {
    let at = skip_spaces(bytes, at);
    (*bytes.get(at)? == b':').then(|| skip_spaces(bytes, at + 1))
}

/// Where a value ends that begins here. Open brackets are the bits of a word, 1 for an object.
fn value_end(bytes: &[u8], mut at: usize) -> Option<usize> {
    const LEVELS: u32 = u64::BITS;
    let (mut open, mut depth) = (0_u64, 0);
    loop {
        let first = *bytes.get(at)?;
        at = match first {
            b'"' => string_end(bytes, at)?,
            b'{' | b'[' => {
                let is_object = first == b'{';
                at = skip_spaces(bytes, at + 1);
                if *bytes.get(at)? == if is_object { b'}' } else { b']' } {
                    at + 1
                } else if depth == LEVELS {
                    return None;
                } else {
                    (open, depth) = (open << 1 | u64::from(is_object), depth + 1);
                    if is_object {
                        at = after_colon(bytes, string_end(bytes, at)?)?;
                    }
                    continue;
                }
            }
            b'-' | b'0'..=b'9' => number_end(bytes, at)?,
            b't' => word_end(bytes, at, b"true")?,
            b'f' => word_end(bytes, at, b"false")?,
            b'n' => word_end(bytes, at, b"null")?,
            _ => return None,
        };
        // A value has ended. So have the brackets that close behind it.
        loop {
            if depth == 0 {
                return Some(at);
            }
            at = skip_spaces(bytes, at);
            let is_object = open & 1 == 1;
            match *bytes.get(at)? {
                b',' => {
                    at = skip_spaces(bytes, at + 1);
                    if is_object {
                        at = after_colon(bytes, string_end(bytes, at)?)?;
                    }
                    break;
                }
                b'}' if is_object => {}
                b']' if !is_object => {}
                _ => return None,
            }
            (open, depth, at) = (open >> 1, depth - 1, at + 1);
        }
    }
}

/// Where a quoted text ends that begins here.
#[inline]
fn string_end(bytes: &[u8], at: usize) -> Option<usize> {
    if *bytes.get(at)? != b'"' {
        return None;
    }
    let mut at = at + 1;
    loop {
        while let Some(word) = bytes.get(at..).and_then(<[u8]>::first_chunk::<8>) {
            let found = specials(*word);
            if found != 0 {
                // The lowest mark is always of a special byte; a borrow can mark bytes above it alone.
                at += found.trailing_zeros() as usize / 8;
                break;
            }
            at += 8;
        }
        match *bytes.get(at)? {
            b'"' => return Some(at + 1),
            b'\\' => at += escape_len(bytes.get(at + 1..)?)? + 1,
            0..0x20 => return None,
            _ => at += 1,
        }
    }
}

/// How long an escape is, without its backslash.
fn escape_len(bytes: &[u8]) -> Option<usize> {
    match bytes.first()? {
        b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't' => Some(1),
        b'u' => bytes.get(1..5)?.iter().all(u8::is_ascii_hexdigit).then_some(5),
        _ => None,
    }
}

fn number_end(bytes: &[u8], mut at: usize) -> Option<usize> {
    let digits = |mut at: usize| {
        let from = at;
        while bytes.get(at).is_some_and(u8::is_ascii_digit) {
            at += 1;
        }
        (at > from).then_some(at)
    };
    if bytes[at] == b'-' {
        at += 1;
    }
    at = if bytes.get(at) == Some(&b'0') { at + 1 } else { digits(at)? };
    if bytes.get(at) == Some(&b'.') {
        at = digits(at + 1)?;
    }
    if let Some(b'e' | b'E') = bytes.get(at) {
        at += 1;
        if let Some(b'+' | b'-') = bytes.get(at) {
            at += 1;
        }
        at = digits(at)?;
    }
    Some(at)
}

fn word_end(bytes: &[u8], at: usize, word: &[u8]) -> Option<usize> {
    bytes.get(at..)?.starts_with(word).then_some(at + word.len())
}

#[cfg(test)]
mod tests {
    use std::borrow::Cow;
    use std::collections::BTreeMap;

    use serde_json::value::RawValue;

    use super::{NotScanned, ScannedMembers, plain_text};

    fn scanned(text: &str) -> Result<Vec<(&str, &str)>, NotScanned> {
        let mut members = ScannedMembers::of(text)?;
        let mut found = Vec::new();
        while let Some(name) = members.next_name()? {
            found.push((name, members.value()?));
        }
        Ok(found)
    }

    /// The same by serde_json; members of one name count once.
    fn by_serde(text: &str) -> Option<BTreeMap<Cow<'_, str>, String>> {
        let read: BTreeMap<String, Box<RawValue>> = serde_json::from_str(text).ok()?;
        Some(read.into_iter().map(|(name, value)| (name.into(), value.get().to_owned())).collect())
    }

    const ENVELOPE: &str = r#" {"jsonrpc":"2.0", "id" : 7 ,"method":"SendMessage","params":{"message":{"messageId":"5b0f7c1e-9f21",
        "parts":[{"text":"a \"quoted\" b\u00e4 \\ ok ü"},{"data":{"n":[-1.5e+3,0,0.25,true,false,null,{},[],[[1]]]}}]}}} "#;

    #[test]
    fn an_envelope_is_scanned() {
        let members = scanned(ENVELOPE).unwrap();
        let names: Vec<_> = members.iter().map(|(name, _)| *name).collect();
        assert_eq!(names, ["jsonrpc", "id", "method", "params"]);
        assert_eq!(members[1].1, "7");
        assert_eq!(plain_text(members[2].1), Some("SendMessage"));
        assert!(members[3].1.starts_with('{') && members[3].1.ends_with("]}}"), "{}", members[3].1);
        assert_eq!(scanned("{}").unwrap(), []);
    }

    #[test]
    fn what_is_not_plain_is_left_to_serde() {
        for text in ["", "[]", "7", "{", "{\"a\"}", "{\"a\":1,}", "{,\"a\":1}", "{\"a\":1}x", "{\"\\u0061\":1}"] {
            assert_eq!(scanned(text), Err(NotScanned), "{text}");
        }
        for value in [
            "01",
            "-",
            "1.",
            ".5",
            "1e",
            "tru",
            "nul",
            "\"\u{1}\"",
            "\"\\x\"",
            "\"\\u12g4\"",
            "[1,]",
            "[}",
            "{]",
            "{1:2}",
        ] {
            assert_eq!(scanned(&format!("{{\"a\":{value}}}")), Err(NotScanned), "{value}");
        }
        let deep = |depth| format!("{{\"a\":{}{}}}", "[".repeat(depth), "]".repeat(depth));
        assert!(scanned(&deep(60)).is_ok());
        assert_eq!(scanned(&deep(70)), Err(NotScanned));
    }

    #[test]
    fn the_last_object_is_assumed() {
        let assumed = |text| {
            let mut members = ScannedMembers::of(text).unwrap();
            members.next_name().unwrap().unwrap();
            members.assumed_last_object()
        };
        assert_eq!(assumed(r#"{"a":{"b":"}"} } "#), Some(r#"{"b":"}"}"#));
        assert_eq!(assumed(r#"{"a":{"b":1},"c":{}}"#), Some(r#"{"b":1},"c":{}"#), "which is no object");
        for text in [r#"{"a":{"b":1},"c":1}"#, r#"{"a":[{}]}"#, r#"{"a":{"b":1}"#, r#"{"a":7}"#] {
            assert_eq!(assumed(text), None, "{text}");
        }
    }

    /// One byte of the envelope is changed, dropped or doubled, at every place: what is scanned is what serde_json reads.
    #[test]
    fn serde_reads_the_same() {
        let bytes = ENVELOPE.as_bytes();
        let (mut tried, mut taken) = (0, 0);
        for at in 0..bytes.len() {
            for new in
                [b"".as_slice(), b"\"", b"\\", b"{", b"}", b"[", b"]", b",", b":", b"0", b"e", b" ", b"\x01", b"\xc3"]
            {
                for drops in [0, 1] {
                    let changed = [&bytes[..at], new, &bytes[at + drops..]].concat();
                    let Ok(text) = std::str::from_utf8(&changed) else { continue };
                    tried += 1;
                    let Ok(members) = scanned(text) else { continue };
                    taken += 1;
                    let members =
                        members.into_iter().map(|(name, value)| (Cow::Borrowed(name), value.to_owned())).collect();
                    assert_eq!(by_serde(text), Some(members), "{text}");
                }
            }
        }
        assert!(taken > 500 && tried > 2 * taken, "{taken} of {tried}");
    }
}
