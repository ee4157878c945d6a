//! The ledger read back from disk, sorted by task.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;

use super::ledger::{self, Entry};
use super::wish::Wish;

/// Everything that clients asked for and were told.
#[derive(Debug, Default)]
pub(super) struct Book {
    pub(super) tasks: BTreeMap<String, Record>,
    /// Messages that were sent and never answered.
    pub(super) unanswered: BTreeMap<u64, (Wish, bool)>,
    /// Messages that were answered with the task of another.
    pub(super) mixed_up: Vec<String>,
    /// Webhooks of tasks that nobody was told of.
    pub(super) stray_hooks: u64,
}

/// What is known of one task.
#[derive(Debug)]
pub(super) struct Record {
    pub(super) n: u64,
    pub(super) wish: Wish,
    pub(super) hook: bool,
    /// What readers were shown, by reader, in the order they were shown it: number and digest.
    pub(super) seen: BTreeMap<u64, Vec<(u64, u64)>>,
    /// States at rest that callers were told, each with a digest of the artifacts then.
    pub(super) told: Vec<(String, u64)>,
    /// The states that cancels were answered with.
    pub(super) canceled: Vec<String>,
    pub(super) arrivals: Vec<Arrival>,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Arrival {
    pub(super) seq: u64,
    pub(super) digest: u64,
    pub(super) taken: bool,
}

impl Record {
    pub(super) fn new(n: u64, wish: Wish, hook: bool) -> Self {
        let (seen, told, canceled, arrivals) = (BTreeMap::new(), Vec::new(), Vec::new(), Vec::new());
        Self { n, wish, hook, seen, told, canceled, arrivals }
    }

    /// The last event that anybody was shown.
    pub(super) fn last_seen(&self) -> u64 {
        self.seen.values().flatten().map(|(seq, _)| *seq).max().unwrap_or(0)
    }
}

impl Book {
    pub(super) fn read(path: &Path) -> io::Result<Self> {
        let mut entries = Vec::new();
        ledger::read(path, |entry| entries.push(entry))?;
        Ok(Self::of(entries))
    }

    pub(super) fn of(entries: Vec<Entry>) -> Self {
        let mut book = Self::default();
        // A webhook, or a reader, can be ahead of the answer that tells which message a task belongs to.
        let (openings, rest): (Vec<_>, Vec<_>) =
            entries.into_iter().partition(|entry| matches!(entry, Entry::Sending { .. } | Entry::Accepted { .. }));
        for entry in openings {
            book.open(entry);
        }
        for entry in rest {
            book.enter(entry);
        }
        book
    }

    fn open(&mut self, entry: Entry) {
        match entry {
            Entry::Sending { n, wish, hook } => {
                self.unanswered.insert(n, (wish, hook));
            }
            Entry::Accepted { n, task } => match (self.unanswered.remove(&n), self.tasks.get(&task)) {
                (Some((wish, hook)), None) => {
                    self.tasks.insert(task, Record::new(n, wish, hook));
                }
                (_, Some(other)) => {
                    self.mixed_up.push(format!("messages {} and {n} were both answered with task {task}", other.n));
                }
                (None, None) => self.mixed_up.push(format!("message {n} was answered with a second task, {task}")),
            },
            _ => {}
        }
    }

    fn enter(&mut self, entry: Entry) {
        let task = match &entry {
            Entry::Sending { .. } | Entry::Accepted { .. } => return,
            Entry::Seen { task, .. } | Entry::Told { task, .. } | Entry::Canceled { task, .. } => task,
            Entry::Continued { task } | Entry::Hooked { task, .. } => task,
        };
        let Some(record) = self.tasks.get_mut(task) else {
            self.stray_hooks += 1;
            return;
        };
        match entry {
            Entry::Seen { reader, seq, digest, .. } => record.seen.entry(reader).or_default().push((seq, digest)),
            Entry::Told { state, digest, .. } => record.told.push((state, digest)),
            Entry::Canceled { state, .. } => record.canceled.push(state),
            Entry::Hooked { seq, digest, taken, .. } => record.arrivals.push(Arrival { seq, digest, taken }),
            Entry::Sending { .. } | Entry::Accepted { .. } | Entry::Continued { .. } => {}
        }
    }
}
