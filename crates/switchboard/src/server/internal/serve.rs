//! Answers the requests that a server posts to itself.

use std::time::Duration;

use bytes::Bytes;
use http::{HeaderValue, Method, Response, StatusCode, header};
use http_body::Body;
use serde_json::{Value, json};

use super::{Internal, InternalRoute};
use crate::server::exchange::headers::bearer;
use crate::server::exchange::request::Head;
use crate::server::exchange::request::read;
use crate::server::exchange::respond::{JSON, ReplyBody, json as json_answer};

const BODY_BYTES_MAX: usize = 4 << 10;
const BODY_READ: Duration = Duration::from_secs(10);

/// Answers a request at one of the routes.
pub(crate) async fn serve<B>(internal: &Internal, route: InternalRoute, head: &Head<'_>, body: B) -> Response<ReplyBody>
where
    B: Body<Data = Bytes> + Send + Unpin,
    B::Error: std::fmt::Display,
{
    let row = route.row();
    if *head.method != Method::POST {
        let mut response = refused(StatusCode::METHOD_NOT_ALLOWED, "Method not allowed");
        response.headers_mut().insert(header::ALLOW, HeaderValue::from_static("POST"));
        return response;
    }
    let Some(tokens) = &internal.tokens else {
        return refused(StatusCode::SERVICE_UNAVAILABLE, "A2A_SECRET is not configured");
    };
    let Ok(body) = read(head.headers, body, BODY_BYTES_MAX, BODY_READ).await else {
        return refused(StatusCode::BAD_REQUEST, "the body is too large or did not arrive");
    };
    let body: Value = serde_json::from_slice(&body).unwrap_or_default();
    let Some(id) = body[row.row_field].as_str().filter(|id| !id.is_empty()) else {
        return refused(StatusCode::BAD_REQUEST, &format!("{} required", row.row_field));
    };
    let now_ms = internal.clock.now().as_ms();
    if !bearer(head.headers).is_some_and(|token| tokens.verify(token, id, now_ms)) {
        return refused(StatusCode::UNAUTHORIZED, row.refusal);
    }
    let processor = match route {
        InternalRoute::ProcessTask => &internal.tasks,
        InternalRoute::ProcessContinuation => &internal.continuations,
    };
    let processed = match processor {
        Some(processor) => processor.process(id).await,
        None => Ok(()),
    };
    match processed {
        Ok(()) => json_answer(StatusCode::OK, JSON, br#"{"ok":true}"#.to_vec()),
        Err(error) => {
            tracing::warn!(route = row.path.join("/"), %error, "what the server had asked of itself failed");
            refused(StatusCode::SERVICE_UNAVAILABLE, "try again later")
        }
    }
}

pub(crate) fn refused(status: StatusCode, why: &str) -> Response<ReplyBody> {
    json_answer(status, JSON, json!({"error": why}).to_string().into_bytes())
}
