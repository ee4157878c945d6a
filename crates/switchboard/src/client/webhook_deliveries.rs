//! Which deliveries a receiver of webhooks has taken, so that one that comes again is not handled twice, and which it is working on.

use std::collections::{HashSet, VecDeque};
use std::sync::{Mutex, PoisonError};

use aws_lc_rs::digest;

/// How many deliveries are remembered, so that one that comes again is not handled twice.
pub(super) const DELIVERIES_MAX: usize = 10_000;

/// What a delivery is known by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Key([u8; 32]);

impl Key {
    pub(super) fn of(bytes: &[u8]) -> Self {
        let mut key = [0; 32];
        key.copy_from_slice(digest::digest(&digest::SHA256, bytes).as_ref());
        Self(key)
    }
}

/// The deliveries that were taken, the newest last, and those that the handler works on.
#[derive(Default)]
pub(super) struct Deliveries(Mutex<State>);

#[derive(Default)]
struct State {
    taken: HashSet<Key>,
    in_order: VecDeque<Key>,
    running: HashSet<Key>,
}

/// A delivery that the handler works on.
pub(super) struct Handling<'a> {
    deliveries: &'a Deliveries,
    key: Key,
    /// The token that came with it, which is good for one delivery.
    token: Option<Key>,
}

/// The handler works on the same delivery.
#[derive(Debug)]
pub(super) struct IsBeingHandled;

impl Deliveries {
    /// None if it was taken before, or came with a token of one that was.
    pub(super) fn begin(&self, key: Key, token: Option<Key>) -> Result<Option<Handling<'_>>, IsBeingHandled> {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if state.taken.contains(&key) || token.is_some_and(|token| state.taken.contains(&token)) {
            return Ok(None);
        }
        if !state.running.insert(key) {
            return Err(IsBeingHandled);
        }
        drop(state);
        Ok(Some(Handling { deliveries: self, key, token }))
    }
}

#[cfg(test)]
impl Deliveries {
    /// How many are remembered, and how many are being handled.
    pub(super) fn counts(&self) -> (usize, usize) {
        let state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        assert_eq!(state.taken.len(), state.in_order.len());
        (state.taken.len(), state.running.len())
    }
}

impl Handling<'_> {
    pub(super) fn done(self) {
        let mut state = self.deliveries.0.lock().unwrap_or_else(PoisonError::into_inner);
        let State { taken, in_order, .. } = &mut *state;
        for key in [Some(self.key), self.token].into_iter().flatten() {
            taken.insert(key);
            in_order.push_back(key);
            if in_order.len() > DELIVERIES_MAX
                && let Some(oldest) = in_order.pop_front()
            {
                taken.remove(&oldest);
            }
        }
    }
}

/// Also when the agent no longer waits, or the handler fails.
impl Drop for Handling<'_> {
    fn drop(&mut self) {
        let mut state = self.deliveries.0.lock().unwrap_or_else(PoisonError::into_inner);
        state.running.remove(&self.key);
    }
}
