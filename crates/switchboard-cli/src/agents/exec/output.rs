//! Standard output as the chunks of one artifact: what is printed within a short while goes out together, text is never
//! cut inside a character, and what is not text is sent as bytes.

use std::time::Duration;

use switchboard::{Part, Turn, TurnError};
use tokio::process::ChildStdout;
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

use super::read;

/// The most that one chunk holds. A command that prints a large file fills it; each chunk is a commit, and what is over
/// 32 KiB is stored beside the log.
const CHUNK_BYTES_MAX: usize = 256 * 1024;

/// How long printed text waits for more to go with it.
const COALESCE: Duration = Duration::from_millis(20);

/// Publishes until the pipe is closed. No output is no artifact.
pub(super) async fn publish(
    stdout: Option<ChildStdout>,
    turn: &Turn,
    ended: &CancellationToken,
) -> Result<(), TurnError> {
    let Some(mut stdout) = stdout else { return Ok(()) };
    let mut writer = turn.artifact_writer().with_name("output");
    let mut chunks = Chunks::default();
    let mut buffer = vec![0; CHUNK_BYTES_MAX];
    // When that which is held must go out.
    let mut due: Option<Instant> = None;
    loop {
        let free = CHUNK_BYTES_MAX - chunks.held.len();
        let bytes = tokio::select! {
            biased;
            bytes = read(&mut stdout, &mut buffer[..free], ended) => Some(bytes),
            () = sleep_until(due.unwrap_or_else(Instant::now)), if due.is_some() => None,
        };
        match bytes {
            Some(0) => break,
            Some(bytes) => {
                chunks.held.extend_from_slice(&buffer[..bytes]);
                due = due.or_else(|| Some(Instant::now() + COALESCE));
            }
            None => {}
        }
        let is_due = due.is_some_and(|due| due <= Instant::now());
        if is_due || chunks.held.len() == CHUNK_BYTES_MAX {
            due = None;
            if let Some(part) = chunks.take() {
                writer.parts(vec![part]).await?;
            }
        }
    }
    // What was published before the pipe was closed may have been the last chunk, but that was not known then.
    match chunks.take_all() {
        Some(part) => writer.finish(vec![part]).await,
        None => Ok(()),
    }
}

/// Bytes that were printed and not yet published.
#[derive(Default)]
struct Chunks {
    held: Vec<u8>,
    /// Set by the first bytes that are not text. The rest is bytes, too: a picture in which some chunk happens to look
    /// like text must not change its type in the middle.
    binary: bool,
}

impl Chunks {
    /// The next chunk: everything held, but for the beginning of a character whose end is still to come.
    fn take(&mut self) -> Option<Part> {
        if self.held.is_empty() {
            return None;
        }
        let cut = match std::str::from_utf8(&self.held) {
            Ok(_) => self.held.len(),
            Err(error) if error.error_len().is_none() => error.valid_up_to(),
            Err(_) => {
                self.binary = true;
                self.held.len()
            }
        };
        if self.binary {
            return self.take_all();
        }
        if cut == 0 {
            return None;
        }
        let rest = self.held.split_off(cut);
        Some(text_or_bytes(std::mem::replace(&mut self.held, rest)))
    }

    /// The last chunk: everything held, if that is anything.
    fn take_all(&mut self) -> Option<Part> {
        let held = std::mem::take(&mut self.held);
        if held.is_empty() {
            return None;
        }
        Some(if self.binary { bytes(held) } else { text_or_bytes(held) })
    }
}

fn text_or_bytes(held: Vec<u8>) -> Part {
    String::from_utf8(held).map_or_else(|error| bytes(error.into_bytes()), Part::text)
}

fn bytes(held: Vec<u8>) -> Part {
    Part::raw(held).with_media_type("application/octet-stream")
}

#[cfg(test)]
#[path = "output_tests.rs"]
mod tests;
