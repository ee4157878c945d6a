//! The tables and functions. Each migration takes the schema from one version to the next and is never edited once released: a
//! later change is a new migration. Processes of the version before may run while it is applied, so a migration only adds
//! (expand); what is no longer used is removed by a later one (contract). Functions carry a number in their name, and a changed
//! function gets a new number, so that each build calls the one it knows.
//!
//! A commit is one row of `log` and one of `task`; further rows only for what it brings: an idempotency key, chunks, webhooks.
//! All rows of a batch are written by one call of a function (`schema/commit.rs`), whose number of statements does not depend on the batch.

#[macro_use]
mod commit;

pub(super) use commit::COMMIT_NUMBERS;

/// What one version adds to the one before.
pub(super) struct Migration {
    pub(super) sql: &'static str,
    /// Builds that know at least this version can work with the schema after this migration.
    pub(super) works_from: i32,
}

pub(super) const MIGRATIONS: &[Migration] = &[
    Migration { sql: V1, works_from: 1 },
    Migration { sql: V2, works_from: 1 },
    Migration { sql: V3, works_from: 1 },
    Migration { sql: V4, works_from: 1 },
    Migration { sql: V5, works_from: 1 },
];

/// The version that this build writes.
pub(super) const VERSION: i32 = 5;

const V1: &str = concat!(
    "
create table meta (name text collate \"C\" primary key, value bigint not null);
-- The newest time that a process has seen, and until when ages are ignored. This and all times: milliseconds since 1970 UTC.
insert into meta values ('seen_at', 0), ('held_until', 0);

-- A process that serves, by the name it was given. Names that were drawn at random are removed when nothing refers to them.
create table replica (
    replica_no int generated always as identity primary key,
    name text collate \"C\" not null unique,
    started_at bigint not null
);

create table agent (
    agent_no int generated always as identity primary key,
    name text collate \"C\" not null unique
);

create table owner (
    owner_no bigint generated always as identity primary key,
    tenant text collate \"C\" not null,
    principal text collate \"C\" not null,
    unique (tenant, principal)
);

create table scope (
    scope_no bigint generated always as identity primary key,
    owner_no bigint not null,
    tenant text collate \"C\" not null,
    principal text collate \"C\" not null,
    agent text collate \"C\" not null,
    agent_no int not null,
    unique (tenant, principal, agent)
);

-- Each process takes this many numbers for tasks at once.
create sequence task_block increment by 1000 minvalue 1000;

create table task (
    task_no bigint not null,
    scope_no bigint not null,
    created_at bigint not null,
    status_at bigint not null,
    version bigint not null,          -- commits so far
    seq bigint not null,              -- visible events so far
    turns bigint not null,
    turn bigint not null,
    fence bigint not null,
    attempt bigint not null,
    push_configs bigint not null,
    deadline bigint,
    story_version bigint not null,    -- newest commit a reader must fold, artifacts aside; log.prev_story goes on
    artifact_version bigint not null, -- newest commit that wrote to an artifact; log.prev_artifact goes on
    status_version bigint not null,   -- the commit that set the status
    floor_seq bigint not null default 0,     -- visible events up to here are no longer kept one by one
    floor_version bigint not null default 0, -- of the commits up to here only those that readers fold are kept
    claimable_at bigint,              -- while a run is at work: when another process may claim it
    updated_at bigint not null,
    closed_at bigint,
    bytes bigint not null,            -- what it counts of the limits of stored bytes
    checksum bigint not null,         -- of what a commit sets
    origin_checksum bigint not null,  -- of what the first commit sets
    holder int,                       -- the replica that holds the lease
    agent_no int not null,
    phase smallint not null,          -- 0 unborn, 1 a task, 2 closed by a direct reply
    state smallint not null,          -- 1 submitted 2 working 3 completed 4 failed 5 canceled 6 input 7 rejected 8 auth
    hold smallint not null,           -- 0 released, 1 held, 2 its holder is known to be gone
    prune_stage smallint not null,    -- of closed records: 0 its log is whole, 1 compacted, 2 not a task
    running boolean not null,         -- whether a run is at work, or ought to be
    begun boolean not null,           -- whether the run has begun
    cancel_requested boolean not null,
    id text collate \"C\" not null,
    context_id text collate \"C\" not null,
    artifacts text not null,          -- [[id, parts, bytes, turn, attempt, ...], ...]
    primary key (task_no)
) with (fillfactor = 80);
create unique index task_by_id on task (id);
create index task_by_status on task (scope_no, status_at, task_no) where phase = 1;
create index task_by_context on task (context_id, scope_no, status_at, task_no) where phase = 1;
create index task_by_due on task (agent_no, claimable_at) where running;
create index task_by_cancel on task (task_no) where running and cancel_requested;
create index task_by_closing on task (prune_stage, closed_at) where closed_at is not null;

create table log (
    task_no bigint not null,
    version bigint not null,
    last_seq bigint not null,         -- the task's seq after this commit
    prev_story bigint not null,
    prev_artifact bigint not null,
    at bigint not null,
    nonce bigint not null,            -- drawn by the writer, which finds its commit by it when it lost the answer
    weight bigint not null,           -- what it counts of the limits of stored bytes, webhooks aside
    checksum bigint not null,
    visible int not null,             -- how many visible events it holds
    record text not null,             -- JSON
    primary key (task_no, version)
);

-- Contents too large for a record, in pieces that are numbered within their commit.
create table chunk (
    task_no bigint not null,
    version bigint not null,
    chunk_no int not null,
    part bigint not null,
    start bigint not null,            -- where in the artifact's content this piece begins
    checksum bigint not null,
    artifact_id text collate \"C\",   -- null for the part of a message
    bytes bytea not null,
    primary key (task_no, version, chunk_no)
);
alter table chunk alter column bytes set storage external;

-- One webhook of one task, and how far it has come.
create table push (
    push_no bigint generated always as identity primary key,
    task_no bigint not null,
    delivered_seq bigint not null,
    failures bigint not null default 0,
    due_at bigint,                    -- set while something waits or is under way: when it may be claimed (again)
    claimed_until bigint,             -- set while a delivery is under way
    last_attempt_at bigint,
    created_at bigint not null,
    checksum bigint not null,         -- of what was registered
    claimed_by int,
    parked boolean not null default false,
    config_id text collate \"C\" not null,
    url text not null,
    token text,                       -- this and auth_credentials are encrypted
    auth_scheme text,
    auth_credentials text,
    dialect text not null,
    last_error text
);
create unique index push_by_task on push (task_no, config_id);
create index push_by_due on push (due_at) where due_at is not null;

-- Messages accepted before.
create table accepted (
    key bytea primary key,
    digest bytea not null,
    task_no bigint not null,
    version bigint not null,
    turn bigint not null,
    after_seq bigint not null,
    expires bigint not null,
    checksum bigint not null
);
-- Rows come in the order in which they expire, so this index costs nearly nothing.
create index accepted_by_expiry on accepted using brin (expires) with (pages_per_range = 16);

-- Tasks that are gone but were too large to remove at once.
create table removal (task_no bigint primary key);

-- A chain of audit entries, each with the hash of the one before it. One process writes to a chain.
create table audit_chain (
    chain_no int generated always as identity primary key,
    id text collate \"C\" not null unique,
    anchor_no bigint not null,        -- the last entry that is no longer kept, 0 if all are
    anchor_hash bytea not null,
    last_no bigint not null,
    last_hash bytea not null
);
create table audit (
    chain_no int not null,
    entry_no bigint not null,         -- without gaps
    at bigint not null,
    record text not null,
    hash bytea not null,
    primary key (chain_no, entry_no)
);

",
    commit_v1!(),
    "-- Notes the time. If the clock was set back, all waiting times are shifted, so that each keeps its length.
create function observe_clock_v1(o_now bigint) returns bigint language plpgsql as $$
declare
    v_now bigint := coalesce(o_now, (extract(epoch from clock_timestamp()) * 1000)::bigint);
    v_seen bigint;
begin
    select value into v_seen from meta where name = 'seen_at';
    if v_seen - v_now >= 1000 then
        select value into v_seen from meta where name = 'seen_at' for update;
        if v_seen - v_now >= 1000 then
            update task set claimable_at = claimable_at - (v_seen - v_now) where running and hold <> 2;
            update push set due_at = due_at - (v_seen - v_now) where due_at is not null;
            update meta set value = v_now where name = 'seen_at';
        end if;
    elsif v_now > v_seen then
        update meta set value = v_now where name = 'seen_at' and value < v_now;
    end if;
    return v_now;
end $$;

-- The first commit after which the task's seq is above a number. Seq never decreases from one commit to the next, so a binary
-- search finds it; a task of a million commits takes twenty reads. Null if a commit is missing.
create function first_version_after_v1(f_task bigint, f_seq bigint, f_low bigint, f_high bigint) returns bigint
language plpgsql stable as $$
declare
    v_low bigint := f_low;
    v_high bigint := f_high;
    v_middle bigint;
    v_seq bigint;
begin
    while v_low < v_high loop
        v_middle := v_low + (v_high - v_low) / 2;
        select last_seq into v_seq from log where task_no = f_task and version = v_middle;
        if not found then
            return null;
        end if;
        if v_seq > f_seq then
            v_high := v_middle;
        else
            v_low := v_middle + 1;
        end if;
    end loop;
    return v_low;
end $$;

-- For people with a database shell.
create view a2a_tasks as
select task.id,
       task.context_id as context,
       scope.agent,
       (array['submitted', 'working', 'completed', 'failed', 'canceled', 'input-required', 'rejected', 'auth-required'])[task.state]
           as state,
       to_timestamp(task.status_at / 1000.0) as status_at,
       to_timestamp(task.created_at / 1000.0) as created_at,
       to_timestamp(task.updated_at / 1000.0) as updated_at,
       scope.tenant,
       scope.principal,
       task.turns as messages,
       task.seq as events,
       task.push_configs,
       task.running,
       task.attempt
  from task join scope using (scope_no)
 where task.phase = 1;
"
);

/// Webhooks are filed under the owner of their task, so that a claim can take some of each owner. A trigger does it, also for builds
/// that do not know the column.
const V2: &str = "
alter table push add column owner_no bigint not null default 0;
create function file_under_owner_v1() returns trigger language plpgsql as $$
begin
    new.owner_no := coalesce(
        (select scope.owner_no from task join scope using (scope_no) where task.task_no = new.task_no), 0);
    return new;
end $$;
create trigger file_under_owner before insert on push for each row execute function file_under_owner_v1();
update push set owner_no = scope.owner_no from task join scope using (scope_no) where task.task_no = push.task_no;
create index push_by_owner on push (owner_no, due_at) where due_at is not null;
";

/// Calls of agents to other agents; `calls.rs` reads and writes them. Builds of version 2 and before have none, and remove those of a task with it.
const V3: &str = "
create table call (
    call_no bigint generated always as identity primary key,
    task_no bigint not null references task on delete cascade, -- the task whose run made the call
    due_at bigint,                    -- set while it is looked after: when it may be claimed (again)
    set_back_ms bigint not null default 0, -- by how much due_at was shifted since the row was written
    revision bigint not null default 0,    -- grows with every change
    checksum bigint not null,
    holder int,                       -- the replica that looks after it
    id text collate \"C\" not null,
    status text collate \"C\" not null,
    record text not null              -- JSON
);
create unique index call_by_id on call (id);
create index call_by_task on call (task_no);
create index call_by_due on call (due_at) where due_at is not null;

-- As the function of version 1, with the times of calls.
create function observe_clock_v2(o_now bigint) returns bigint language plpgsql as $$
declare
    v_now bigint := coalesce(o_now, (extract(epoch from clock_timestamp()) * 1000)::bigint);
    v_seen bigint;
begin
    select value into v_seen from meta where name = 'seen_at';
    if v_seen - v_now >= 1000 then
        select value into v_seen from meta where name = 'seen_at' for update;
        if v_seen - v_now >= 1000 then
            update task set claimable_at = claimable_at - (v_seen - v_now) where running and hold <> 2;
            update push set due_at = due_at - (v_seen - v_now) where due_at is not null;
            update call set due_at = due_at - (v_seen - v_now), set_back_ms = set_back_ms + (v_seen - v_now)
             where due_at is not null;
            update meta set value = v_now where name = 'seen_at';
        end if;
    elsif v_now > v_seen then
        update meta set value = v_now where name = 'seen_at' and value < v_now;
    end if;
    return v_now;
end $$;

-- For people with a database shell: every call of an agent to another one.
create view a2a_calls as
select call.id,
       task.id as task,
       scope.agent,
       call.record::jsonb ->> 'agent' as called,
       call.record::jsonb ->> 'remote_task' as called_task,
       call.status,
       call.record::jsonb ->> 'error' as error,
       to_timestamp(call.due_at / 1000.0) as due_at,
       to_timestamp((call.record::jsonb ->> 'created_at')::bigint / 1000.0) as created_at,
       to_timestamp((call.record::jsonb ->> 'ended_at')::bigint / 1000.0) as ended_at,
       scope.tenant,
       scope.principal
  from call join task using (task_no) join scope using (scope_no);
";

/// Each call counts its bytes, which a trigger fills in, also for builds that do not know the column. What is added and removed all the time is
/// cleaned up after a share of the table that does not grow with it (docs/decisions/0023).
const V4: &str = "
alter table call add column bytes bigint not null default 0;
-- What CallRow::stored_bytes says: a fixed part, and what is delivered.
create function call_bytes_v1() returns trigger language plpgsql as $$
begin
    new.bytes := 1024 + coalesce(octet_length(new.record::json ->> 'outcome'), 0);
    return new;
exception when others then
    -- JSON may have a NUL character, which PostgreSQL does not read.
    new.bytes := 1024 + octet_length(new.record);
    return new;
end $$;
create trigger call_bytes before insert or update of record on call for each row execute function call_bytes_v1();
update call set record = record;

alter table log set (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_insert_scale_factor = 0.1, autovacuum_analyze_scale_factor = 0.05);
alter table chunk set (autovacuum_vacuum_scale_factor = 0.02);
alter table task set (autovacuum_vacuum_scale_factor = 0.02, autovacuum_analyze_scale_factor = 0.05);
alter table accepted set (autovacuum_vacuum_scale_factor = 0.05);
";

/// The function of commits that builds of this version call. Its plans use no statistics, so that they are right from the first row on.
const V5: &str = commit_v2!();
