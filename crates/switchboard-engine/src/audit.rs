//! What the engine writes to the audit log of its store.

use std::sync::Arc;
use std::time::Duration;

use crate::ports::audit::{AuditEntry, AuditEvent, Decision};
use crate::state::EngineState;
use crate::supervisor::Kind;

impl EngineState {
    pub(crate) fn record_audit(&self, entry: AuditEntry) {
        if self.audit.is_off() {
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
    if engine.audit.is_off() {
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
