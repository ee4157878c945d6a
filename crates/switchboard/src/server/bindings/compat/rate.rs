//! How much each source has sent within the last minute. A source is whoever a request says it is from, so this is a
//! courtesy among agents and no protection against anybody who lies.

use std::collections::{HashMap, VecDeque};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

const WINDOW: Duration = Duration::from_secs(60);

/// Sources that are told apart; further ones share a count with those that have no name.
const SOURCES_MAX: usize = 10_000;

/// How often old counts are looked for once there is no room for new ones.
const SWEEP_PAUSE: Duration = Duration::from_secs(1);

#[derive(Debug, Default)]
pub(crate) struct Rate {
    counts: Mutex<Counts>,
}

#[derive(Debug, Default)]
struct Counts {
    /// When each source sent what it has sent within the window, oldest first.
    sources: HashMap<String, VecDeque<Instant>>,
    swept: Option<Instant>,
}

impl Rate {
    /// Counts a send, unless the source has sent as much as it may: then after how many seconds it may again.
    pub(crate) fn admit(&self, source: &str, per_min: usize, now: Instant) -> Result<(), u64> {
        let mut counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        let source = counts.place_for(source, now);
        let sent = counts.sources.entry(source.to_owned()).or_default();
        forget_old(sent, now);
        match sent.front() {
            Some(oldest) if sent.len() >= per_min => {
                let left = WINDOW.saturating_sub(now.duration_since(*oldest));
                Err(left.as_millis().div_ceil(1000).max(1).try_into().unwrap_or(WINDOW.as_secs()))
            }
            _ => {
                sent.push_back(now);
                Ok(())
            }
        }
    }
}

impl Counts {
    /// The name to count a source under.
    fn place_for<'s>(&mut self, source: &'s str, now: Instant) -> &'s str {
        if self.sources.len() < SOURCES_MAX || self.sources.contains_key(source) {
            return source;
        }
        if self.swept.is_none_or(|swept| now.duration_since(swept) >= SWEEP_PAUSE) {
            self.swept = Some(now);
            self.sources.retain(|_, sent| {
                forget_old(sent, now);
                !sent.is_empty()
            });
        }
        if self.sources.len() < SOURCES_MAX { source } else { "" }
    }
}

fn forget_old(sent: &mut VecDeque<Instant>, now: Instant) {
    while sent.front().is_some_and(|oldest| now.duration_since(*oldest) >= WINDOW) {
        sent.pop_front();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn each_source_has_its_own_sliding_minute() {
        let (rate, start) = (Rate::default(), Instant::now());
        let at = |s: u64| start + Duration::from_secs(s);
        for s in 0..5 {
            assert_eq!(rate.admit("a", 5, at(s)), Ok(()));
        }
        assert_eq!(rate.admit("a", 5, at(10)), Err(50));
        assert_eq!(rate.admit("b", 5, at(10)), Ok(()));
        assert_eq!(rate.admit("", 5, at(10)), Ok(()));
        // The first send of a is a minute old, the second is not; what was refused does not count.
        assert_eq!(rate.admit("a", 5, at(60)), Ok(()));
        assert_eq!(rate.admit("a", 5, at(60)), Err(1));
        assert_eq!(rate.admit("a", 5, at(61)), Ok(()));
    }

    #[tokio::test(start_paused = true)]
    async fn there_is_an_end_to_names() {
        let (rate, start) = (Rate::default(), Instant::now());
        for n in 0..SOURCES_MAX {
            assert_eq!(rate.admit(&n.to_string(), 1, start), Ok(()));
        }
        // There is no place for another name, so it counts with those that have none.
        assert_eq!(rate.admit("new", 1, start), Ok(()));
        assert_eq!(rate.admit("newer", 1, start), Err(60));
        assert_eq!(rate.admit("7", 1, start), Err(60));
        assert_eq!(rate.counts.lock().unwrap().sources.len(), SOURCES_MAX + 1);
        assert_eq!(rate.admit("newer", 1, start + WINDOW), Ok(()));
        assert_eq!(rate.counts.lock().unwrap().sources.len(), 1);
    }
}
