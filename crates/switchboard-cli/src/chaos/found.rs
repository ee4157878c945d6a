//! What the server says about a task in the end: as it is, and its whole log.

use super::ledger::digest;

/// What the server says about a task.
#[derive(Clone, Debug)]
pub(super) enum Found {
    Missing,
    /// It answers with something else.
    Unreadable(String),
    There(Shown),
}

#[derive(Clone, Debug, Default)]
pub(super) struct Shown {
    pub(super) state: String,
    /// The text of its artifacts, as the task itself has them.
    pub(super) artifacts: Text,
    /// The text of its status.
    pub(super) status: String,
    /// Its whole log, as a stream from the beginning shows it.
    pub(super) log: Vec<Logged>,
    /// The text of its artifacts, put together from the log as a client must.
    pub(super) assembled: Text,
    /// What was wrong with the stream, if it did not end in order.
    pub(super) log_trouble: Option<String>,
}

/// A text of any length, as far as it is kept: there may be very many.
#[derive(Clone, Debug)]
pub(super) struct Text {
    pub(super) digest: u64,
    pub(super) beginning: String,
}

impl Text {
    pub(super) fn of(text: &str) -> Self {
        Self { digest: digest(text.as_bytes()), beginning: text.chars().take(120).collect() }
    }

    pub(super) fn is(&self, text: &str) -> bool {
        self.digest == digest(text.as_bytes())
    }
}

impl Default for Text {
    fn default() -> Self {
        Self::of("")
    }
}

#[derive(Clone, Debug)]
pub(super) struct Logged {
    pub(super) seq: u64,
    pub(super) digest: u64,
    pub(super) state: Option<String>,
}
