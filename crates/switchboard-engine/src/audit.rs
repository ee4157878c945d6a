//! What the engine writes to the audit log of its store. Refusals are bounded: beyond [`AUDIT_REFUSALS_PER_MIN`] in a minute
//! they are counted, and summed up in one entry for each reason when the minute is over.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use crate::engine_state::EngineState;
use crate::ports::audit::{AuditEntry, AuditEvent, Decision};
use crate::supervisor::Kind;

/// What is written to the audit log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AuditLevel {
    /// Nothing.
    Off,
    /// Refusals, changes of credentials and rules, and what operators do.
    #[default]
    Default,
    /// Every accepted message as well.
    All,
}

/// Refusals in any minute that are entries of their own.
const AUDIT_REFUSALS_PER_MIN: u32 = 60;

/// What the engine remembers between two entries.
pub(crate) struct Auditor {
    level: AuditLevel,
    refusals: Mutex<Refusals>,
}

/// The refusals of the minute that the first of them began.
#[derive(Default)]
struct Refusals {
    /// Whether a minute has begun; a task ends it.
    is_counting: bool,
    written: u32,
    left_out: BTreeMap<&'static str, u64>,
}

impl Auditor {
    pub(crate) fn new(level: AuditLevel) -> Self {
        Self { level, refusals: Mutex::default() }
    }

    /// Whether accepted messages have an entry.
    pub(crate) fn has_sends(&self) -> bool {
        self.level == AuditLevel::All
    }

    /// Counts a refusal. Whether it is an entry of its own, and whether it is the first of a minute.
    fn count_refusal(&self, reason: &'static str) -> (bool, bool) {
        let mut refusals = self.refusals.lock().unwrap_or_else(PoisonError::into_inner);
        let is_first = !std::mem::replace(&mut refusals.is_counting, true);
        let is_written = refusals.written < AUDIT_REFUSALS_PER_MIN;
        match is_written {
            true => refusals.written += 1,
            false => *refusals.left_out.entry(reason).or_default() += 1,
        }
        (is_written, is_first)
    }

    /// Ends the minute, and returns what was left out in it.
    fn end_minute(&self) -> BTreeMap<&'static str, u64> {
        let mut refusals = self.refusals.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::take(&mut *refusals).left_out
    }
}

impl EngineState {
    pub(crate) fn record_audit(&self, entry: AuditEntry) {
        if self.audit.level == AuditLevel::Off {
            return;
        }
        if let Some(log) = self.store.audit() {
            log.record(entry);
        }
    }

    fn sum_up_refusals(&self) {
        for (reason, count) in self.audit.end_minute() {
            let summed = AuditEntry::new(self.now(), AuditEvent::RefusalsSummed, Decision::Refused, "");
            self.record_audit(AuditEntry { reason: reason.into(), count: Some(count), ..summed });
        }
    }
}

#[cold]
pub(crate) fn record_refusal(engine: &Arc<EngineState>, reason: &'static str, entry: impl FnOnce() -> AuditEntry) {
    if engine.audit.level == AuditLevel::Off {
        return;
    }
    let (is_written, is_first) = engine.audit.count_refusal(reason);
    if is_first {
        let own = engine.clone();
        engine.supervisor.spawn(Kind::Sweep, async move {
            tokio::time::sleep(Duration::from_secs(60)).await;
            own.sum_up_refusals();
        });
    }
    if is_written {
        engine.record_audit(entry());
    }
}

/// Removes entries that are no longer kept, in at most `times` batches.
pub(crate) async fn forget(engine: &EngineState, times: usize, limit: usize) {
    let Some(log) = engine.store.audit() else { return };
    let retention = engine.limits.audit_retention(engine.now());
    for _ in 0..times {
        match log.forget(retention, limit).await {
            Ok(forgotten) if forgotten < limit => break,
            Ok(_) => {}
            Err(error) => {
                tracing::warn!(?error, "old entries of the audit log could not be removed");
                break;
            }
        }
    }
}

/// How long the last entries may take to become durable when the engine stops.
const AUDIT_CLOSE_WAIT_MAX: Duration = Duration::from_secs(5);

/// Writes what is left when the engine stops.
pub(crate) async fn close(engine: &EngineState) {
    engine.sum_up_refusals();
    if let Some(log) = engine.store.audit()
        && !matches!(tokio::time::timeout(AUDIT_CLOSE_WAIT_MAX, log.flush()).await, Ok(Ok(())))
    {
        tracing::warn!("the last entries of the audit log could not be written");
    }
}

#[cfg(test)]
mod tests {
    use super::{AUDIT_REFUSALS_PER_MIN, AuditLevel, Auditor};

    #[test]
    fn a_flood_of_refusals_is_summed_up_by_reason() {
        let auditor = Auditor::new(AuditLevel::Default);
        for round in 0..2 {
            for nth in 0..AUDIT_REFUSALS_PER_MIN {
                assert_eq!(auditor.count_refusal("UNAUTHENTICATED"), (true, nth == 0), "round {round}");
            }
            for reason in ["UNAUTHENTICATED", "UNAUTHENTICATED", "PERMISSION_DENIED"] {
                assert_eq!(auditor.count_refusal(reason), (false, false));
            }
            assert_eq!(auditor.end_minute(), [("PERMISSION_DENIED", 1), ("UNAUTHENTICATED", 2)].into());
        }
        assert!(auditor.end_minute().is_empty());
    }
}
