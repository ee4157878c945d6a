//! What a server that died has left behind: processes that its commands had started, and the files of their messages.
//! Both are found by the folder of those files, which every process of a command has in its environment, from its very
//! first moment. So a process is found even if the server died before it could record the process group.
//!
//! A process that has moved to a session of its own (a daemon) is left alone. Processes are looked for on Linux only.

use std::fs::DirBuilder;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// In the data folder.
const FOLDER: &str = "commands";
/// How long the killed are waited for, and how often they are looked at.
const GONE_WAIT: Duration = Duration::from_secs(2);
const LOOK: Duration = Duration::from_millis(10);

/// Where a server with this data folder puts the messages of its commands. It names our session, by which our commands
/// can be told from daemons. The session is 0 where the process that leads it is outside of the container, as the system
/// itself says it, and where the system does not say.
pub(super) fn message_folder(data: &Path) -> io::Result<PathBuf> {
    let session = i32::try_from(std::process::id()).ok().and_then(super::group_record::session_of_living).unwrap_or(0);
    let folder = data.canonicalize()?.join(FOLDER).join(session.to_string());
    DirBuilder::new().recursive(true).mode(0o700).create(&folder)?;
    Ok(folder)
}

/// Clears away what earlier servers with this data folder have left. To be called while we hold it, and have not started
/// a command yet.
pub(super) async fn clear(data: &Path) {
    let Ok(folder) = data.join(FOLDER).canonicalize() else { return };
    let killed = async {
        while kill_all(&folder) > 0 {
            tokio::time::sleep(LOOK).await;
        }
    };
    if tokio::time::timeout(GONE_WAIT, killed).await.is_err() {
        tracing::warn!("commands of an earlier server were killed and are still there");
    }
    if let Err(error) = std::fs::remove_dir_all(&folder) {
        tracing::warn!(folder = %folder.display(), %error, "the messages of an earlier server's commands were not removed");
    }
}

/// Kills every living process whose message is in this folder; how many there were.
#[cfg(target_os = "linux")]
fn kill_all(folder: &Path) -> usize {
    use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
    let Ok(processes) = std::fs::read_dir("/proc") else { return 0 };
    let pids = processes.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let mut found = 0;
    for pid in pids {
        // Held open before it is looked at, so that the one that is killed is the one that was seen.
        let Some(held) = Pid::from_raw(pid).and_then(|pid| pidfd_open(pid, PidfdFlags::empty()).ok()) else { continue };
        if is_ours(pid, folder) && pidfd_send_signal(&held, Signal::KILL).is_ok() {
            tracing::warn!(pid, "a process of a command that outlived its server was killed");
            found += 1;
        }
    }
    found
}

#[cfg(not(target_os = "linux"))]
fn kill_all(_: &Path) -> usize {
    0
}

/// Whether a process works on a message in this folder, and has stayed in the session of the server that started it. The
/// same path may mean something else where the file system is another one.
fn is_ours(pid: i32, folder: &Path) -> bool {
    let environment = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
    let message = environment.split(|byte| *byte == 0).find_map(|variable| variable.strip_prefix(b"A2A_MESSAGE_FILE="));
    let Some(message) = message.map(|path| Path::new(std::ffi::OsStr::from_bytes(path))) else { return false };
    let Ok(within) = message.strip_prefix(folder) else { return false };
    let session = within.iter().next().and_then(|name| name.to_str()?.parse().ok());
    let mounts = |pid: &str| std::fs::read_link(format!("/proc/{pid}/ns/mnt")).ok();
    session.is_some()
        && super::group_record::session_of_living(pid) == session
        && mounts(&pid.to_string()) == mounts("self")
}

#[cfg(test)]
#[path = "leftovers_tests.rs"]
mod tests;
