//! The heads of answers.

use http::{HeaderMap, HeaderValue, Response, header};

use super::super::body::ReplyBody;
use super::super::names::grpc::ACCEPT_ENCODING;
use super::status::Ending;
use super::stream::GrpcBody;

const GRPC: HeaderValue = HeaderValue::from_static("application/grpc");

/// An answer whose messages follow.
pub(super) fn success(body: GrpcBody) -> Response<ReplyBody> {
    let mut response = Response::new(ReplyBody::Grpc(Box::new(body)));
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, GRPC);
    accepts_identity(headers);
    response
}

/// An answer without messages: its head is also its end.
pub(super) fn ended(ending: &Ending) -> Response<ReplyBody> {
    let mut response = Response::new(ReplyBody::Empty);
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, GRPC);
    accepts_identity(headers);
    if ending.challenges {
        headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer realm=\"switchboard\""));
    }
    ending.write(headers);
    response
}

/// What every answer says about encodings.
fn accepts_identity(headers: &mut HeaderMap) {
    headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
}
