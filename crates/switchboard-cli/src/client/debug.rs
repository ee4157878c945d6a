//! `--debug`: what is sent and received, on standard error. Secrets are taken out before anything is formatted, and no flag brings them
//! back.

use http::{HeaderMap, Uri};
use switchboard::client::{Interceptor, Observed, OutgoingRequest, Received};

use super::text::clean;
use crate::output;

/// Of a body so much is shown.
const BODY_BYTES_SHOWN_MAX: usize = 8 * 1_024;
/// Headers whose values say nothing secret.
const OPEN_HEADERS: [&str; 18] = [
    "accept",
    "content-type",
    "content-length",
    "a2a-version",
    "a2a-extensions",
    "x-a2a-extensions",
    "user-agent",
    "date",
    "cache-control",
    "etag",
    "retry-after",
    "grpc-status",
    "last-event-id",
    "idempotency-key",
    "last-modified",
    "vary",
    "server",
    "x-request-id",
];
/// Members of JSON whose values are secret.
const SECRET_MEMBERS: [&str; 2] = ["token", "credentials"];

/// Prints every exchange.
pub(crate) struct Debug;

impl Interceptor for Debug {
    fn on_request(&self, request: &mut OutgoingRequest<'_>) {
        let number = request.exchange;
        say(number, format_args!("> {} {}", request.method, open_url(request.url)));
        headers(number, '>', request.headers);
        body(number, '>', request.body);
    }

    fn on_received(&self, observed: &Observed<'_>) {
        let (number, elapsed) = (observed.exchange, observed.elapsed);
        match observed.received {
            Received::Head { status, headers: received } => {
                say(number, format_args!("< HTTP {status} after {elapsed:.1?}"));
                headers(number, '<', received);
            }
            Received::Body(bytes) | Received::Message(bytes) => body(number, '<', bytes),
            Received::Event { id, data, .. } => {
                say(number, format_args!("< event {} after {elapsed:.1?}", id.unwrap_or("without an id")));
                body(number, '<', data.as_bytes());
            }
            Received::End { .. } => say(number, format_args!("< end after {elapsed:.1?}")),
            Received::Failed(error) => say(number, format_args!("< failed after {elapsed:.1?}: {error}")),
            Received::Abandoned => say(number, format_args!("< not waited for any longer after {elapsed:.1?}")),
            _ => {}
        }
    }
}

fn say(number: u64, text: std::fmt::Arguments<'_>) {
    output::remark(format_args!("Debug: [{number}] {}", clean(&text.to_string())));
}

/// The URL without its query, in which keys may be.
fn open_url(url: &Uri) -> String {
    let (scheme, authority) =
        (url.scheme_str().unwrap_or_default(), url.authority().map_or("", |known| known.as_str()));
    // What stands before an @ is a user name and a password.
    let host = authority.rsplit('@').next().unwrap_or_default();
    let query = if url.query().is_some() { "?(hidden)" } else { "" };
    format!("{scheme}://{host}{}{query}", url.path())
}

fn headers(number: u64, direction: char, headers: &HeaderMap) {
    for (name, value) in headers {
        let is_open = OPEN_HEADERS.contains(&name.as_str()) && !value.is_sensitive();
        let value = if is_open { value.to_str().unwrap_or("(not text)") } else { "(hidden)" };
        say(number, format_args!("{direction} {name}: {value}"));
    }
}

fn body(number: u64, direction: char, bytes: &[u8]) {
    if bytes.is_empty() {
        return;
    }
    match serde_json::from_slice::<serde_json::Value>(bytes) {
        Ok(mut value) => {
            hide(&mut value);
            let text = value.to_string();
            let mut end = text.len().min(BODY_BYTES_SHOWN_MAX);
            while !text.is_char_boundary(end) {
                end -= 1;
            }
            let rest = if end < text.len() { format!("… ({} bytes)", text.len()) } else { String::new() };
            say(number, format_args!("{direction} {}{rest}", &text[..end]));
        }
        Err(_) => say(number, format_args!("{direction} ({} bytes that are not JSON)", bytes.len())),
    }
}

/// Takes the secrets of push configs out.
fn hide(value: &mut serde_json::Value) {
    match value {
        serde_json::Value::Object(members) => {
            for (name, value) in members {
                match SECRET_MEMBERS.contains(&name.as_str()) && value.is_string() {
                    true => *value = "(hidden)".into(),
                    false => hide(value),
                }
            }
        }
        serde_json::Value::Array(items) => items.iter_mut().for_each(hide),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::{hide, open_url};

    #[test]
    fn secrets_are_taken_out() {
        let mut value = serde_json::json!({ "url": "u", "token": "s3cret", "authentication": { "credentials": "s3cret", "scheme": "Bearer" } });
        hide(&mut value);
        assert!(!value.to_string().contains("s3cret") && value.to_string().contains("Bearer"));
        let url = "https://user:s3cret@h.example/p?key=s3cret".parse().unwrap();
        assert_eq!(open_url(&url), "https://h.example/p?(hidden)");
    }
}
