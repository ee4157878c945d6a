//! The headers of a request: their names, which of them there are, and those that are dropped.
//!
//! Proxies tell the application behind them who calls by headers. A client can write them as well, so what comes from outside
//! is dropped before an authenticator or an endpoint sees the request. An application that stands behind such a proxy reads
//! them in a layer around the server and hands on an `Identity` (`IdentityFromExtensions`).

use http::{HeaderMap, HeaderName, HeaderValue, header};

// Names that HTTP itself does not know. Made once: looking a header up by text parses the text each time.
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

/// The headers that the stages of the edge read, as far as a request has them. They are found in one pass over their names: to look a header
/// up costs nearly as much as the whole pass, and most requests have none of those that could be looked up.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct PresentHeaders {
    pub(crate) origin: bool,
    pub(crate) request_id: bool,
    pub(crate) version: bool,
    /// Whether any says how a call is to be made: its key, where a stream goes on, extensions.
    pub(crate) call: bool,
    /// Whether any says how a gRPC call is to be made: until when its caller waits, and how its message is compressed.
    pub(crate) grpc_call: bool,
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
                "grpc-encoding" | "grpc-timeout" => present.grpc_call = true,
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

/// The headers of oauth2-proxy, Authelia, Apache, nginx and Traefik, of the clouds' own logins, and what gateways use besides.
const IDENTITY_HEADERS: &[&str] = &[
    "cf-access-authenticated-user-email",
    "cf-access-jwt-assertion",
    "remote-email",
    "remote-groups",
    "remote-name",
    "remote-user",
    "x-a2a-principal",
    "x-a2a-subject",
    "x-a2a-tenant",
    "x-amzn-oidc-accesstoken",
    "x-amzn-oidc-data",
    "x-amzn-oidc-identity",
    "x-auth-request-access-token",
    "x-auth-request-email",
    "x-auth-request-groups",
    "x-auth-request-preferred-username",
    "x-auth-request-user",
    "x-authenticated-user",
    "x-authenticated-userid",
    "x-forwarded-access-token",
    "x-forwarded-client-cert",
    "x-forwarded-email",
    "x-forwarded-groups",
    "x-forwarded-preferred-username",
    "x-forwarded-user",
    "x-goog-authenticated-user-email",
    "x-goog-authenticated-user-id",
    "x-goog-iap-jwt-assertion",
    "x-ms-client-principal",
    "x-ms-client-principal-id",
    "x-ms-client-principal-name",
    "x-ms-token-aad-access-token",
    "x-ms-token-aad-id-token",
    "x-principal",
    "x-remote-group",
    "x-remote-groups",
    "x-remote-user",
    "x-ssl-client-cert",
    "x-ssl-client-dn",
    "x-ssl-client-s-dn",
    "x-ssl-client-verify",
    "x-subject",
    "x-tenant",
    "x-tenant-id",
    "x-user",
    "x-user-email",
    "x-user-id",
    "x-user-name",
    "x-user-roles",
    "x-userid",
    "x-username",
    "x-webauth-user",
];

/// Drops the identity headers of a request. Nearly every request has none, which `PresentHeaders` tells.
#[cold]
pub(crate) fn drop_identity_headers(headers: &mut HeaderMap) {
    let found: Vec<HeaderName> = headers.keys().filter(|name| is_identity_header(name.as_str())).cloned().collect();
    for name in found {
        headers.remove(name);
    }
}

pub(crate) fn is_identity_header(name: &str) -> bool {
    // Most headers are told apart from all of these by their first letters.
    if !matches!(name.as_bytes(), [b'x', b'-' | b'_', ..] | [b'c', b'f', ..] | [b'r', b'e', b'm', ..]) {
        return false;
    }
    // Proxies and CGI applications read an underscore as a dash.
    if !name.contains('_') {
        return IDENTITY_HEADERS.binary_search(&name).is_ok();
    }
    IDENTITY_HEADERS.binary_search(&name.replace('_', "-").as_str()).is_ok()
}

/// The token of a request. More than one header could be read in two ways, so then there is none.
pub(crate) fn bearer(headers: &HeaderMap) -> Option<&str> {
    let mut given = headers.get_all(header::AUTHORIZATION).iter();
    let only = given.next().filter(|_| given.next().is_none());
    let (scheme, token) = only?.to_str().ok()?.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
}

/// Whether a list of tags has one that fits, or is the star that fits all.
pub(crate) fn names(headers: &HeaderMap, name: HeaderName, fits: impl Fn(&str) -> bool) -> bool {
    let lines = headers.get_all(name).into_iter().filter_map(|line| line.to_str().ok());
    lines.flat_map(|line| line.split(',')).map(str::trim).any(|tag| tag == "*" || fits(tag))
}

#[cfg(test)]
#[path = "headers_tests.rs"]
mod tests;
