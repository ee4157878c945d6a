//! How long to wait after a failure: twice as long each time, up to a bound.

/// Milliseconds until attempt number `failures + 1`. `dice` is any number; it picks a point in the upper half of the
/// pause.
#[must_use]
pub(crate) fn backoff_ms(failures: u32, min_ms: u32, max_ms: u32, dice: u64) -> i64 {
    let doubled = u64::from(min_ms) << failures.saturating_sub(1).min(31);
    let full = doubled.min(u64::from(max_ms)).max(1);
    let half = full / 2;
    i64::try_from(half + dice % (full - half + 1)).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::backoff_ms;

    #[test]
    fn it_doubles_stays_in_bounds_and_spreads() {
        for failures in 1..60 {
            for dice in [0, 1, 17, u64::MAX] {
                let ms = backoff_ms(failures, 500, 300_000, dice);
                let full = (500u64 << (failures - 1).min(31)).min(300_000);
                assert!((full / 2..=full).contains(&ms.unsigned_abs()), "{failures} {dice}: {ms}");
            }
        }
        assert_ne!(backoff_ms(4, 500, 300_000, 1), backoff_ms(4, 500, 300_000, 999));
    }
}
