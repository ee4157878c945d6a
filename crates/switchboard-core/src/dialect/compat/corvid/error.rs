//! Refusals: an HTTP status and a text in `error`. Where the original has a text, it is that one.

use crate::dialect::compat::refusal::{self, is_about};
use crate::dialect::wire::ReceivedError;
use crate::error::ProtocolError;

/// The text of a send to a server none of whose agents takes calls of this dialect.
pub const NO_AGENT: &str = "Agent with default project not found";

/// The text for a caller that exceeded its rate limit.
pub const RATE_EXCEEDED: &str = "Rate limit exceeded. Try again later.";

/// The text of a send that was passed on too often.
pub const TOO_DEEP: &str = "Invocation depth limit exceeded.";

/// Writes the body of a refusal.
pub fn encode_http_error(error: &ProtocolError, out: &mut Vec<u8>) {
    let text = match error {
        ProtocolError::Unauthenticated { .. } => "Authentication required".to_owned(),
        ProtocolError::InvalidParams { violations } => {
            let texts = violations.iter().map(|wrong| format!("{}: {}", wrong.field, wrong.description));
            texts.collect::<Vec<_>>().join("; ")
        }
        error => error.to_string(),
    };
    encode_text(&text, out);
}

/// Writes the body of a refusal for which `ProtocolError` has no variant.
pub fn encode_text(text: &str, out: &mut Vec<u8>) {
    refusal::write_plain(text, out);
}

/// Reads a refusal. The status it came with tells most of them apart; of those that are answered with 400 and 404 the text does.
#[must_use]
pub fn read_error(body: &[u8], http: Option<u16>) -> Option<ReceivedError> {
    let mut read = refusal::read(body)?;
    let text = read.message.clone();
    if text == TOO_DEEP || text == NO_AGENT {
        is_about(&mut read, "UNSUPPORTED_OPERATION", &[]);
    } else if http == Some(400) {
        let violation = refusal::violation(&text);
        if !violation.field.is_empty() {
            is_about(&mut read, "INVALID_PARAMS", &[]);
            read.violations = vec![violation];
        }
    }
    Some(read)
}
