//! The process: who runs it, how many files it may open and how large, a signal it ignores, and child processes that die
//! with it.

use std::io;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tokio::process::Command;
use tokio::signal::unix::{SignalKind, signal};

/// Raises the soft limit of open files to the hard one: each connection is one, and the soft limit is often 1024 for
/// the sake of old programs.
pub(crate) fn raise_file_limit() {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    let at_most = maximum.unwrap_or(u64::MAX);
    if current.is_some_and(|current| current < at_most)
        && let Err(error) = setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum })
    {
        tracing::warn!(%error, soft = current, hard = maximum, "the limit of open files could not be raised");
    }
}

/// A file that reaches the size allowed to this process is an error to be answered for, like a full disk; the signal that
/// comes with it would end the process instead. Once listened to, a signal has no other effect.
pub(crate) fn ignore_file_size_signal() -> io::Result<()> {
    signal(SignalKind::from_raw(rustix::process::Signal::XFSZ.as_raw())).map(drop)
}

/// Who runs this command, as the audit log names them.
pub(crate) fn os_user() -> String {
    format!("uid {}", rustix::process::getuid().as_raw())
}

/// What a child process and all that it starts may not do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Confinement {
    /// Programs that would run with other rights (set-uid, file capabilities) run with those of the process. Linux only.
    pub(crate) no_new_privileges: bool,
    /// The address space of each process.
    pub(crate) memory_bytes_max: Option<u64>,
    /// The processor time of each process.
    pub(crate) cpu_s_max: Option<u64>,
}

/// Has the system kill a process when the thread that starts it, and so this process, dies. What that one has started is
/// not reached. Linux only.
pub(crate) fn kill_with_parent(command: &mut Command) {
    confine(command, Confinement::default());
}

/// As [`kill_with_parent`], and limits what the process may do.
#[expect(unsafe_code, reason = "the closure runs between fork and exec: it makes system calls and touches nothing")]
pub(crate) fn confine(command: &mut Command, confinement: Confinement) {
    let us = rustix::process::getpid();
    let before_exec = move || {
        confinement.apply()?;
        die_with(us)
    };
    // SAFETY: the closure makes at most five system calls, with values that were copied into it. Nothing is allocated and no
    // lock is taken, so it does not matter what other threads were doing at the fork; an error is a number.
    unsafe {
        command.pre_exec(before_exec);
    }
}

impl Confinement {
    fn apply(&self) -> io::Result<()> {
        #[cfg(target_os = "linux")]
        if self.no_new_privileges {
            rustix::thread::set_no_new_privs(true)?;
        }
        let limit = |most: u64| Rlimit { current: Some(most), maximum: Some(most) };
        if let Some(most) = self.memory_bytes_max {
            setrlimit(Resource::As, limit(most))?;
        }
        if let Some(most) = self.cpu_s_max {
            setrlimit(Resource::Cpu, limit(most))?;
        }
        Ok(())
    }
}

#[cfg(target_os = "linux")]
fn die_with(parent: rustix::process::Pid) -> io::Result<()> {
    use rustix::process::{Signal, getppid, set_parent_process_death_signal};
    set_parent_process_death_signal(Some(Signal::KILL))?;
    // The parent may have died before the child asked for the signal.
    if getppid() == Some(parent) { Ok(()) } else { Err(rustix::io::Errno::SRCH.into()) }
}

#[cfg(not(target_os = "linux"))]
fn die_with(_: rustix::process::Pid) -> io::Result<()> {
    Ok(())
}
