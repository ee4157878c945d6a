//! Open streams end when the credential they were opened with expires or is taken back: with the refusal that a new request would
//! get, in the form of their binding. Their task goes on.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use futures_core::Stream;
use switchboard_core::call::{BoxFuture, Frame, UpdateStream};
use switchboard_core::error::ProtocolError;
use switchboard_core::model::Timestamp;
use switchboard_engine::supervisor::{PollWhenWoken, poll_when_woken};
use tokio::time::sleep;

use super::identity::Identity;
use super::identity::Revocation;

/// Told with which refusal a stream is ended whose answer had begun.
pub(crate) type OnRefusal = Arc<dyn Fn(&ProtocolError) + Send + Sync>;

/// The updates up to the moment at which the caller's credential ends. `then` tells the time, and what a stream ends with.
pub(crate) fn until_the_credential_ends(
    updates: UpdateStream,
    identity: &Identity,
    on_refusal: Option<OnRefusal>,
    then: impl FnOnce() -> (Timestamp, ProtocolError),
) -> UpdateStream {
    if identity.expires.is_none() && !identity.revocation.is_possible() {
        return updates;
    }
    let (now, refusal) = then();
    let left = identity.expires.map(|at| Duration::from_millis(u64::try_from(at.ms_since(now)).unwrap_or(0)));
    let revocation = identity.revocation.clone();
    Box::pin(Guarded { updates, revocation, left, ends: None, refusal: Some(refusal), on_refusal })
}

struct Guarded {
    updates: UpdateStream,
    revocation: Revocation,
    /// How long the credential is still good.
    left: Option<Duration>,
    /// Made when the stream first has to wait: most short ones never do.
    ends: Option<PollWhenWoken<BoxFuture<'static, ()>>>,
    /// None once the stream has ended.
    refusal: Option<ProtocolError>,
    on_refusal: Option<OnRefusal>,
}

impl Guarded {
    /// Ends the stream.
    fn refuse(&mut self) -> Poll<Option<Result<Frame, ProtocolError>>> {
        let refusal = self.refusal.take();
        if let (Some(refusal), Some(on_refusal)) = (&refusal, &self.on_refusal) {
            on_refusal(refusal);
        }
        Poll::Ready(refusal.map(Err))
    }
}

impl Stream for Guarded {
    type Item = Result<Frame, ProtocolError>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = self.get_mut();
        if this.refusal.is_none() {
            return Poll::Ready(None);
        }
        let has_ended =
            this.revocation.is_revoked() || this.ends.as_mut().is_some_and(|ends| Pin::new(ends).poll(cx).is_ready());
        if has_ended {
            return this.refuse();
        }
        match this.updates.as_mut().poll_next(cx) {
            Poll::Pending if this.ends.is_none() => {
                let mut ends = poll_when_woken(ended(this.revocation.clone(), this.left));
                if Pin::new(&mut ends).poll(cx).is_ready() {
                    return this.refuse();
                }
                this.ends = Some(ends);
                Poll::Pending
            }
            Poll::Ready(None) => {
                this.refusal = None;
                Poll::Ready(None)
            }
            next => next,
        }
    }
}

/// Done when the credential has ended.
fn ended(revocation: Revocation, left: Option<Duration>) -> BoxFuture<'static, ()> {
    Box::pin(async move {
        let Some(left) = left else { return revocation.revoked().await };
        tokio::select! {
            biased;
            () = revocation.revoked() => {}
            () = sleep(left) => {}
        }
    })
}
