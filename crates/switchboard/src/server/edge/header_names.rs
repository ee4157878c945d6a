//! Header names that HTTP itself does not know. Made once: looking a header up by text parses the text each time.

use http::HeaderName;

pub(crate) const A2A_VERSION: HeaderName = HeaderName::from_static("a2a-version");
pub(crate) const A2A_EXTENSIONS: HeaderName = HeaderName::from_static("a2a-extensions");
/// What [`A2A_EXTENSIONS`] was called before 1.0.
pub(crate) const X_A2A_EXTENSIONS: HeaderName = HeaderName::from_static("x-a2a-extensions");
/// Says which media types an agent writes, in replies to clients that accept none of them.
pub(crate) const A2A_OUTPUT_MODES: HeaderName = HeaderName::from_static("a2a-output-modes");
pub(crate) const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");
pub(crate) const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");
pub(crate) const TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");
pub(crate) const TRACESTATE: HeaderName = HeaderName::from_static("tracestate");
/// The name that a corvid-agent gives itself.
pub(crate) const X_SOURCE_AGENT: HeaderName = HeaderName::from_static("x-source-agent");
pub(crate) const X_REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
pub(crate) const X_ACCEL_BUFFERING: HeaderName = HeaderName::from_static("x-accel-buffering");

/// What only gRPC has.
#[cfg(feature = "grpc")]
pub(crate) mod grpc {
    use http::HeaderName;

    /// The number of the first update of a stream.
    pub(crate) const FIRST_EVENT_ID: HeaderName = HeaderName::from_static("first-event-id");
    pub(crate) const ACCEPT_ENCODING: HeaderName = HeaderName::from_static("grpc-accept-encoding");
    pub(crate) const ENCODING: HeaderName = HeaderName::from_static("grpc-encoding");
    pub(crate) const MESSAGE: HeaderName = HeaderName::from_static("grpc-message");
    pub(crate) const STATUS: HeaderName = HeaderName::from_static("grpc-status");
    pub(crate) const STATUS_DETAILS: HeaderName = HeaderName::from_static("grpc-status-details-bin");
    pub(crate) const TIMEOUT: HeaderName = HeaderName::from_static("grpc-timeout");
}
