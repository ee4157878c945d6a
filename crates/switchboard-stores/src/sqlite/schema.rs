//! The tables. Each migration takes a file from one version to the next and is never edited once released: a later
//! change is a new migration. The fixtures of all versions are kept to test that each can be migrated.
//!
//! A send changes as few B-trees as possible. The log is keyed by task and version in one integer, so that it needs no
//! separate index, and the commits of a task are adjacent. Runs and deliveries are indexed only while they are active.

use rusqlite::Connection;

use super::error::Failure;
use super::fill::{add_checksums, count_bytes};
use super::push_rows::file_under_owners;
use super::recent::begin_recent;
use super::secrets::begin_sealing;

/// The application id in SQLite's header, which also `file` shows: "SWBD".
pub(super) const APPLICATION_ID: i32 = 0x5357_4244;

/// What each version adds to the one before; the first to an empty file.
pub(super) const MIGRATIONS: &[Migration] = &[
    Migration { sql: V1, fill: None },
    Migration { sql: V2, fill: Some(add_checksums) },
    Migration { sql: V3, fill: Some(begin_recent) },
    Migration { sql: V4, fill: None },
    Migration { sql: V5, fill: None },
    Migration { sql: V6, fill: Some(begin_sealing) },
    Migration { sql: V7, fill: Some(count_bytes) },
    Migration { sql: V8, fill: None },
    Migration { sql: V9, fill: Some(file_under_owners) },
    Migration { sql: V10, fill: None },
];

/// One step from a version to the next.
#[derive(Clone, Copy)]
pub(super) struct Migration {
    pub(super) sql: &'static str,
    /// Changes to existing rows that SQL alone cannot make. They run in the same transaction, after the SQL.
    pub(super) fill: Option<Fill>,
}

type Fill = fn(&Connection) -> Result<(), Failure>;

const V1: &str = "
CREATE TABLE meta (
    name TEXT NOT NULL PRIMARY KEY,
    value INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
-- How often the file has been opened for writing. Leases of earlier epochs are void: their process is gone.
INSERT INTO meta VALUES ('epoch', 0);

CREATE TABLE scope (
    scope_no INTEGER NOT NULL PRIMARY KEY,
    tenant TEXT NOT NULL,
    principal TEXT NOT NULL,
    agent TEXT NOT NULL,
    UNIQUE (tenant, principal, agent)
) STRICT;

CREATE TABLE task (
    task_no INTEGER NOT NULL PRIMARY KEY,
    id TEXT NOT NULL,
    scope_no INTEGER NOT NULL,
    context_id TEXT NOT NULL,
    phase INTEGER NOT NULL,            -- 0 unborn, 1 a task, 2 closed by a direct reply
    state INTEGER NOT NULL,            -- 1 submitted 2 working 3 completed 4 failed 5 canceled 6 input 7 rejected 8 auth
    status_at INTEGER NOT NULL,        -- this and all times: milliseconds since 1970 UTC
    version INTEGER NOT NULL,          -- commits so far
    seq INTEGER NOT NULL,              -- visible events so far
    turns INTEGER NOT NULL,            -- messages accepted
    turn INTEGER NOT NULL,             -- the one being worked on, or worked on last
    fence INTEGER NOT NULL,
    attempt INTEGER NOT NULL,
    cancel_requested INTEGER NOT NULL,
    push_configs INTEGER NOT NULL,
    deadline INTEGER,
    artifacts TEXT NOT NULL,           -- [[id, parts, bytes, turn, attempt], ...]
    story_version INTEGER NOT NULL,    -- newest commit a reader must fold, artifacts aside; log.prev_story goes on
    artifact_version INTEGER NOT NULL, -- newest commit that wrote to an artifact; log.prev_artifact goes on
    status_version INTEGER NOT NULL,   -- the commit that set the status
    floor_seq INTEGER NOT NULL,        -- visible events up to here are no longer kept one by one
    floor_version INTEGER NOT NULL,    -- of the commits up to here only those that readers fold are kept
    running INTEGER NOT NULL,          -- whether a run is at work, or ought to be
    holder INTEGER NOT NULL,           -- the epoch that holds the lease, 0 for nobody
    lease_until INTEGER,               -- as of the last write; renewals are kept in memory
    run_at INTEGER,                    -- when a run that nobody holds is due
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    closed_at INTEGER
) STRICT;
CREATE UNIQUE INDEX task_by_id ON task (id);
CREATE INDEX task_by_state ON task (scope_no, state, status_at) WHERE phase = 1;
CREATE INDEX task_by_context ON task (context_id, scope_no, status_at) WHERE phase = 1;
CREATE INDEX task_by_run ON task (holder, run_at, cancel_requested) WHERE running = 1;

CREATE TABLE log (
    log_no INTEGER NOT NULL PRIMARY KEY, -- task_no << 24 | version
    last_seq INTEGER NOT NULL,           -- the task's seq after this commit
    visible INTEGER NOT NULL,            -- how many visible events it holds
    prev_story INTEGER NOT NULL,         -- task.story_version before this commit
    prev_artifact INTEGER NOT NULL,      -- task.artifact_version before this commit
    at INTEGER NOT NULL,
    record TEXT NOT NULL
) STRICT;

-- Contents too large for a record, in pieces. A record refers to them by number.
CREATE TABLE chunk (
    chunk_no INTEGER NOT NULL PRIMARY KEY,
    task_no INTEGER NOT NULL,
    version INTEGER NOT NULL,          -- the commit that wrote it
    artifact_id TEXT,                  -- NULL for the part of a message
    part INTEGER NOT NULL,             -- which part of the artifact or message
    start INTEGER NOT NULL,            -- where in the artifact's content this piece begins
    bytes BLOB NOT NULL
) STRICT;
CREATE INDEX chunk_by_artifact ON chunk (task_no, artifact_id, start);

-- One webhook of one task, and how far it has come.
CREATE TABLE push (
    push_no INTEGER NOT NULL PRIMARY KEY,
    task_no INTEGER NOT NULL,
    config_id TEXT NOT NULL,
    url TEXT NOT NULL,
    token TEXT,
    auth_scheme TEXT,
    auth_credentials TEXT,
    dialect TEXT NOT NULL,
    delivered_seq INTEGER NOT NULL,
    failures INTEGER NOT NULL,
    due_at INTEGER,                    -- set while something waits or is under way: when it may be claimed (again)
    claimed_until INTEGER,             -- set while a delivery is under way
    parked INTEGER NOT NULL,           -- given up on, waits to be redriven
    last_error TEXT,
    last_attempt_at INTEGER,
    created_at INTEGER NOT NULL
) STRICT;
CREATE UNIQUE INDEX push_by_task ON push (task_no, config_id);
CREATE INDEX push_by_due ON push (due_at) WHERE due_at IS NOT NULL;

-- Messages accepted before. Keyed by the day they expire first, so that old keys lie together.
CREATE TABLE accepted (
    day INTEGER NOT NULL,
    key BLOB NOT NULL,
    task_no INTEGER NOT NULL,
    digest BLOB NOT NULL,
    turn INTEGER NOT NULL,
    after_seq INTEGER NOT NULL,
    expires INTEGER NOT NULL,
    PRIMARY KEY (day, key)
) STRICT, WITHOUT ROWID;

-- Tasks that are gone but were too large to remove at once.
CREATE TABLE removal (
    task_no INTEGER NOT NULL PRIMARY KEY
) STRICT;

-- For people with a database shell.
CREATE VIEW a2a_tasks AS
SELECT task.id AS id,
       task.context_id AS context,
       scope.agent AS agent,
       CASE task.state
           WHEN 1 THEN 'submitted' WHEN 2 THEN 'working' WHEN 3 THEN 'completed' WHEN 4 THEN 'failed'
           WHEN 5 THEN 'canceled' WHEN 6 THEN 'input-required' WHEN 7 THEN 'rejected' WHEN 8 THEN 'auth-required'
       END AS state,
       (SELECT group_concat(part.value ->> '$.text', char(10))
          FROM json_each(
                   (SELECT event.value -> '$.status.message.parts'
                      FROM log, json_each(log.record, '$.events') AS event
                     WHERE log.log_no = (task.task_no << 24 | task.status_version)
                       AND event.value -> '$.status' IS NOT NULL
                     ORDER BY event.key DESC
                     LIMIT 1)) AS part) AS status_text,
       strftime('%Y-%m-%dT%H:%M:%fZ', task.status_at / 1000.0, 'unixepoch') AS status_at,
       strftime('%Y-%m-%dT%H:%M:%fZ', task.created_at / 1000.0, 'unixepoch') AS created_at,
       strftime('%Y-%m-%dT%H:%M:%fZ', task.updated_at / 1000.0, 'unixepoch') AS updated_at,
       scope.tenant AS tenant,
       scope.principal AS principal,
       task.turns AS messages,
       task.seq AS events,
       json_array_length(task.artifacts) AS artifacts,
       task.push_configs AS push_configs,
       task.running AS running,
       task.attempt AS attempt
  FROM task JOIN scope USING (scope_no)
 WHERE task.phase = 1;
";

/// Every row has a checksum; `rows.rs` says what it covers. A commit also records whether it stored an idempotency
/// key, and a key records its commit, so that a lost key is noticed.
const V2: &str = "
ALTER TABLE meta ADD COLUMN checksum INTEGER NOT NULL DEFAULT 0;
-- The number of the newest task that was removed, and the day before which idempotency keys may be forgotten.
INSERT OR IGNORE INTO meta (name, value) VALUES ('last_task_no', 0), ('forgotten_day', 0);
ALTER TABLE scope ADD COLUMN checksum INTEGER NOT NULL DEFAULT 0;
ALTER TABLE task ADD COLUMN checksum INTEGER NOT NULL DEFAULT 0;
-- When the key that was filed with this commit expires; NULL if none was.
ALTER TABLE log ADD COLUMN accept_expires INTEGER;
ALTER TABLE log ADD COLUMN checksum INTEGER NOT NULL DEFAULT 0;
ALTER TABLE chunk ADD COLUMN checksum INTEGER NOT NULL DEFAULT 0;
ALTER TABLE push ADD COLUMN checksum INTEGER NOT NULL DEFAULT 0;
-- Of due_at and claimed_until, which the other one leaves out.
ALTER TABLE push ADD COLUMN times_checksum INTEGER NOT NULL DEFAULT 0;
-- The commit that filed the key; 0 for keys from before this version.
ALTER TABLE accepted ADD COLUMN version INTEGER NOT NULL DEFAULT 0;
ALTER TABLE accepted ADD COLUMN checksum INTEGER NOT NULL DEFAULT 0;
";

/// Chunks of running tasks wait in a table of their own; `recent.rs` says why.
const V3: &str = "
-- The newest commits of running tasks, of those that only write to artifacts, in the order in which they came. The row of
-- their task is from before them. A row is moved into log later, and deleted here some time after that.
CREATE TABLE recent (
    recent_no INTEGER NOT NULL PRIMARY KEY,
    log_no INTEGER NOT NULL,             -- this and the others as in log
    last_seq INTEGER NOT NULL,
    visible INTEGER NOT NULL,
    prev_story INTEGER NOT NULL,
    prev_artifact INTEGER NOT NULL,
    at INTEGER NOT NULL,
    record TEXT NOT NULL,
    checksum INTEGER NOT NULL            -- the one that it will have in log, xor recent_no
) STRICT;
";

/// Tasks at work may be left out of the indexes; `unindexed.rs` says why. Such a row has 3 in `phase`, where an indexed
/// task has 1, and 2 in `running`. The indexes themselves are not changed, because their conditions leave these out.
const V4: &str = "
DROP VIEW a2a_tasks;
-- For people with a database shell.
CREATE VIEW a2a_tasks AS
SELECT task.id AS id,
       task.context_id AS context,
       scope.agent AS agent,
       CASE task.state
           WHEN 1 THEN 'submitted' WHEN 2 THEN 'working' WHEN 3 THEN 'completed' WHEN 4 THEN 'failed'
           WHEN 5 THEN 'canceled' WHEN 6 THEN 'input-required' WHEN 7 THEN 'rejected' WHEN 8 THEN 'auth-required'
       END AS state,
       (SELECT group_concat(part.value ->> '$.text', char(10))
          FROM json_each(
                   (SELECT event.value -> '$.status.message.parts'
                      FROM log, json_each(log.record, '$.events') AS event
                     WHERE log.log_no = (task.task_no << 24 | task.status_version)
                       AND event.value -> '$.status' IS NOT NULL
                     ORDER BY event.key DESC
                     LIMIT 1)) AS part) AS status_text,
       strftime('%Y-%m-%dT%H:%M:%fZ', task.status_at / 1000.0, 'unixepoch') AS status_at,
       strftime('%Y-%m-%dT%H:%M:%fZ', task.created_at / 1000.0, 'unixepoch') AS created_at,
       strftime('%Y-%m-%dT%H:%M:%fZ', task.updated_at / 1000.0, 'unixepoch') AS updated_at,
       scope.tenant AS tenant,
       scope.principal AS principal,
       task.turns AS messages,
       task.seq AS events,
       json_array_length(task.artifacts) AS artifacts,
       task.push_configs AS push_configs,
       task.running <> 0 AS running,
       task.attempt AS attempt
  FROM task JOIN scope USING (scope_no)
 WHERE task.phase IN (1, 3);
";

/// The audit log; `audit.rs` says how it is written.
const V5: &str = "
-- A chain of entries, each with the hash of the one before it. One process writes to a chain.
CREATE TABLE audit_chain (
    chain_no INTEGER NOT NULL PRIMARY KEY,
    id TEXT NOT NULL,
    anchor_no INTEGER NOT NULL,          -- the last entry that is no longer kept, 0 if all are
    anchor_hash BLOB NOT NULL,           -- its hash, which the oldest entry follows
    last_no INTEGER NOT NULL,
    checksum INTEGER NOT NULL
) STRICT;
CREATE TABLE audit (
    chain_no INTEGER NOT NULL,
    entry_no INTEGER NOT NULL,           -- without gaps
    at INTEGER NOT NULL,
    record TEXT NOT NULL,                -- one object of JSON
    hash BLOB NOT NULL,                  -- SHA-256 of the hash before it, in hexadecimal, and the record
    PRIMARY KEY (chain_no, entry_no)
) STRICT, WITHOUT ROWID;
";

/// The tables stay as they are: `token` and `auth_credentials` of `push` are encrypted when a server opens the file, because the keys are
/// not in it (`secrets.rs`). A build that does not know that would post what it finds there.
const V6: &str = "";

/// Each task counts the bytes that are stored of it; `usage.rs` says what is counted.
const V7: &str = "
ALTER TABLE task ADD COLUMN bytes INTEGER NOT NULL DEFAULT 0;
";

/// Calls of agents to other agents; `calls.rs` reads and writes them. What a row says beside its columns is in its record.
const V8: &str = "
CREATE TABLE call (
    call_no INTEGER NOT NULL PRIMARY KEY,
    id TEXT NOT NULL,                    -- also the id of the message, and its idempotency key
    task_no INTEGER NOT NULL,            -- the task whose run made the call
    status TEXT NOT NULL,                -- inline, pending, processing, delivering, completed or failed
    due_at INTEGER,                      -- set while nobody waits for the answer: when it may be claimed (again)
    record TEXT NOT NULL,                -- one object of JSON
    checksum INTEGER NOT NULL
) STRICT;
CREATE UNIQUE INDEX call_by_id ON call (id);
CREATE INDEX call_by_task ON call (task_no);
CREATE INDEX call_by_due ON call (due_at) WHERE due_at IS NOT NULL;

-- For people with a database shell: every call of an agent to another one.
CREATE VIEW a2a_calls AS
SELECT call.id AS id,
       task.id AS task,
       scope.agent AS agent,
       call.record ->> '$.agent' AS called,
       call.record ->> '$.remote_task' AS called_task,
       call.status AS status,
       call.record ->> '$.error' AS error,
       strftime('%Y-%m-%dT%H:%M:%fZ', (call.record ->> '$.created_at') / 1000.0, 'unixepoch') AS created_at,
       strftime('%Y-%m-%dT%H:%M:%fZ', (call.record ->> '$.ended_at') / 1000.0, 'unixepoch') AS ended_at,
       scope.tenant AS tenant,
       scope.principal AS principal
  FROM call JOIN task USING (task_no) JOIN scope USING (scope_no);

-- Those that nobody waited for, with the names of agent-native.
CREATE VIEW a2a_continuations AS
SELECT call.id AS id,
       task.id AS task_id,
       scope.principal AS owner_email,
       scope.tenant AS org_id,
       call.record ->> '$.agent' AS agent_name,
       call.record ->> '$.remote_task' AS a2a_task_id,
       call.status AS status,
       call.record ->> '$.attempts' AS attempts,
       strftime('%Y-%m-%dT%H:%M:%fZ', call.due_at / 1000.0, 'unixepoch') AS next_check_at,
       call.record ->> '$.error' AS error_message,
       call.record ->> '$.receipt' AS receipt,
       strftime('%Y-%m-%dT%H:%M:%fZ', (call.record ->> '$.created_at') / 1000.0, 'unixepoch') AS created_at,
       strftime('%Y-%m-%dT%H:%M:%fZ', (call.record ->> '$.ended_at') / 1000.0, 'unixepoch') AS completed_at
  FROM call JOIN task USING (task_no) JOIN scope USING (scope_no)
 WHERE call.record ->> '$.give_up_at' IS NOT NULL;
";

/// Webhooks are filed under the owner of their task, so that a claim can take some of each owner. The number is that of `usage.rs`: the
/// first scope of the owner.
const V9: &str = "
ALTER TABLE push ADD COLUMN owner_no INTEGER NOT NULL DEFAULT 0;
CREATE INDEX push_by_owner ON push (owner_no, due_at) WHERE due_at IS NOT NULL;
";

/// The tables are the same. Rows of `recent` may have a checkpoint, which earlier versions would lose when they file the row, so they must
/// not open the file.
const V10: &str = "";
