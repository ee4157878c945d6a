//! The calls of agents in memory.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use switchboard_core::model::Timestamp;

use crate::ports::calls::{CallRow, CallStep};
use crate::ports::store::TaskKey;

#[derive(Default)]
pub(super) struct CallTable {
    of_task: BTreeMap<TaskKey, Vec<CallRow>>,
    parents: HashMap<String, TaskKey>,
    /// Continuations and calls of runs, by the time at which they may be claimed.
    due: BTreeSet<(Timestamp, String)>,
}

impl CallTable {
    pub(super) fn open(&mut self, call: CallRow) -> CallRow {
        if let Some(known) = self.get(&call.id) {
            return known.clone();
        }
        self.parents.insert(call.id.clone(), call.parent);
        if let Some(at) = call.due_at {
            self.due.insert((at, call.id.clone()));
        }
        self.of_task.entry(call.parent).or_default().push(call.clone());
        call
    }

    pub(super) fn get(&self, id: &str) -> Option<&CallRow> {
        self.of_task.get(self.parents.get(id)?)?.iter().find(|call| call.id == id)
    }

    pub(super) fn of(&self, parent: TaskKey) -> Vec<CallRow> {
        self.of_task.get(&parent).cloned().unwrap_or_default()
    }

    pub(super) fn change(&mut self, id: &str, step: &CallStep, now: Timestamp) -> Option<CallRow> {
        self.update(id, |call| call.apply(step, now))
    }

    pub(super) fn claim(&mut self, only: Option<&str>, limit: usize, claim_ms: u32, now: Timestamp) -> Vec<CallRow> {
        let is_meant = |id: &str| only.is_none_or(|only| only == id);
        let due = self.due.iter().take_while(|(at, _)| *at <= now).filter(|(_, id)| is_meant(id));
        let ids: Vec<String> = due.take(limit).map(|(_, id)| id.clone()).collect();
        ids.iter().filter_map(|id| self.update(id, |call| call.claim(now, claim_ms))).collect()
    }

    pub(super) fn next_at(&self) -> Option<Timestamp> {
        self.due.first().map(|(at, _)| *at)
    }

    pub(super) fn remove(&mut self, parent: TaskKey) {
        for call in self.of_task.remove(&parent).unwrap_or_default() {
            self.parents.remove(&call.id);
            if let Some(at) = call.due_at {
                self.due.remove(&(at, call.id));
            }
        }
    }

    /// The processes that have claimed calls are gone.
    pub(super) fn void_claims(&mut self, now: Timestamp) {
        self.update_due(|call| call.void_claim(now));
    }

    pub(super) fn set_back(&mut self, back_ms: i64) {
        self.update_due(|call| call.set_back(back_ms));
    }

    fn update_due(&mut self, change: impl Fn(&mut CallRow) -> bool) {
        let ids: Vec<String> = self.due.iter().map(|(_, id)| id.clone()).collect();
        for id in ids {
            self.update(&id, &change);
        }
    }

    /// Changes a row and the time at which it is due together; none if the change has no effect.
    fn update(&mut self, id: &str, change: impl FnOnce(&mut CallRow) -> bool) -> Option<CallRow> {
        let calls = self.of_task.get_mut(self.parents.get(id)?)?;
        let call = calls.iter_mut().find(|call| call.id == id)?;
        let before = call.due_at;
        if !change(call) {
            return None;
        }
        if let Some(at) = before {
            self.due.remove(&(at, id.to_owned()));
        }
        if let Some(at) = call.due_at {
            self.due.insert((at, id.to_owned()));
        }
        Some(call.clone())
    }
}
