//! What can be wrong with a store, as far as callers do different things about it.

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StoreError {
    /// Try again later. The reason is logged and shown to whoever asks whether the process is ready: it names no path,
    /// no host and nothing that is stored.
    Unavailable(String),
    /// Stop: what is stored cannot be right.
    Corrupt(String),
    /// The log no longer reaches back that far.
    Pruned,
}
