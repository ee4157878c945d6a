//! What can be wrong with a store, as far as callers do different things about it.

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StoreError {
    /// Try again later. The reason is logged and shown to whoever asks whether the process is ready: it names no path,
    /// no host and nothing that is stored.
    Unavailable(String),
    /// Stop: what is stored cannot be right.
    Corrupt(String),
    /// One record cannot be read, and the others can: the store has put it into quarantine. The text is for the log.
    Damaged(String),
    /// The log no longer reaches back that far.
    Pruned,
}
