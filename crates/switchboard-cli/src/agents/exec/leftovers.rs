//! What a server that died has left behind: processes that its commands had started, and the files of their messages.
//! Both are found by the folder of those files, which every process of a command has in its environment, from its very
//! first moment. So a process is found even if the server died before it could record the process group.
//!
//! A process that has moved to a session of its own (a daemon) is killed, too. Processes are looked for on Linux only.

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

/// Where a server with this data folder puts the messages of its commands.
pub(super) fn message_folder(data: &Path) -> io::Result<PathBuf> {
    let folder = data.canonicalize()?.join(FOLDER);
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
fn kill_all(folder: &Path) -> usize {
    let killed = kill_each(|message| message.starts_with(folder));
    if killed > 0 {
        tracing::warn!(processes = killed, "processes of commands that outlived their server were killed");
    }
    killed
}

/// Kills every living process whose message file is meant and that sees the same files as we do, but not ourselves; how many
/// there were. The same path may mean something else where the file system is another one.
#[cfg(target_os = "linux")]
pub(super) fn kill_each(is_meant: impl Fn(&Path) -> bool) -> usize {
    use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
    let Ok(processes) = std::fs::read_dir("/proc") else { return 0 };
    let us = i32::try_from(std::process::id()).unwrap_or_default();
    let pids = processes.flatten().filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    let mounts = |pid: &str| std::fs::read_link(format!("/proc/{pid}/ns/mnt")).ok();
    let mut found = 0;
    for pid in pids.filter(|pid| *pid != us) {
        // Held open before it is looked at, so that the one that is killed is the one that was seen.
        let Some(held) = Pid::from_raw(pid).and_then(|pid| pidfd_open(pid, PidfdFlags::empty()).ok()) else { continue };
        // That of a process that has ended is empty.
        let environment = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        let mut variables = environment.split(|byte| *byte == 0);
        let message = variables.find_map(|variable| variable.strip_prefix(b"A2A_MESSAGE_FILE="));
        let is_meant = message.is_some_and(|path| is_meant(Path::new(std::ffi::OsStr::from_bytes(path))));
        if is_meant && mounts(&pid.to_string()) == mounts("self") && pidfd_send_signal(&held, Signal::KILL).is_ok() {
            found += 1;
        }
    }
    found
}

#[cfg(not(target_os = "linux"))]
pub(super) fn kill_each(_: impl Fn(&Path) -> bool) -> usize {
    0
}

#[cfg(test)]
#[path = "leftovers_tests.rs"]
mod tests;
