-- What servers of schema version 3 ask of PostgreSQL: what they sent in a run with sends, streams, lists, cancels, webhooks, a killed server and
-- retention, and what they send less often. Later versions of the schema must take all of it as long as they say that version 3 works with them.
delete from accepted a where a.key = $1
and not exists (select 1 from task t where t.task_no = a.task_no) returning 1
;;
delete from removal where task_no = $1::bigint returning 1
;;
insert into agent (name) values ($1) on conflict (name) do nothing
;;
insert into audit (chain_no, entry_no, at, record, hash)
select $1, e.no, e.at, e.record, e.hash
from unnest($2::bigint[], $3::bigint[], $4::text[], $5::bytea[]) as e(no, at, record, hash)
;;
insert into audit_chain (id, anchor_no, anchor_hash, last_no, last_hash)
values ($1, 0, $2, 0, $2) on conflict (id) do nothing
;;
insert into call (id, task_no, status, due_at, record, checksum, holder) values ($1, $2, $3, $4, $5, $6, $7)
on conflict (id) do nothing returning 1
;;
insert into owner (tenant, principal) values ($1, $2) on conflict (tenant, principal) do nothing
;;
insert into replica (name, started_at)
values ($2, coalesce($1::bigint, (extract(epoch from clock_timestamp()) * 1000)::bigint))
on conflict (name) do update set started_at = excluded.started_at returning replica_no, started_at
;;
insert into scope (tenant, principal, agent, agent_no, owner_no)
select $1::text, $2::text, $3::text, agent_no, owner_no from agent, owner
where agent.name = $3::text and owner.tenant = $1::text and owner.principal = $2::text
on conflict (tenant, principal, agent) do nothing
;;
select 'commits', l.task_no from log l where not exists (select 1 from task t where t.task_no = l.task_no)
and not exists (select 1 from removal r where r.task_no = l.task_no) group by l.task_no
union all
select 'pieces of content', c.task_no from chunk c where not exists (select 1 from task t where t.task_no = c.task_no)
and not exists (select 1 from removal r where r.task_no = c.task_no) group by c.task_no
union all
select 'webhooks', p.task_no from push p where not exists (select 1 from task t where t.task_no = p.task_no)
and not exists (select 1 from removal r where r.task_no = p.task_no) group by p.task_no
;;
select a.hash from audit a join audit_chain c using (chain_no) where c.id = $1 and a.entry_no = $2
;;
select c.id, c.task_no, c.status, c.due_at, c.record, c.checksum, c.set_back_ms, c.revision, c.holder, t.id, coalesce($1::bigint, (extract(epoch from clock_timestamp()) * 1000)::bigint), s.tenant, s.principal, s.agent from call c join task t using (task_no) join scope s using (scope_no) where c.due_at <= coalesce($1::bigint, (extract(epoch from clock_timestamp()) * 1000)::bigint) and ($2::text is null or c.id = $2) order by c.due_at limit $3::bigint
;;
select c.id, c.task_no, c.status, c.due_at, c.record, c.checksum, c.set_back_ms, c.revision, c.holder, t.id, coalesce($1::bigint, (extract(epoch from clock_timestamp()) * 1000)::bigint), s.tenant, s.principal, s.agent from call c join task t using (task_no) join scope s using (scope_no) where c.holder = $2::int and c.due_at is not null
;;
select c.id, c.task_no, c.status, c.due_at, c.record, c.checksum, c.set_back_ms, c.revision, c.holder, t.id, coalesce($1::bigint, (extract(epoch from clock_timestamp()) * 1000)::bigint), s.tenant, s.principal, s.agent from call c join task t using (task_no) join scope s using (scope_no) where c.id > $2 order by c.id limit $3::bigint
;;
select c.version, c.chunk_no, c.checksum, c.bytes
from unnest($2::bigint[], $3::int[], $4::int[]) as r(version, first_no, end_no)
join chunk c on c.task_no = $1::bigint and c.version = r.version and c.chunk_no >= r.first_no and c.chunk_no < r.end_no
;;
select chain_no, id, anchor_no, anchor_hash, last_no from audit_chain order by chain_no
;;
select chunk_no, checksum, bytes from chunk
where task_no = $1::bigint and version = $2::bigint order by chunk_no
;;
select count(*) from task t where t.scope_no = $1::bigint and t.phase = 1 and t.status_at >= $2::bigint
and ($3::smallint is null or t.state = $3) and $4::text is null
;;
select due_at from push where due_at is not null order by due_at limit 1
;;
select floor_seq, seq, first_version_after_v1(task_no, $2::bigint, floor_version + 1, version)
from task where task_no = $1::bigint
;;
select g.phase, g.state, g.records, g.bytes, s.owner_no
from (select phase, state, scope_no, count(*) as records, coalesce(sum(bytes), 0)::bigint as bytes
from task group by grouping sets ((phase, state), (scope_no))) g
left join scope s on s.scope_no = g.scope_no
;;
select key, digest, task_no, turn, after_seq, expires, checksum from accepted
where key > $1 order by key limit $2::bigint
;;
select l.task_no, l.version, l.last_seq, l.visible, l.at, l.nonce, l.prev_story, l.prev_artifact, l.checksum, l.record from (select l.*, sum(l.weight) over (order by l.version) - l.weight as before
from (select * from log where task_no = $1::bigint and version >= $2::bigint and visible > 0
order by version limit $3::bigint) l) l
where l.before < $4::bigint order by l.version
;;
select l.task_no, l.version, l.last_seq, l.visible, l.at, l.nonce, l.prev_story, l.prev_artifact, l.checksum, l.record from log l where l.task_no = $1::bigint and l.version > $2::bigint order by l.version limit $3::bigint
;;
select min(due_at) from call where due_at is not null
;;
select name, value from meta
;;
select nextval('task_block')
;;
select observe_clock_v2($1)
;;
select p.push_no, p.task_no, p.config_id, p.url, p.token, p.auth_scheme, p.auth_credentials, p.dialect, p.checksum from push p where p.push_no > $1::bigint order by p.push_no limit $2::bigint
;;
select p.push_no, p.task_no, p.config_id, p.url, p.token, p.auth_scheme, p.auth_credentials, p.dialect, p.checksum, t.id from push p join task t using (task_no) where p.task_no = $1::bigint order by p.push_no
;;
select s.owner_no from task t join scope s using (scope_no) where t.task_no = $1::bigint
;;
select scope_no, agent_no, owner_no from scope where tenant = $1 and principal = $2 and agent = $3
;;
select statuses, befores, changes from commit_v1($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21, $22, $23, $24, $25, $26, $27, $28)
;;
select t.id, a.digest, a.turn, a.after_seq, a.expires, a.task_no, a.checksum from accepted a join task t using (task_no)
where a.key = $2 and (a.expires > coalesce($1::bigint, (extract(epoch from clock_timestamp()) * 1000)::bigint) or coalesce($1::bigint, (extract(epoch from clock_timestamp()) * 1000)::bigint) < (select value from meta where name = 'held_until'))
;;
select t.task_no, t.id, t.context_id, t.phase, t.state, t.status_at, t.version, t.seq, t.turns, t.turn, t.fence, t.attempt, t.running, t.cancel_requested, t.push_configs, t.deadline, t.artifacts, t.story_version, t.artifact_version, t.status_version, t.floor_seq, t.floor_version, t.checksum, t.scope_no, t.origin_checksum from task t join scope s using (scope_no)
where t.id = $1 and s.tenant = $2 and s.principal = $3 and s.agent = $4
;;
select t.task_no, t.id, t.context_id, t.phase, t.state, t.status_at, t.version, t.seq, t.turns, t.turn, t.fence, t.attempt, t.running, t.cancel_requested, t.push_configs, t.deadline, t.artifacts, t.story_version, t.artifact_version, t.status_version, t.floor_seq, t.floor_version, t.checksum, t.scope_no, t.origin_checksum from task t where t.scope_no = $1::bigint and t.phase = 1 and t.status_at >= $2::bigint
and ($3::smallint is null or t.state = $3) and $4::text is null and (t.status_at, t.task_no) < ($5::bigint, $6::bigint)
order by t.status_at desc, t.task_no desc limit $7::bigint
;;
select t.task_no, t.id, t.context_id, t.phase, t.state, t.status_at, t.version, t.seq, t.turns, t.turn, t.fence, t.attempt, t.running, t.cancel_requested, t.push_configs, t.deadline, t.artifacts, t.story_version, t.artifact_version, t.status_version, t.floor_seq, t.floor_version, t.checksum, t.scope_no, t.origin_checksum, s.tenant, s.principal, s.agent from task t join scope s using (scope_no)
where t.task_no > $1::bigint order by t.task_no limit $2::bigint
;;
select t.task_no, t.id, t.context_id, t.phase, t.state, t.status_at, t.version, t.seq, t.turns, t.turn, t.fence, t.attempt, t.running, t.cancel_requested, t.push_configs, t.deadline, t.artifacts, t.story_version, t.artifact_version, t.status_version, t.floor_seq, t.floor_version, t.checksum, t.scope_no, t.origin_checksum, s.tenant, s.principal, s.agent, (t.hold <> 0 and t.begun)
from agent a
cross join lateral (select * from task where task.agent_no = a.agent_no and task.running and task.claimable_at <= coalesce($1::bigint, (extract(epoch from clock_timestamp()) * 1000)::bigint) order by task.claimable_at limit $3::bigint) t
join scope s on s.scope_no = t.scope_no
where a.name = any ($2::text[])
order by t.claimable_at, t.task_no limit $3::bigint
;;
select t.task_no, t.id, t.context_id, t.phase, t.state, t.status_at, t.version, t.seq, t.turns, t.turn, t.fence, t.attempt, t.running, t.cancel_requested, t.push_configs, t.deadline, t.artifacts, t.story_version, t.artifact_version, t.status_version, t.floor_seq, t.floor_version, t.checksum, t.scope_no, t.origin_checksum, s.tenant, s.principal, s.agent, (t.hold <> 0 and t.begun)
from task t join scope s using (scope_no)
where t.running and t.claimable_at <= coalesce($1::bigint, (extract(epoch from clock_timestamp()) * 1000)::bigint) and t.task_no > $3::bigint
and t.agent_no not in (select agent_no from agent where name = any ($2::text[]))
order by t.task_no limit $4::bigint
;;
select task_no from removal limit $1::bigint for update skip locked
;;
select task_no from task where running and cancel_requested order by task_no
;;
update audit_chain set last_no = $2, last_hash = $3 where chain_no = $1 and last_no = $4
;;
update call set status = $3, due_at = $4, record = $5, checksum = $6, holder = $7, set_back_ms = 0,
revision = revision + 1
where id = $1 and revision = $2::bigint returning 1
;;
update meta set value = value where name = 'seen_at' returning 1
;;
update push set due_at = $2, claimed_until = null, claimed_by = null
where due_at is not null and claimed_until is not null and claimed_by = $1
;;
update task set hold = 2, claimable_at = -9223372036854775808 where running and hold = 1 and holder = $1
;;
update task set prune_stage = 1 where task_no = $1::bigint and version = $2::bigint and prune_stage = 0
;;
with chain as (select chain_no, anchor_no, last_no from audit_chain where id = $1 for update),
kept as (select min(a.entry_no) as no from audit a join chain using (chain_no)
where a.at > $2 and a.entry_no > chain.last_no - $3 and a.entry_no <= chain.anchor_no + $4),
gone as (delete from audit a using chain
where a.chain_no = chain.chain_no and a.entry_no <= chain.anchor_no + $4
and a.entry_no < coalesce((select no from kept), 9223372036854775807)
returning a.entry_no, a.hash),
newest as (select entry_no, hash from gone order by entry_no desc limit 1),
moved as (update audit_chain c set anchor_no = newest.entry_no, anchor_hash = newest.hash
from chain, newest where c.chain_no = chain.chain_no returning 1)
select count(*) from gone
;;
with gone as (select key from accepted where expires <= $1::bigint limit $2::bigint for update skip locked)
delete from accepted a using gone where a.key = gone.key returning 1
;;
with gone as (select t.task_no from task t where ((t.prune_stage in (0, 1) and t.closed_at <= $2::bigint) or (t.prune_stage = 2 and t.closed_at <= $3::bigint))
and t.closed_at is not null and not exists (select 1 from push p where p.task_no = t.task_no and p.due_at is not null)
limit $1::bigint for update of t skip locked),
pushes as (delete from push p using gone where p.task_no = gone.task_no returning 1),
marked as (insert into removal select task_no from gone on conflict do nothing returning 1)
delete from task t using gone where t.task_no = gone.task_no
returning t.task_no, t.phase, t.state, t.bytes,
coalesce((select s.owner_no from scope s where s.scope_no = t.scope_no), 0)
;;
with gone as (select task_no, version from log where task_no = $1::bigint limit $2::bigint)
delete from log l using gone where l.task_no = gone.task_no and l.version = gone.version returning 1
;;
with gone as (select task_no, version, chunk_no from chunk where task_no = $1::bigint limit $2::bigint)
delete from chunk c using gone
where c.task_no = gone.task_no and c.version = gone.version and c.chunk_no = gone.chunk_no returning 1
;;
with h as (select * from unnest($1::bigint[], $2::bigint[]) as h(task_no, fence)),
l as (select t.task_no from task t join h using (task_no)
where t.running and t.hold = 1 and t.fence = h.fence order by t.task_no for update of t)
update task set begun = true from l where task.task_no = l.task_no returning task.task_no
;;
with h as (select * from unnest($2::bigint[], $3::bigint[]) as h(task_no, fence)),
l as (select t.task_no from task t join h using (task_no)
where t.running and t.hold = 1 and t.fence = h.fence order by t.task_no for update of t)
update task set claimable_at = coalesce($1::bigint, (extract(epoch from clock_timestamp()) * 1000)::bigint) + $4::bigint from l where task.task_no = l.task_no returning task.task_no
;;
with old as (select t.task_no, t.version from task t
where t.prune_stage = 0 and t.closed_at is not null and t.closed_at <= $2::bigint
and not exists (select 1 from push p where p.task_no = t.task_no and p.delivered_seq < t.seq)
limit $1::bigint for update of t skip locked)
update task t set floor_seq = t.seq, floor_version = t.version from old where t.task_no = old.task_no
returning t.task_no, t.version, t.story_version, t.artifact_version, t.status_version
;;
with recursive clock as materialized (select coalesce($1::bigint, (extract(epoch from clock_timestamp()) * 1000)::bigint) as at), walk as (
(select owner_no, due_at, 1::bigint as place from push
where due_at is not null and owner_no > $5::bigint order by owner_no, due_at limit 1)
union all
select next.owner_no, next.due_at, walk.place + 1 from walk cross join lateral
(select owner_no, due_at from push
where due_at is not null and owner_no > walk.owner_no order by owner_no, due_at limit 1) as next
where walk.place < $2::bigint
), due as materialized (select d.push_no, d.due_at, o.share
from (select owner_no, greatest(1, $2::bigint / count(*) over ())::bigint as share from walk
where due_at <= (select at from clock)) as o cross join lateral
(select push_no, due_at from push where owner_no = o.owner_no and due_at <= (select at from clock)
order by due_at, push_no limit o.share for update skip locked) as d), claimed as (
update push p set due_at = clock.at + $3::bigint, claimed_until = clock.at + $3::bigint, claimed_by = $4::int
from clock, due, task t, scope s
where p.push_no = due.push_no and t.task_no = p.task_no and s.scope_no = t.scope_no
returning p.push_no, p.task_no, p.config_id, p.url, p.token, p.auth_scheme, p.auth_credentials, p.dialect, p.checksum, p.delivered_seq, p.failures, p.claimed_until, due.due_at, t.id, t.context_id, t.seq, s.tenant, s.principal, s.agent, p.owner_no, due.share) select claimed.*, walked.last_owner, walked.owners
from (select coalesce(max(owner_no), -1) as last_owner, count(*) as owners from walk) as walked
left join claimed on true
;;
with recursive kept as (
select $2::bigint as story, $3::bigint as artifact, $4::bigint as status, null::bigint as version
union all
select case when k.story = l.version then l.prev_story else k.story end,
case when k.artifact = l.version then l.prev_artifact else k.artifact end,
case when k.status = l.version then 0 else k.status end,
l.version
from kept k join log l on l.task_no = $1::bigint and l.version = greatest(k.story, k.artifact, k.status)),
gone as (select l.version from log l
where l.task_no = $1::bigint and l.version < $5::bigint
and not exists (select 1 from kept where kept.version = l.version)
limit $6::bigint),
chunks as (delete from chunk c using gone where c.task_no = $1::bigint and c.version = gone.version returning 1),
freed as (delete from log l using gone where l.task_no = $1::bigint and l.version = gone.version returning l.weight),
sums as (select count(*) as rows, coalesce(sum(weight), 0)::bigint as bytes from freed)
update task t set bytes = t.bytes - sums.bytes from sums where t.task_no = $1::bigint
returning sums.rows, sums.bytes, coalesce((select s.owner_no from scope s where s.scope_no = t.scope_no), 0)
;;
with recursive walk as (
select $2::bigint as story, $3::bigint as artifact, $4::bigint as status, 0 as n, null::bigint as version,
null::bigint as last_seq, null::int as visible, null::bigint as at, null::bigint as nonce, null::bigint as prev_story,
null::bigint as prev_artifact, null::bigint as checksum, null::text as record
union all
select case when w.story = l.version then l.prev_story else w.story end,
case when w.artifact = l.version then l.prev_artifact else w.artifact end,
case when w.status = l.version then 0 else w.status end,
w.n + 1, l.version, l.last_seq, l.visible, l.at, l.nonce, l.prev_story, l.prev_artifact, l.checksum, l.record
from walk w join log l on l.task_no = $1::bigint and l.version = greatest(w.story, w.artifact, w.status)
where w.n < $5::int)
select $1::bigint, version, last_seq, visible, at, nonce, prev_story, prev_artifact, checksum, record, story, artifact, status
from walk where n > 0 order by n
;;
with s as (select * from unnest($2::bigint[], $3::bigint[], $4::smallint[], $5::bigint[], $6::bigint[], $7::text[])
as s(push_no, until, kind, seq, wait_ms, error)),
t as materialized (select task_no, seq from task
where task_no in (select push.task_no from push join s using (push_no))
order by task_no for update),
l as materialized (select push_no from push where push_no in (select push_no from s) order by push_no for update)
update push p
set delivered_seq = greatest(p.delivered_seq, s.seq),
failures = case when p.claimed_until is distinct from s.until then p.failures
when s.kind = 0 then 0
when s.kind = 1 and s.seq > p.delivered_seq then 1
when s.kind = 2 and s.seq > p.delivered_seq then 0
when s.kind = 2 then p.failures
else p.failures + 1 end,
last_error = case when p.claimed_until is distinct from s.until then p.last_error
when s.kind = 0 then null when s.kind = 2 then p.last_error else s.error end,
last_attempt_at = case when p.claimed_until is distinct from s.until or s.kind = 2 then p.last_attempt_at else coalesce($1::bigint, (extract(epoch from clock_timestamp()) * 1000)::bigint) end,
parked = p.parked or (p.claimed_until is not distinct from s.until and s.kind = 3),
due_at = case when p.claimed_until is distinct from s.until then p.due_at
when s.kind = 0 then case when greatest(p.delivered_seq, s.seq) < t.seq then coalesce($1::bigint, (extract(epoch from clock_timestamp()) * 1000)::bigint) end
when s.kind = 3 then null
else coalesce($1::bigint, (extract(epoch from clock_timestamp()) * 1000)::bigint) + s.wait_ms end,
claimed_by = case when p.claimed_until is distinct from s.until then p.claimed_by end,
claimed_until = case when p.claimed_until is distinct from s.until then p.claimed_until end
from s join l using (push_no), t
where p.push_no = s.push_no and t.task_no = p.task_no
returning p.push_no
