//! The id of a request, so that a client's complaint finds its lines in a log.

use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use http::{HeaderMap, HeaderValue};
use switchboard_core::dialect::json::write_u64;

use crate::server::edge::header_names::X_REQUEST_ID;

/// Names requests, so that a client's complaint finds its lines in a log at debug level.
pub(crate) struct RequestIds {
    prefix: String,
    next: AtomicU64,
}

const UNNAMED: HeaderValue = HeaderValue::from_static("unnamed");

impl RequestIds {
    pub(crate) fn new(prefix: String) -> Self {
        Self { prefix, next: AtomicU64::new(1) }
    }

    /// The client's own id if it sent a fit one, else a new one.
    pub(crate) fn name(&self, headers: &HeaderMap) -> HeaderValue {
        let own = headers.get(X_REQUEST_ID);
        let fit = |id: &&HeaderValue| id.len() <= 128 && id.as_bytes().iter().all(u8::is_ascii_graphic);
        let mut named = match own.filter(fit) {
            // A copy of its own: a share of what was read would keep the connection from reading into the same room.
            Some(id) => HeaderValue::from_bytes(id.as_bytes()).unwrap_or(UNNAMED),
            None => {
                let number = self.next.fetch_add(1, Ordering::Relaxed);
                // Just as much room as it takes: what is over would cost a second piece of memory.
                let digits = number.checked_ilog10().unwrap_or(0) as usize + 1;
                let mut name = Vec::with_capacity(self.prefix.len() + 1 + digits);
                name.extend_from_slice(self.prefix.as_bytes());
                name.push(b'-');
                write_u64(&mut name, number);
                HeaderValue::from_maybe_shared(Bytes::from(name)).unwrap_or(UNNAMED)
            }
        };
        // Not a secret: this says that it never comes again, so that HTTP/2 does not file it in its table.
        named.set_sensitive(true);
        named
    }
}
