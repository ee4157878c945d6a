//! Texts of callers as PostgreSQL can hold them. Its `text` has no NUL character, and ids of callers may have one; a NUL is
//! written as an escape character and `0`, and the escape character itself twice. Texts without either, which are practically
//! all, are stored as they are.

use std::borrow::Cow;

/// A character that Unicode promises never to assign.
const ESCAPE: char = '\u{10FFFF}';

pub(super) fn stored(text: &str) -> Cow<'_, str> {
    if !text.contains(['\0', ESCAPE]) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 8);
    for letter in text.chars() {
        match letter {
            '\0' => out.extend([ESCAPE, '0']),
            ESCAPE => out.extend([ESCAPE, ESCAPE]),
            other => out.push(other),
        }
    }
    Cow::Owned(out)
}

pub(super) fn read(stored: &str) -> Cow<'_, str> {
    if !stored.contains(ESCAPE) {
        return Cow::Borrowed(stored);
    }
    let mut out = String::with_capacity(stored.len());
    let mut letters = stored.chars();
    while let Some(letter) = letters.next() {
        if letter != ESCAPE {
            out.push(letter);
            continue;
        }
        match letters.next() {
            Some('0') => out.push('\0'),
            Some(other) => out.push(other),
            None => {}
        }
    }
    Cow::Owned(out)
}
