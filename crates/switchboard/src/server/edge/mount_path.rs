//! The path below which a server is reached.

use std::sync::atomic::{AtomicBool, Ordering};

use axum::extract::OriginalUri;
use http::request::Parts;

/// The path below which a server is reached: that of its public URL. A request comes with that path (directly, or through
/// a proxy that passes it on), or without it (through a proxy or an axum router that takes it off).
pub(crate) struct MountPath {
    /// The path of the public URL, without a slash at its end.
    public: String,
    /// Whether the log has been told that the mount and the public URL disagree.
    told: AtomicBool,
}

impl MountPath {
    pub(crate) fn new(public: String) -> Self {
        Self { public, told: AtomicBool::new(false) }
    }

    /// What a route may take off the path of this request. A router that nests the server has taken its own part off
    /// already and left the whole path in an extension; the rest must not be shortened a second time, since an agent may
    /// have a path of the same name (`/a2a`).
    pub(crate) fn base_of(&self, parts: &Parts) -> &str {
        let path = parts.uri.path();
        let removed_prefix = parts.extensions.get::<OriginalUri>().and_then(|whole| removed_prefix(whole.path(), path));
        let Some(prefix) = removed_prefix else { return &self.public };
        if prefix != self.public && !self.told.swap(true, Ordering::Relaxed) {
            tracing::warn!(
                mounted_at = prefix,
                public_url_path = self.public,
                "the server is mounted at another path than its public URL has, so clients that go by its cards will not \
                 find it; give ServerBuilder::public_url the path of the mount"
            );
        }
        ""
    }
}

/// The part of the whole path that is missing from the path that is left, if any.
fn removed_prefix<'a>(whole: &'a str, left: &str) -> Option<&'a str> {
    let prefix = match whole.strip_suffix(left) {
        Some(prefix) => prefix,
        // A request for the mount itself: `/a2a` is left with `/`.
        None if left == "/" => whole,
        None => return None,
    };
    let prefix = prefix.trim_end_matches('/');
    (!prefix.is_empty()).then_some(prefix)
}
