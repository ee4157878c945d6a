//! Single values: what makes a URL, an origin, a name or a media type a good one. Each refusal puts what was expected
//! beside what came.

use std::path::Path;

use http::Uri;
use switchboard::{AgentBuilder, ProtocolBinding, RESERVED};

use crate::agents::demo::{Demo, ServedAt};
use crate::agents::exec::{PASSWD, User};

pub(super) fn boolean(text: &str) -> Result<bool, String> {
    match text.to_ascii_lowercase().as_str() {
        "true" | "1" | "yes" | "on" => Ok(true),
        "false" | "0" | "no" | "off" => Ok(false),
        _ => Err(format!("expected true or false, got {text:?}")),
    }
}

pub(super) fn number(text: &str) -> Result<u64, String> {
    text.trim().parse().map_err(|_| format!("expected a whole number, got {text:?}"))
}

/// The items of a list in a variable.
pub(super) fn list(text: &str) -> Vec<String> {
    text.split(',').map(str::trim).filter(|item| !item.is_empty()).map(str::to_owned).collect()
}

/// A number within bounds, both allowed.
pub(super) fn within(number: u64, low: u64, high: u64, unit: &str) -> Result<u64, String> {
    if (low..=high).contains(&number) {
        return Ok(number);
    }
    Err(format!("expected {low} to {high} {unit}, got {number}"))
}

/// The address of a database, which is not quoted, because it may have a password in it.
pub(super) fn store_url(text: String) -> Result<String, String> {
    let is_one = text.starts_with("postgres://") || text.starts_with("postgresql://");
    if is_one { Ok(text) } else { Err("expected postgres://USER:PASSWORD@HOST:PORT/DATABASE".to_owned()) }
}

/// The address of NATS, which is not quoted for the same reason.
pub(super) fn hints_url(text: String) -> Result<String, String> {
    let is_one = text.starts_with("nats://") || text.starts_with("tls://");
    if is_one { Ok(text) } else { Err("expected nats://USER:PASSWORD@HOST:PORT or tls://HOST:PORT".to_owned()) }
}

/// A subject of NATS, without wildcards.
pub(super) fn subject(text: String) -> Result<String, String> {
    let is_word = |word: &str| {
        !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_')
    };
    // The name of the schema follows it, and both have a limit together.
    let fits = text.len() <= 64 && text.split('.').all(is_word) && !text.starts_with("_INBOX");
    let expected = "expected up to 64 letters, digits, - and _ in words with a dot between, without wildcards";
    if fits { Ok(text) } else { Err(format!("{expected}, got {text:?}")) }
}

/// The name of a schema, which PostgreSQL cuts off after 63 bytes.
pub(super) fn schema_name(text: String) -> Result<String, String> {
    let is_letter = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
    let fits = (1..=63).contains(&text.len()) && text.chars().all(is_letter);
    if fits { Ok(text) } else { Err(format!("expected up to 63 letters, digits and _, got {text:?}")) }
}

/// The name of a server among others.
pub(super) fn replica_name(text: String) -> Result<String, String> {
    let fits = (1..=100).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_graphic());
    if fits { Ok(text) } else { Err(format!("expected up to 100 letters without spaces, got {text:?}")) }
}

/// A part of a whole.
pub(super) fn ratio(text: String) -> Result<String, String> {
    let fits = text.trim().parse::<f64>().is_ok_and(|ratio| (0.0..=1.0).contains(&ratio));
    if fits { Ok(text.trim().to_owned()) } else { Err(format!("expected a number from 0 to 1, got {text:?}")) }
}

/// What a collector calls this server.
pub(super) fn service_name(text: String) -> Result<String, String> {
    let fits = (1..=200).contains(&text.len()) && !text.contains(char::is_control);
    if fits { Ok(text) } else { Err(format!("expected up to 200 letters without line breaks, got {text:?}")) }
}

/// The address that clients use. A slash at its end says nothing.
pub(super) fn public_url(text: String) -> Result<String, String> {
    let url = web_address(&text)?;
    // The parser of addresses drops what follows '#', so it is looked for in the text.
    if url.query().is_some() || text.contains('#') {
        return Err(format!("expected a URL without ? and #, got {text:?}"));
    }
    Ok(text.trim_end_matches('/').to_owned())
}

/// The address of a page or a picture.
pub(super) fn web_url(text: String) -> Result<String, String> {
    web_address(&text).map(|_| text)
}

/// What an extension is known by: it is compared, and never called.
pub(super) fn uri(text: String) -> Result<String, String> {
    let fits = text.contains(':') && text.bytes().all(|byte| byte.is_ascii_graphic() && byte != b',');
    if fits { Ok(text) } else { Err(format!("expected a URI, as in https://example.com/ext/v1, got {text:?}")) }
}

/// The origin of a web page.
pub(super) fn origin(text: String) -> Result<String, String> {
    let expected = || format!("expected an origin, as in https://app.example, got {text:?}");
    let url = web_address(&text).map_err(|_| expected())?;
    if url.path() != "/" || url.query().is_some() || text.contains('#') {
        return Err(expected());
    }
    Ok(text.trim_end_matches('/').to_owned())
}

fn web_address(text: &str) -> Result<Uri, String> {
    let expected = || format!("expected a URL that begins with http:// or https:// and names a host, got {text:?}");
    let url: Uri = text.parse().map_err(|_| expected())?;
    let is_web = matches!(url.scheme_str(), Some("http" | "https"));
    let has_user = url.authority().is_some_and(|authority| authority.as_str().contains('@'));
    if is_web && url.host().is_some_and(|host| !host.is_empty()) && !has_user { Ok(url) } else { Err(expected()) }
}

/// A name that stands as one segment of a path: a slug or a tenant.
pub(crate) fn path_name(text: String) -> Result<String, String> {
    if RESERVED.contains(&text.as_str()) {
        return Err(format!("{text:?} is reserved: the server has a path of that name"));
    }
    let fits = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '-' | '_' | '.' | '~');
    if text.is_empty() || text.len() > 64 || !text.chars().all(fits) || text.starts_with('.') {
        return Err(format!("expected 1 to 64 letters, digits, '-', '_', '.' or '~', no dot first, got {text:?}"));
    }
    Ok(text)
}

/// A text that people will read in a card.
pub(super) fn words(text: String) -> Result<String, String> {
    if text.trim().is_empty() { Err("expected some text, got none".to_owned()) } else { Ok(text) }
}

/// A protocol binding, by its name on a card.
pub(super) fn binding(text: String) -> Result<String, String> {
    text.parse().map(|binding: ProtocolBinding| binding.to_string())
}

pub(super) fn media_type(text: String) -> Result<String, String> {
    match text.split_once('/') {
        Some((kind, sub)) if !kind.is_empty() && !sub.is_empty() && !text.contains(char::is_whitespace) => Ok(text),
        _ => Err(format!("expected a media type, as in text/plain, got {text:?}")),
    }
}

/// The name of a variable.
pub(super) fn variable_name(name: String) -> Result<String, String> {
    if name.is_empty() || name.contains(['=', '\0']) {
        return Err(format!("expected the name of a variable, got {name:?}"));
    }
    Ok(name)
}

/// The name of a variable that a command may see.
pub(super) fn variable(name: String) -> Result<String, String> {
    let name = variable_name(name)?;
    if name.starts_with("A2A_") {
        return Err(format!("{name:?} cannot be passed on: names that begin with A2A_ describe the message"));
    }
    Ok(name)
}

/// What an agent is called in a path unless it is told.
pub(crate) fn slug_of(name: &str) -> String {
    AgentBuilder::new(name, Demo::at("", ServedAt::default())).slug_name().to_owned()
}

/// A user that commands may run as.
pub(super) fn user(text: String) -> Result<String, String> {
    User::find(&text, Path::new(PASSWD)).map(|_| text)
}
