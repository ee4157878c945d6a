//! Processes of a command that have left its process group, in a session of their own for example (`setsid`). They are
//! found by the message file of their run, which every process of a command has in its environment unless it was started
//! with another one. So a process is not found if it has left the group and has another environment, or if we may not look
//! at it because it runs as another user. Linux only: on other systems nothing is found.

use std::path::Path;
use std::time::Duration;

/// How often processes are looked for, because one that is killed may have started another meanwhile.
const STRAY_LOOKS_MAX: usize = 50;
const STRAY_LOOK_PAUSE: Duration = Duration::from_millis(5);

/// Kills every process of the run with this message, and returns when none is left.
pub(super) async fn kill(message: &Path) {
    for _ in 0..STRAY_LOOKS_MAX {
        if kill_now(message) == 0 {
            return;
        }
        tokio::time::sleep(STRAY_LOOK_PAUSE).await;
    }
    tracing::warn!(message = %message.display(), "a command starts processes faster than they can be ended");
}

/// Kills every process of the run that is there now; how many there were.
pub(super) fn kill_now(message: &Path) -> usize {
    super::leftovers::kill_each(|of_process| of_process == message)
}
