//! From the text of a request to a wire struct: what cannot be read is refused, by field where there is one.

use serde::Deserialize;

use crate::call::Request;
use crate::error::ProtocolError;
use crate::nearest::nearest;

use super::{Check, DecodeLimits, ParseFault, excerpt, parse_object};

/// A request, and the tenant it names, which the server compares with what the credential allows.
#[derive(Clone, Debug, PartialEq)]
pub struct Decoded {
    pub tenant: Option<String>,
    pub request: Request,
}

/// The params of a JSON-RPC call. The envelope was parsed as JSON already, so an error here is always about a field.
///
/// # Errors
/// [`ProtocolError::InvalidParams`] naming the field.
#[inline]
pub fn read_params<'a, T: Deserialize<'a>>(text: &'a str) -> Result<T, ProtocolError> {
    parse_object(text).map_err(|fault| wrong_field(fault, "params"))
}

/// The body of an HTTP request.
///
/// # Errors
/// [`ProtocolError::ParseError`] when it is not JSON, else [`ProtocolError::InvalidParams`] naming the field.
#[inline]
pub fn read_body<'a, T: Deserialize<'a>>(body: &'a [u8]) -> Result<T, ProtocolError> {
    let text = std::str::from_utf8(body)
        .map_err(|error| ProtocolError::ParseError { reason: format!("not UTF-8: {error}") })?;
    parse_object(text).map_err(|fault| {
        if fault.is_syntax {
            ProtocolError::ParseError { reason: fault.with_position }
        } else {
            wrong_field(fault, "body")
        }
    })
}

#[cold]
fn wrong_field(fault: ParseFault, whole: &str) -> ProtocolError {
    ProtocolError::invalid(if fault.path.is_empty() { whole.to_owned() } else { fault.path }, fault.description)
}

/// The refusal of a method that a dialect does not have, with the one of `known` that was probably meant.
#[cold]
#[must_use]
pub fn unknown_method(method: &str, known: &[&'static str]) -> ProtocolError {
    let hint = nearest(method, known.iter().copied()).map(|meant| format!("did you mean {meant}?"));
    ProtocolError::MethodNotFound { method: excerpt(method, 64), hint }
}

/// Checks an id that stood in a path, by the rules for ids in a body.
///
/// # Errors
/// [`ProtocolError::InvalidParams`] naming `field`.
pub fn check_id(field: &'static str, id: &str, limits: &DecodeLimits) -> Result<(), ProtocolError> {
    let mut check = Check::new(limits);
    if id.is_empty() {
        check.violation(format_args!("{field}"), "is required and must not be empty");
    }
    check.line(format_args!("{field}"), id, limits.id_bytes_max);
    check.finish(())
}
