//! Refusals over gRPC: a code, a text, and the details that the other bindings have in JSON, as a `google.rpc.Status`.
//! A refusal that is read may come from any server, so only its code is required, and details that are not understood
//! are skipped.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use prost::Message;
use prost_types::{Any, Duration};

use crate::dialect::codes::{self, DOMAIN};
use crate::dialect::json::{decode_base64, excerpt};
use crate::dialect::wire::ReceivedError;
use crate::error::{ProtocolError, Violation};
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
pub fn write_error(error: &ProtocolError, state_name: fn(TaskState) -> &'static str) -> Status {
    let codes = codes::of(error);
    let message = excerpt(&error.to_string(), MESSAGE_BYTES_MAX);
    let facts = codes::facts(error, state_name);
    let metadata = facts.into_iter().map(|(name, value)| (name.to_owned(), excerpt(&value, FACT_BYTES_MAX)));
    let info =
        rpc::ErrorInfo { reason: codes.reason.to_owned(), domain: DOMAIN.to_owned(), metadata: metadata.collect() };
    let mut details = vec![packed("ErrorInfo", &info)];
    if let ProtocolError::InvalidParams { violations } = error {
        let mut bytes_left = VIOLATIONS_BYTES_MAX;
        let field_violations = violations.iter().map_while(|violation| {
            bytes_left = bytes_left.checked_sub(violation.field.len() + violation.description.len())?;
            Some(rpc::bad_request::FieldViolation {
                field: violation.field.clone(),
                description: violation.description.clone(),
            })
        });
        details.push(packed("BadRequest", &rpc::BadRequest { field_violations: field_violations.collect() }));
    }
    if let Some(retry_after_s) = error.retry_after_s().filter(|seconds| *seconds > 0) {
        let retry_delay = Some(Duration { seconds: retry_after_s.into(), nanos: 0 });
        details.push(packed("RetryInfo", &rpc::RetryInfo { retry_delay }));
    }
    let status = rpc::Status { code: codes.grpc.into(), message: message.clone(), details };
    Status { code: codes.grpc, message, details: STANDARD_NO_PAD.encode(status.encode_to_vec()) }
}

const TYPE_URL: &str = "type.googleapis.com/google.rpc.";

fn packed(name: &str, message: &impl Message) -> Any {
    Any { type_url: format!("{TYPE_URL}{name}"), value: message.encode_to_vec() }
}

/// Reads a refusal. Where its details name no reason, its text may, and else its code is the reason.
#[must_use]
pub fn read_error(status: &Status) -> ReceivedError {
    let mut read = ReceivedError { message: status.message.clone(), ..ReceivedError::default() };
    let details = decode_base64(&status.details).and_then(|bytes| rpc::Status::decode(bytes.as_slice()).ok());
    for Any { type_url, value } in details.map(|status| status.details).unwrap_or_default() {
        read_detail(&type_url, &value, &mut read);
    }
    if read.reason.is_none() {
        let reason = codes::reason_of_text(&status.message).or_else(|| codes::reason_of_grpc(status.code));
        read.reason = reason.map(str::to_owned);
    }
    read
}

fn read_detail(type_url: &str, value: &[u8], read: &mut ReceivedError) {
    match type_url.strip_prefix(TYPE_URL) {
        Some("ErrorInfo") => {
            let Ok(info) = rpc::ErrorInfo::decode(value) else { return };
            read.reason = Some(info.reason);
            read.facts.extend(info.metadata);
        }
        Some("BadRequest") => {
            let violations = rpc::BadRequest::decode(value).map(|request| request.field_violations);
            let violations = violations.unwrap_or_default().into_iter();
            read.violations =
                violations.map(|sent| Violation { field: sent.field, description: sent.description }).collect();
        }
        Some("RetryInfo") => {
            let delay = rpc::RetryInfo::decode(value).ok().and_then(|info| info.retry_delay);
            // A part of a second is waited for as a whole one.
            let seconds = delay.map(|delay| delay.seconds.saturating_add((delay.nanos > 0).into()));
            read.retry_after_s = seconds.and_then(|seconds| u32::try_from(seconds).ok());
        }
        Some(_) | None => {}
    }
}
