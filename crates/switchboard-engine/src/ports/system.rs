//! What the engine takes from the operating system: the time, and randomness for ids. Both are ports, so that a simulation
//! can repeat a run exactly.

use std::sync::Arc;

use switchboard_core::model::Timestamp;

/// The wall clock that stamps events. A store decides about leases by its own clock.
pub trait Clock: Send + Sync {
    fn now(&self) -> Timestamp;
}

/// What a store records about the wall clock, so that a process can tell whether the clock was set while no process
/// ran.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClockRecord {
    /// A time shortly before the last process ended.
    pub last_seen: Option<Timestamp>,
    /// Until when an earlier process ignored ages, see [`Upkeep::hold_until`](super::Upkeep::hold_until).
    pub held_until: Option<Timestamp>,
}

/// A clock that goes back by less than this between two readings was corrected, not set. Waiting times are not shifted
/// then.
pub const SET_BACK_MS_MIN: i64 = 1_000;

/// The source of new task, context and message ids.
pub trait Ids: Send + Sync {
    /// A new UUID of version 7 (it begins with the time) as text. Task and context ids must not be guessable, so an
    /// adapter for production fills the rest from the system's random number generator.
    fn uuid(&self, now: Timestamp) -> Arc<str>;
}
