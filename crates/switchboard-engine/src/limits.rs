//! All limits of the engine, each with its unit in its name.
#![warn(missing_docs, missing_debug_implementations)]

use switchboard_core::model::Timestamp;

use crate::ports::audit::AuditRetention;
use crate::ports::store::{Retention, StorageLimits};

/// What the engine allows. `Default` is what `switchboard serve` uses.
#[derive(Clone, Debug)]
pub struct Limits {
    /// How long a blocking send waits before it answers with the task as it is.
    pub settle_wait_s_max: u32,
    /// How long a run may take, unless its agent declares another limit. Paused time does not count.
    pub run_s_max: u32,
    /// How long a submitted task may wait to be started; after that it is failed. None means no limit.
    pub queued_s_max: Option<u32>,
    /// How long a turn may take with all its attempts; after that its task is failed. Paused time does not count. None
    /// means no limit.
    pub processing_s_max: Option<u32>,
    /// How long a task waits for its agent to be served again.
    pub unserved_s_max: u32,
    /// How long an agent that may answer directly has to do so before its record becomes a task.
    pub birth_wait_ms: u32,
    /// How long a canceled run has to stop before it is fenced off.
    pub cancel_grace_ms: u32,
    /// How long a lease on a run lasts without renewal.
    pub lease_ms: u32,
    /// How often leases are renewed and runs without a holder are claimed.
    pub sweep_ms: u32,
    /// How often a store that failed is probed.
    pub store_probe_ms: u32,
    /// Attempts at one turn before its task is failed, unless its agent declares another number.
    pub attempts_max: u32,
    /// The pause before the third attempt, unless the agent declares another; the second attempt comes at once.
    pub retry_backoff_ms_min: u32,
    /// The longest of these pauses: each one is twice the one before, up to this.
    pub retry_backoff_ms_max: u32,
    /// How long an agent may take to clean up after a run of its own that died.
    pub clean_up_ms_max: u32,
    /// How long the agent that was called may take, once nobody waits for its answer.
    pub continuation_s_max: u32,
    /// How often such a call is looked at before it is given up.
    pub continuation_attempts_max: u32,
    /// The pause between two looks.
    pub continuation_pause_ms: u32,
    /// The size of one checkpoint.
    pub checkpoint_bytes_max: usize,
    /// Runs at work in this process at once; more wait until one has ended.
    pub runs_max: usize,
    /// Runs that wait for one of these places, of all owners together; a message that would begin one more is refused.
    pub runs_queued_max: u64,
    /// The same for each owner.
    pub runs_queued_per_owner_max: u64,
    /// Bytes of the messages that runs at work or waiting hold, of all owners together; small ones are not counted.
    pub run_message_bytes_max: u64,
    /// The same for each owner.
    pub run_message_bytes_per_owner_max: u64,
    /// Bytes stored of one task. A message that would exceed it is refused, and a run that would ends its task as failed.
    pub storage_task_bytes_max: u64,
    /// The same for all tasks of one owner.
    pub storage_owner_bytes_max: u64,
    /// The same for all tasks of all owners.
    pub storage_bytes_max: u64,
    /// Unread messages of one task.
    pub inbox_messages_max: u32,
    /// Artifacts of one task; a write that would begin one more is refused.
    pub artifacts_max: usize,
    /// The size of one artifact with all its chunks; a write beyond it is refused.
    pub artifact_bytes_max: u64,
    /// The approximate size of one reply or webhook body. Artifacts that do not fit are shown as links; a write of a
    /// run that would not fit is refused.
    pub reply_bytes_max: u64,
    /// The size of one frame of a stream or one gRPC reply. Clients refuse longer lines or messages, most of them above
    /// 4 MiB. Artifacts and chunks that do not fit are shown as links.
    pub frame_bytes_max: u64,
    /// Attempts to write one commit when other writers change the same task.
    pub commit_attempts_max: u32,
    /// Updates kept in memory for the followers of one task; readers further behind read the store.
    pub tail_updates_max: usize,
    /// The bytes of those updates.
    pub tail_bytes_max: usize,
    /// Commits read from the store at once.
    pub log_page_commits: usize,
    /// How often a follower reads the store without having been notified.
    pub follow_poll_ms: u32,
    /// Tasks on a page of a list whose request does not say how many.
    pub list_page_size_default: u32,
    /// Tasks on a page of a list at most; a request for more is refused.
    pub list_page_size_max: u32,
    /// Webhooks of one task.
    pub push_configs_max: u32,
    /// Deliveries under way at once, over all endpoints; one endpoint gets a quarter of them at most.
    pub deliveries_max: usize,
    /// Failed attempts at one delivery after which it becomes a dead letter.
    pub delivery_failures_max: u32,
    /// The pause after the first failed attempt at a delivery; each later one is twice as long.
    pub delivery_backoff_ms_min: u32,
    /// The longest pause between attempts at a delivery.
    pub delivery_backoff_ms_max: u32,
    /// How long a receiver may take to answer a delivery.
    pub delivery_timeout_ms: u32,
    /// A receiver that is further behind than this many updates gets the newest state instead of them; 0 turns this
    /// off.
    pub delivery_coalesce_after: u32,
    /// Consecutive failures after which an endpoint counts as down: its deliveries wait, and one probe at a time is
    /// sent.
    pub endpoint_failures_max: u32,
    /// The pause before the first probe of an endpoint that is down; each later one is twice as long.
    pub endpoint_probe_ms_min: u32,
    /// The longest pause between probes of an endpoint that is down.
    pub endpoint_probe_ms_max: u32,
    /// How long deliveries wait for an endpoint that is down before they become dead letters.
    pub endpoint_down_s_max: u32,
    /// How many tasks that a message refers to are loaded for the agent.
    pub referenced_tasks_max: usize,
    /// How long a repeated message is recognised.
    pub idempotency_window_s: u32,
    /// Tasks that one key may name, one after the other, in dialects where a task that failed frees its key.
    pub tasks_per_key_max: u32,
    /// How long after a task has ended a client can resume its stream, whatever else retention says.
    pub resume_window_s: u32,
    /// How long the single events of a settled task are kept; a reader further behind gets a snapshot.
    pub retention_events_s: u32,
    /// How long an ended task is kept.
    pub retention_tasks_s: u32,
    /// How many tasks are kept; the oldest ended ones are removed beyond that.
    pub retention_tasks_max: u64,
    /// How many of the oldest ended tasks are removed at once when a new one makes more than `retention_tasks_max`. 0
    /// removes just the excess, once a minute.
    pub retention_tasks_batch: u64,
    /// How long an entry of the audit log is kept.
    pub retention_audit_s: u32,
    /// How many entries of the audit log are kept; the oldest are removed beyond that.
    pub retention_audit_max: u64,
    /// Earlier tasks of a context that are read for an agent with a context memory, and the bytes of their messages.
    pub context_tasks_max: usize,
    /// The bytes of those messages.
    pub context_bytes_max: usize,
}

impl Limits {
    /// A lease of this length, renewed often enough that several renewals may fail before it runs out.
    #[must_use]
    pub fn with_lease_ms(self, lease_ms: u32) -> Self {
        Self { lease_ms, sweep_ms: (lease_ms / 6).clamp(50, 5_000), ..self }
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            settle_wait_s_max: 300,
            run_s_max: 300,
            queued_s_max: None,
            processing_s_max: None,
            unserved_s_max: 7 * 86_400,
            birth_wait_ms: 1_000,
            cancel_grace_ms: 5_000,
            lease_ms: 30_000,
            sweep_ms: 5_000,
            store_probe_ms: 1_000,
            attempts_max: 3,
            retry_backoff_ms_min: 1_000,
            retry_backoff_ms_max: 300_000,
            clean_up_ms_max: 5_000,
            continuation_s_max: 600,
            continuation_attempts_max: 6,
            continuation_pause_ms: 20_000,
            checkpoint_bytes_max: 64 << 10,
            runs_max: 100_000,
            runs_queued_max: 10_000,
            runs_queued_per_owner_max: 1_000,
            run_message_bytes_max: 128 << 20,
            run_message_bytes_per_owner_max: 64 << 20,
            storage_task_bytes_max: 2 << 30,
            storage_owner_bytes_max: 16 << 30,
            storage_bytes_max: 64 << 30,
            inbox_messages_max: 100,
            artifacts_max: 256,
            artifact_bytes_max: 1 << 30,
            reply_bytes_max: 32 << 20,
            frame_bytes_max: 4 << 20,
            commit_attempts_max: 16,
            tail_updates_max: 256,
            tail_bytes_max: 1 << 20,
            log_page_commits: 256,
            follow_poll_ms: 15_000,
            list_page_size_default: 50,
            list_page_size_max: 100,
            push_configs_max: 16,
            deliveries_max: 1_024,
            delivery_failures_max: 12,
            delivery_backoff_ms_min: 500,
            delivery_backoff_ms_max: 300_000,
            delivery_timeout_ms: 15_000,
            delivery_coalesce_after: 0,
            endpoint_failures_max: 5,
            endpoint_probe_ms_min: 1_000,
            endpoint_probe_ms_max: 60_000,
            endpoint_down_s_max: 86_400,
            referenced_tasks_max: 16,
            idempotency_window_s: 86_400,
            tasks_per_key_max: 16,
            resume_window_s: 86_400,
            retention_events_s: 7 * 86_400,
            retention_tasks_s: 30 * 86_400,
            retention_tasks_max: 1_000_000,
            retention_tasks_batch: 0,
            retention_audit_s: 365 * 86_400,
            retention_audit_max: 1_000_000,
            context_tasks_max: 32,
            context_bytes_max: 1 << 20,
        }
    }
}

impl Limits {
    /// How many bytes may be stored.
    pub(crate) fn storage(&self) -> StorageLimits {
        StorageLimits {
            task_bytes_max: self.storage_task_bytes_max,
            owner_bytes_max: self.storage_owner_bytes_max,
            bytes_max: self.storage_bytes_max,
        }
    }

    /// The retention policy at this time.
    #[must_use]
    pub fn retention(&self, now: Timestamp) -> Retention {
        let kept_ms = |seconds: u32| i64::from(seconds.max(self.resume_window_s)) * 1000;
        Retention {
            now,
            events_ms: kept_ms(self.retention_events_s),
            tasks_ms: kept_ms(self.retention_tasks_s),
            replies_ms: i64::from(self.idempotency_window_s) * 1000,
            tasks_max: self.retention_tasks_max,
            tasks_batch: self.retention_tasks_batch,
        }
    }

    /// What the audit log keeps at this time.
    #[must_use]
    pub fn audit_retention(&self, now: Timestamp) -> AuditRetention {
        let entries_ms = i64::from(self.retention_audit_s) * 1000;
        AuditRetention { now, entries_ms, entries_max: self.retention_audit_max }
    }
}
