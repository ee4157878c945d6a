//! One page of a log, as a reader of events gets it. Events are numbered without gaps, so a commit that is missing is noticed here, whatever
//! store the commits come from.

use switchboard_core::lifecycle::Event;
use switchboard_engine::ports::store::{LogPage, LoggedCommit, StoreError};

use super::unsigned;

/// A page that is being read, from the oldest commit on.
pub(crate) struct Paging {
    page: LogPage,
    seen_seq: i64,
}

impl Paging {
    /// Of events after this one.
    pub(crate) fn after(seq: i64) -> Self {
        Self { page: LogPage { commits: Vec::new() }, seen_seq: seq }
    }

    pub(crate) fn commits(&self) -> usize {
        self.page.commits.len()
    }

    /// Adds the next commit, which ends with the event `last_seq` and has so many visible ones.
    pub(crate) fn add(
        &mut self,
        version: i64,
        last_seq: i64,
        visible: i64,
        events: impl FnOnce() -> Result<Vec<Event>, StoreError>,
    ) -> Result<(), StoreError> {
        let first_seq = last_seq - visible + 1;
        // The first commit may begin before the cursor, but must not begin after the next event.
        if first_seq > self.seen_seq + 1 || (first_seq <= self.seen_seq && !self.page.commits.is_empty()) {
            return Err(StoreError::Corrupt(format!("event {} is missing", self.seen_seq + 1)));
        }
        self.seen_seq = last_seq;
        let events = events()?.into();
        self.page.commits.push(LoggedCommit { version: unsigned(version), first_seq: unsigned(first_seq), events });
        Ok(())
    }

    /// The page. If it could have held more, it must reach the newest event.
    pub(crate) fn finish(self, is_full: bool, seq: i64) -> Result<LogPage, StoreError> {
        let Self { page, seen_seq } = self;
        match !is_full && seen_seq < seq {
            true => Err(StoreError::Corrupt(format!("its log ends at event {seen_seq}, and it is at {seq}"))),
            false => Ok(page),
        }
    }
}
