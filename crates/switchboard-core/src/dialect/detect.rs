//! Which dialect a request is in, from the version it names. Pure: the binding fetches the header and the query
//! parameter. The spec reads a request without a version as 0.3, which a 1.0-only server must refuse; a configured
//! default replaces that reading.

use crate::error::ProtocolError;
use crate::model::Dialect;

use super::json::excerpt;

/// The dialect to answer in. The header wins over the query parameter; an empty one counts as absent.
///
/// # Errors
/// [`ProtocolError::VersionNotSupported`] when the version is not served here or is not a version.
pub fn version(header: Option<&str>, query: Option<&str>, default: Option<Dialect>) -> Result<Dialect, ProtocolError> {
    let requested = match (named(header).or(named(query)), default) {
        (Some(requested), _) => requested,
        (None, Some(dialect)) => return Ok(dialect),
        (None, None) => "0.3",
    };
    match major_minor(requested) {
        Some((1, 0)) => Ok(Dialect::V1_0),
        _ => Err(ProtocolError::VersionNotSupported {
            requested: excerpt(&requested.replace(char::is_control, "?"), 32),
            supported: vec![Dialect::V1_0.name()],
        }),
    }
}

fn named(text: Option<&str>) -> Option<&str> {
    text.map(str::trim).filter(|text| !text.is_empty())
}

/// Reads `major.minor` and ignores a patch number, which never distinguishes two protocols. A leading `v` is tolerated.
fn major_minor(text: &str) -> Option<(u32, u32)> {
    let text = text.strip_prefix(['v', 'V']).unwrap_or(text);
    let number = |part: &str| -> Option<u32> {
        // Rust's parser takes a sign, a version does not.
        part.bytes().all(|b| b.is_ascii_digit()).then(|| part.parse().ok()).flatten()
    };
    let mut parts = text.split('.');
    let version = (number(parts.next()?)?, number(parts.next()?)?);
    if let Some(patch) = parts.next() {
        number(patch)?;
    }
    parts.next().is_none().then_some(version)
}

#[cfg(test)]
#[path = "detect_tests.rs"]
mod tests;
