//! What the kernel knows of a process: CPU time spent, memory held, cores allowed. Linux only.

use std::time::Duration;

use anyhow::{Context as _, Result};
use rustix::process::{Pid, Resource, Rlimit, getrlimit, setrlimit};
use rustix::thread::{CpuSet, sched_setaffinity};
use rustix::time::{ClockId, clock_gettime};

/// The kernel's clock tick as user space sees it; the same on every Linux architecture.
const TICKS_PER_SECOND: u64 = 100;

/// CPU time of the process so far, user and system, over all of its threads, ended ones included.
pub fn cpu_time(pid: u32) -> Result<Duration> {
    ticks_of(pid, 2)
}

/// CPU time of this thread so far.
pub fn cpu_time_of_thread() -> Duration {
    let spent = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(spent.tv_sec.unsigned_abs(), u32::try_from(spent.tv_nsec).unwrap_or_default())
}

/// The same as [`cpu_time`] with that of its children that have ended.
pub fn cpu_time_with_ended_children(pid: u32) -> Result<Duration> {
    ticks_of(pid, 4)
}

/// The sum of the first so many of four numbers: user and system time of the process, and of its ended children.
fn ticks_of(pid: u32, numbers: usize) -> Result<Duration> {
    let stat = read(pid, "stat")?;
    // The name (field 2) may hold spaces and brackets: count the fields after its last bracket.
    let after_name = stat.rsplit_once(')').context("no process name in stat")?.1;
    let mut fields = after_name.split_ascii_whitespace().skip(11);
    let mut ticks = 0;
    for _ in 0..numbers {
        ticks += fields.next().context("stat is too short")?.parse::<u64>()?;
    }
    Ok(Duration::from_millis(ticks * 1000 / TICKS_PER_SECOND))
}

/// Resident memory in KiB.
#[derive(Clone, Copy, Debug, serde::Serialize)]
pub struct Memory {
    /// All of it, with the pages of the binary and of mapped files.
    pub rss_kib: u64,
    /// Heap and stacks alone.
    pub anon_kib: u64,
}

pub fn memory(pid: u32) -> Result<Memory> {
    let status = read(pid, "status")?;
    let field = |name: &str| -> Result<u64> {
        let line = status.lines().find_map(|line| line.strip_prefix(name)).with_context(|| format!("no {name}"))?;
        Ok(line.trim().trim_end_matches(" kB").parse()?)
    };
    Ok(Memory { rss_kib: field("VmRSS:")?, anon_kib: field("RssAnon:")? })
}

/// Confines the calling thread, and whatever it starts from now on, to one core.
pub fn pin_to_core(core: usize) -> Result<()> {
    let mut cores = CpuSet::new();
    cores.set(core);
    sched_setaffinity(None::<Pid>, &cores).with_context(|| format!("cannot run on core {core}"))
}

/// Thousands of streams need thousands of descriptors.
pub fn raise_file_limit() {
    let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
    // Refused or not, opening the streams tells.
    let _ = setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum });
}

fn read(pid: u32, file: &str) -> Result<String> {
    std::fs::read_to_string(format!("/proc/{pid}/{file}")).with_context(|| format!("process {pid} is not there"))
}
