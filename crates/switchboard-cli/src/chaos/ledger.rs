//! The ledger: what clients asked and what the server told them, in a file of our own that no death of the server can
//! touch. A line counts when it is on disk: those that wait together are written and synced together.

use std::fs::{File, OpenOptions};
use std::io::{self, BufRead, BufReader, Write};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::JoinHandle;

use serde::{Deserialize, Serialize};
use tokio::sync::mpsc::{Receiver, Sender, channel};

use super::wish::Wish;

/// Entries that wait to be written; who brings more waits with them.
const WAITING_MAX: usize = 10_000;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Entry {
    /// A message is about to be sent.
    Sending { n: u64, wish: Wish, hook: bool },
    /// A message was accepted, as this task.
    Accepted { n: u64, task: String },
    /// The second message of a task was accepted.
    Continued { task: String },
    /// A reader of a stream was shown an event. The digest is of its bytes.
    Seen { reader: u64, task: String, seq: u64, digest: u64 },
    /// A caller was told the state of a task, and the text of its artifacts.
    Told { task: String, state: String, digest: u64 },
    /// A cancel was answered, with the state that the task has now.
    Canceled { task: String, state: String },
    /// A webhook arrived; taken, if it was answered with yes.
    Hooked { task: String, seq: u64, digest: u64, taken: bool },
}

impl Entry {
    /// Whether the server has acknowledged something with it.
    fn is_acknowledgement(&self) -> bool {
        match self {
            Self::Accepted { .. } | Self::Continued { .. } | Self::Seen { .. } | Self::Told { .. } => true,
            Self::Canceled { .. } => true,
            Self::Sending { .. } | Self::Hooked { .. } => false,
        }
    }
}

/// What tells two contents apart (FNV-1a).
pub(super) fn digest(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3))
}

pub(super) struct Ledger {
    /// None is the end.
    entries: Sender<Option<Entry>>,
    acknowledged: Arc<AtomicU64>,
}

/// The thread that writes.
pub(super) struct Writer(JoinHandle<io::Result<()>>);

impl Ledger {
    pub(super) fn create(path: &Path) -> io::Result<(Self, Writer)> {
        let file = OpenOptions::new().append(true).create_new(true).open(path)?;
        let (entries, waiting) = channel(WAITING_MAX);
        let acknowledged = Arc::new(AtomicU64::new(0));
        let counted = acknowledged.clone();
        let writer = start(move || write(file, waiting, &counted))?;
        Ok((Self { entries, acknowledged }, Writer(writer)))
    }

    pub(super) async fn record(&self, entry: Entry) {
        // A writer that failed says so when it is waited for; nothing is counted any more.
        let _ = self.entries.send(Some(entry)).await;
    }

    /// Acknowledgements that are on disk.
    pub(super) fn acknowledged(&self) -> u64 {
        self.acknowledged.load(Ordering::Relaxed)
    }

    /// Waits until everything that was recorded is on disk; gives how many acknowledgements that is.
    pub(super) async fn finish(&self, writer: Writer) -> io::Result<u64> {
        let _ = self.entries.send(None).await;
        writer.0.join().unwrap_or_else(|_| Err(io::Error::other("the writer of the ledger panicked")))?;
        Ok(self.acknowledged())
    }
}

#[expect(clippy::disallowed_methods, reason = "syncing a file waits for the disk; `Ledger::finish` joins the thread")]
fn start(work: impl FnOnce() -> io::Result<()> + Send + 'static) -> io::Result<JoinHandle<io::Result<()>>> {
    std::thread::Builder::new().name("ledger".to_owned()).spawn(work)
}

fn write(mut file: File, mut waiting: Receiver<Option<Entry>>, counted: &AtomicU64) -> io::Result<()> {
    let mut group = Vec::new();
    let mut lines = Vec::new();
    let mut ended = false;
    while !ended && waiting.blocking_recv_many(&mut group, WAITING_MAX) > 0 {
        lines.clear();
        let mut acknowledgements = 0;
        for entry in group.drain(..) {
            let Some(entry) = entry else {
                ended = true;
                continue;
            };
            acknowledgements += u64::from(entry.is_acknowledgement());
            serde_json::to_writer(&mut lines, &entry)?;
            lines.push(b'\n');
        }
        file.write_all(&lines)?;
        file.sync_data()?;
        counted.fetch_add(acknowledgements, Ordering::Relaxed);
    }
    Ok(())
}

/// Reads a ledger back, in order.
pub(super) fn read(path: &Path, mut each: impl FnMut(Entry)) -> io::Result<()> {
    for line in BufReader::new(File::open(path)?).lines() {
        each(serde_json::from_str(&line?)?);
    }
    Ok(())
}
