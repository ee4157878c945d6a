//! Splits Rust text into code and comments, so that a rule about one is not fooled by the other or by a string.
//!
//! Both halves keep the length and the lines of the whole: what does not belong is blanked out. This is a reader of
//! well-formed Rust, not a compiler; on broken input it gives some answer and never fails.

pub(super) struct Source {
    /// Code alone. Comments and the contents of strings and characters are spaces.
    pub(super) code: String,
    /// Comments alone.
    pub(super) comments: String,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Code,
    Comment,
    Literal,
}

pub(super) fn split(text: &str) -> Source {
    let bytes = text.as_bytes();
    let mut kinds = vec![Kind::Code; bytes.len()];
    let mut at = 0;
    while at < bytes.len() {
        let (kind, length) = piece(text, at);
        kinds[at..at + length].fill(kind);
        at += length;
    }
    Source { code: keep(text, &kinds, Kind::Code), comments: keep(text, &kinds, Kind::Comment) }
}

/// The kind of what starts at `at`, and how many bytes of it there are: at least one.
fn piece(text: &str, at: usize) -> (Kind, usize) {
    let rest = &text.as_bytes()[at..];
    match rest {
        [b'/', b'/', ..] => (Kind::Comment, rest.iter().position(|&b| b == b'\n').unwrap_or(rest.len())),
        [b'/', b'*', ..] => (Kind::Comment, block_comment(rest)),
        [b'"', ..] => (Kind::Literal, quoted(rest, b'"')),
        [b'\'', ..] => match character(&text[at..]) {
            Some(length) => (Kind::Literal, length),
            None => (Kind::Code, 1),
        },
        [b, ..] if is_word(*b) => {
            let word = rest.iter().position(|&b| !is_word(b)).unwrap_or(rest.len());
            match (&rest[..word], &rest[word..]) {
                (b"b" | b"c", [b'"', ..]) => (Kind::Literal, word + quoted(&rest[word..], b'"')),
                (b"b", [b'\'', ..]) => (Kind::Literal, word + quoted(&rest[word..], b'\'')),
                (b"r" | b"br" | b"cr", tail) => match raw(tail) {
                    Some(length) => (Kind::Literal, word + length),
                    None => (Kind::Code, word),
                },
                _ => (Kind::Code, word),
            }
        }
        _ => (Kind::Code, 1),
    }
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || !byte.is_ascii()
}

/// Block comments nest.
fn block_comment(rest: &[u8]) -> usize {
    let mut depth = 0;
    let mut at = 0;
    while at < rest.len() {
        match &rest[at..] {
            [b'/', b'*', ..] => (depth, at) = (depth + 1, at + 2),
            [b'*', b'/', ..] => (depth, at) = (depth - 1, at + 2),
            _ => at += 1,
        }
        if depth == 0 {
            return at;
        }
    }
    rest.len()
}

/// From one quote to the next that no backslash precedes.
fn quoted(rest: &[u8], quote: u8) -> usize {
    let mut at = 1;
    while at < rest.len() {
        match rest[at] {
            b'\\' => at += 2,
            b if b == quote => return at + 1,
            _ => at += 1,
        }
    }
    rest.len()
}

/// `'x'` and `'\n'` are characters; `'x` alone is a lifetime.
fn character(rest: &str) -> Option<usize> {
    let mut inside = rest[1..].chars();
    match inside.next()? {
        '\\' => Some(quoted(rest.as_bytes(), b'\'')),
        c => (inside.next()? == '\'').then(|| c.len_utf8() + 2),
    }
}

/// A raw string after its `r`: hashes, quote, anything, quote, as many hashes.
fn raw(tail: &[u8]) -> Option<usize> {
    let hashes = tail.iter().take_while(|&&b| b == b'#').count();
    if tail.get(hashes) != Some(&b'"') {
        return None;
    }
    let mut end = vec![b'"'];
    end.resize(hashes + 1, b'#');
    let body = hashes + 1;
    let found = tail[body..].windows(end.len()).position(|window| window == end);
    Some(found.map_or(tail.len(), |at| body + at + end.len()))
}

fn keep(text: &str, kinds: &[Kind], wanted: Kind) -> String {
    // Whole characters share a kind, so a blanked character becomes as many spaces as it had bytes.
    let mut kept = String::with_capacity(text.len());
    for (at, c) in text.char_indices() {
        if kinds[at] == wanted || c == '\n' {
            kept.push(c);
        } else {
            kept.extend(std::iter::repeat_n(' ', c.len_utf8()));
        }
    }
    kept
}
