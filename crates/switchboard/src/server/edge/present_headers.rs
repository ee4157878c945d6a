//! Which headers a request has, found in one pass over their names. To look a header up costs nearly as much as the whole pass,
//! and most requests have none of the headers that could be looked up.

use http::{HeaderMap, HeaderValue};

use crate::server::edge::identity_headers::is_identity_header;

/// The headers that the stages of the edge read, as far as a request has them.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct PresentHeaders {
    pub(crate) origin: bool,
    pub(crate) request_id: bool,
    pub(crate) version: bool,
    /// Whether any says how a call is to be made: its key, where a stream goes on, extensions.
    pub(crate) call: bool,
    /// Whether it comes in a trace.
    pub(crate) trace: bool,
    /// Whether any tells who calls, as a proxy would.
    pub(crate) identity: bool,
    pub(crate) content_type: ContentType,
}

/// What a request says about its body. If it says so twice, the first line counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum ContentType {
    #[default]
    Absent,
    /// Exactly `application/json`.
    Json,
    Grpc,
    Other,
}

impl PresentHeaders {
    pub(crate) fn of(headers: &HeaderMap) -> Self {
        let mut present = Self::default();
        for (name, value) in headers {
            match name.as_str() {
                "host" | "content-length" | "accept" | "user-agent" => {}
                "content-type" if present.content_type == ContentType::Absent => {
                    present.content_type = ContentType::of(value);
                }
                "a2a-version" => present.version = true,
                "origin" => present.origin = true,
                "x-request-id" => present.request_id = true,
                "a2a-extensions" | "idempotency-key" | "last-event-id" | "x-a2a-extensions" => present.call = true,
                "traceparent" => present.trace = true,
                name => present.identity |= is_identity_header(name),
            }
        }
        present
    }
}

impl ContentType {
    fn of(value: &HeaderValue) -> Self {
        match value.as_bytes() {
            b"application/json" => Self::Json,
            kind if is_grpc(kind) => Self::Grpc,
            _ => Self::Other,
        }
    }
}

#[cfg(feature = "grpc")]
fn is_grpc(kind: &[u8]) -> bool {
    const GRPC: &[u8] = b"application/grpc";
    // What follows is a codec or a parameter; `application/grpc-web` is another protocol.
    let rest = kind.get(..GRPC.len()).filter(|kind| kind.eq_ignore_ascii_case(GRPC)).and(kind.get(GRPC.len()..));
    rest.is_some_and(|rest| rest.first().is_none_or(|next| matches!(next, b'+' | b';' | b' ')))
}

#[cfg(not(feature = "grpc"))]
fn is_grpc(_: &[u8]) -> bool {
    false
}

#[cfg(test)]
#[path = "present_headers_tests.rs"]
mod tests;
