//! Webhooks and their delivery cursors. A row is due from the commit that gives it something to deliver until the receiver has
//! accepted everything or the delivery becomes a dead letter. One process at a time claims a delivery, by locking its row and
//! passing over rows that others have locked.
//!
//! Whether a cursor has reached the end of its task is decided under a lock of the task, in the order in which commits lock: a commit
//! that comes at the same time either sees the settled row or is seen by the statement that settles it.

use std::collections::HashMap;
use std::sync::atomic::Ordering;

use switchboard_core::model::{AuthenticationInfo, Dialect, PushConfig, TaskId, Timestamp};
use switchboard_engine::ports::outbox::{OutboxEntry, OutboxPage, OutboxQuery, OutboxState};
use switchboard_engine::ports::store::{Delivery, DeliveryClaim, DeliveryKey, DeliveryOutcome, StoreError, TaskKey};
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;

use super::error::corrupt;
use super::rows::{PushColumns, get, now, read_scope};
use super::runs::observe_clock;
use super::shared::Shared;
use super::text;
use crate::record::{signed, unsigned};
use crate::secret_keys::{Place, SecretKeys};

/// How many webhooks are examined for one page of the outbox.
const EXAMINED_MAX: i64 = 10_000;

macro_rules! push_columns {
    () => {
        "p.push_no, p.task_no, p.config_id, p.url, p.token, p.auth_scheme, p.auth_credentials, p.dialect, p.checksum"
    };
}
pub(super) use push_columns;

const AFTER_PUSH: usize = 9;

/// Before the first owner.
pub(super) const NO_OWNER: i64 = -1;

/// Reads the columns of a webhook, if they match their checksum.
pub(super) fn read_push(row: &Row) -> Result<(DeliveryKey, PushColumns), StoreError> {
    let columns = PushColumns {
        task_no: get(row, 1)?,
        config_id: get(row, 2)?,
        url: get(row, 3)?,
        token: get(row, 4)?,
        auth_scheme: get(row, 5)?,
        auth_credentials: get(row, 6)?,
        dialect: get(row, 7)?,
    };
    match columns.checksum() == get::<i64>(row, 8)? {
        true => Ok((DeliveryKey(get(row, 0)?), columns)),
        false => Err(corrupt(format_args!("webhook {} does not match its checksum", columns.config_id))),
    }
}

impl PushColumns {
    fn dialect(&self) -> Result<Dialect, StoreError> {
        Dialect::from_name(&self.dialect).ok_or_else(|| corrupt(format_args!("dialect {} is unknown", self.dialect)))
    }

    /// The config with its secrets decrypted. What cannot be read is left out, with the scheme that it belongs to.
    fn into_config(self, task_id: TaskId, keys: Option<&SecretKeys>) -> PushConfig {
        let id = text::read(&self.config_id).into_owned();
        let open = |column, sealed: Option<String>| {
            let place = Place { task_no: self.task_no, config_id: &id, column };
            sealed.map(|sealed| keys.and_then(|keys| keys.open(&place, &sealed)))
        };
        let token = open("token", self.token.clone());
        let credentials = open("auth_credentials", self.auth_credentials.clone());
        if token == Some(None) || credentials == Some(None) {
            tracing::error!(
                webhook = id,
                "secrets of a webhook cannot be read: their key is missing; it is posted to without them"
            );
        }
        // A scheme without credentials would ask the server for a token of its own.
        let scheme =
            self.auth_scheme.filter(|_| credentials != Some(None)).map(|scheme| text::read(&scheme).into_owned());
        let authentication = scheme.map(|scheme| AuthenticationInfo { scheme, credentials: credentials.flatten() });
        let url = text::read(&self.url).into_owned();
        PushConfig { id: id.into(), task_id, url, token: token.flatten(), authentication }
    }
}

pub(super) async fn push_configs(shared: &Shared, key: TaskKey) -> Result<Vec<PushConfig>, StoreError> {
    const CONFIGS: &str = concat!(
        "select ",
        push_columns!(),
        ", t.id from push p join task t using (task_no) where p.task_no = $1::bigint order by p.push_no"
    );
    let rows = shared.database.read(CONFIGS, &[&key.0]).await?;
    let read = |row: &Row| -> Result<PushConfig, StoreError> {
        let id: &str = get(row, AFTER_PUSH)?;
        Ok(read_push(row)?.1.into_config((&*text::read(id)).into(), shared.secrets.as_ref()))
    };
    rows.iter().map(read).collect()
}

/// Claims what `$due` selects: deliveries, when they were due, and how many of their owner may be claimed. The time is read once, so that
/// an index can be searched by it. `$told` selects what was claimed, and what is to be told beside it.
macro_rules! claim {
    ($walk:literal, $due:literal, $told:literal) => {
        concat!(
            "with recursive clock as materialized (select ",
            now!(),
            " as at), ",
            $walk,
            " due as materialized (",
            $due,
            "), claimed as (
     update push p set due_at = clock.at + $3::bigint, claimed_until = clock.at + $3::bigint, claimed_by = $4::int
       from clock, due, task t, scope s
      where p.push_no = due.push_no and t.task_no = p.task_no and s.scope_no = t.scope_no
     returning ",
            push_columns!(),
            ", p.delivered_seq, p.failures, p.claimed_until, due.due_at, t.id, t.context_id, t.seq, s.tenant, s.principal, s.agent, \
             p.owner_no, due.share) ",
            $told
        )
    };
}
/// Where the columns begin that tell about owners.
const AFTER_CLAIMED: usize = AFTER_PUSH + 10;

/// Those that have waited longest.
const CLAIM_OLDEST: &str = claim!(
    "",
    "select push_no, due_at, 0::bigint as share from push
      where due_at <= (select at from clock) order by due_at, push_no limit $2::bigint for update skip locked",
    "select * from claimed"
);

/// A share for each owner that has something due. The index leads from one owner to the next, so that nothing between them is read. How
/// many owners were looked at, and the last of them, is told even if nothing was claimed.
const CLAIM_SHARES: &str = claim!(
    "walk as (
        (select owner_no, due_at, 1::bigint as place from push
          where due_at is not null and owner_no > $5::bigint order by owner_no, due_at limit 1)
        union all
        select next.owner_no, next.due_at, walk.place + 1 from walk cross join lateral
               (select owner_no, due_at from push
                 where due_at is not null and owner_no > walk.owner_no order by owner_no, due_at limit 1) as next
         where walk.place < $2::bigint
     ),",
    "select d.push_no, d.due_at, o.share
       from (select owner_no, greatest(1, $2::bigint / count(*) over ())::bigint as share from walk
              where due_at <= (select at from clock)) as o cross join lateral
            (select push_no, due_at from push where owner_no = o.owner_no and due_at <= (select at from clock)
              order by due_at, push_no limit o.share for update skip locked) as d",
    "select claimed.*, walked.last_owner, walked.owners
       from (select coalesce(max(owner_no), -1) as last_owner, count(*) as owners from walk) as walked
       left join claimed on true"
);

/// Claims a share for each owner, and, if an owner has more or not all were looked at, those that have waited longest.
async fn claim_rows(shared: &Shared, limit: usize, claim_ms: u32) -> Result<Vec<Row>, StoreError> {
    let claim_ms = i64::from(claim_ms);
    let after = shared.claimed_after.load(Ordering::Relaxed);
    let wanted = signed(limit as u64);
    let parameters: [&(dyn ToSql + Sync); 5] = [&shared.database.now(), &wanted, &claim_ms, &shared.replica_no, &after];
    let mut rows = shared.database.serve(CLAIM_SHARES, &parameters).await?;
    let (mut last, mut owners) = (NO_OWNER, 0);
    if let Some(told) = rows.first() {
        (last, owners) = (get(told, AFTER_CLAIMED + 2)?, get(told, AFTER_CLAIMED + 3)?);
    }
    // The one row that tells only that nothing was claimed.
    rows.retain(|row| !matches!(get::<Option<i64>>(row, 0), Ok(None)));
    let mut taken: HashMap<i64, i64> = HashMap::new();
    let is_round = after == NO_OWNER && owners < wanted;
    let mut has_more = !is_round;
    for row in &rows {
        let (owner_no, share): (i64, i64) = (get(row, AFTER_CLAIMED)?, get(row, AFTER_CLAIMED + 1)?);
        let count = taken.entry(owner_no).or_default();
        *count += 1;
        has_more |= *count >= share;
    }
    shared.claimed_after.store(if owners < wanted { NO_OWNER } else { last }, Ordering::Relaxed);
    if has_more && rows.len() < limit {
        let left = signed((limit - rows.len()) as u64);
        rows.extend(
            shared
                .database
                .serve(CLAIM_OLDEST, &[&shared.database.now(), &left, &claim_ms, &shared.replica_no])
                .await?,
        );
    }
    Ok(rows)
}

pub(super) async fn claim(shared: &Shared, limit: usize, claim_ms: u32) -> Result<Vec<Delivery>, StoreError> {
    observe_clock(shared).await?;
    let rows = claim_rows(shared, limit, claim_ms).await?;
    let mut claimed = Vec::with_capacity(rows.len());
    for row in &rows {
        let id: TaskId = (&*text::read(get(row, AFTER_PUSH + 4)?)).into();
        let read = || -> Result<_, StoreError> {
            let (key, columns) = read_push(row)?;
            let dialect = columns.dialect()?;
            let failures: i64 = get(row, AFTER_PUSH + 1)?;
            let delivery = Delivery {
                key,
                scope: read_scope(row, AFTER_PUSH + 7)?,
                task_key: TaskKey(columns.task_no),
                task_id: id.clone(),
                context_id: (&*text::read(get(row, AFTER_PUSH + 5)?)).into(),
                config: columns.into_config(id.clone(), shared.secrets.as_ref()),
                dialect,
                delivered_seq: unsigned(get(row, AFTER_PUSH)?),
                task_seq: unsigned(get(row, AFTER_PUSH + 6)?),
                failures: u32::try_from(failures).map_err(|_| corrupt(format_args!("{failures} failures")))?,
                claimed_until: Timestamp::from_ms(get(row, AFTER_PUSH + 2)?),
            };
            Ok((get::<i64>(row, AFTER_PUSH + 3)?, delivery))
        };
        match read() {
            Ok(found) => claimed.push(found),
            // It stays claimed, and others are delivered.
            Err(error) => {
                let config: &str = get(row, 2)?;
                shared.quarantine.webhook(id, (&*text::read(config)).into(), error);
            }
        }
    }
    claimed.sort_by_key(|(due_at, delivery)| (*due_at, delivery.key));
    Ok(claimed.into_iter().map(|(_, delivery)| delivery).collect())
}

const SETTLE: &str = concat!(
    "with s as (select * from unnest($2::bigint[], $3::bigint[], $4::smallint[], $5::bigint[], $6::bigint[], $7::text[])
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
            last_attempt_at = case when p.claimed_until is distinct from s.until or s.kind = 2 then p.last_attempt_at else ",
    now!(),
    " end,
            parked = p.parked or (p.claimed_until is not distinct from s.until and s.kind = 3),
            due_at = case when p.claimed_until is distinct from s.until then p.due_at
                          when s.kind = 0 then case when greatest(p.delivered_seq, s.seq) < t.seq then ",
    now!(),
    " end
                          when s.kind = 3 then null
                          else ",
    now!(),
    " + s.wait_ms end,
            claimed_by = case when p.claimed_until is distinct from s.until then p.claimed_by end,
            claimed_until = case when p.claimed_until is distinct from s.until then p.claimed_until end
       from s join l using (push_no), t
      where p.push_no = s.push_no and t.task_no = p.task_no
     returning p.push_no"
);

pub(super) async fn settle(shared: &Shared, settled: Vec<(DeliveryClaim, DeliveryOutcome)>) -> Result<(), StoreError> {
    let mut left = settled;
    while !left.is_empty() {
        // One statement changes a row once, so a second outcome of a delivery goes into the next one.
        let mut seen = std::collections::HashSet::new();
        let (these, later): (Vec<_>, Vec<_>) = left.into_iter().partition(|(claim, _)| seen.insert(claim.key.0));
        left = later;
        let (mut keys, mut untils, mut kinds) = (Vec::new(), Vec::new(), Vec::new());
        let (mut seqs, mut waits, mut errors) = (Vec::new(), Vec::new(), Vec::new());
        for (claim, outcome) in &these {
            keys.push(claim.key.0);
            untils.push(claim.until.as_ms());
            seqs.push(signed(outcome.delivered_seq()));
            let (kind, wait_ms, error) = match outcome {
                DeliveryOutcome::Delivered { .. } => (0_i16, 0, None),
                DeliveryOutcome::Retry { wait_ms, error, .. } => (1, *wait_ms, Some(text::stored(error))),
                DeliveryOutcome::Postponed { wait_ms, .. } => (2, *wait_ms, None),
                DeliveryOutcome::Parked { error, .. } => (3, 0, Some(text::stored(error))),
            };
            kinds.push(kind);
            waits.push(wait_ms);
            errors.push(error);
        }
        let rows = shared
            .database
            .serve(SETTLE, &[&shared.database.now(), &keys, &untils, &kinds, &seqs, &waits, &errors])
            .await?;
        shared.totals.rows(rows.len() as u64);
    }
    Ok(())
}

pub(super) async fn next_at(shared: &Shared) -> Result<Option<Timestamp>, StoreError> {
    const NEXT: &str = "select due_at from push where due_at is not null order by due_at limit 1";
    let rows = shared.database.serve(NEXT, &[]).await?;
    rows.first().map(|row| get(row, 0).map(Timestamp::from_ms)).transpose()
}

/// How many deliveries wait or are under way, counted up to this number in the index of what is due.
pub(super) async fn depth(shared: &Shared, at_most: u32) -> Result<u64, StoreError> {
    const DEPTH: &str = "select count(*) from (select 1 from push where due_at is not null limit $1) as due";
    let rows = shared.database.serve(DEPTH, &[&i64::from(at_most)]).await?;
    let count: Option<i64> = rows.first().map(|row| get(row, 0)).transpose()?;
    Ok(count.unwrap_or_default().unsigned_abs())
}

macro_rules! entry_columns {
    () => {
        "p.push_no, p.task_no, p.config_id, p.url, p.dialect, p.delivered_seq, p.failures, p.due_at, p.claimed_until, p.parked, \
         p.last_error, p.last_attempt_at, p.created_at, t.id, t.seq, s.tenant, s.principal, s.agent"
    };
}

/// One delivery; none if it has nothing left to deliver.
fn read_entry(row: &Row) -> Result<Option<OutboxEntry>, StoreError> {
    let (due, claimed): (Option<i64>, Option<i64>) = (get(row, 7)?, get(row, 8)?);
    let state = match (get(row, 9)?, due, claimed) {
        (true, _, _) => OutboxState::Dead,
        (false, None, _) => return Ok(None),
        (false, Some(_), Some(_)) => OutboxState::UnderWay,
        (false, Some(_), None) => OutboxState::Waiting,
    };
    let dialect: &str = get(row, 4)?;
    let failures: i64 = get(row, 6)?;
    Ok(Some(OutboxEntry {
        key: DeliveryKey(get(row, 0)?),
        scope: read_scope(row, 15)?,
        task_key: TaskKey(get(row, 1)?),
        task_id: (&*text::read(get(row, 13)?)).into(),
        config_id: (&*text::read(get(row, 2)?)).into(),
        url: text::read(get(row, 3)?).into_owned(),
        dialect: Dialect::from_name(dialect).ok_or_else(|| corrupt(format_args!("dialect {dialect} is unknown")))?,
        state,
        delivered_seq: unsigned(get(row, 5)?),
        task_seq: unsigned(get(row, 14)?),
        failures: u32::try_from(failures).unwrap_or(u32::MAX),
        due: due.map(Timestamp::from_ms),
        last_error: get::<Option<&str>>(row, 10)?.map(|error| text::read(error).into_owned()),
        last_attempt_at: get::<Option<i64>>(row, 11)?.map(Timestamp::from_ms),
        created_at: Timestamp::from_ms(get(row, 12)?),
    }))
}

pub(super) async fn outbox_page(shared: &Shared, query: OutboxQuery) -> Result<OutboxPage, StoreError> {
    const PAGE: &str = concat!(
        "select ",
        entry_columns!(),
        " from (select * from push where push_no > $1::bigint order by push_no limit $2::bigint) p
           join task t using (task_no) join scope s using (scope_no)
          where p.parked or p.due_at is not null
          order by p.push_no limit $3::bigint"
    );
    const EXAMINED: &str = "select max(push_no), count(*)
                              from (select push_no from push where push_no > $1::bigint order by push_no limit $2::bigint) p";
    let after = query.after.map_or(i64::MIN, |key| key.0);
    // A page of one state may have to pass over entries of other states.
    let rows_max = if query.state.is_some() { EXAMINED_MAX } else { signed(query.limit as u64).saturating_add(1) };
    let examined = shared.database.read(EXAMINED, &[&after, &EXAMINED_MAX]).await?;
    let rows = shared.database.read(PAGE, &[&after, &EXAMINED_MAX, &rows_max]).await?;
    let mut page = OutboxPage { entries: Vec::new(), next: None };
    for row in &rows {
        let Some(entry) = read_entry(row)? else { continue };
        if query.state.is_some_and(|state| state != entry.state) {
            continue;
        }
        if page.entries.len() >= query.limit {
            page.next = page.entries.last().map(|entry| entry.key);
            return Ok(page);
        }
        page.entries.push(entry);
    }
    if let Some(row) = examined.first().filter(|row| get::<i64>(row, 1).is_ok_and(|count| count >= EXAMINED_MAX)) {
        page.next = get::<Option<i64>>(row, 0)?.map(DeliveryKey);
    }
    Ok(page)
}

pub(super) async fn outbox_find(shared: &Shared, key: DeliveryKey) -> Result<Option<OutboxEntry>, StoreError> {
    const FIND: &str = concat!(
        "select ",
        entry_columns!(),
        " from push p join task t using (task_no) join scope s using (scope_no) where p.push_no = $1::bigint"
    );
    let rows = shared.database.read(FIND, &[&key.0]).await?;
    rows.first().map_or(Ok(None), read_entry)
}

pub(super) async fn redrive(shared: &Shared, keys: Vec<DeliveryKey>) -> Result<usize, StoreError> {
    const REDRIVE: &str = concat!(
        "with l as (select push_no from push where push_no = any ($2::bigint[]) order by push_no for update)
         update push p set parked = false, failures = 0, due_at = ",
        now!(),
        " from l where p.push_no = l.push_no and (p.parked or (p.due_at is not null and p.claimed_until is null))
         returning p.push_no"
    );
    let keys: Vec<i64> = keys.into_iter().map(|key| key.0).collect();
    Ok(shared.database.serve(REDRIVE, &[&shared.database.now(), &keys]).await?.len())
}

pub(super) async fn purge(shared: &Shared, keys: Vec<DeliveryKey>) -> Result<usize, StoreError> {
    const PURGE: &str = "
        with t as materialized (select task_no, seq from task
                                 where task_no in (select task_no from push where push_no = any ($1::bigint[]))
                                 order by task_no for update),
             l as materialized (select push_no from push where push_no = any ($1::bigint[]) order by push_no for update)
        update push p set parked = false, failures = 0, last_error = null, delivered_seq = t.seq
          from l, t where p.push_no = l.push_no and t.task_no = p.task_no and p.parked returning p.push_no";
    let keys: Vec<i64> = keys.into_iter().map(|key| key.0).collect();
    Ok(shared.database.serve(PURGE, &[&keys]).await?.len())
}
