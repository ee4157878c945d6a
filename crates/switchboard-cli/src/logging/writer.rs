//! Writes log lines without making the server wait: lines are collected in memory and written by a thread of their own, a
//! few hundredths of a second at a time. A reader of the log that is too slow costs lines, which are counted, and never a
//! request. Lines of a warning or worse are written at once.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use memchr::memchr2;

/// Lines that wait to be written.
const WAITING_BYTES_MAX: usize = 1024 * 1024;
/// How long lines below a warning are collected before they are written.
const COLLECT: Duration = Duration::from_millis(20);

/// Where lines go. Cheap to clone.
#[derive(Clone)]
pub(crate) struct LogWriter {
    shared: Arc<Shared>,
}

struct Shared {
    queue: Mutex<Queue>,
    /// Wakes the thread.
    more: Condvar,
    /// Wakes the threads that wait until everything is written.
    written: Condvar,
}

#[derive(Default)]
struct Queue {
    lines: Vec<u8>,
    /// Lines that were dropped because the queue was full.
    lost: u64,
    is_urgent: bool,
    is_writing: bool,
}

impl LogWriter {
    /// A writer to standard error.
    pub(crate) fn stderr() -> io::Result<Self> {
        Self::start("log-stderr", |bytes| io::stderr().write_all(bytes))
    }

    /// A writer that adds to a file. If the file is moved away, as rotation does, a new one of the same name is begun.
    pub(crate) fn file(path: &Path) -> io::Result<Self> {
        let mut target = Target::open(path.to_owned())?;
        Self::start("log-file", move |bytes| target.write(bytes))
    }

    fn start(name: &str, mut write: impl FnMut(&[u8]) -> io::Result<()> + Send + 'static) -> io::Result<Self> {
        let shared = Arc::new(Shared { queue: Mutex::default(), more: Condvar::new(), written: Condvar::new() });
        let writer = Self { shared: shared.clone() };
        let thread = std::thread::Builder::new().name(name.to_owned());
        #[expect(clippy::disallowed_methods, reason = "writing may block; the thread lives as long as the process")]
        thread.spawn(move || shared.write_forever(&mut write))?;
        Ok(writer)
    }

    /// Takes one line, which may end with its line break. Other line breaks in it are escaped, so that a text from outside
    /// cannot look like a line of its own. An urgent one is written at once.
    pub(crate) fn line(&self, line: &[u8], is_urgent: bool) {
        let body = line.strip_suffix(b"\n").unwrap_or(line);
        let mut queue = self.shared.lock();
        if queue.lines.len() + body.len() > WAITING_BYTES_MAX {
            queue.lost += 1;
            return;
        }
        let was_empty = queue.lines.is_empty();
        if memchr2(b'\n', b'\r', body).is_some() {
            for byte in body {
                match byte {
                    b'\n' => queue.lines.extend_from_slice(b"\\n"),
                    b'\r' => queue.lines.extend_from_slice(b"\\r"),
                    byte => queue.lines.push(*byte),
                }
            }
        } else {
            queue.lines.extend_from_slice(body);
        }
        queue.lines.push(b'\n');
        queue.is_urgent |= is_urgent;
        drop(queue);
        if was_empty || is_urgent {
            self.shared.more.notify_one();
        }
    }

    /// Waits until what was taken is written, at most this long.
    pub(crate) fn flush(&self, at_most: Duration) {
        let mut queue = self.shared.lock();
        queue.is_urgent = true;
        self.shared.more.notify_one();
        let unwritten = |queue: &mut Queue| !queue.lines.is_empty() || queue.is_writing;
        let waited = self.shared.written.wait_timeout_while(queue, at_most, unwritten);
        drop(waited.unwrap_or_else(PoisonError::into_inner));
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn write_forever(&self, write: &mut impl FnMut(&[u8]) -> io::Result<()>) {
        let mut batch = Vec::new();
        let mut fails = false;
        loop {
            let queue = self.more.wait_while(self.lock(), |queue| queue.lines.is_empty());
            let queue = queue.unwrap_or_else(PoisonError::into_inner);
            let collected = self.more.wait_timeout_while(queue, COLLECT, |queue| !queue.is_urgent);
            let (mut queue, _) = collected.unwrap_or_else(PoisonError::into_inner);
            batch.clear();
            std::mem::swap(&mut batch, &mut queue.lines);
            let lost = std::mem::take(&mut queue.lost);
            queue.is_urgent = false;
            queue.is_writing = true;
            drop(queue);
            if lost > 0 {
                let _ = writeln!(batch, "{lost} lines were lost here: they came faster than they could be written");
            }
            let result = write(&batch);
            // Reported once, until writing works again. If standard error itself cannot be written to, the report is
            // lost.
            if let (Err(error), false) = (&result, fails) {
                tracing::warn!(%error, "a log could not be written");
            }
            fails = result.is_err();
            self.lock().is_writing = false;
            self.written.notify_all();
        }
    }
}

/// A file that lines are added to.
struct Target {
    path: PathBuf,
    file: File,
}

impl Target {
    fn open(path: PathBuf) -> io::Result<Self> {
        let file = open(&path)?;
        Ok(Self { path, file })
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        if !self.is_in_place() {
            self.file = open(&self.path)?;
        }
        self.file.write_all(bytes)
    }

    /// Whether the file that is open is the one of that name.
    fn is_in_place(&self) -> bool {
        use std::os::unix::fs::MetadataExt;
        let number = |metadata: io::Result<std::fs::Metadata>| metadata.map(|file| (file.dev(), file.ino())).ok();
        number(std::fs::metadata(&self.path)) == number(self.file.metadata())
    }
}

fn open(path: &Path) -> io::Result<File> {
    OpenOptions::new().create(true).append(true).open(path)
}

#[cfg(test)]
#[path = "writer_tests.rs"]
mod tests;
