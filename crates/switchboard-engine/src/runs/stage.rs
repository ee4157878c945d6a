//! The writes of a turn before it first had to wait. They are kept in memory and committed together with the acceptance
//! of its message.

use switchboard_core::lifecycle::{Event, Folded, Head};

use crate::commit::Basis;

/// What a staged turn has written so far.
pub(crate) struct Stage {
    /// The record as it is in the store.
    pub(crate) before: Basis,
    /// The record with `events` applied.
    pub(crate) head: Head,
    pub(crate) events: Vec<Event>,
    pub(crate) folded: Folded,
    /// How many of the events are the acceptance of the message; the others are the agent's.
    pub(super) opening: usize,
}

impl Stage {
    /// A stage that begins with these events.
    pub(crate) fn begin(head: &Head, folded: Folded, events: Vec<Event>) -> Self {
        let (before, opening) = (Basis::of(head), events.len());
        let mut stage = Self { before, head: head.clone(), events, folded, opening };
        stage.apply_from(0);
        stage
    }

    /// Applies the events from this index on.
    pub(super) fn apply_from(&mut self, place: usize) {
        for event in &self.events[place..] {
            self.head.apply(event);
            self.folded.apply(event);
        }
    }
}
