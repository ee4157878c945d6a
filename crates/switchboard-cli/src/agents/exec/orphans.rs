//! Processes of a command that have left its process group and have nothing of its environment (`env -i setsid …`). The server asks the
//! system for the children of its children (`PR_SET_CHILD_SUBREAPER`): a process whose parent ends becomes a child of the server,
//! and not of process 1. So what a command leaves behind is among the children of the server once the command has ended.
//!
//! Which command such a child belongs to is told by time: it was started while that command ran. If another command that runs was
//! there already, the child may be its, and is left alone until that one has ended, too. Linux only.
//!
//! Everything here happens on the launcher thread, which also starts commands: a command that has just been started is never
//! taken for an orphan.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};

/// Whether this process is the one that takes orphans in.
static IS_ADOPTING: AtomicBool = AtomicBool::new(false);

/// How often orphans are looked for, because the children of one that is killed are orphans in turn.
pub(super) const ORPHAN_LOOKS_MAX: usize = 50;

/// Has orphans become children of this process: for a server, which starts no processes but commands.
pub(crate) fn adopt() {
    #[cfg(target_os = "linux")]
    match rustix::process::set_child_subreaper(Some(rustix::process::getpid())) {
        Ok(()) => IS_ADOPTING.store(true, Ordering::Relaxed),
        Err(error) => tracing::warn!(%error, "processes that leave the group of their command may outlive it"),
    }
}

/// The first processes of commands, with the time at which each was started.
#[derive(Default)]
pub(super) struct Leaders(BTreeMap<i32, u64>);

/// When a process was started, in ticks since the machine was.
pub(super) type StartTime = u64;

/// A process as it is looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Child {
    pid: i32,
    started: StartTime,
    is_alive: bool,
}

/// What is to be done about a child.
#[derive(Debug, PartialEq, Eq)]
enum Verdict {
    /// It may belong to a command that runs, or is none of a command.
    Leave,
    Kill,
    /// It has ended, and its parent waits for it no more.
    WaitFor,
}

impl Leaders {
    /// Notes a command that was just started. None if orphans are not taken in.
    pub(super) fn add(&mut self, pid: i32) -> Option<StartTime> {
        if !IS_ADOPTING.load(Ordering::Relaxed) {
            return None;
        }
        let started = super::group_record::start_time(pid)?;
        self.0.insert(pid, started);
        Some(started)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Waits for orphans that have ended, and kills none.
    pub(super) fn wait_for_orphans(&mut self) {
        self.kill_orphans(StartTime::MAX);
    }

    /// Kills what is left of a command that began then and has ended, and waits for those that have ended; how many were killed.
    pub(super) fn kill_orphans(&mut self, of: StartTime) -> usize {
        let children = children();
        // A number that the system has given to another process is no longer that of the command.
        self.0.retain(|pid, started| children.iter().any(|child| (child.pid, child.started) == (*pid, *started)));
        let mut killed = 0;
        for child in &children {
            match self.judge(*child, &children, of) {
                Verdict::Leave => {}
                Verdict::Kill => killed += usize::from(kill(child.pid)),
                Verdict::WaitFor => wait_for(child.pid),
            }
        }
        killed
    }

    fn judge(&self, child: Child, children: &[Child], of: StartTime) -> Verdict {
        if self.0.contains_key(&child.pid) {
            return Verdict::Leave;
        }
        if !child.is_alive {
            return Verdict::WaitFor;
        }
        let runs = |pid: i32| children.iter().any(|child| child.pid == pid && child.is_alive);
        let may_be_of_another = self.0.iter().any(|(pid, started)| *started <= child.started && runs(*pid));
        if child.started < of || may_be_of_another { Verdict::Leave } else { Verdict::Kill }
    }
}

/// Kills every child of this process, and what becomes its child by that: for a process that is about to leave.
pub(super) fn kill_all() {
    if !IS_ADOPTING.load(Ordering::Relaxed) {
        return;
    }
    for _ in 0..ORPHAN_LOOKS_MAX {
        let alive = children().into_iter().filter(|child| child.is_alive);
        if alive.filter(|child| kill(child.pid)).count() == 0 {
            return;
        }
    }
}

fn children() -> Vec<Child> {
    let us = i32::try_from(std::process::id()).unwrap_or_default();
    let of =
        |(pid, stat): (i32, super::group_record::Stat)| Child { pid, started: stat.started, is_alive: stat.is_alive() };
    super::group_record::processes(|stat| stat.parent == us).into_iter().map(of).collect()
}

/// A child of ours keeps its number until we have waited for it, so no other process can be meant.
fn kill(pid: i32) -> bool {
    use rustix::process::{Pid, Signal, kill_process};
    Pid::from_raw(pid).is_some_and(|pid| kill_process(pid, Signal::KILL).is_ok())
}

fn wait_for(pid: i32) {
    use rustix::process::{Pid, WaitOptions, waitpid};
    let _ = waitpid(Pid::from_raw(pid), WaitOptions::NOHANG);
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::{Child, Leaders, Verdict};

    fn child(pid: i32, started: u64) -> Child {
        Child { pid, started, is_alive: true }
    }

    #[test]
    fn an_orphan_is_killed_once_no_command_that_may_have_started_it_runs() {
        let (first, second) = (child(10, 100), child(20, 200));
        let leaders = Leaders(BTreeMap::from([(10, 100), (20, 200)]));
        let zombie = |child: Child| Child { is_alive: false, ..child };
        // The second command has ended, the first one runs: the orphan may be of either.
        let orphan = child(30, 250);
        assert_eq!(leaders.judge(orphan, &[first, zombie(second), orphan], 200), Verdict::Leave);
        // Then the first one ends, too.
        assert_eq!(leaders.judge(orphan, &[zombie(first), zombie(second), orphan], 100), Verdict::Kill);
        // The first one has ended. The second one began after this orphan did, so it is not its.
        let older = child(31, 150);
        assert_eq!(leaders.judge(older, &[zombie(first), second, older], 100), Verdict::Kill);
        // What is older than the command that has ended was there before.
        let oldest = child(32, 50);
        assert_eq!(leaders.judge(oldest, &[zombie(first), zombie(second), oldest], 100), Verdict::Leave);
        // The runtime waits for the first process of a command.
        assert_eq!(leaders.judge(zombie(first), &[zombie(first)], 100), Verdict::Leave);
        assert_eq!(leaders.judge(zombie(orphan), &[zombie(orphan)], 100), Verdict::WaitFor);
    }
}
