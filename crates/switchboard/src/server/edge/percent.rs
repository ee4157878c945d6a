//! Percent-encoding, in the segments of a path and in a query.

use std::borrow::Cow;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};

/// All that RFC 3986 does not call unreserved.
const ESCAPED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// Percent-decodes one segment; none if an escape is not one, or what it spells is not text.
pub(crate) fn decode(segment: &str) -> Option<Cow<'_, str>> {
    let is_escape =
        |after: &str| after.as_bytes().first_chunk::<2>().is_some_and(|hex| hex.iter().all(u8::is_ascii_hexdigit));
    let escapes_fit = segment.split('%').skip(1).all(is_escape);
    escapes_fit.then(|| percent_decode_str(segment).decode_utf8().ok()).flatten()
}

/// Percent-encodes one segment, or one value of a query.
pub(crate) fn encode(text: &str) -> String {
    utf8_percent_encode(text, ESCAPED).to_string()
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
