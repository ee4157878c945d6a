//! What is remembered of clients of the compat dialects. [`Rate`]: how much each source has sent within the last minute. A source is the
//! name that a client gives itself in its request, so this limits clients that are honest and protects against no others.
//!
//! [`Window`]: the newest tasks of an agent, as clients of selectools see them: first in, first out. The original keeps so
//! many in memory and no others; here the store keeps tasks for longer, and this is what is shown of it. A restart, which
//! empties the original's memory, opens the window wide again: what is stored can be read until newer tasks push it out.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use switchboard_core::model::TaskId;
use tokio::time::Instant;

/// What is remembered of the clients of one agent, at all its addresses.
#[derive(Clone, Debug, Default)]
pub(crate) struct CompatClients {
    /// Which tasks clients of selectools can still read.
    pub(crate) window: Arc<Window>,
    /// How much clients of corvid have sent lately.
    pub(crate) rate: Arc<Rate>,
}

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

#[derive(Debug, Default)]
pub(crate) struct Window {
    kept: Mutex<Kept>,
}

#[derive(Debug, Default)]
struct Kept {
    /// Oldest first.
    order: VecDeque<TaskId>,
    ids: HashSet<TaskId>,
    /// What was pushed out and is no older, by its id, than the oldest that is kept.
    young: HashSet<TaskId>,
    /// Whether anything has been pushed out yet.
    is_full: bool,
}

impl Window {
    /// Takes a new task in, and as many old ones out as there is no place for.
    pub(crate) fn push(&self, id: &TaskId, tasks_max: usize) {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.ids.insert(id.clone()) {
            kept.order.push_back(id.clone());
        }
        while kept.order.len() > tasks_max.max(1) {
            let Some(oldest) = kept.order.pop_front() else { break };
            kept.ids.remove(&oldest);
            kept.young.insert(oldest);
            kept.is_full = true;
        }
        let floor = kept.floor();
        kept.young.retain(|id| moment(id) >= floor);
    }

    /// Whether a task has been pushed out: by name, or because it is older than the oldest that is kept.
    pub(crate) fn has_passed(&self, id: &TaskId) -> bool {
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let is_older = || moment(id).is_some_and(|moment| Some(moment) < kept.floor());
        kept.is_full && (kept.young.contains(id) || is_older())
    }
}

impl Kept {
    fn floor(&self) -> Option<u64> {
        self.order.front().and_then(moment)
    }
}

/// When a task was begun, as its id tells; none for an id that is not ours.
fn moment(id: &TaskId) -> Option<u64> {
    let digits: String = id.as_str().chars().filter(|letter| *letter != '-').collect();
    let is_ours = digits.len() == 32 && digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_ours.then(|| u64::from_str_radix(&digits[..12], 16).ok()).flatten()
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
