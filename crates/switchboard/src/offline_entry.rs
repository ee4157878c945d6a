//! What the audit log says about something that was done to a database while no server runs.

use switchboard_engine::ports::Clock as _;
use switchboard_engine::ports::audit::{AuditEntry, AuditEvent, Decision};
use switchboard_engine::system::SystemClock;

/// An entry about an operation such as `db compact`, which the user `who` of the system did.
pub(crate) fn offline_entry(who: &str, operation: &str, reason: &str) -> AuditEntry {
    let entry = AuditEntry::new(SystemClock.now(), AuditEvent::Offline, Decision::Allowed, operation.to_owned());
    AuditEntry { principal: who.to_owned(), reason: reason.to_owned().into(), ..entry }
}
