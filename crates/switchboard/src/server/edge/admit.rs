//! The first stage: decides whether a request is admitted. Listening on loopback alone does not protect a server: a
//! page in a browser on this machine can reach a local port, and a foreign DNS name can point at it. On loopback, a
//! Host or Origin that is neither loopback nor our own is turned away. A server that everybody may call from other machines
//! is no safer: the browser of a reader may reach it where its attacker cannot (`origins`). Web pages may not call from a browser unless a
//! setting allows their origin; only the public card may be read from any page.
//!
//! A server without a public URL answers to `127.0.0.1`, `localhost` and `[::1]`, and a client may accept a
//! card only if its URLs have the origin that the client fetched it from (google-adk does). So cards and links to artifacts
//! name the host that the request named. Only these three names are followed, and only with the server's own port: a request
//! cannot make the server write a foreign address into a card, and there are at most four variants of each card.

use http::request::Parts;
use http::{HeaderMap, HeaderValue, Response, StatusCode, header};
use tracing::Span;

use crate::server::exchange::headers::{PresentHeaders, X_REQUEST_ID};
use crate::server::exchange::respond::ReplyBody;
use crate::server::exposure::origins::Cors;
use crate::server::shared::Shared;

/// Whether a request is admitted, and the headers of its answer in either case. `public` marks what any page may read.
pub(crate) fn admit(
    shared: &Shared,
    parts: &Parts,
    present: PresentHeaders,
    authority: Option<&str>,
    public: bool,
) -> (Result<(), &'static str>, CommonHeaders) {
    let origin = if present.origin { parts.headers.get(header::ORIGIN) } else { None };
    let admitted = match is_ambiguous(&parts.headers) {
        false => shared.gate.admits(authority, origin, &shared.cors, public),
        true => Err("the request names its host or its origin twice (Host and Origin headers)"),
    };
    let own_id = if present.request_id { parts.headers.get(X_REQUEST_ID) } else { None };
    let request_id = shared.request_ids.name(own_id);
    (admitted, CommonHeaders { public, origin: origin.cloned(), request_id })
}

/// Whether a request has a second `Host` or `Origin`: a proxy before this server may have checked the other one.
fn is_ambiguous(headers: &HeaderMap) -> bool {
    // Nearly every request has each of its headers once, and then there is nothing to look for.
    headers.len() != headers.keys_len()
        && [header::HOST, header::ORIGIN].iter().any(|name| headers.get_all(name).iter().nth(1).is_some())
}

/// The headers that every answer carries: CORS and the request id.
pub(crate) struct CommonHeaders {
    public: bool,
    origin: Option<HeaderValue>,
    pub(crate) request_id: HeaderValue,
}

impl CommonHeaders {
    /// What is logged meanwhile carries the request's id. At debug level only: a span at every request costs more than
    /// the rest of the logging, and a client that is told of a failure gets an incident id anyway.
    pub(crate) fn span(&self) -> Span {
        tracing::debug_span!("request", id = self.request_id.to_str().unwrap_or("?"))
    }

    pub(crate) fn add_to(self, shared: &Shared, headers: &mut HeaderMap) {
        shared.cors.mark(self.origin.as_ref(), self.public, headers);
        headers.insert(X_REQUEST_ID, self.request_id);
        shared.authentication.set_challenge(headers);
    }
}

/// The answer to a browser that asks before it calls.
pub(crate) fn preflight(cors: &Cors) -> Response<ReplyBody> {
    let mut response = Response::new(ReplyBody::Empty);
    *response.status_mut() = StatusCode::NO_CONTENT;
    response.headers_mut().extend(cors.preflight());
    response
}
