//! Refusals: an HTTP status and a text in `error`. Where the original has a text, it is that one.

use crate::dialect::json::Object;
use crate::error::ProtocolError;

/// The text of a send to a server none of whose agents takes calls of this dialect.
pub const NO_AGENT: &str = "Agent with default project not found";

/// The text of a send by somebody who has sent too much.
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

/// Writes the body of a refusal that no error of the house stands for.
pub fn encode_text(text: &str, out: &mut Vec<u8>) {
    let mut object = Object::open(out);
    object.str("error", text);
    object.close();
}
