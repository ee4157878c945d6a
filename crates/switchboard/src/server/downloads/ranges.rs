//! Which bytes of a file a request wants, and whether it wants them at all: `Range` and the conditions around it, as RFC
//! 9110 has them. Pure.

use std::ops::Range;

use http::{HeaderMap, header};

/// What a request for a file comes to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum RangeOutcome {
    Whole,
    Part(Range<u64>),
    /// The client has it already.
    NotModified,
    /// The client wanted another one than this.
    ConditionFailed,
    /// There are no such bytes.
    Unsatisfiable,
}

/// Weighs a request against a file of so many bytes. `etag` is strong and comes with its quotes; `ranges` is false where
/// a range has no meaning, as in HEAD.
pub(crate) fn wanted(headers: &HeaderMap, etag: &str, bytes: u64, ranges: bool) -> RangeOutcome {
    if headers.contains_key(header::IF_MATCH) && !names(headers, header::IF_MATCH, |tag| tag == etag) {
        return RangeOutcome::ConditionFailed;
    }
    if names(headers, header::IF_NONE_MATCH, |tag| tag.strip_prefix("W/").unwrap_or(tag) == etag) {
        return RangeOutcome::NotModified;
    }
    // A range of another file than the client thinks of would be patched into the wrong one. A date is never exact.
    let same = headers.get(header::IF_RANGE).is_none_or(|value| value.as_bytes() == etag.as_bytes());
    let mut lines = headers.get_all(header::RANGE).iter();
    match (lines.next(), lines.next()) {
        (Some(line), None) if ranges && same => line.to_str().map_or(RangeOutcome::Whole, |line| range(line, bytes)),
        _ => RangeOutcome::Whole,
    }
}

/// Whether a list of tags has one that fits, or is the star that fits all.
pub(crate) fn names(headers: &HeaderMap, name: header::HeaderName, fits: impl Fn(&str) -> bool) -> bool {
    let lines = headers.get_all(name).into_iter().filter_map(|line| line.to_str().ok());
    lines.flat_map(|line| line.split(',')).map(str::trim).any(|tag| tag == "*" || fits(tag))
}

/// One range. Several at once, and what is not a range of bytes, may be ignored: then the whole file is the answer.
fn range(line: &str, bytes: u64) -> RangeOutcome {
    let Some(spec) = line.trim().strip_prefix("bytes=").map(str::trim) else { return RangeOutcome::Whole };
    let Some((first, last)) = spec.split_once('-') else { return RangeOutcome::Whole };
    let number = |text: &str| {
        let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        // More digits than a number holds are a number beyond the end of everything.
        digits.then(|| text.parse().unwrap_or(u64::MAX))
    };
    let (first, last) = (first.trim(), last.trim());
    match (number(first), number(last)) {
        (None, Some(suffix)) if first.is_empty() => match suffix.min(bytes) {
            0 => RangeOutcome::Unsatisfiable,
            suffix => RangeOutcome::Part(bytes - suffix..bytes),
        },
        (Some(first), last_given) if last.is_empty() || last_given.is_some() => {
            let end = last_given.map_or(bytes, |last| last.saturating_add(1).min(bytes));
            match () {
                () if last_given.is_some_and(|last| last < first) => RangeOutcome::Whole,
                () if first >= bytes => RangeOutcome::Unsatisfiable,
                () => RangeOutcome::Part(first..end),
            }
        }
        _ => RangeOutcome::Whole,
    }
}
