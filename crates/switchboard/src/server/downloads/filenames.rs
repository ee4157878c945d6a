//! What a downloaded file is to be called. The name comes from an agent, so it is only a name by the time it gets into a
//! header: no path, no control characters, nothing that ends a header early.

use http::HeaderValue;

use crate::server::edge::percent::encode;

/// Longer names are cut; file systems do so anyway.
const NAME_CHARS_MAX: usize = 120;

/// Always a file to keep, never a page to show (RFC 6266).
pub(crate) fn disposition(filename: Option<&str>) -> HeaderValue {
    const UNNAMED: HeaderValue = HeaderValue::from_static("attachment");
    let Some(name) = filename.and_then(safe_name) else { return UNNAMED };
    let ascii: String = name.chars().map(|char| if char.is_ascii() { char } else { '_' }).collect();
    let value = if ascii == name {
        format!("attachment; filename=\"{name}\"")
    } else {
        format!("attachment; filename=\"{ascii}\"; filename*=UTF-8''{}", encode(&name))
    };
    HeaderValue::from_str(&value).unwrap_or(UNNAMED)
}

/// The last part of whatever path it was, without what has a meaning to a shell, a header or a file system.
fn safe_name(filename: &str) -> Option<String> {
    let last = filename.rsplit(['/', '\\']).next().unwrap_or_default();
    let is_plain = |char: &char| !char.is_control() && !is_invisible(*char);
    let replaced = |char| if matches!(char, '"' | '<' | '>' | ':' | '|' | '?' | '*' | '%' | ';') { '_' } else { char };
    let name: String = last.chars().filter(is_plain).map(replaced).take(NAME_CHARS_MAX).collect();
    let name = name.trim_matches(|char: char| char == '.' || char.is_whitespace());
    (!name.is_empty()).then(|| name.to_owned())
}

/// Marks that turn text round or hide in it, so that `gpj.exe` reads as `exe.jpg`.
fn is_invisible(char: char) -> bool {
    matches!(char, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
}
