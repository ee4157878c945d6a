//! What the checksum of each row covers: every column including the row's number, so that two rows with swapped
//! contents are found as well as a flipped bit. A reader checks each row that it reads, and `verify` checks all rows.
//! The writer derives a new row only from what it wrote itself, or has read and checked, so damaged data never gets a
//! valid checksum.
//!
//! There is one exception, to keep commits cheap: the two times of a webhook change for many rows at once, so they have
//! a separate checksum, which does not cover the row's number.

use rusqlite::types::FromSqlError;
use switchboard_engine::ports::audit::ChainPosition;
use switchboard_engine::ports::store::StoreError;

use super::error::Failure;
use crate::checksum::{Checksum, ContentHash};

// A number is never reused for another table, because stored checksums depend on it.
const META: u64 = 1;
const SCOPE: u64 = 2;
const TASK: u64 = 3;
const LOG: u64 = 4;
const CHUNK: u64 = 5;
const PUSH: u64 = 6;
const PUSH_TIMES: u64 = 7;
const ACCEPTED: u64 = 8;
const AUDIT_CHAIN: u64 = 9;
const CALL: u64 = 10;

/// The error for a row that does not match its checksum.
pub(super) fn mismatch(what: impl std::fmt::Display) -> Failure {
    Failure(StoreError::Corrupt(format!("{what} does not match its checksum")))
}

/// The error for an owner that does not match its checksum. It affects only callers that ask for this owner's tasks.
pub(super) fn damaged_owner(scope_no: i64) -> Failure {
    Failure(StoreError::Damaged(format!("owner number {scope_no} does not match its checksum")))
}

/// The error for a column that holds another type than expected.
pub(super) fn mistyped(error: FromSqlError) -> Failure {
    Failure(StoreError::Corrupt(error.to_string()))
}

pub(super) fn of_meta(name: &str, value: i64) -> i64 {
    Checksum::of_table(META).text(name).number(value).finish()
}

pub(super) fn of_scope(scope_no: i64, [tenant, principal, agent]: [&str; 3]) -> i64 {
    Checksum::of_table(SCOPE).number(scope_no).text(tenant).text(principal).text(agent).finish()
}

/// Every column of a row of `task` but its checksum, as SQLite holds them.
#[derive(Clone, Copy)]
pub(super) struct TaskColumns<'r> {
    pub(super) task_no: i64,
    pub(super) id: &'r str,
    pub(super) scope_no: i64,
    pub(super) context_id: &'r str,
    pub(super) phase: i64,
    pub(super) state: i64,
    pub(super) status_at: i64,
    pub(super) version: i64,
    pub(super) seq: i64,
    pub(super) turns: i64,
    pub(super) turn: i64,
    pub(super) fence: i64,
    pub(super) attempt: i64,
    pub(super) cancel_requested: i64,
    pub(super) push_configs: i64,
    pub(super) deadline: Option<i64>,
    pub(super) artifacts: &'r str,
    pub(super) story_version: i64,
    pub(super) artifact_version: i64,
    pub(super) status_version: i64,
    pub(super) floor_seq: i64,
    pub(super) floor_version: i64,
    pub(super) running: i64,
    pub(super) holder: i64,
    pub(super) lease_until: Option<i64>,
    pub(super) run_at: Option<i64>,
    pub(super) created_at: i64,
    pub(super) updated_at: i64,
    pub(super) closed_at: Option<i64>,
    pub(super) bytes: i64,
}

impl TaskColumns<'_> {
    pub(super) fn checksum(&self) -> i64 {
        self.but_bytes().number(self.bytes).finish()
    }

    /// The checksum of a row from before schema 7.
    pub(super) fn checksum_without_bytes(&self) -> i64 {
        self.but_bytes().finish()
    }

    fn but_bytes(&self) -> Checksum {
        // All fields are named here, so that the compiler reports an added column.
        let Self {
            task_no,
            id,
            scope_no,
            context_id,
            phase,
            state,
            status_at,
            version,
            seq,
            turns,
            turn,
            fence,
            attempt,
            cancel_requested,
            push_configs,
            deadline,
            artifacts,
            story_version,
            artifact_version,
            status_version,
            floor_seq,
            floor_version,
            running,
            holder,
            lease_until,
            run_at,
            created_at,
            updated_at,
            closed_at,
            bytes: _,
        } = *self;
        Checksum::of_table(TASK)
            .number(task_no)
            .text(id)
            .number(scope_no)
            .text(context_id)
            .number(phase)
            .number(state)
            .number(status_at)
            .number(version)
            .number(seq)
            .number(turns)
            .number(turn)
            .number(fence)
            .number(attempt)
            .number(cancel_requested)
            .number(push_configs)
            .optional_number(deadline)
            .text(artifacts)
            .number(story_version)
            .number(artifact_version)
            .number(status_version)
            .number(floor_seq)
            .number(floor_version)
            .number(running)
            .number(holder)
            .optional_number(lease_until)
            .optional_number(run_at)
            .number(created_at)
            .number(updated_at)
            .optional_number(closed_at)
    }
}

/// A row of `log` without its record, of which the hash is enough.
#[derive(Clone, Copy)]
pub(super) struct LogColumns {
    pub(super) log_no: i64,
    pub(super) last_seq: i64,
    pub(super) visible: i64,
    pub(super) prev_story: i64,
    pub(super) prev_artifact: i64,
    pub(super) at: i64,
    pub(super) accept_expires: Option<i64>,
}

impl LogColumns {
    pub(super) fn checksum(&self, record: ContentHash) -> i64 {
        let Self { log_no, last_seq, visible, prev_story, prev_artifact, at, accept_expires } = *self;
        Checksum::of_table(LOG)
            .number(log_no)
            .number(last_seq)
            .number(visible)
            .number(prev_story)
            .number(prev_artifact)
            .number(at)
            .optional_number(accept_expires)
            .content(record)
            .finish()
    }
}

/// A row of `chunk` without its bytes, of which the hash is enough.
#[derive(Clone, Copy)]
pub(super) struct ChunkColumns<'r> {
    pub(super) chunk_no: i64,
    pub(super) task_no: i64,
    pub(super) version: i64,
    pub(super) artifact_id: Option<&'r str>,
    pub(super) part: i64,
    pub(super) start: i64,
}

impl ChunkColumns<'_> {
    pub(super) fn checksum(&self, bytes: ContentHash) -> i64 {
        let Self { chunk_no, task_no, version, artifact_id, part, start } = *self;
        Checksum::of_table(CHUNK)
            .number(chunk_no)
            .number(task_no)
            .number(version)
            .optional_text(artifact_id)
            .number(part)
            .number(start)
            .content(bytes)
            .finish()
    }
}

/// A row of `push` without the times at which it is due.
#[derive(Clone)]
pub(super) struct PushColumns {
    pub(super) push_no: i64,
    pub(super) task_no: i64,
    pub(super) config_id: String,
    pub(super) url: String,
    pub(super) token: Option<String>,
    pub(super) auth_scheme: Option<String>,
    pub(super) auth_credentials: Option<String>,
    pub(super) dialect: String,
    pub(super) delivered_seq: i64,
    pub(super) failures: i64,
    pub(super) parked: i64,
    pub(super) last_error: Option<String>,
    pub(super) last_attempt_at: Option<i64>,
    pub(super) created_at: i64,
}

impl PushColumns {
    pub(super) fn checksum(&self) -> i64 {
        let Self {
            push_no,
            task_no,
            config_id,
            url,
            token,
            auth_scheme,
            auth_credentials,
            dialect,
            delivered_seq,
            failures,
            parked,
            last_error,
            last_attempt_at,
            created_at,
        } = self;
        Checksum::of_table(PUSH)
            .number(*push_no)
            .number(*task_no)
            .text(config_id)
            .text(url)
            .optional_text(token.as_deref())
            .optional_text(auth_scheme.as_deref())
            .optional_text(auth_credentials.as_deref())
            .text(dialect)
            .number(*delivered_seq)
            .number(*failures)
            .number(*parked)
            .optional_text(last_error.as_deref())
            .optional_number(*last_attempt_at)
            .number(*created_at)
            .finish()
    }
}

/// The two times of a webhook: when it is due, and until when a delivery has claimed it.
pub(super) fn of_push_times(due_at: Option<i64>, claimed_until: Option<i64>) -> i64 {
    Checksum::of_table(PUSH_TIMES).optional_number(due_at).optional_number(claimed_until).finish()
}

/// A row of `call`.
pub(super) fn of_call(call_no: i64, task_no: i64, id: &str, status: &str, due_at: Option<i64>, record: &str) -> i64 {
    let numbered = Checksum::of_table(CALL).number(call_no).number(task_no);
    numbered.text(id).text(status).optional_number(due_at).text(record).finish()
}

/// A row of `audit_chain`. The rows of `audit` have no checksum, because their hash covers them.
pub(super) struct ChainColumns {
    pub(super) chain_no: i64,
    pub(super) id: String,
    /// The last entry that is no longer kept.
    pub(super) anchor: ChainPosition,
    pub(super) last_no: u64,
}

impl ChainColumns {
    pub(super) fn checksum(&self) -> i64 {
        let Self { chain_no, id, anchor: ChainPosition { no, hash }, last_no } = self;
        Checksum::of_table(AUDIT_CHAIN)
            .number(*chain_no)
            .text(id)
            .number(no.cast_signed())
            .bytes(&hash.0)
            .number(last_no.cast_signed())
            .finish()
    }
}

/// A row of `accepted`.
#[derive(Clone, Copy)]
pub(super) struct AcceptedColumns<'r> {
    pub(super) day: i64,
    pub(super) key: &'r [u8],
    pub(super) task_no: i64,
    pub(super) digest: &'r [u8],
    pub(super) turn: i64,
    pub(super) after_seq: i64,
    pub(super) expires: i64,
    pub(super) version: i64,
}

impl AcceptedColumns<'_> {
    pub(super) fn checksum(&self) -> i64 {
        let Self { day, key, task_no, digest, turn, after_seq, expires, version } = *self;
        Checksum::of_table(ACCEPTED)
            .number(day)
            .bytes(key)
            .number(task_no)
            .bytes(digest)
            .number(turn)
            .number(after_seq)
            .number(expires)
            .number(version)
            .finish()
    }
}
