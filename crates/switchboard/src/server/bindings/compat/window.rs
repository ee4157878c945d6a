//! The newest tasks of an agent, as clients of selectools see them: first in, first out. The original keeps so many in
//! memory and no others; here the store keeps tasks for longer, and this is what is shown of it. A restart, which empties
//! the original's memory, opens the window wide again: what is stored can be read until newer tasks push it out.

use std::collections::{HashSet, VecDeque};
use std::sync::{Mutex, PoisonError};

use switchboard_core::model::TaskId;

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
