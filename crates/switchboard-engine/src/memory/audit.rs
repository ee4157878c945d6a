//! The audit log in memory.

use std::collections::VecDeque;

use switchboard_core::model::Timestamp;

use crate::ports::audit::{AuditEntry, AuditPage, AuditRetention, ChainPosition, StoredEntry};

/// Entries that are kept in memory at most; one more removes the oldest.
const MEMORY_AUDIT_ENTRIES_MAX: usize = 10_000;

pub(super) struct AuditTable {
    chain: String,
    anchor: ChainPosition,
    last: ChainPosition,
    entries: VecDeque<StoredEntry>,
}

impl Default for AuditTable {
    fn default() -> Self {
        Self {
            chain: String::new(),
            anchor: ChainPosition::BEGIN,
            last: ChainPosition::BEGIN,
            entries: VecDeque::new(),
        }
    }
}

impl AuditTable {
    pub(super) fn append(&mut self, entry: &AuditEntry) {
        if self.chain.is_empty() {
            self.chain = format!("memory-{}", entry.at.as_ms());
        }
        let record = entry.record(&self.chain, self.last.no + 1);
        self.last = self.last.after(&record);
        self.entries.push_back(StoredEntry { no: self.last.no, at: entry.at, record, hash: self.last.hash });
        if self.entries.len() > MEMORY_AUDIT_ENTRIES_MAX {
            self.forget_oldest();
        }
    }

    pub(super) fn page(&self, after_no: u64, limit: usize) -> AuditPage {
        let entries = self.entries.iter().filter(|entry| entry.no > after_no).take(limit).cloned().collect();
        AuditPage { chain: self.chain.clone(), anchor: self.anchor, entries }
    }

    pub(super) fn forget(&mut self, retention: AuditRetention, limit: usize) -> usize {
        let mut forgotten = 0;
        while forgotten < limit && self.entries.front().is_some_and(|oldest| self.is_outlived(oldest.at, &retention)) {
            self.forget_oldest();
            forgotten += 1;
        }
        forgotten
    }

    fn is_outlived(&self, at: Timestamp, retention: &AuditRetention) -> bool {
        self.entries.len() as u64 > retention.entries_max || retention.now.ms_since(at) >= retention.entries_ms
    }

    fn forget_oldest(&mut self) {
        if let Some(StoredEntry { no, hash, .. }) = self.entries.pop_front() {
            self.anchor = ChainPosition { no, hash };
        }
    }
}
