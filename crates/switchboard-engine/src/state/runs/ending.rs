//! How runs end, and what is counted about them. [`RunEnd`] is the closed set of endings, because they are a label in `/metrics`
//! and the reason in the log line of an ended task. Ends and durations are counted without a lock.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use switchboard_core::lifecycle::{Head, Phase};
use switchboard_core::model::TaskState;

/// How one run of an agent ended. A run is the work on one message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum RunEnd {
    /// The task is completed.
    Completed,
    /// The agent answered with a message and no task.
    Replied,
    /// The task waits for input or for an authorization.
    Paused,
    /// The next message had arrived already, so the task continues with that one.
    Continued,
    /// The agent declined the task.
    Rejected,
    /// The agent failed the task on purpose, with a text of its own.
    Failed,
    /// The agent returned an error, or a command exited with a failure or could not be started.
    Error,
    /// The agent panicked.
    Panicked,
    /// The agent wrote something that the protocol or a limit forbids, and returned the resulting error.
    InvalidResponse,
    /// The run took longer than it may.
    TimedOut,
    /// The run was not started within the time that a task may wait.
    NotStarted,
    /// The task was canceled.
    Canceled,
    /// The store has no room for what the run wrote: a limit of stored bytes was reached.
    StorageFull,
    /// The run was interrupted and is not tried again.
    Interrupted,
    /// The task's agent has not been served here for too long.
    Unserved,
    /// Another process has taken the run over, or its turn was ended without it.
    Superseded,
    /// The store did not take what the run wrote. The run is tried again when its lease has run out.
    StoreFailed,
    /// The server stopped while the run was at work. The next process resumes it.
    Stopped,
}

impl RunEnd {
    /// All endings, each at the index of its counter.
    pub const ALL: [Self; 18] = [
        Self::Completed,
        Self::Replied,
        Self::Paused,
        Self::Continued,
        Self::Rejected,
        Self::Failed,
        Self::Error,
        Self::Panicked,
        Self::InvalidResponse,
        Self::TimedOut,
        Self::NotStarted,
        Self::Canceled,
        Self::StorageFull,
        Self::Interrupted,
        Self::Unserved,
        Self::Superseded,
        Self::StoreFailed,
        Self::Stopped,
    ];

    /// The word for logs and metrics.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Completed => "completed",
            Self::Replied => "replied",
            Self::Paused => "paused",
            Self::Continued => "continued",
            Self::Rejected => "rejected",
            Self::Failed => "failed",
            Self::Error => "error",
            Self::Panicked => "panicked",
            Self::InvalidResponse => "invalid_response",
            Self::TimedOut => "timed_out",
            Self::NotStarted => "not_started",
            Self::Canceled => "canceled",
            Self::StorageFull => "storage_full",
            Self::Interrupted => "interrupted",
            Self::Unserved => "unserved",
            Self::Superseded => "superseded",
            Self::StoreFailed => "store_failed",
            Self::Stopped => "stopped",
        }
    }

    /// Whether the run counts as failed: it left its task failed, other than by taking too long.
    #[must_use]
    pub fn is_failure(self) -> bool {
        match self {
            Self::Failed
            | Self::Error
            | Self::Panicked
            | Self::InvalidResponse
            | Self::StorageFull
            | Self::Interrupted
            | Self::Unserved => true,
            Self::Completed
            | Self::Replied
            | Self::Paused
            | Self::Continued
            | Self::Rejected
            | Self::TimedOut
            | Self::NotStarted
            | Self::Canceled
            | Self::Superseded
            | Self::StoreFailed
            | Self::Stopped => false,
        }
    }

    /// How the run for a turn ended, as its task shows.
    pub(crate) fn shown_by(head: &Head, turn: u32) -> Self {
        match (head.phase, head.state) {
            (Phase::Replied, _) => Self::Replied,
            (Phase::Unborn, _) => Self::Superseded,
            (Phase::Live, _) if head.turn > turn => Self::Continued,
            (Phase::Live, TaskState::Completed) => Self::Completed,
            (Phase::Live, TaskState::Failed) => Self::Failed,
            (Phase::Live, TaskState::Canceled) => Self::Canceled,
            (Phase::Live, TaskState::Rejected) => Self::Rejected,
            (Phase::Live, TaskState::InputRequired | TaskState::AuthRequired) => Self::Paused,
            (Phase::Live, TaskState::Submitted | TaskState::Working | TaskState::Unspecified) => Self::Superseded,
        }
    }
}

/// What is counted about the runs of one agent since the start of the process.
#[derive(Debug, Default)]
pub struct RunCounters {
    started: AtomicU64,
    recovered: AtomicU64,
    ended: [AtomicU64; RunEnd::ALL.len()],
    seconds: Histogram,
}

impl RunCounters {
    pub(crate) fn start(&self) {
        self.started.fetch_add(1, Relaxed);
    }

    pub(crate) fn recover(&self) {
        self.recovered.fetch_add(1, Relaxed);
    }

    /// Counts the end of a run that was at work for this long.
    pub(crate) fn end(&self, how: RunEnd, worked: Duration) {
        self.end_unstarted(how);
        self.seconds.observe(worked);
    }

    /// Counts the end of a run whose agent was not started in this process.
    pub(crate) fn end_unstarted(&self, how: RunEnd) {
        self.ended[how as usize].fetch_add(1, Relaxed);
    }

    /// Runs started.
    #[must_use]
    pub fn started(&self) -> u64 {
        self.started.load(Relaxed)
    }

    /// Runs resumed after an interruption.
    #[must_use]
    pub fn recovered(&self) -> u64 {
        self.recovered.load(Relaxed)
    }

    /// Runs that ended like this.
    #[must_use]
    pub fn ended(&self, how: RunEnd) -> u64 {
        self.ended[how as usize].load(Relaxed)
    }

    /// Runs that left their task failed, other than by taking too long.
    #[must_use]
    pub fn failed(&self) -> u64 {
        RunEnd::ALL.into_iter().filter(|how| how.is_failure()).map(|how| self.ended(how)).sum()
    }

    /// Runs that took too long, or waited too long to be started.
    #[must_use]
    pub fn timed_out(&self) -> u64 {
        self.ended(RunEnd::TimedOut) + self.ended(RunEnd::NotStarted)
    }

    /// How long runs were at work.
    #[must_use]
    pub fn seconds(&self) -> &Histogram {
        &self.seconds
    }
}

/// Upper bounds of the buckets, in microseconds, from an answer from memory to a run of ten minutes.
pub const MICROS_BOUNDS: [u64; 17] = [
    100,
    250,
    500,
    1_000,
    2_500,
    5_000,
    10_000,
    25_000,
    50_000,
    100_000,
    250_000,
    500_000,
    1_000_000,
    5_000_000,
    30_000_000,
    120_000_000,
    600_000_000,
];

/// A histogram of durations without a lock: each observation adds to one bucket and to the sum.
#[derive(Debug, Default)]
pub struct Histogram {
    /// The last bucket counts values above all bounds.
    buckets: [AtomicU64; MICROS_BOUNDS.len() + 1],
    nanos_sum: AtomicU64,
}

impl Histogram {
    /// Counts one duration.
    pub fn observe(&self, took: Duration) {
        let nanos = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX);
        let bucket = MICROS_BOUNDS.partition_point(|bound| bound * 1_000 < nanos);
        self.buckets[bucket].fetch_add(1, Relaxed);
        self.nanos_sum.fetch_add(nanos, Relaxed);
    }

    /// The observations in each bucket; the counts are not cumulative.
    #[must_use]
    pub fn buckets(&self) -> [u64; MICROS_BOUNDS.len() + 1] {
        std::array::from_fn(|bucket| self.buckets[bucket].load(Relaxed))
    }

    /// All durations together.
    #[must_use]
    pub fn seconds_sum(&self) -> f64 {
        self.nanos_sum.load(Relaxed) as f64 / 1e9
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{Histogram, MICROS_BOUNDS, RunEnd};

    #[test]
    fn every_way_to_end_has_a_place_and_a_word_of_its_own() {
        let mut words: Vec<_> = RunEnd::ALL.iter().map(|how| how.word()).collect();
        assert!(RunEnd::ALL.iter().enumerate().all(|(place, how)| *how as usize == place));
        words.sort_unstable();
        words.dedup();
        assert_eq!(words.len(), RunEnd::ALL.len());
    }

    #[test]
    fn a_duration_is_counted_in_the_first_bucket_that_holds_it() {
        let histogram = Histogram::default();
        for micros in [0, 100, 101, 600_000_000, 600_000_001] {
            histogram.observe(Duration::from_micros(micros));
        }
        let mut expected = [0; MICROS_BOUNDS.len() + 1];
        (expected[0], expected[1], expected[16], expected[17]) = (2, 1, 1, 1);
        assert_eq!(histogram.buckets(), expected);
        assert!((histogram.seconds_sum() - 1_200.000_202).abs() < 1e-6, "{}", histogram.seconds_sum());
    }
}
