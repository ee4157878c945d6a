//! A running command: its first process, and the group that this one leads. It is asked to end, then killed, and never
//! left behind: neither by a run that is dropped nor by a server that leaves in a hurry or dies.

use std::collections::BTreeSet;
use std::io;
use std::process::ExitStatus;
use std::sync::atomic::{AtomicI32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};
use switchboard::Json;
use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout};
use tokio_util::sync::CancellationToken;

use super::launcher::bury;
use super::traces::traces_of;

/// How long a killed process is waited for.
pub(super) const REAP_MAX: Duration = Duration::from_millis(500);

/// The groups that may have living members.
static ALIVE: Mutex<BTreeSet<i32>> = Mutex::new(BTreeSet::new());

/// A command that was started. If it is dropped before it has ended, it is asked to end and killed a moment later.
pub(super) struct Process {
    /// None once it is somebody else's to wait for.
    child: Option<Child>,
    group: Arc<Group>,
}

impl Process {
    pub(super) fn of(child: Child) -> Self {
        let group = Arc::new(Group::led_by(&child));
        Self { child: Some(child), group }
    }

    pub(super) fn group(&self) -> Arc<Group> {
        self.group.clone()
    }

    pub(super) fn take_pipes(&mut self) -> (Option<ChildStdin>, Option<ChildStdout>, Option<ChildStderr>) {
        match &mut self.child {
            Some(child) => (child.stdin.take(), child.stdout.take(), child.stderr.take()),
            None => (None, None, None),
        }
    }

    /// What is written down of it, so that the next server can find it if this one dies.
    pub(super) fn traces(&self, task: &str) -> Option<Json> {
        traces_of(self.group.id()?, task)
    }

    /// Waits for the first process, then ends what it left behind, and says that it has ended.
    pub(super) async fn wait(&mut self, ended: &CancellationToken) -> io::Result<ExitStatus> {
        let status = match &mut self.child {
            Some(child) => child.wait().await,
            None => Err(io::Error::other("somebody else waits for it")),
        };
        self.group.kill();
        ended.cancel();
        status
    }

    /// Kills what is left, so that whoever asked for the end finds it ended, and no dead process stays behind.
    pub(super) async fn end(mut self) {
        self.group.kill();
        if let Some(child) = &mut self.child {
            let _ = tokio::time::timeout(REAP_MAX, child.wait()).await;
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if let (Some(child), Some(_)) = (self.child.take(), self.group.id()) {
            self.group.ask_to_end();
            bury(child, self.group.clone());
        }
    }
}

/// The process group that a child leads.
pub(super) struct Group {
    /// Zero once it was killed.
    id: AtomicI32,
}

impl Group {
    fn led_by(child: &Child) -> Self {
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
}

fn signal(id: i32, signal: Signal) {
    // A group that is gone already is what was wanted.
    if let Some(group) = Pid::from_raw(id) {
        let _ = kill_process_group(group, signal);
    }
}
