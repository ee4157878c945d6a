//! The process group of a command, and every group that may still be alive: a server that exits at once kills all of
//! them.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicI32, Ordering};
use std::sync::{Mutex, PoisonError};

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::process::Child;

/// The groups that may have living members.
static ALIVE: Mutex<BTreeSet<i32>> = Mutex::new(BTreeSet::new());

/// The process group that a child leads.
pub(super) struct Group {
    /// Zero once it was killed.
    id: AtomicI32,
}

impl Group {
    pub(super) fn led_by(child: &Child) -> Self {
        let id = child.id().and_then(|id| i32::try_from(id).ok()).unwrap_or(0);
        if id != 0 {
            ALIVE.lock().unwrap_or_else(PoisonError::into_inner).insert(id);
        }
        Self { id: AtomicI32::new(id) }
    }

    /// Its number, unless it was killed.
    pub(super) fn id(&self) -> Option<Pid> {
        Pid::from_raw(self.id.load(Ordering::Relaxed))
    }

    pub(super) fn ask_to_end(&self) {
        signal(self.id.load(Ordering::Relaxed), Signal::TERM);
    }

    /// Kills every member, once. The number of a group is not given away while it has members, but it may be afterwards:
    /// so this is done before or right after the leader is waited for, and never again.
    pub(super) fn kill(&self) {
        let id = self.id.swap(0, Ordering::Relaxed);
        if id != 0 {
            signal(id, Signal::KILL);
            ALIVE.lock().unwrap_or_else(PoisonError::into_inner).remove(&id);
        }
    }
}

/// For a server that is about to leave without unwinding.
pub(super) fn kill_all() {
    for id in std::mem::take(&mut *ALIVE.lock().unwrap_or_else(PoisonError::into_inner)) {
        signal(id, Signal::KILL);
    }
    super::orphans::kill_all();
}

fn signal(id: i32, signal: Signal) {
    // A group that is gone already is what was wanted.
    if let Some(group) = Pid::from_raw(id) {
        let _ = kill_process_group(group, signal);
    }
}
