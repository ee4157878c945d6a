//! What part of a limit this process has, if several share a store. Limits of one caller or owner are for all of them together, so each has as
//! much as there are processes; how many there are, the store finds out from time to time.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

/// The part of this process. Clones are the same.
#[derive(Clone, Debug)]
pub struct Share(Arc<AtomicU32>);

impl Default for Share {
    /// All of it: no other process shares the store.
    fn default() -> Self {
        Self(Arc::new(AtomicU32::new(1)))
    }
}

impl Share {
    /// Notes how many processes share the store; this one is always among them.
    pub fn set_processes(&self, processes: u32) {
        self.0.store(processes.max(1), Relaxed);
    }

    /// How many processes share the store.
    #[must_use]
    pub fn processes(&self) -> u32 {
        self.0.load(Relaxed)
    }

    /// The part of a number of things, which is one at least.
    #[must_use]
    pub fn of(&self, limit: u64) -> u64 {
        (limit / u64::from(self.processes())).max(limit.min(1))
    }

    /// The part of a rate.
    #[must_use]
    pub fn of_rate(&self, rate: f64) -> f64 {
        rate / f64::from(self.processes())
    }
}

#[cfg(test)]
mod tests {
    use super::Share;

    #[test]
    fn parts_are_no_more_than_the_whole_unless_there_is_less_than_one_for_each() {
        let share = Share::default();
        assert_eq!((share.of(10), share.of(0)), (10, 0));
        share.set_processes(3);
        assert_eq!([0, 1, 2, 3, 10].map(|limit| share.of(limit)), [0, 1, 1, 1, 3]);
        assert!((share.of_rate(3.0) - 1.0).abs() < f64::EPSILON);
        share.set_processes(0);
        assert_eq!(share.of(10), 10, "this process is always there");
    }
}
