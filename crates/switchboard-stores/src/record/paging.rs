//! One page of a log or of a list, as a reader gets it, whatever store it comes from. Events are numbered without gaps, so a commit that is
//! missing is noticed here.

use switchboard_core::lifecycle::Event;
use switchboard_core::model::Measure;
use switchboard_engine::ports::store::{
    ListCursor, ListPage, ListQuery, LogPage, LoggedCommit, StoreError, StoredTask,
};

use super::folding::unsigned;

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

/// A page of a list that is being filled, within the bytes that the reader can take.
pub(crate) struct ListPaging<'q> {
    page: ListPage,
    query: &'q ListQuery,
    left: u64,
    last: Option<ListCursor>,
}

impl<'q> ListPaging<'q> {
    /// `page` has the total, and where the next page begins if this one gets all of its tasks.
    pub(crate) fn of(page: ListPage, query: &'q ListQuery) -> Self {
        Self { page, query, left: query.bytes_max, last: None }
    }

    /// Adds the task at this cursor. False if it does not fit; then the page ends before it, and is not empty.
    pub(crate) fn add(&mut self, cursor: ListCursor, stored: StoredTask) -> bool {
        let bytes = Measure::ABOUT.task(&stored.folded.task, self.query.artifacts);
        if bytes > self.left && self.last.is_some() {
            self.page.next = self.last;
            return false;
        }
        self.left = self.left.saturating_sub(bytes);
        self.page.tasks.push(stored);
        self.last = Some(cursor);
        true
    }

    pub(crate) fn finish(self) -> ListPage {
        self.page
    }
}
