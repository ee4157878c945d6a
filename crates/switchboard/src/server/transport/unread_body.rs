//! Reads the rest of a body whose request was answered before its end. Closing the connection would reset it, and the
//! client, still sending, might never read its answer (RFC 9112, section 9.6). So the rest is read and dropped, for a
//! limited time.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Version, header};
use http_body::{Body, Frame, SizeHint};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use switchboard_engine::supervisor::Kind;

use crate::server::edge::shared::Shared;

/// The body of a request on one of our own connections. It may be dropped before its end: the rest is then read in the
/// background.
pub(crate) struct RequestBody {
    /// None at its end.
    body: Option<Incoming>,
    /// None where the rest need not be read.
    drains_rest: Option<Arc<Shared>>,
}

impl RequestBody {
    pub(crate) fn of(request: Request<Incoming>, shared: &Arc<Shared>) -> Request<Self> {
        // HTTP/2 ends a single request without its connection. A client that sent `Expect: 100-continue` has not begun
        // to send its body.
        let drains_rest = request.version() < Version::HTTP_2 && !request.headers().contains_key(header::EXPECT);
        request.map(|body| Self { body: Some(body), drains_rest: drains_rest.then(|| shared.clone()) })
    }
}

impl Body for RequestBody {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let Some(body) = &mut self.body else { return Poll::Ready(None) };
        let next = Pin::new(body).poll_frame(cx);
        if let Poll::Ready(None | Some(Err(_))) = next {
            self.body = None;
        }
        next
    }

    fn is_end_stream(&self) -> bool {
        self.body.as_ref().is_none_or(Body::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        self.body.as_ref().map_or(SizeHint::with_exact(0), Body::size_hint)
    }
}

impl Drop for RequestBody {
    fn drop(&mut self) {
        if let (Some(body), Some(shared)) = (self.body.take(), self.drains_rest.take())
            && !body.is_end_stream()
        {
            read_rest(&shared, body);
        }
    }
}

fn read_rest(shared: &Shared, mut body: Incoming) {
    let supervisor = &shared.supervisor;
    if supervisor.is_draining() || tokio::runtime::Handle::try_current().is_err() {
        return;
    }
    let draining = supervisor.draining().clone();
    let patience = Duration::from_secs(u64::from(shared.limits.unread_body_s_max));
    supervisor.spawn(Kind::Connection, async move {
        let forgetting = async { while let Some(Ok(_)) = body.frame().await {} };
        tokio::select! {
            biased;
            () = draining.cancelled() => {}
            _ = tokio::time::timeout(patience, forgetting) => {}
        }
    });
}
