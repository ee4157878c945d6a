//! Runs a foreign program within a time limit and collects its output.

use std::fs::File;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

const POLL: Duration = Duration::from_millis(20);

pub(crate) struct Ended {
    pub(crate) is_success: bool,
    /// Standard output and standard error, in the order they came.
    pub(crate) said: String,
    pub(crate) took: Duration,
}

/// Runs the command, which says what it says into `log`. Fails if it cannot be started or is not done in time.
#[expect(clippy::disallowed_methods, reason = "how long a program took is for people to read")]
pub(crate) fn run(mut command: Command, log: &Path, limit: Duration) -> Result<Ended, String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let write = |error| format!("{}: {error}", log.display());
    let begun = Instant::now();
    let output = File::create(log).map_err(write)?;
    let errors = output.try_clone().map_err(write)?;
    let mut child = command
        .stdin(Stdio::null())
        .stdout(output)
        .stderr(errors)
        .spawn()
        .map_err(|error| format!("cannot run {name}: {error}"))?;
    let said = || std::fs::read(log).map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).map_err(write);
    // Polls are counted instead of time, so that a busy machine does not make the program fail.
    for _ in 0..limit.as_millis() / POLL.as_millis() {
        if let Some(status) = child.try_wait().map_err(|error| format!("{name}: {error}"))? {
            return Ok(Ended { is_success: status.success(), said: said()?, took: begun.elapsed() });
        }
        std::thread::sleep(POLL);
    }
    // Fails only if it has ended by now, which is just as well.
    let _ = child.kill();
    let _ = child.wait();
    Err(format!("{name} was not done after {} s and said:\n{}", limit.as_secs(), said()?))
}
