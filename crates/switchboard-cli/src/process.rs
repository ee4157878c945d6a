//! Settings of the process: how many files it may open and how large, a signal it ignores, and child processes that
//! die with it.

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

/// Has the system kill a process when the thread that starts it, and so this process, dies. What that one has started is
/// not reached.
#[cfg(target_os = "linux")]
#[expect(unsafe_code, reason = "the closure runs between fork and exec: it makes two system calls and touches nothing")]
pub(crate) fn kill_with_parent(command: &mut Command) {
    use rustix::process::{Signal, getpid, getppid, set_parent_process_death_signal};
    let us = getpid();
    let before_exec = move || {
        set_parent_process_death_signal(Some(Signal::KILL))?;
        // This process may have died before the child asked for the signal.
        if getppid() == Some(us) { Ok(()) } else { Err(rustix::io::Errno::SRCH.into()) }
    };
    // SAFETY: nothing is allocated and no lock is taken, so it does not matter what other threads were doing at the fork.
    unsafe {
        command.pre_exec(before_exec);
    }
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn kill_with_parent(_: &mut Command) {}
