//! Percent-encoding, in the segments of a path and in a query.

use std::borrow::Cow;

/// Percent-decodes one segment; none if what it spells is not text.
pub(crate) fn decode(segment: &str) -> Option<Cow<'_, str>> {
    if !segment.contains('%') {
        return Some(Cow::Borrowed(segment));
    }
    let mut bytes = Vec::with_capacity(segment.len());
    let mut rest = segment.as_bytes();
    while let Some((&first, after)) = rest.split_first() {
        if first != b'%' {
            bytes.push(first);
            rest = after;
            continue;
        }
        let digit = |byte: u8| char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
        let (high, low) = (digit(*after.first()?)?, digit(*after.get(1)?)?);
        bytes.push(high << 4 | low);
        rest = &after[2..];
    }
    String::from_utf8(bytes).ok().map(Cow::Owned)
}

/// Percent-encodes one segment, or one value of a query.
pub(crate) fn encode(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => out.push(char::from(byte)),
            _ => {
                let digit = |value: u8| char::from_digit(value.into(), 16).unwrap_or('0').to_ascii_uppercase();
                out.extend(['%', digit(byte >> 4), digit(byte & 15)]);
            }
        }
    }
    out
}

/// The pairs of a query string, decoded; none if what they spell is not text.
pub(crate) fn query_pairs(query: &str) -> Option<Vec<(Cow<'_, str>, Cow<'_, str>)>> {
    query
        .split('&')
        .filter(|pair| !pair.is_empty())
        .map(|pair| {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            Some((decode_query(name)?, decode_query(value)?))
        })
        .collect()
}

fn decode_query(text: &str) -> Option<Cow<'_, str>> {
    if text.contains('+') { Some(Cow::Owned(decode(&text.replace('+', " "))?.into_owned())) } else { decode(text) }
}
