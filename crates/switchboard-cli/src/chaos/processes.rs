//! The processes of command agents, as the system lists them. They are told by what is in their environment: the mark of
//! this run, and the task they work for.

use std::collections::BTreeMap;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use tokio::time::{Instant, sleep};

/// The variable that every process of a run carries.
pub(super) const MARK: &str = "SWITCHBOARD_CHAOS_RUN";

/// The number of a process, and when it was started: the number alone may become another's.
type Process = (i32, u64);

const LOOK: Duration = Duration::from_millis(100);

/// The commands that are still there, and stay for so long, although every task has ended. They are killed, and named.
pub(super) async fn orphans(mark: &str, wait: Duration) -> Vec<String> {
    let deadline = Instant::now() + wait;
    let left = loop {
        let left = commands(mark);
        if left.is_empty() || Instant::now() > deadline {
            break left;
        }
        sleep(LOOK).await;
    };
    let name = |((pid, started), task): (Process, String)| {
        kill((pid, started));
        format!("process {pid} of task {task} was still there")
    };
    left.into_iter().map(name).collect()
}

/// The living commands of a run, by process, with the task of each. None where the system does not say.
fn commands(mark: &str) -> BTreeMap<Process, String> {
    let wanted = format!("{MARK}={mark}");
    let processes = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = processes.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    pids.filter_map(|pid| {
        let environment = std::fs::read(format!("/proc/{pid}/environ")).ok()?;
        let mut variables = environment.split(|byte| *byte == 0);
        variables.clone().find(|variable| *variable == wanted.as_bytes())?;
        let task = variables.find_map(|variable| variable.strip_prefix(b"A2A_TASK_ID="))?;
        Some(((pid, started(pid)?), String::from_utf8_lossy(task).into_owned()))
    })
    .collect()
}

pub(super) fn can_be_listed() -> bool {
    std::fs::metadata("/proc/self/environ").is_ok()
}

fn kill(process: Process) {
    if let (Some(pid), true) = (Pid::from_raw(process.0), started(process.0) == Some(process.1)) {
        let _ = kill_process(pid, Signal::KILL);
    }
}

/// When a living process was started, in ticks since the machine was.
fn started(pid: i32) -> Option<u64> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name of the program comes second, in brackets, and may hold anything; the rest is words (see proc(5)).
    let mut words = stat.rsplit_once(')')?.1.split_ascii_whitespace();
    let state = words.next()?;
    if matches!(state, "Z" | "X") {
        return None;
    }
    words.nth(18)?.parse().ok()
}

#[cfg(test)]
#[path = "processes_tests.rs"]
mod tests;
