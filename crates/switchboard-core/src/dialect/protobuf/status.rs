//! Refusals over gRPC: a code, a text, and the details that the other bindings have in JSON, as a `google.rpc.Status`.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use prost::Message;
use prost_types::{Any, Duration};

use crate::dialect::codes::{self, DOMAIN};
use crate::dialect::json::excerpt;
use crate::error::ProtocolError;
use crate::model::TaskState;

use super::generated as rpc;

/// A refusal as the trailers of a call have it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Status {
    pub code: u8,
    /// Plain text, not yet escaped.
    pub message: String,
    /// `grpc-status-details-bin`: a `google.rpc.Status` in base64.
    pub details: String,
}

/// Clients take some 8 KiB of trailers; what is longer would cost them the whole answer.
const MESSAGE_BYTES_MAX: usize = 1024;
const VIOLATIONS_BYTES_MAX: usize = 2048;
const FACT_BYTES_MAX: usize = 256;

/// A refusal. How a state is spelled is the dialect's to say.
#[must_use]
pub fn encode_error(error: &ProtocolError, state_name: fn(TaskState) -> &'static str) -> Status {
    let codes = codes::of(error);
    let message = excerpt(&error.to_string(), MESSAGE_BYTES_MAX);
    let facts = codes::facts(error, state_name);
    let metadata = facts.into_iter().map(|(name, value)| (name.to_owned(), excerpt(&value, FACT_BYTES_MAX)));
    let info =
        rpc::ErrorInfo { reason: codes.reason.to_owned(), domain: DOMAIN.to_owned(), metadata: metadata.collect() };
    let mut details = vec![packed("ErrorInfo", &info)];
    if let ProtocolError::InvalidParams { violations } = error {
        let mut room = VIOLATIONS_BYTES_MAX;
        let field_violations = violations.iter().map_while(|violation| {
            room = room.checked_sub(violation.field.len() + violation.description.len())?;
            Some(rpc::bad_request::FieldViolation {
                field: violation.field.clone(),
                description: violation.description.clone(),
            })
        });
        details.push(packed("BadRequest", &rpc::BadRequest { field_violations: field_violations.collect() }));
    }
    if let ProtocolError::Unavailable { retry_after_s, .. } = error {
        let retry_delay = Some(Duration { seconds: (*retry_after_s).into(), nanos: 0 });
        details.push(packed("RetryInfo", &rpc::RetryInfo { retry_delay }));
    }
    let status = rpc::Status { code: codes.grpc.into(), message: message.clone(), details };
    Status { code: codes.grpc, message, details: STANDARD_NO_PAD.encode(status.encode_to_vec()) }
}

fn packed(name: &str, message: &impl Message) -> Any {
    Any { type_url: format!("type.googleapis.com/google.rpc.{name}"), value: message.encode_to_vec() }
}
