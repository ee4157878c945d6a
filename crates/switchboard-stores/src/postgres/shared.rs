//! What the parts of a store share.

use std::sync::atomic::AtomicI64;

use switchboard_engine::ports::Share;
use switchboard_engine::ports::system::ClockRecord;
use tokio::sync::mpsc;

use super::audit::Audit;
use super::commit::Pending;
use super::database::Database;
use super::quarantine::Quarantined;
use super::queue::Queue;
use super::scopes::Scopes;
use super::totals::Totals;
use super::usage::Usage;
use crate::cache::Cache;
use crate::secret_keys::SecretKeys;

pub(super) struct Shared {
    pub(super) database: Database,
    pub(super) queue: Queue,
    pub(super) sender: mpsc::Sender<Pending>,
    /// What this process wrote lately. Others may have written since.
    pub(super) cache: Cache,
    pub(super) scopes: Scopes,
    pub(super) totals: Totals,
    pub(super) usage: Usage,
    pub(super) share: Share,
    pub(super) audit: Audit,
    pub(super) quarantine: Quarantined,
    pub(super) secrets: Option<SecretKeys>,
    pub(super) replica_no: i32,
    pub(super) clock_record: ClockRecord,
    /// Counts from a random number, so that no two commits have the same.
    pub(super) next_nonce: AtomicI64,
    /// The owner whose webhooks were looked at last, if there are more owners than a claim looks at.
    pub(super) claimed_after: AtomicI64,
}
