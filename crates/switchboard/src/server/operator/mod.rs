//! What is for operators: health, metrics, and the webhook deliveries of all callers.

pub(crate) mod exposition;
pub(crate) mod health;
pub(crate) mod metrics;
#[cfg(feature = "sqlite")]
pub(crate) mod offline;
pub(crate) mod outbox;

use switchboard_core::call::BoxFuture;
use switchboard_engine::Readiness;
use switchboard_engine::ports::audit::AuditEntry;
use switchboard_engine::push::OutboxAdmin;

/// What a host that keeps tasks shows its operators, and lets them do. A server without one is ready while it is not stopping, has
/// nothing to tell, and its outbox is empty.
pub(crate) trait Operations: Send + Sync {
    /// Whether the process should be given work.
    fn readiness(&self) -> Readiness;

    /// What an operator should know although the process is ready, one line each.
    fn notices(&self) -> Vec<String>;

    /// The webhook deliveries of all callers.
    fn outbox(&self) -> OutboxAdmin;

    /// What the host counts, in Prometheus' text form; webhook endpoints by name only if asked for.
    fn metrics(&self, with_endpoints: bool) -> BoxFuture<'_, String>;

    /// Adds an entry to the audit log.
    fn record_audit(&self, entry: AuditEntry);

    /// Adds the entry of a refusal to the audit log, or counts it if there are too many.
    fn record_refusal(&self, reason: &'static str, entry: &mut dyn FnMut() -> AuditEntry);
}
