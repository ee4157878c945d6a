//! The parts of a URI: names that may stand in a path, percent-encoding, the pairs of a query, and hosts of this machine. Pure.

use std::borrow::Cow;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};

/// First path segments that are ours and therefore neither tenants nor agents.
pub const RESERVED: &[&str] = &[
    "tasks",
    "message",
    "extendedAgentCard",
    "v1",
    "agents",
    "apps",
    "dialects",
    "a2a",
    "rpc",
    "api",
    ".well-known",
    "_agent-native",
    "_switchboard",
    "healthz",
    "readyz",
    "metrics",
];

/// Refuses a name that is to appear as one segment of a path and could be taken for one of ours.
pub(crate) fn check_name(what: &str, name: &str) -> Result<(), String> {
    if RESERVED.contains(&name) {
        return Err(format!("{what} {name:?} is reserved; choose another name"));
    }
    let fits = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '-' | '_' | '.' | '~');
    if name.is_empty() || name.len() > 64 || !name.chars().all(fits) || name.starts_with('.') {
        let why = "must be 1 to 64 letters, digits, '-', '_', '.' or '~', and not begin with a dot";
        return Err(format!("{what} {name:?} {why}"));
    }
    Ok(())
}

/// Whether the host of a URL leads to this machine and to no other.
pub(crate) fn is_loopback_host(host: &str) -> bool {
    let host = host.trim_matches(['[', ']']);
    host.eq_ignore_ascii_case("localhost")
        || host.parse::<std::net::IpAddr>().is_ok_and(|ip| ip.to_canonical().is_loopback())
}

/// The segments of a path. Percent-encoded slashes stay inside their segment because segments are split first and decoded second.
pub(crate) fn segments(path: &str) -> Vec<&str> {
    let mut segments: Vec<&str> = path.split('/').skip(1).collect();
    if segments.last() == Some(&"") {
        segments.pop();
    }
    segments
}

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
