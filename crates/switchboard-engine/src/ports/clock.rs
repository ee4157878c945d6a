//! What time it is. The store decides leases by its own clock; this one stamps events.

use switchboard_core::model::Timestamp;

pub trait Clock: Send + Sync {
    fn now(&self) -> Timestamp;
}

/// What a store remembers of the wall clock, so that a process can tell whether the clock was set while none ran.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClockRecord {
    /// A moment shortly before the last process ended.
    pub last_seen: Option<Timestamp>,
    /// Until when an earlier process would remove nothing by its age, see [`Upkeep::hold_until`](super::Upkeep::hold_until).
    pub held_until: Option<Timestamp>,
}

/// A clock that goes back by less than this between two looks was corrected, not set: nothing that waits is touched.
pub const SET_BACK_MS_MIN: i64 = 1_000;
