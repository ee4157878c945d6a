//! Finds a command again that outlived its server. The record that is stored with the run names the process group, and
//! enough about its leader that a number which the system has since given to another process is never taken for it.
//! Linux only: on other systems nothing is recorded.

use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};
use serde::{Deserialize, Serialize};
use switchboard::Json;

/// How long the members of a killed group are waited for, and how often.
const GONE_WAIT: Duration = Duration::from_secs(2);
const LOOK: Duration = Duration::from_millis(10);

#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
struct GroupRecord {
    /// Numbers of processes mean something only until the machine starts again, and only among those that see the same
    /// ones: a container counts for itself.
    boot: String,
    namespace: String,
    group: i32,
    /// When the leader was started, in ticks since the machine was.
    started: u64,
    task: String,
}

/// The record of the group that a process leads, for a task.
pub(super) fn group_record_of(leader: Pid, task: &str) -> Option<Json> {
    let (boot, namespace) = here()?;
    let group = leader.as_raw_nonzero().get();
    let started = Stat::of(group)?.started;
    let group_record = GroupRecord { boot, namespace, group, started, task: task.to_owned() };
    Some(Json::from_trusted(serde_json::to_string(&group_record).ok()?))
}

/// Kills what is left of a command, and returns when it is gone.
pub(super) async fn kill_survivors(group_record: &Json) {
    let Ok(group_record) = serde_json::from_str::<GroupRecord>(group_record.as_str()) else { return };
    let Some(group) = Pid::from_raw(group_record.group).filter(|_| group_record.is_ours()) else { return };
    if kill_process_group(group, Signal::KILL).is_err() {
        return;
    }
    tracing::warn!(
        task = group_record.task,
        group = group_record.group,
        "a command that outlived its server was killed"
    );
    let gone = async {
        while members(group_record.group).iter().any(|(_, stat)| stat.is_alive()) {
            tokio::time::sleep(LOOK).await;
        }
    };
    let _ = tokio::time::timeout(GONE_WAIT, gone).await;
}

impl GroupRecord {
    /// Whether the group of this number is the one that was meant, and alive.
    fn is_ours(&self) -> bool {
        if here() != Some((self.boot.clone(), self.namespace.clone())) {
            return false;
        }
        match Stat::of(self.group) {
            Some(leader) => leader.started == self.started,
            // Its leader is gone. While the group has members the system gives its number to no other group. But all of
            // them may have ended, and the group may be another one. Our processes have the task in their environment.
            None => members(self.group).iter().any(|(pid, _)| works_for(*pid, &self.task)),
        }
    }
}

/// This run of the machine, and the numbering of processes that we are in.
fn here() -> Option<(String, String)> {
    let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    let namespace = std::fs::read_link("/proc/self/ns/pid").ok()?;
    Some((boot.trim().to_owned(), namespace.to_str()?.to_owned()))
}

/// What the system says about a process.
pub(super) struct Stat {
    state: String,
    pub(super) parent: i32,
    group: i32,
    pub(super) started: u64,
}

impl Stat {
    fn of(pid: i32) -> Option<Self> {
        Self::parse(&std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
    }

    /// The name of the program comes second, in brackets, and may hold anything; the rest is words (see proc(5)).
    fn parse(text: &str) -> Option<Self> {
        let mut words = text.rsplit_once(')')?.1.split_ascii_whitespace();
        let state = words.next()?.to_owned();
        let parent = words.next()?.parse().ok()?;
        let group = words.next()?.parse().ok()?;
        let started = words.nth(16)?.parse().ok()?;
        Some(Self { state, parent, group, started })
    }

    pub(super) fn is_alive(&self) -> bool {
        !matches!(self.state.as_str(), "Z" | "X")
    }
}

fn members(group: i32) -> Vec<(i32, Stat)> {
    processes(|stat| stat.group == group)
}

/// Every process that is meant.
pub(super) fn processes(is_meant: impl Fn(&Stat) -> bool) -> Vec<(i32, Stat)> {
    let Ok(processes) = std::fs::read_dir("/proc") else { return Vec::new() };
    let pids = processes.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    pids.filter_map(|pid| Some((pid, Stat::of(pid).filter(&is_meant)?))).collect()
}

/// When a process was started, in ticks since the machine was.
pub(super) fn start_time(pid: i32) -> Option<u64> {
    Stat::of(pid).map(|stat| stat.started)
}

fn works_for(pid: i32, task: &str) -> bool {
    let environment = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
    let wanted = format!("A2A_TASK_ID={task}");
    environment.split(|byte| *byte == 0).any(|variable| variable == wanted.as_bytes())
}

#[cfg(test)]
#[path = "group_record_tests.rs"]
mod tests;
