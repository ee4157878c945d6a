//! Refused requests are logged up to a number of lines a second, so that a flood of refusals fills no disk and does not slow the server
//! down; those that were left out are summed up in one line.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use switchboard_engine::supervisor::{Kind, Supervisor};
use tokio::time::Instant;

/// Refusals that are logged one by one in any second.
const LINES_PER_S_MAX: u32 = 20;

/// How many refusals are logged.
pub(crate) struct LineBudget {
    since: Instant,
    /// The current second since then, and in the lower half how many lines it has had.
    second_and_lines: AtomicU64,
    left_out: AtomicU64,
}

/// What to do about one more line.
#[derive(Debug, PartialEq, Eq)]
enum LineDecision {
    Write,
    /// It is the first in its second that is left out, so the sum is due when the second is over.
    LeaveOutAndSumUp,
    LeaveOut,
}

impl LineBudget {
    pub(crate) fn new() -> Self {
        Self { since: Instant::now(), second_and_lines: AtomicU64::new(0), left_out: AtomicU64::new(0) }
    }

    /// Whether one more line may be logged in this second.
    pub(crate) fn admits(self: &Arc<Self>, supervisor: &Supervisor) -> bool {
        match self.judge(self.since.elapsed().as_secs()) {
            LineDecision::Write => true,
            LineDecision::LeaveOut => false,
            LineDecision::LeaveOutAndSumUp => {
                let budget = self.clone();
                supervisor.spawn(Kind::Sweep, async move {
                    tokio::time::sleep(Duration::from_secs(1)).await;
                    budget.sum_up();
                });
                false
            }
        }
    }

    fn judge(&self, second: u64) -> LineDecision {
        let next = |packed: u64| match packed >> 32 == second {
            true => packed.saturating_add(1),
            false => second << 32 | 1,
        };
        let packed = self.second_and_lines.fetch_update(Relaxed, Relaxed, |packed| Some(next(packed)));
        let lines = next(packed.unwrap_or_default()) as u32;
        if lines <= LINES_PER_S_MAX {
            return LineDecision::Write;
        }
        self.left_out.fetch_add(1, Relaxed);
        if lines == LINES_PER_S_MAX + 1 { LineDecision::LeaveOutAndSumUp } else { LineDecision::LeaveOut }
    }

    fn sum_up(&self) {
        let refusals = self.left_out.swap(0, Relaxed);
        if refusals > 0 {
            tracing::warn!(refusals, "more requests were refused than are logged one by one");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{LINES_PER_S_MAX, LineBudget, LineDecision, Relaxed};

    #[tokio::test(start_paused = true)]
    async fn a_flood_is_logged_up_to_a_bound_each_second() {
        let budget = LineBudget::new();
        for second in [0, 1, 7] {
            for _ in 0..LINES_PER_S_MAX {
                assert_eq!(budget.judge(second), LineDecision::Write);
            }
            assert_eq!(budget.judge(second), LineDecision::LeaveOutAndSumUp);
            assert_eq!(budget.judge(second), LineDecision::LeaveOut);
        }
        assert_eq!(budget.left_out.load(Relaxed), 6);
        budget.sum_up();
        assert_eq!(budget.left_out.load(Relaxed), 0);
    }
}
