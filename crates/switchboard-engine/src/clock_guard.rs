//! Compares the wall clock with the monotonic clock. The wall clock can be set at any time; the monotonic clock only
//! advances. When the two differ by more than a day, or more than a day lies between two processes, ages cannot be
//! trusted. Then nothing is removed or given up because of its age for one day, which gives operators time to correct
//! the clock.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use switchboard_core::model::Timestamp;
use tokio::time::Instant;

use crate::ports::system::ClockRecord;

/// A jump, or a gap between two processes, of more than this is suspicious.
const JUMP_MS_MAX: i64 = 86_400_000;
/// How long ages are ignored after that.
const HOLD_MS: i64 = 86_400_000;

#[derive(Default)]
pub(crate) struct ClockGuard {
    state: Mutex<Option<State>>,
}

struct State {
    first: Reading,
    last: Reading,
    hold: Option<Hold>,
}

/// Both clocks at one moment.
#[derive(Clone, Copy)]
struct Reading {
    wall: Timestamp,
    at: Instant,
}

impl Reading {
    fn now(wall: Timestamp) -> Self {
        Self { wall, at: Instant::now() }
    }

    /// How many milliseconds more the wall clock has advanced since `earlier` than the monotonic clock; negative if it
    /// was set back.
    fn jump_ms(self, earlier: Self) -> i64 {
        let passed = i64::try_from((self.at - earlier.at).as_millis()).unwrap_or(i64::MAX);
        self.wall.as_ms().saturating_sub(earlier.wall.as_ms()).saturating_sub(passed)
    }
}

struct Hold {
    until: Instant,
    /// The same moment as wall time, for log lines and for the next process.
    until_wall: Timestamp,
    /// What is wrong with the clock, as the beginning of a sentence.
    reason: String,
    is_recorded: bool,
}

impl ClockGuard {
    fn lock(&self) -> MutexGuard<'_, Option<State>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What an earlier process recorded about the clock; used by the first comparison of this process.
    pub(crate) fn begin(&self, record: ClockRecord, wall: Timestamp) {
        let mut state = self.lock();
        let state = state.get_or_insert_with(|| State::new(wall));
        if let Some(left_ms) = record.held_until.map(|until| until.ms_since(wall)).filter(|left_ms| *left_ms > 0) {
            let reason = "The wall clock had jumped before this process began".to_owned();
            state.hold(left_ms.min(HOLD_MS), reason, wall);
            return;
        }
        let Some(last_seen) = record.last_seen else { return };
        let gap_ms = wall.as_ms().saturating_sub(last_seen.as_ms());
        if gap_ms.saturating_abs() > JUMP_MS_MAX {
            let reason =
                format!("The wall clock says {}, and an earlier process last saw {}", text(wall), text(last_seen));
            state.hold(HOLD_MS, reason, wall);
        }
    }

    /// Compares both clocks.
    pub(crate) fn compare(&self, wall: Timestamp) {
        let mut state = self.lock();
        let state = state.get_or_insert_with(|| State::new(wall));
        let reading = Reading::now(wall);
        let jump_ms = reading.jump_ms(state.last);
        state.last = reading;
        if jump_ms.saturating_abs() > JUMP_MS_MAX {
            let (hours, way) = (jump_ms.unsigned_abs() / 3_600_000, if jump_ms > 0 { "ahead" } else { "back" });
            state.hold(HOLD_MS, format!("The wall clock jumped {way} by {hours} h, to {}", text(wall)), wall);
        }
        if state.hold.as_ref().is_some_and(|hold| hold.until <= reading.at) {
            state.hold = None;
            tracing::info!("ages count again, a day after the wall clock jumped");
        }
    }

    /// Whether ages are ignored now, as of the last comparison.
    pub(crate) fn is_held(&self) -> bool {
        self.lock().as_ref().is_some_and(|state| state.hold.is_some())
    }

    /// The message for operators while ages are ignored.
    pub(crate) fn notice(&self) -> Option<String> {
        let state = self.lock();
        let hold = state.as_ref()?.hold.as_ref()?;
        Some(format!(
            "{}: nothing is removed or given up on because of its age until {}",
            hold.reason,
            text(hold.until_wall)
        ))
    }

    /// The end of a hold that is not stored yet.
    pub(crate) fn unrecorded(&self) -> Option<Timestamp> {
        let state = self.lock();
        let hold = state.as_ref()?.hold.as_ref()?;
        (!hold.is_recorded).then_some(hold.until_wall)
    }

    pub(crate) fn recorded(&self, until: Timestamp) {
        let mut state = self.lock();
        let hold = state.as_mut().and_then(|state| state.hold.as_mut());
        if let Some(hold) = hold.filter(|hold| hold.until_wall == until) {
            hold.is_recorded = true;
        }
    }

    /// The first wall time that was seen, and the monotonic time since then.
    pub(crate) fn steady(&self, wall: Timestamp) -> Timestamp {
        let mut state = self.lock();
        let first = state.get_or_insert_with(|| State::new(wall)).first;
        first.wall.plus_ms(i64::try_from(first.at.elapsed().as_millis()).unwrap_or(i64::MAX))
    }
}

impl State {
    fn new(wall: Timestamp) -> Self {
        let now = Reading::now(wall);
        Self { first: now, last: now, hold: None }
    }

    fn hold(&mut self, ms: i64, reason: String, wall: Timestamp) {
        let until_wall = wall.plus_ms(ms);
        tracing::warn!(
            reason,
            until = text(until_wall),
            "the wall clock cannot be trusted: nothing is removed or given up on because of its age for a while"
        );
        let until = Instant::now() + Duration::from_millis(ms.unsigned_abs());
        self.hold = Some(Hold { until, until_wall, reason, is_recorded: false });
    }
}

fn text(at: Timestamp) -> String {
    String::from_utf8_lossy(&at.to_rfc3339()).into_owned()
}

#[cfg(test)]
#[path = "clock_guard_tests.rs"]
mod tests;
