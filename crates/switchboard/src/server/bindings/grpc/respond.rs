//! The heads of answers.

use http::{HeaderValue, Response, header};

use super::status::Ending;
use super::stream::GrpcBody;
use crate::server::edge::body::ReplyBody;
use crate::server::edge::header_names::grpc::ACCEPT_ENCODING;

const GRPC: HeaderValue = HeaderValue::from_static("application/grpc");

/// An answer whose messages follow.
pub(super) fn success(body: GrpcBody) -> Response<ReplyBody> {
    let mut response = Response::new(ReplyBody::Grpc(Box::new(body)));
    response.headers_mut().insert(header::CONTENT_TYPE, GRPC);
    response
}

/// An answer without messages: its head is also its end.
pub(super) fn ended(ending: &Ending) -> Response<ReplyBody> {
    let mut response = Response::new(ReplyBody::Empty);
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, GRPC);
    // Asked for by the specification where the encoding was the trouble, and right everywhere else.
    headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
    if ending.challenges {
        headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer realm=\"switchboard\""));
    }
    ending.write(headers);
    response
}
