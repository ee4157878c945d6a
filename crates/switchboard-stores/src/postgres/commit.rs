//! Commits on their way to the database. A commit is encoded by its caller, waits in the queue, and is written with the others
//! of its batch by one call of `commit_v2` (`schema/commit.rs`).

use std::cmp::Ordering;

use switchboard_core::lifecycle::Phase;
use switchboard_core::model::{Dialect, PushConfig};
use switchboard_engine::ports::audit::AuditEntry;
use switchboard_engine::ports::storage::{COMMIT_BYTES, ENDING_BYTES_MAX, KEY_BYTES, PIECE_BYTES, WEBHOOK_BYTES};
use switchboard_engine::ports::store::{
    Accept, Commit, CommitError, LeaseChange, OverStorage, PushChange, StorageLimits, StoreError, StoredBytes, Target,
    TaskKey,
};
use tokio::sync::oneshot;

use super::connect::Connection;
use super::error::Failure;
use super::rows::{LogColumns, PushColumns, of_accept, of_chunk, of_head, of_origin};
use super::schema::COMMIT_NUMBERS;
use super::text;
use crate::record::{Encoded, OnChains, encode, encode_artifacts, phase_number, signed, state_number, unsigned};
use crate::secret_keys::{Place, SecretKeys};

// The bits of `flags`, as `commit_v2` reads them.
const RUNNING: i64 = 1;
const CANCEL_REQUESTED: i64 = 2;
const WAITS: i64 = 4;
const INTERRUPTED: i64 = 8;
const CLOSED: i64 = 16;
const HAS_DEADLINE: i64 = 32;
const ON_STORY: i64 = 64;
const ON_ARTIFACTS: i64 = 128;
const SETS_STATUS: i64 = 256;
const MARKS_DUE: i64 = 512;
const NEEDS_ROOM: i64 = 1024;

/// Stands for "no version" and "no fence".
const NONE: i64 = -1;

/// A commit that waits to be written.
pub(super) struct Pending {
    numbers: [i64; COMMIT_NUMBERS],
    id: String,
    context_id: String,
    artifacts: String,
    record: String,
    accept: Option<Accept>,
    chunks: Vec<crate::record::StoredChunk>,
    webhooks: Vec<WebhookRow>,
    pub(super) audit: Option<Box<AuditEntry>>,
    /// The state that the task is listed under after this commit.
    pub(super) listed_after: Option<i64>,
    pub(super) rows: u64,
    pub(super) bytes: u64,
    pub(super) owner_no: i64,
    storage: StorageLimits,
    pub(super) answer: Option<oneshot::Sender<Result<TaskKey, CommitError>>>,
}

/// A webhook that a commit puts or deletes.
struct WebhookRow {
    config_id: String,
    put: Option<(PushColumns, i64)>,
}

/// Where a new record goes.
#[derive(Clone, Copy)]
pub(super) struct NewPlace {
    pub(super) task_no: i64,
    pub(super) scope_no: i64,
    pub(super) agent_no: i64,
}

/// What a commit is held against, besides its task.
#[derive(Clone, Copy)]
pub(super) struct Room {
    pub(super) owner_no: i64,
    /// What is stored of its owner, and in all, as far as this process knows.
    pub(super) owner_bytes: i64,
    pub(super) bytes: i64,
}

impl Pending {
    /// Encodes a commit. `place` is given for a new record, which is refused here if there is no room for it.
    pub(super) fn of(
        commit: &Commit,
        place: Option<NewPlace>,
        room: Room,
        nonce: i64,
        keys: Option<&SecretKeys>,
    ) -> Result<Self, CommitError> {
        let head = &commit.head;
        let (task_no, expected) = match (&commit.target, place) {
            (Target::Existing { key, expected_version }, _) => (key.0, signed(*expected_version)),
            (Target::New { .. }, Some(place)) => (place.task_no, NONE),
            (Target::New { .. }, None) => {
                return Err(StoreError::Unavailable("a new record has no number".to_owned()).into());
            }
        };
        let (scope_no, agent_no) = place.map_or((0, 0), |place| (place.scope_no, place.agent_no));
        // Chunks are numbered within their commit.
        let next = std::cell::Cell::new(1_i64);
        let take_numbers = |count: usize| next.replace(next.get() + signed(count as u64));
        let Encoded { record, record_hash, chunks } = encode(&commit.events, head, &take_numbers);
        let artifacts = encode_artifacts(&head.artifacts);
        let log = LogColumns {
            task_no,
            version: signed(head.version),
            last_seq: signed(head.seq),
            visible: signed(commit.visible()),
            at: commit.at.as_ms(),
            nonce,
        };
        let on = OnChains::of(&commit.events, commit.folds);
        let marks_due = !commit.push.is_empty() || (head.push_configs > 0 && log.visible > 0);
        let (lease, lease_ms, waits, interrupted) = match commit.lease {
            LeaseChange::Keep => (0, 0, false, false),
            LeaseChange::Take { lease_ms, waits } => (1, lease_ms, waits, false),
            LeaseChange::Claim { lease_ms, interrupted } => (2, lease_ms, false, interrupted),
        };
        let flags = [
            (RUNNING, head.running),
            (CANCEL_REQUESTED, head.cancel_requested),
            (WAITS, waits),
            (INTERRUPTED, interrupted),
            (CLOSED, head.is_closed()),
            (HAS_DEADLINE, head.deadline.is_some()),
            (ON_STORY, on.story),
            (ON_ARTIFACTS, on.artifact),
            (SETS_STATUS, on.status),
            (MARKS_DUE, marks_due),
            (NEEDS_ROOM, commit.needs_room(0)),
        ];
        let flags = flags.into_iter().filter(|(_, is_set)| *is_set).map(|(bit, _)| bit).sum();
        let chunk_bytes: usize = chunks.iter().map(|chunk| chunk.bytes.len()).sum();
        let content = signed((record.len() + chunk_bytes) as u64 + PIECE_BYTES * chunks.len() as u64);
        // What a new record brings is known here. By how many webhooks a task grows is known where it is written.
        let webhooks_before = if expected == NONE { 0 } else { head.push_configs };
        let more = content + commit.bytes_around(webhooks_before);
        let storage = commit.storage;
        if expected == NONE {
            let stored = StoredBytes { task: 0, owner: unsigned(room.owner_bytes), all: unsigned(room.bytes) };
            storage.check(stored, unsigned(more)).map_err(CommitError::OverStorage)?;
        }
        let around = COMMIT_BYTES + if commit.accept.is_some() { KEY_BYTES } else { 0 };
        let weight = content + signed(around);
        let numbers = [
            task_no,
            expected,
            commit.fence.map_or(NONE, signed),
            flags,
            lease,
            lease_ms.into(),
            scope_no,
            agent_no,
            phase_number(head.phase),
            state_number(head.state),
            head.status_at.as_ms(),
            log.version,
            log.last_seq,
            head.turns.into(),
            head.turn.into(),
            signed(head.fence),
            head.attempt.into(),
            head.push_configs.into(),
            head.deadline.map_or(0, |at| at.as_ms()),
            of_head(task_no, head, &artifacts),
            log.visible,
            log.at,
            nonce,
            weight,
            log.checksum(record_hash),
            of_origin(task_no, head.id.as_str(), scope_no),
            more,
            signed(storage.task_bytes_max),
            signed(storage.owner_bytes_max).saturating_sub(room.owner_bytes),
            signed(storage.bytes_max).saturating_sub(room.bytes),
        ];
        let webhooks = webhook_rows(task_no, &commit.push, keys)?;
        let rows = 2 + chunks.len() + usize::from(commit.accept.is_some()) + webhooks.len();
        Ok(Self {
            numbers,
            id: text::stored(head.id.as_str()).into_owned(),
            context_id: text::stored(head.context_id.as_str()).into_owned(),
            bytes: (record.len() + chunk_bytes + artifacts.len()) as u64,
            artifacts: text::stored(&artifacts).into_owned(),
            record,
            accept: commit.accept.clone(),
            chunks,
            webhooks,
            audit: commit.audit.clone(),
            listed_after: (head.phase == Phase::Live).then(|| state_number(head.state)),
            rows: rows as u64,
            owner_no: room.owner_no,
            storage,
            answer: None,
        })
    }

    /// The order of commits in a batch, which is the order in which they take locks: new records by id, then others by number. So two
    /// batches never wait for each other.
    pub(super) fn order(&self, other: &Self) -> Ordering {
        match (self.is_new(), other.is_new()) {
            (true, true) => self.id.cmp(&other.id),
            (false, false) => self.task_no().cmp(&other.task_no()),
            (true, false) => Ordering::Less,
            (false, true) => Ordering::Greater,
        }
    }

    pub(super) fn task_no(&self) -> i64 {
        self.numbers[0]
    }

    pub(super) fn is_new(&self) -> bool {
        self.numbers[1] == NONE
    }

    pub(super) fn version(&self) -> i64 {
        self.numbers[11]
    }

    pub(super) fn nonce(&self) -> i64 {
        self.numbers[22]
    }

    /// By how many bytes the stored ones grow, given what the database says of a task that was there before.
    pub(super) fn grown(&self, change: i64) -> i64 {
        if self.is_new() { self.numbers[26] } else { change }
    }

    /// The limit that this status names.
    pub(super) fn over_storage(&self, status: i16) -> Option<OverStorage> {
        let StorageLimits { task_bytes_max, owner_bytes_max, bytes_max } = self.storage;
        match status {
            4 => Some(OverStorage::Task(task_bytes_max)),
            5 => Some(OverStorage::Owner(owner_bytes_max)),
            6 => Some(OverStorage::All(bytes_max)),
            _ => None,
        }
    }

    pub(super) fn id(&self) -> &str {
        &self.id
    }

    pub(super) fn accept_key(&self) -> Option<&[u8; 32]> {
        self.accept.as_ref().map(|accept| &accept.key)
    }

    pub(super) fn answer(&mut self, answer: Result<TaskKey, CommitError>) {
        if let Some(waiting) = self.answer.take() {
            // The caller may be gone; the commit stands.
            let _ = waiting.send(answer);
        }
    }
}

fn webhook_rows(
    task_no: i64,
    changes: &[PushChange],
    keys: Option<&SecretKeys>,
) -> Result<Vec<WebhookRow>, StoreError> {
    let mut rows: Vec<WebhookRow> = Vec::with_capacity(changes.len());
    for change in changes {
        let row = match change {
            PushChange::Put { config, dialect, after_seq } => {
                let columns = push_columns(task_no, config, *dialect, keys)?;
                WebhookRow { config_id: columns.config_id.clone(), put: Some((columns, signed(*after_seq))) }
            }
            PushChange::Delete { id } => WebhookRow { config_id: text::stored(id.as_str()).into_owned(), put: None },
        };
        // One statement deletes and one inserts, so only the last change of a config counts.
        rows.retain(|known| known.config_id != row.config_id);
        rows.push(row);
    }
    Ok(rows)
}

fn push_columns(
    task_no: i64,
    config: &PushConfig,
    dialect: Dialect,
    keys: Option<&SecretKeys>,
) -> Result<PushColumns, StoreError> {
    let seal = |column: &'static str, secret: Option<&String>| -> Result<Option<String>, StoreError> {
        let Some(secret) = secret else { return Ok(None) };
        let place = Place { task_no, config_id: config.id.as_str(), column };
        let sealed = keys.and_then(|keys| keys.seal(&place, secret));
        let failed =
            || StoreError::Unavailable("secrets of webhooks cannot be encrypted: no key is configured".to_owned());
        sealed.map(Some).ok_or_else(failed)
    };
    let authentication = config.authentication.as_ref();
    Ok(PushColumns {
        task_no,
        config_id: text::stored(config.id.as_str()).into_owned(),
        url: text::stored(&config.url).into_owned(),
        token: seal("token", config.token.as_ref())?,
        auth_scheme: authentication.map(|info| text::stored(&info.scheme).into_owned()),
        auth_credentials: seal("auth_credentials", authentication.and_then(|info| info.credentials.as_ref()))?,
        dialect: dialect.name().to_owned(),
    })
}

/// What became of the commits of a batch.
pub(super) struct Written {
    /// As `commit_v2` answers.
    pub(super) statuses: Vec<i16>,
    pub(super) befores: Vec<i16>,
    pub(super) changes: Vec<i64>,
}

const COMMIT: &str = "select statuses, befores, changes from commit_v2($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, \
                      $16, $17, $18, $19, $20, $21, $22, $23, $24, $25, $26, $27, $28)";

/// Sends a batch that is in the order of [`Pending::order`].
pub(super) async fn write(
    connection: &Connection,
    batch: &[Pending],
    holder: i32,
    now: Option<i64>,
) -> Result<Written, Failure> {
    let count = |number: usize| i32::try_from(number).unwrap_or(i32::MAX);
    let new = batch.iter().take_while(|pending| pending.is_new()).count();
    let mut numbers = Vec::with_capacity(batch.len() * COMMIT_NUMBERS);
    let (mut ids, mut contexts) = (Vec::with_capacity(new), Vec::with_capacity(new));
    let (mut artifacts, mut records) = (Vec::with_capacity(batch.len()), Vec::with_capacity(batch.len()));
    let (mut k_ord, mut k_keys, mut k_digests, mut k_numbers) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    let (mut b_ord, mut b_numbers, mut b_artifacts, mut b_bytes) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    let (mut w_ord, mut w_numbers, mut w_configs, mut w_urls) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    let (mut w_tokens, mut w_schemes, mut w_credentials, mut w_dialects) =
        (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    let mut accepts = Vec::new();
    let mut marks = false;
    for (place, pending) in batch.iter().enumerate() {
        let ord = count(place + 1);
        numbers.extend_from_slice(&pending.numbers);
        marks |= pending.numbers[3] & MARKS_DUE != 0;
        if place < new {
            ids.push(pending.id.as_str());
            contexts.push(pending.context_id.as_str());
        }
        artifacts.push(pending.artifacts.as_str());
        records.push(pending.record.as_str());
        accepts.extend(pending.accept.as_ref().map(|accept| (ord, pending.task_no(), accept)));
        for chunk in &pending.chunks {
            b_ord.push(ord);
            let checksum = of_chunk(pending.task_no(), pending.version(), chunk.number, chunk.hash);
            b_numbers.extend([chunk.number, signed(chunk.part), signed(chunk.start), checksum]);
            b_artifacts.push(chunk.artifact_id.as_ref().map(|id| text::stored(id.as_str())));
            b_bytes.push(&chunk.bytes[..]);
        }
        for webhook in &pending.webhooks {
            w_ord.push(ord);
            w_configs.push(webhook.config_id.as_str());
            let put = webhook.put.as_ref();
            w_numbers.extend(put.map_or([0, 0], |(columns, after_seq)| [*after_seq, columns.checksum()]));
            w_urls.push(put.map(|(columns, _)| columns.url.as_str()));
            w_tokens.push(put.and_then(|(columns, _)| columns.token.as_deref()));
            w_schemes.push(put.and_then(|(columns, _)| columns.auth_scheme.as_deref()));
            w_credentials.push(put.and_then(|(columns, _)| columns.auth_credentials.as_deref()));
            w_dialects.push(put.map(|(columns, _)| columns.dialect.as_str()));
        }
    }
    accepts.sort_by_key(|(_, _, accept)| accept.key);
    for (ord, task_no, accept) in accepts {
        k_ord.push(ord);
        k_keys.push(&accept.key[..]);
        k_digests.push(&accept.digest[..]);
        let checksum = of_accept(task_no, accept);
        k_numbers.extend([i64::from(accept.turn), signed(accept.after_seq), accept.expires.as_ms(), checksum]);
    }
    let rows = connection
        .query(
            COMMIT,
            &[
                &count(batch.len()),
                &count(new),
                &numbers,
                &ids,
                &contexts,
                &artifacts,
                &records,
                &k_ord,
                &k_keys,
                &k_digests,
                &k_numbers,
                &b_ord,
                &b_numbers,
                &b_artifacts,
                &b_bytes,
                &w_ord,
                &w_numbers,
                &w_configs,
                &w_urls,
                &w_tokens,
                &w_schemes,
                &w_credentials,
                &w_dialects,
                &marks,
                &holder,
                &now,
                &signed(WEBHOOK_BYTES),
                &signed(ENDING_BYTES_MAX),
            ],
        )
        .await?;
    let unexpected = || Failure::other("the server answered a batch of commits in an unexpected way");
    let row = rows.first().ok_or_else(unexpected)?;
    let statuses: Vec<i16> = row.try_get(0).map_err(|_| unexpected())?;
    let befores: Vec<i16> = row.try_get(1).map_err(|_| unexpected())?;
    let changes: Vec<i64> = row.try_get(2).map_err(|_| unexpected())?;
    if [statuses.len(), befores.len(), changes.len()] != [batch.len(); 3] {
        return Err(unexpected());
    }
    Ok(Written { statuses, befores, changes })
}
