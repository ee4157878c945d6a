//! Puts into the audit log that a file was read again, and how that went: tokens, rules, signing keys.

use std::fmt;
use std::sync::OnceLock;

use switchboard_engine::ports::Clock;
use switchboard_engine::ports::audit::{AuditEntry, AuditEvent, Decision};
use switchboard_engine::system::SystemClock;

/// The entries about one file. Nothing is recorded until a server says where.
pub(crate) struct ReloadAudit {
    event: AuditEvent,
    operation: &'static str,
    record: OnceLock<Record>,
}

type Record = Box<dyn Fn(AuditEntry) + Send + Sync>;

impl ReloadAudit {
    pub(crate) const fn new(event: AuditEvent, operation: &'static str) -> Self {
        Self { event, operation, record: OnceLock::new() }
    }

    /// Says who records. The first one counts.
    pub(crate) fn record_by(&self, record: impl Fn(AuditEntry) + Send + Sync + 'static) {
        let _ = self.record.set(Box::new(record));
    }

    /// Records how many there are now, or why the old ones stay in use.
    pub(crate) fn reloaded(&self, outcome: Result<usize, &dyn fmt::Display>) {
        let Some(record) = self.record.get() else { return };
        let decision = if outcome.is_ok() { Decision::Allowed } else { Decision::Failed };
        let entry = AuditEntry::new(SystemClock.now(), self.event, decision, self.operation);
        record(match outcome {
            Ok(count) => AuditEntry { count: Some(count as u64), ..entry },
            Err(error) => AuditEntry { reason: error.to_string().into(), ..entry },
        });
    }
}
