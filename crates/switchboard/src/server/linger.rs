//! What a client still sends after it has been answered. Closing the connection on it would reset it, and the client, busy
//! sending, might never get to read its answer (RFC 9112, section 9.6). So the rest is read and forgotten, for a while.

use std::pin::Pin;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use http_body::Body;
use http_body_util::BodyExt;
use hyper::body::Incoming;
use switchboard_engine::supervisor::Kind;

use super::context::Shared;

/// Reads what is left of a body that was answered, if anything is.
pub(crate) fn linger(shared: &Shared, mut body: Incoming) {
    if body.is_end_stream() {
        return;
    }
    // A body that did not say its length does not know that it has been read until it is asked once more.
    let next = Pin::new(&mut body).poll_frame(&mut Context::from_waker(Waker::noop()));
    if let Poll::Ready(None | Some(Err(_))) = next {
        return;
    }
    let supervisor = shared.engine.supervisor();
    let draining = supervisor.draining().clone();
    let patience = Duration::from_secs(u64::from(shared.limits.linger_s_max));
    supervisor.spawn(Kind::Connection, async move {
        let forgetting = async { while let Some(Ok(_)) = body.frame().await {} };
        tokio::select! {
            biased;
            () = draining.cancelled() => {}
            _ = tokio::time::timeout(patience, forgetting) => {}
        }
    });
}
