//! Waits that are usually over at once.

use std::future::poll_fn;
use std::pin::pin;
use std::task::Poll;

use tokio::time::error::Elapsed;
use tokio::time::{Instant, timeout_at};

/// Waits for something until a time, or for ever. What is there already costs no clock: `end` is asked only if it is not.
pub(super) async fn within<F: Future>(
    end: impl FnOnce() -> Option<Instant>,
    waited_for: F,
) -> Result<F::Output, Elapsed> {
    let mut waited_for = pin!(waited_for);
    if let Poll::Ready(output) = poll_fn(|cx| Poll::Ready(waited_for.as_mut().poll(cx))).await {
        return Ok(output);
    }
    match end() {
        Some(end) => timeout_at(end, waited_for).await,
        None => Ok(waited_for.await),
    }
}
