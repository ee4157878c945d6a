//! The time of day, which tokens expire by. Everything else measures with tokio's clock.

use std::time::{SystemTime, UNIX_EPOCH};

/// Seconds since 1970.
#[expect(clippy::disallowed_methods, reason = "tokens say in seconds since 1970 when they expire")]
pub(super) fn now_s() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()
}
