//! The functions that write a batch of commits. The first was made with the first version of the schema and stays as it was; the
//! second is what this build calls.

/// The numbers of one commit in the array that a function gets, in the order of `input!`. `commit.rs` fills them.
pub(in crate::postgres) const COMMIT_NUMBERS: usize = 30;

/// The numbers of the commits from one place to another, by their names.
macro_rules! input {
    ($from:literal, $until:literal) => {
        concat!(
            "(select (o + 1)::int as ord, c_nums[o*30+1] as task_no, c_nums[o*30+2] as expected, c_nums[o*30+3] as fence_wanted,
                     c_nums[o*30+4] as flags, c_nums[o*30+5] as lease, c_nums[o*30+6] as lease_ms, c_nums[o*30+7] as scope_no,
                     c_nums[o*30+8] as agent_no, c_nums[o*30+9]::smallint as phase, c_nums[o*30+10]::smallint as state,
                     c_nums[o*30+11] as status_at, c_nums[o*30+12] as version, c_nums[o*30+13] as seq, c_nums[o*30+14] as turns,
                     c_nums[o*30+15] as turn, c_nums[o*30+16] as fence, c_nums[o*30+17] as attempt,
                     c_nums[o*30+18] as push_configs, c_nums[o*30+19] as deadline, c_nums[o*30+20] as checksum,
                     c_nums[o*30+21] as visible, c_nums[o*30+22] as at, c_nums[o*30+23] as nonce, c_nums[o*30+24] as weight,
                     c_nums[o*30+25] as log_checksum, c_nums[o*30+26] as origin_checksum, c_nums[o*30+27] as more,
                     c_nums[o*30+28] as task_bytes_max, c_nums[o*30+29] as owner_bytes_left, c_nums[o*30+30] as bytes_left
                from generate_series(", $from, ", ", $until, " - 1) as o)"
        )
    };
}

/// The parameters of both.
macro_rules! signature {
    () => {
        "
    c_count int, c_new int, c_nums bigint[], c_ids text[], c_contexts text[], c_artifacts text[], c_records text[],
    k_ord int[], k_keys bytea[], k_digests bytea[], k_nums bigint[],
    b_ord int[], b_nums bigint[], b_artifacts text[], b_bytes bytea[],
    w_ord int[], w_nums bigint[], w_configs text[], w_urls text[], w_tokens text[], w_schemes text[], w_credentials text[],
    w_dialects text[], c_marks boolean, c_holder int, c_now bigint, c_webhook_bytes bigint, c_ending_bytes bigint,
    out statuses smallint[], out befores smallint[], out changes bigint[]
) language plpgsql as $$
"
    };
}

/// What a new row of `task` holds, but for its texts.
macro_rules! new_values {
    () => {
        "i.task_no, i.scope_no, i.at, i.status_at, i.version, i.seq, i.turns, i.turn, i.fence, i.attempt,
                       i.push_configs, case when i.flags & 32 <> 0 then i.deadline end,
                       case when i.flags & 64 <> 0 then i.version else 0 end,
                       case when i.flags & 128 <> 0 then i.version else 0 end,
                       case when i.flags & 256 <> 0 then i.version else 0 end,
                       case when i.flags & 1 = 0 then null when i.lease = 0 then v_now else v_now + i.lease_ms end,
                       i.at, case when i.flags & 16 <> 0 then i.at end, i.more, i.checksum, i.origin_checksum,
                       case when i.flags & 1 <> 0 and i.lease <> 0 then c_holder end, i.agent_no::int, i.phase, i.state,
                       case when i.flags & 1 <> 0 and i.lease <> 0 then 1 else 0 end, case when i.phase = 1 then 0 else 2 end,
                       i.flags & 1 <> 0, i.flags & 1 <> 0 and i.lease = 1 and i.flags & 4 = 0, i.flags & 2 <> 0"
    };
}

/// What a commit changes in a row of `task`, but for its texts.
macro_rules! changed_values {
    () => {
        "status_at = i.status_at, version = i.version, seq = i.seq, turns = i.turns, turn = i.turn, fence = i.fence,
               attempt = i.attempt, push_configs = i.push_configs, deadline = case when i.flags & 32 <> 0 then i.deadline end,
               story_version = case when i.flags & 64 <> 0 then i.version else t.story_version end,
               artifact_version = case when i.flags & 128 <> 0 then i.version else t.artifact_version end,
               status_version = case when i.flags & 256 <> 0 then i.version else t.status_version end,
               claimable_at = case when i.flags & 1 = 0 then null
                                   when i.lease <> 0 then v_now + i.lease_ms
                                   when not t.running then v_now
                                   when t.hold = 0 and i.flags & 2 <> 0 then least(t.claimable_at, v_now)
                                   else t.claimable_at end,
               updated_at = i.at,
               closed_at = coalesce(t.closed_at, case when i.flags & 16 <> 0 then i.at end),
               bytes = t.bytes + v_changes[i.ord],
               checksum = i.checksum,
               holder = case when i.flags & 1 = 0 then null when i.lease <> 0 then c_holder when t.running then t.holder end,
               phase = i.phase, state = i.state,
               hold = case when i.flags & 1 = 0 then 0 when i.lease <> 0 then 1 when t.running then t.hold else 0 end,
               prune_stage = case when i.phase = 1 then 0 else 2 end,
               running = i.flags & 1 <> 0,
               begun = case when i.flags & 1 = 0 then false when i.lease = 1 then i.flags & 4 = 0 when i.lease = 2 then false
                            else t.running and t.begun end,
               cancel_requested = i.flags & 2 <> 0"
    };
}

/// What is the same in both after tasks and log: chunks, webhooks, and the answer.
macro_rules! contents {
    () => {
        concat!("    if cardinality(b_ord) > 0 then
        insert into chunk (task_no, version, chunk_no, part, start, checksum, artifact_id, bytes)
        select c_nums[(b.ord-1)*30+1], c_nums[(b.ord-1)*30+12], b_nums[(b.place-1)*4+1]::int, b_nums[(b.place-1)*4+2],
               b_nums[(b.place-1)*4+3], b_nums[(b.place-1)*4+4], b.artifact_id, b.bytes
          from unnest(b_ord, b_artifacts, b_bytes) with ordinality as b(ord, artifact_id, bytes, place)
         where v_statuses[b.ord] = 0;
    end if;

    if cardinality(w_ord) > 0 then
        delete from push using unnest(w_ord, w_configs) as w(ord, config_id)
         where push.task_no = c_nums[(w.ord-1)*30+1] and push.config_id = w.config_id and v_statuses[w.ord] = 0;
        insert into push (task_no, delivered_seq, created_at, checksum, config_id, url, token, auth_scheme, auth_credentials, dialect)
        select c_nums[(w.ord-1)*30+1], w_nums[(w.place-1)*2+1], v_now, w_nums[(w.place-1)*2+2], w.config_id, w.url, w.token,
               w.scheme, w.credentials, w.dialect
          from unnest(w_ord, w_configs, w_urls, w_tokens, w_schemes, w_credentials, w_dialects) with ordinality
               as w(ord, config_id, url, token, scheme, credentials, dialect, place)
         where v_statuses[w.ord] = 0 and w.url is not null
         order by w.place;
    end if;

    if c_marks then
        update push set due_at = v_now
          from ", input!("0", "c_count"), " as i
         where push.task_no = i.task_no and i.flags & 512 <> 0 and v_statuses[i.ord] = 0
           and push.due_at is null and not push.parked and push.delivered_seq < i.seq;
    end if;

    statuses := v_statuses;
    befores := v_befores;
    changes := v_changes;
end $$;

")
    };
}

macro_rules! commit_v1 {
    () => {
        concat!("-- Writes the commits of a batch, each on its own terms: a refused one has changed nothing, and the others are written. New records
-- come first. Locks are taken in one order, so that two batches never wait for each other: tasks by number, keys, new ids.
-- Answers for each commit: 0 written, 1 conflict, 2 fenced, 3 its idempotency key is taken, 4 the task, 5 its owner or 6 all tasks
-- would have too many bytes; the state that the task was listed under before, -1 for none; and by how many bytes a task that was
-- there before grows. New records were held against the limits of bytes before they came here.
create function commit_v1(", signature!(), "#variable_conflict use_column
declare
    v_now bigint := coalesce(c_now, (extract(epoch from clock_timestamp()) * 1000)::bigint);
    v_held bigint;
    v_statuses smallint[] := array_fill(0::smallint, array[c_new]);
    v_befores smallint[] := array_fill((-1)::smallint, array[c_new]);
    v_changes bigint[] := array_fill(0::bigint, array[c_new]);
    v_checked smallint[];
    v_listed smallint[];
    v_grown bigint[];
    v_lost int[];
    v_ord int;
begin
    if c_new < c_count then
        with i as materialized ", input!("c_new", "c_count"), ",
             t as materialized (
                select task_no, version, fence, running, claimable_at, hold, begun, phase, state, bytes, push_configs
                  from task where task_no = any (array(select i.task_no from i)) order by task_no for update)
        select array_agg((case when t.task_no is null then 1
                              when i.fence_wanted >= 0 and i.fence_wanted <> t.fence then 2
                              when i.expected <> t.version then 1
                              when i.lease = 2 and not (t.running and t.claimable_at <= v_now
                                                        and (t.hold <> 0 and t.begun) = (i.flags & 8 <> 0)) then 1
                              when i.flags & 1024 = 0 and g.change <= c_ending_bytes then 0
                              when greatest(g.change, 0) > i.task_bytes_max - t.bytes then 4
                              when greatest(g.change, 0) > i.owner_bytes_left then 5
                              when greatest(g.change, 0) > i.bytes_left then 6
                              else 0 end)::smallint order by i.ord),
               array_agg((case when t.phase = 1 then t.state else -1 end)::smallint order by i.ord),
               array_agg(coalesce(g.change, 0) order by i.ord)
          into v_checked, v_listed, v_grown
          from i left join t on t.task_no = i.task_no
          cross join lateral (select i.more + (i.push_configs - t.push_configs) * c_webhook_bytes as change) as g;
        v_statuses := v_statuses || v_checked;
        v_befores := v_befores || v_listed;
        v_changes := v_changes || v_grown;
    end if;

    if cardinality(k_ord) > 0 then
        select value into v_held from meta where name = 'held_until';
        with k as materialized (
                select k.ord, k.key, k.digest, c_nums[(k.ord-1)*30+1] as task_no, c_nums[(k.ord-1)*30+12] as version,
                       k_nums[(k.place-1)*4+1] as turn, k_nums[(k.place-1)*4+2] as after_seq,
                       k_nums[(k.place-1)*4+3] as expires, k_nums[(k.place-1)*4+4] as checksum
                  from unnest(k_ord, k_keys, k_digests) with ordinality as k(ord, key, digest, place)
                 where v_statuses[k.ord] = 0),
             won as (
                insert into accepted (key, digest, task_no, version, turn, after_seq, expires, checksum)
                select key, digest, task_no, version, turn, after_seq, expires, checksum from k order by key
                on conflict (key) do update
                   set digest = excluded.digest, task_no = excluded.task_no, version = excluded.version, turn = excluded.turn,
                       after_seq = excluded.after_seq, expires = excluded.expires, checksum = excluded.checksum
                 where accepted.expires <= v_now and v_held <= v_now
                returning key)
        select array_agg(k.ord) into v_lost from k where not exists (select 1 from won where won.key = k.key);
        foreach v_ord in array coalesce(v_lost, '{}') loop
            v_statuses[v_ord] := 3;
        end loop;
    end if;

    if c_new > 0 then
        with i as materialized ", input!("0", "c_new"), ",
             done as (
                insert into task (
                    task_no, scope_no, created_at, status_at, version, seq, turns, turn, fence, attempt, push_configs, deadline,
                    story_version, artifact_version, status_version, claimable_at, updated_at, closed_at, bytes, checksum,
                    origin_checksum, holder, agent_no, phase, state, hold, prune_stage, running, begun, cancel_requested, id,
                    context_id, artifacts)
                select ", new_values!(), ",
                       x.id, x.context_id, x.artifacts
                  from i join unnest(c_ids, c_contexts, c_artifacts) with ordinality as x(id, context_id, artifacts, ord)
                    on x.ord = i.ord
                 where v_statuses[i.ord] = 0
                 order by x.id
                on conflict do nothing
                returning task_no)
        select array_agg(i.ord) into v_lost from i
         where v_statuses[i.ord] = 0 and not exists (select 1 from done where done.task_no = i.task_no);
        foreach v_ord in array coalesce(v_lost, '{}') loop
            v_statuses[v_ord] := 1;
            delete from accepted using unnest(k_ord, k_keys) as k(ord, key)
             where k.ord = v_ord and accepted.key = k.key and accepted.task_no = c_nums[(v_ord-1)*30+1];
        end loop;
    end if;

    insert into log (task_no, version, last_seq, prev_story, prev_artifact, at, nonce, weight, checksum, visible, record)
    select i.task_no, i.version, i.seq, coalesce(t.story_version, 0), coalesce(t.artifact_version, 0), i.at, i.nonce, i.weight,
           i.log_checksum, i.visible::int, x.record
      from ", input!("0", "c_count"), " as i
      join unnest(c_records) with ordinality as x(record, ord) on x.ord = i.ord
      left join task t on i.ord > c_new and t.task_no = i.task_no
     where v_statuses[i.ord] = 0;

    if c_new < c_count then
        update task t
           set ", changed_values!(), ",
               artifacts = x.artifacts
          from ", input!("c_new", "c_count"), " as i
          join unnest(c_artifacts) with ordinality as x(artifacts, ord) on x.ord = i.ord
         where t.task_no = i.task_no and v_statuses[i.ord] = 0;
    end if;

", contents!())
    };
}

macro_rules! commit_v2 {
    () => {
        concat!("-- As `commit_v1`, for batches whose order is the order of locks: new records by id, then others by number, and keys by key. Nothing
-- is joined but tasks by their number. So the connections of the writers need no statistics to plan it: they use indexes and loops
-- (`Plans::Once` in `connect.rs`), and what a commit costs does not depend on how many tasks there were when it was planned.
create function commit_v2(", signature!(), "#variable_conflict use_column
declare
    v_now bigint := coalesce(c_now, (extract(epoch from clock_timestamp()) * 1000)::bigint);
    v_held bigint;
    v_statuses smallint[] := array_fill(0::smallint, array[c_new]);
    v_befores smallint[] := array_fill((-1)::smallint, array[c_new]);
    v_changes bigint[] := array_fill(0::bigint, array[c_new]);
    v_stories bigint[] := array_fill(0::bigint, array[c_new]);
    v_artifacts bigint[] := array_fill(0::bigint, array[c_new]);
    v_keys bytea[];
    v_tasks bigint[];
    v_ord int;
begin
    if c_new < c_count then
        select v_statuses || array_agg(s.status), v_befores || array_agg(s.listed), v_changes || array_agg(s.change),
               v_stories || array_agg(s.story), v_artifacts || array_agg(s.artifact)
          into v_statuses, v_befores, v_changes, v_stories, v_artifacts
          from (select (case when t.task_no is null then 1
                             when i.fence_wanted >= 0 and i.fence_wanted <> t.fence then 2
                             when i.expected <> t.version then 1
                             when i.lease = 2 and not (t.running and t.claimable_at <= v_now
                                                       and (t.hold <> 0 and t.begun) = (i.flags & 8 <> 0)) then 1
                             when i.flags & 1024 = 0 and g.change <= c_ending_bytes then 0
                             when greatest(g.change, 0) > i.task_bytes_max - t.bytes then 4
                             when greatest(g.change, 0) > i.owner_bytes_left then 5
                             when greatest(g.change, 0) > i.bytes_left then 6
                             else 0 end)::smallint as status,
                       (case when t.phase = 1 then t.state else -1 end)::smallint as listed, coalesce(g.change, 0) as change,
                       coalesce(t.story_version, 0) as story, coalesce(t.artifact_version, 0) as artifact
                  from ", input!("c_new", "c_count"), " as i
                  left join lateral (
                        select task_no, version, fence, running, claimable_at, hold, begun, phase, state, bytes, push_configs,
                               story_version, artifact_version
                          from task where task_no = i.task_no for update) as t on true
                  cross join lateral (
                        select i.more + (i.push_configs - t.push_configs) * c_webhook_bytes as change) as g) as s;
    end if;

    if cardinality(k_ord) > 0 then
        select value into v_held from meta where name = 'held_until';
        with won as (
                insert into accepted (key, digest, task_no, version, turn, after_seq, expires, checksum)
                select k_keys[p], k_digests[p], c_nums[(k_ord[p]-1)*30+1], c_nums[(k_ord[p]-1)*30+12],
                       k_nums[(p-1)*4+1], k_nums[(p-1)*4+2], k_nums[(p-1)*4+3], k_nums[(p-1)*4+4]
                  from generate_series(1, cardinality(k_ord)) as p
                 where v_statuses[k_ord[p]] = 0
                on conflict (key) do update
                   set digest = excluded.digest, task_no = excluded.task_no, version = excluded.version, turn = excluded.turn,
                       after_seq = excluded.after_seq, expires = excluded.expires, checksum = excluded.checksum
                 where accepted.expires <= v_now and v_held <= v_now
                returning key)
        select coalesce(array_agg(key), '{}') into v_keys from won;
        if cardinality(v_keys) < cardinality(k_ord) then
            for v_ord in
                select k_ord[p] from generate_series(1, cardinality(k_ord)) as p
                 where v_statuses[k_ord[p]] = 0 and k_keys[p] <> all (v_keys)
            loop
                v_statuses[v_ord] := 3;
            end loop;
        end if;
    end if;

    if c_new > 0 then
        with done as (
                insert into task (
                    task_no, scope_no, created_at, status_at, version, seq, turns, turn, fence, attempt, push_configs, deadline,
                    story_version, artifact_version, status_version, claimable_at, updated_at, closed_at, bytes, checksum,
                    origin_checksum, holder, agent_no, phase, state, hold, prune_stage, running, begun, cancel_requested, id,
                    context_id, artifacts)
                select ", new_values!(), ",
                       c_ids[i.ord], c_contexts[i.ord], c_artifacts[i.ord]
                  from ", input!("0", "c_new"), " as i
                 where v_statuses[i.ord] = 0
                on conflict do nothing
                returning task_no)
        select coalesce(array_agg(task_no), '{}') into v_tasks from done;
        if cardinality(v_tasks) < c_new then
            for v_ord in
                select i.ord from ", input!("0", "c_new"), " as i
                 where v_statuses[i.ord] = 0 and i.task_no <> all (v_tasks)
            loop
                v_statuses[v_ord] := 1;
                delete from accepted using unnest(k_ord, k_keys) as k(ord, key)
                 where k.ord = v_ord and accepted.key = k.key and accepted.task_no = c_nums[(v_ord-1)*30+1];
            end loop;
        end if;
    end if;

    insert into log (task_no, version, last_seq, prev_story, prev_artifact, at, nonce, weight, checksum, visible, record)
    select i.task_no, i.version, i.seq, v_stories[i.ord], v_artifacts[i.ord], i.at, i.nonce, i.weight, i.log_checksum, i.visible::int,
           c_records[i.ord]
      from ", input!("0", "c_count"), " as i
     where v_statuses[i.ord] = 0;

    if c_new < c_count then
        update task t
           set ", changed_values!(), ",
               artifacts = c_artifacts[i.ord]
          from ", input!("c_new", "c_count"), " as i
         where t.task_no = i.task_no and v_statuses[i.ord] = 0;
    end if;

", contents!())
    };
}
