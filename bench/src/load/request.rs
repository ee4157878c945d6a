//! The requests as bytes, built once; each use only writes the digits of a fresh serial into its places.

use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering};

/// Twelve digits wide: the width of a UUID's last group, and more sends than any run makes.
const SERIAL: &str = "############";

/// The text a serial is sent with. It must not begin with one of the demo agent's own words.
pub(super) const TEXT: &str = "Echo this line, please: ";

/// Keeps the message ids of two processes apart.
static SESSION: LazyLock<u64> = LazyLock::new(|| getrandom::u64().unwrap_or_default());

static NEXT: AtomicU64 = AtomicU64::new(1);

pub(super) fn next_serial() -> u64 {
    NEXT.fetch_add(1, Ordering::Relaxed)
}

pub(super) fn text(serial: u64) -> String {
    format!("{TEXT}{serial:012}")
}

/// The text with the place of its serial.
pub(super) fn text_template() -> String {
    format!("{TEXT}{SERIAL}")
}

/// A request with places for a serial number in its JSON-RPC id, message id and text.
pub(super) struct Template {
    bytes: Vec<u8>,
    places: Vec<usize>,
}

impl Template {
    pub(super) fn send() -> Template {
        Template::message("SendMessage", TEXT, "")
    }

    /// As a client of A2A 0.3 spells it; it names no version.
    pub(super) fn send_old() -> Template {
        let id = message_id();
        let body = format!(
            r#"{{"jsonrpc":"2.0","id":"r-{SERIAL}","method":"message/send","params":{{"message":{{"kind":"message","messageId":"{id}","role":"user","parts":[{{"kind":"text","text":"{TEXT}{SERIAL}"}}]}}}}}}"#
        );
        Template::of(post_without_version(&body))
    }

    pub(super) fn stream(text: &str) -> Template {
        Template::message("SendStreamingMessage", text, "")
    }

    /// Asks the demo agent for a question: the task stays open until it is answered.
    pub(super) fn question() -> Template {
        Template::message("SendMessage", "ask what to do next, ", "")
    }

    /// Does not wait for the end.
    pub(super) fn begin(text: &str) -> Template {
        Template::message("SendMessage", text, r#","configuration":{"returnImmediately":true}"#)
    }

    /// Does not wait for the end, and has the task's updates posted to this URL.
    pub(super) fn begin_with_webhook(text: &str, url: &str) -> Template {
        let config = format!(r#"{{"url":"{url}"}}"#);
        let more = format!(r#","configuration":{{"returnImmediately":true,"taskPushNotificationConfig":{config}}}"#);
        Template::message("SendMessage", text, &more)
    }

    fn message(method: &str, text: &str, more: &str) -> Template {
        let id = message_id();
        let body = format!(
            r#"{{"jsonrpc":"2.0","id":"r-{SERIAL}","method":"{method}","params":{{"message":{{"messageId":"{id}","role":"ROLE_USER","parts":[{{"text":"{text}{SERIAL}"}}]}}{more}}}}}"#
        );
        Template::of(post(&body))
    }

    /// Of bytes with the places of a serial marked.
    pub(super) fn of(bytes: Vec<u8>) -> Template {
        let places = bytes.windows(SERIAL.len()).enumerate().filter(|(_, window)| *window == SERIAL.as_bytes());
        let places = places.map(|(at, _)| at).collect();
        Template { bytes, places }
    }

    pub(super) fn with(&mut self, serial: u64) -> &[u8] {
        let mut digits = [b'0'; SERIAL.len()];
        let mut rest = serial;
        for digit in digits.iter_mut().rev() {
            *digit = b'0' + (rest % 10) as u8;
            rest /= 10;
        }
        for &at in &self.places {
            self.bytes[at..at + SERIAL.len()].copy_from_slice(&digits);
        }
        &self.bytes
    }
}

impl Template {
    /// The request with a bearer token, in a buffer that is used again.
    pub(super) fn with_token(&mut self, serial: u64, token: &str, out: &mut Vec<u8>) {
        const HOST: &str = "Host: localhost\r\n";
        let bytes = self.with(serial);
        let after_host =
            bytes.windows(HOST.len()).position(|window| window == HOST.as_bytes()).unwrap_or(0) + HOST.len();
        out.clear();
        for part in [&bytes[..after_host], b"Authorization: Bearer ", token.as_bytes(), b"\r\n", &bytes[after_host..]] {
            out.extend_from_slice(part);
        }
    }
}

pub(super) fn get_task(id: &str) -> Vec<u8> {
    of_task("GetTask", id)
}

pub fn subscribe(id: &str) -> Vec<u8> {
    of_task("SubscribeToTask", id)
}

fn of_task(method: &str, id: &str) -> Vec<u8> {
    post(&format!(r#"{{"jsonrpc":"2.0","id":"r-000000000000","method":"{method}","params":{{"id":"{id}"}}}}"#))
}

/// A UUID with the place of a serial in its last group.
pub(super) fn message_id() -> String {
    let (high, low) = (*SESSION >> 32, *SESSION & 0xffff);
    format!("{high:08x}-{low:04x}-4000-8000-{SERIAL}")
}

fn post(body: &str) -> Vec<u8> {
    post_with("A2A-Version: 1.0\r\n", body)
}

fn post_without_version(body: &str) -> Vec<u8> {
    post_with("", body)
}

fn post_with(header: &str, body: &str) -> Vec<u8> {
    let head = "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n";
    format!("{head}{header}Content-Length: {}\r\n\r\n{body}", body.len()).into_bytes()
}

#[cfg(test)]
mod tests {
    use super::Template;

    #[test]
    fn a_serial_is_written_in_all_three_places() {
        let mut template = Template::send();
        template.with(7);
        let request = String::from_utf8_lossy(template.with(12_345)).into_owned();
        assert_eq!(request.matches("000000012345").count(), 3);
        assert!(!request.contains('#'));
    }
}
