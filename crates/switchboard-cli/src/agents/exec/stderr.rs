//! The end of standard error: what a client is told when a command fails. The rest is read, so that the command can go
//! on, and forgotten.

use tokio::process::ChildStderr;
use tokio_util::sync::CancellationToken;

use super::read;

const LINES_MAX: usize = 20;
const BYTES_MAX: usize = 4 * 1024;

/// Reads until the pipe is closed; returns the last lines.
pub(super) async fn last_words(stderr: Option<ChildStderr>, ended: &CancellationToken) -> String {
    let Some(mut stderr) = stderr else { return String::new() };
    let mut tail = Tail::default();
    let mut buffer = vec![0; BYTES_MAX];
    loop {
        match read(&mut stderr, &mut buffer, ended).await {
            0 => return tail.text(),
            bytes => tail.push(&buffer[..bytes]),
        }
    }
}

/// The last bytes of a stream.
#[derive(Default)]
struct Tail {
    bytes: Vec<u8>,
    /// Whether something before them was dropped.
    cut: bool,
}

impl Tail {
    fn push(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
        if let Some(excess) = self.bytes.len().checked_sub(BYTES_MAX).filter(|excess| *excess > 0) {
            self.bytes.drain(..excess);
            self.cut = true;
        }
    }

    /// The last lines. A line that lost its beginning is left out, unless it is the only one.
    fn text(&self) -> String {
        let text = String::from_utf8_lossy(&self.bytes);
        let text = text.trim_end();
        let whole = match text.split_once('\n') {
            Some((_, rest)) if self.cut => rest,
            _ => text,
        };
        let lines: Vec<&str> = whole.lines().collect();
        lines[lines.len().saturating_sub(LINES_MAX)..].join("\n")
    }
}

#[cfg(test)]
#[path = "stderr_tests.rs"]
mod tests;
