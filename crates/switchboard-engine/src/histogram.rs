//! A histogram of durations without a lock: each observation adds to one bucket and to the sum.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

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

#[derive(Debug, Default)]
pub struct Histogram {
    /// The last bucket counts values above all bounds.
    buckets: [AtomicU64; MICROS_BOUNDS.len() + 1],
    nanos_sum: AtomicU64,
}

impl Histogram {
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

    #[must_use]
    pub fn seconds_sum(&self) -> f64 {
        self.nanos_sum.load(Relaxed) as f64 / 1e9
    }
}

#[cfg(test)]
mod tests {
    use super::{Duration, Histogram, MICROS_BOUNDS};

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
