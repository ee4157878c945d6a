//! How a call ends: a code, a text and details, in the trailers after the messages, or in the head of an answer without any.

use http::{HeaderMap, HeaderValue};
use percent_encoding::{AsciiSet, CONTROLS, utf8_percent_encode};
use switchboard_core::dialect::{Package, codes, vocabulary_of_package};
use switchboard_core::error::ProtocolError;
use switchboard_core::model::Vocabulary;

use crate::server::exchange::headers::grpc::{MESSAGE, STATUS, STATUS_DETAILS};

/// The status that ends a call.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct GrpcStatus {
    code: u8,
    message: String,
    /// In base64; empty for none.
    details: String,
    /// Whether the answer asks the caller to authenticate (`www-authenticate`).
    pub(super) challenges: bool,
}

impl GrpcStatus {
    pub(super) fn ok() -> Self {
        Self::plain(0, "")
    }

    /// A refusal in the protocol's words.
    pub(super) fn of(package: Package, error: &ProtocolError) -> Self {
        let status = package.write_error(error);
        let challenges = matches!(error, ProtocolError::Unauthenticated { .. });
        Self { code: status.code, message: status.message, details: status.details, challenges }
    }

    pub(super) fn deadline(package: Package) -> Self {
        let Vocabulary { get_task, subscribe, .. } = vocabulary_of_package(package);
        let why = format!(
            "the caller's deadline passed; a task that was accepted goes on, and {get_task} or {subscribe} tell how"
        );
        Self::plain(codes::DEADLINE_EXCEEDED, why)
    }

    pub(super) fn unknown_encoding(encoding: &str) -> Self {
        Self::plain(codes::GRPC_UNIMPLEMENTED, format!("grpc-encoding {encoding:.50} is not served; send identity"))
    }

    /// The specification of gRPC has this number for a compressed message that names no compression.
    pub(super) fn compressed() -> Self {
        Self::plain(codes::GRPC_INTERNAL, "the message is marked as compressed, but no grpc-encoding was named")
    }

    pub(super) fn no_message() -> Self {
        Self::plain(codes::GRPC_UNIMPLEMENTED, "the call has no message; it takes exactly one")
    }

    pub(super) fn several_messages() -> Self {
        Self::plain(codes::GRPC_UNIMPLEMENTED, "the call has more than one message; it takes exactly one")
    }

    /// A message longer than its four bytes of length can say.
    pub(super) fn too_large() -> Self {
        Self::of(Package::V1_0, &ProtocolError::TooLarge { what: "answer".into(), bytes_max: u32::MAX.into() })
    }

    pub(super) fn code(&self) -> u8 {
        self.code
    }

    fn plain(code: u8, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), details: String::new(), challenges: false }
    }

    /// Writes it into trailers or a head.
    pub(super) fn write(&self, headers: &mut HeaderMap) {
        let code = if self.code == 0 { OK } else { u16::from(self.code).into() };
        headers.insert(STATUS, code);
        if !self.message.is_empty()
            && let Ok(message) = HeaderValue::from_maybe_shared(bytes::Bytes::from(escaped(&self.message)))
        {
            headers.insert(MESSAGE, message);
        }
        if !self.details.is_empty()
            && let Ok(details) = HeaderValue::from_str(&self.details)
        {
            headers.insert(STATUS_DETAILS, details);
        }
    }
}

/// How nearly every call ends.
const OK: HeaderValue = HeaderValue::from_static("0");

/// `grpc-message` is text in percent-encoding: all but printable ASCII, and the percent sign itself.
pub(super) fn escaped(text: &str) -> String {
    const ESCAPED: &AsciiSet = &CONTROLS.add(b'%');
    utf8_percent_encode(text, ESCAPED).to_string()
}
