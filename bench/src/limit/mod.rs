//! The parsing limit server: what is left of an A2A server when the engine is taken out.
//!
//! Requests come in as bytes, are parsed with borrowed structs (never into a JSON tree), and leave as an answer of the
//! same shape and size as the real server's. No store, no log, no limits, no run: what the real server costs above this
//! is the cost of its engine.

mod answer;
mod ids;
mod wire;

use axum::Router;
use axum::body::Body;
use axum::response::Response;
use axum::routing::post;
use axum::serve::ListenerExt as _;
use bytes::Bytes;
use http::StatusCode;
use http::header::{CACHE_CONTROL, CONTENT_TYPE};
use tokio::net::TcpListener;

use wire::{Envelope, GetParams, Method, SendParams};

/// Serves until the process ends.
pub async fn serve(listener: TcpListener) -> std::io::Result<()> {
    let listener = listener.tap_io(|stream| {
        // Without it a streamed event after the first waits for the client's delayed ACK. A refusal only costs speed.
        let _ = stream.set_nodelay(true);
    });
    axum::serve(listener, Router::new().route("/", post(handle))).await
}

async fn handle(body: Bytes) -> Response {
    match answer_to(&body) {
        Ok(response) => response,
        Err(error) => respond(StatusCode::BAD_REQUEST, "text/plain", Body::from(error.to_string())),
    }
}

fn answer_to(body: &[u8]) -> serde_json::Result<Response> {
    let call: Envelope<'_> = serde_json::from_slice(body)?;
    let params = call.params.get();
    Ok(match call.method {
        Method::SendMessage => json(answer::send(call.id, &serde_json::from_str::<SendParams<'_>>(params)?.message)?),
        Method::GetTask => json(answer::get(call.id, &serde_json::from_str::<GetParams<'_>>(params)?)?),
        Method::SendStreamingMessage => {
            sse(answer::stream(call.id, &serde_json::from_str::<SendParams<'_>>(params)?.message)?)
        }
        Method::SubscribeToTask => sse(answer::hold(call.id, &serde_json::from_str::<GetParams<'_>>(params)?)?),
    })
}

fn json(bytes: Vec<u8>) -> Response {
    respond(StatusCode::OK, "application/json", Body::from(bytes))
}

fn sse(events: answer::Events) -> Response {
    let mut response = respond(StatusCode::OK, "text/event-stream", Body::new(events));
    response.headers_mut().insert(CACHE_CONTROL, http::HeaderValue::from_static("no-cache"));
    response
}

fn respond(status: StatusCode, content_type: &'static str, body: Body) -> Response {
    let mut response = Response::new(body);
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, http::HeaderValue::from_static(content_type));
    response
}
