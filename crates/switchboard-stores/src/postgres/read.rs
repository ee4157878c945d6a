//! Reads of one record: its head, its task, its log, and the task as it was when a message was accepted.

use switchboard_core::model::{TaskId, Timestamp};
use switchboard_engine::ports::outline::too_large;
use switchboard_engine::ports::store::{
    Accepted, AcceptedTask, LogPage, Scope, StoreError, StoredHead, StoredTask, TaskKey,
};

use super::error::corrupt;
use super::fold::{Chunks, Walk};
use super::outlined::{fold_earlier_within, fold_within};
use super::rows::{LogRow, TaskRow, get, log_columns, now, of_accept, task_columns};
use super::shared::Shared;
use super::text;
use crate::record::{
    Accepting, Chains, Contents, HistoryBounds, Paging, ParsedCommit, Want, missing, sets_status, signed, unsigned,
};

/// A page of large commits holds fewer of them, so that reading a large file needs little memory.
const LOG_PAGE_BYTES_MAX: i64 = 1 << 20;

/// How many commits are searched for the status of an earlier time, and how many at once.
const COMMITS_MAX: usize = 65_536;
const COMMITS_PAGE: i64 = 256;

const FIND: &str = concat!(
    "select ",
    task_columns!(),
    " from task t join scope s using (scope_no)
      where t.id = $1 and s.tenant = $2 and s.principal = $3 and s.agent = $4"
);

pub(super) async fn find(shared: &Shared, scope: &Scope, id: &TaskId) -> Result<Option<TaskRow>, StoreError> {
    let [id, tenant, principal, agent] =
        [id.as_str(), scope.owner.tenant.as_str(), scope.owner.principal.as_str(), scope.agent.as_str()]
            .map(text::stored);
    let found = shared.database.read(FIND, &[&&*id, &&*tenant, &&*principal, &&*agent]).await?;
    found.first().map(|row| TaskRow::read(row, &scope.agent)).transpose()
}

pub(super) async fn head(shared: &Shared, scope: &Scope, id: &TaskId) -> Result<Option<StoredHead>, StoreError> {
    let found = find(shared, scope, id).await?;
    Ok(found.map(|row| StoredHead { key: TaskKey(row.task_no), scope: scope.clone(), head: row.head.into() }))
}

pub(super) async fn task(
    shared: &Shared,
    scope: &Scope,
    id: &TaskId,
    bytes_max: u64,
    history_max: Option<u32>,
) -> Result<Option<StoredTask>, StoreError> {
    let bounds = HistoryBounds::within(bytes_max, history_max);
    let Some(row) = find(shared, scope, id).await? else { return Ok(None) };
    let is_newest = |known: &StoredTask| known.head.version == row.head.version;
    if let Some(known) = shared.cache.task(scope, id).filter(is_newest)
        && too_large(&row.head, bytes_max).is_empty()
    {
        return Ok(Some(known));
    }
    match fold_within(shared, row, bytes_max, bounds).await {
        // The task may have been removed since its row was read.
        Err(StoreError::Corrupt(_)) if find(shared, scope, id).await?.is_none() => Ok(None),
        result => result.map(Some),
    }
}

const BOUNDS: &str = "select floor_seq, seq, first_version_after_v1(task_no, $2::bigint, floor_version + 1, version)
                        from task where task_no = $1::bigint";

/// The weights are added up before the record is read, so that a page ends with the commit that fills it.
const LOG: &str = concat!(
    "select ",
    log_columns!(),
    " from (select l.*, sum(l.weight) over (order by l.version) - l.weight as before
              from (select * from log where task_no = $1::bigint and version >= $2::bigint and visible > 0
                     order by version limit $3::bigint) l) l
     where l.before < $4::bigint order by l.version"
);

pub(super) async fn log(shared: &Shared, key: TaskKey, after_seq: u64, limit: usize) -> Result<LogPage, StoreError> {
    let after_seq = signed(after_seq);
    let mut page = Paging::after(after_seq);
    let found = shared.database.read(BOUNDS, &[&key.0, &after_seq]).await?;
    let bounds = found.first().ok_or(StoreError::Pruned)?;
    let (floor_seq, seq): (i64, i64) = (get(bounds, 0)?, get(bounds, 1)?);
    if after_seq < floor_seq {
        return Err(StoreError::Pruned);
    }
    if after_seq >= seq {
        return page.finish(true, seq);
    }
    let from: Option<i64> = get(bounds, 2)?;
    let from = from.ok_or_else(|| corrupt(format_args!("a commit of task number {} is missing", key.0)))?;
    let rows = shared.database.read(LOG, &[&key.0, &from, &signed(limit as u64), &LOG_PAGE_BYTES_MAX]).await?;
    let rows = rows.iter().map(LogRow::read).collect::<Result<Vec<_>, _>>()?;
    let mut parsed = Vec::with_capacity(rows.len());
    let mut wanted = Vec::new();
    for row in &rows {
        let stored = ParsedCommit::of(&row.record)?;
        wanted.extend(stored.chunk_ranges().into_iter().map(|range| (row.version(), range)));
        parsed.push(stored);
    }
    let chunks = Chunks::read(shared, key.0, wanted).await?;
    for (row, stored) in rows.iter().zip(parsed) {
        page.add(row.version(), row.columns.last_seq, row.columns.visible, || {
            stored.into_events(Want::Everything, Contents::All, &chunks.of(row.version()))
        })?;
    }
    let bytes = rows.iter().map(|row| row.record.len()).sum::<usize>() + chunks.bytes();
    let is_full = page.commits() >= limit || signed(bytes as u64) >= LOG_PAGE_BYTES_MAX;
    page.finish(is_full, seq)
}

const FIND_ACCEPTED: &str = concat!(
    "select t.id, a.digest, a.turn, a.after_seq, a.expires, a.task_no, a.checksum from accepted a join task t using (task_no)
      where a.key = $2 and (a.expires > ",
    now!(),
    " or ",
    now!(),
    " < (select value from meta where name = 'held_until'))"
);

pub(super) async fn find_accepted(shared: &Shared, key: [u8; 32]) -> Result<Option<Accepted>, StoreError> {
    let found = shared.database.read(FIND_ACCEPTED, &[&shared.database.now(), &&key[..]]).await?;
    let Some(row) = found.first() else { return Ok(None) };
    let unreadable = || StoreError::Damaged("an idempotency key cannot be read".to_owned());
    let digest: &[u8] = get(row, 1)?;
    let turn: i64 = get(row, 2)?;
    let accepted = Accepted {
        task_id: (&*text::read(get(row, 0)?)).into(),
        digest: digest.try_into().map_err(|_| unreadable())?,
        turn: u32::try_from(turn).map_err(|_| unreadable())?,
        after_seq: unsigned(get(row, 3)?),
    };
    let Accepted { digest, turn, after_seq, .. } = accepted;
    let expires = Timestamp::from_ms(get(row, 4)?);
    let accept = switchboard_engine::ports::store::Accept { key, digest, turn, after_seq, expires };
    match of_accept(get(row, 5)?, &accept) == get::<i64>(row, 6)? {
        true => Ok(Some(accepted)),
        false => Err(unreadable()),
    }
}

pub(super) async fn task_as_accepted(
    shared: &Shared,
    scope: &Scope,
    accepted: &Accepted,
    bytes_max: u64,
) -> Result<Option<AcceptedTask>, StoreError> {
    let Some(row) = find(shared, scope, &accepted.task_id).await? else { return Ok(None) };
    let accepting = find_accepting(shared, &row, accepted).await?;
    let status = status_at(shared, row.task_no, accepting.version).await?;
    let row = TaskRow { chains: accepting.chains(status), ..row };
    Ok(Some(accepting.finish(fold_earlier_within(shared, row, bytes_max).await?, status)))
}

/// A message that ended a pause is in the first commit after `after_seq`. A message that had to wait is in an earlier commit
/// on the chain of commits that readers fold; only other waiting messages are in between.
async fn find_accepting(shared: &Shared, row: &TaskRow, accepted: &Accepted) -> Result<Accepting, StoreError> {
    let (task_no, after_seq) = (row.task_no, signed(accepted.after_seq));
    if after_seq < row.floor_seq {
        return Err(StoreError::Pruned);
    }
    let version = if accepted.after_seq < row.head.seq {
        let found = shared.database.read(BOUNDS, &[&task_no, &after_seq]).await?;
        let bounds = found.first().ok_or(StoreError::Pruned)?;
        get::<Option<i64>>(bounds, 2)?.ok_or_else(|| missing(task_no, row.floor_version + 1))?
    } else {
        row.chains.story
    };
    let mut walk = Walk::new(shared, task_no, Chains { story: version, artifact: 0, status: 0 });
    loop {
        let page = walk.page().await?;
        if page.is_empty() || page[0].columns.last_seq < after_seq {
            return Err(Accepting::missing(task_no, accepted));
        }
        for found in page {
            // Whether the message waited depends on the kinds of events, so no contents are read.
            let mut stored = ParsedCommit::of(&found.record)?;
            stored.restrict(Want::NoArtifacts, Contents::Only { turn: None, status: false });
            let ranges = stored.chunk_ranges().into_iter().map(|range| (found.version(), range)).collect();
            let chunks = Chunks::read(shared, task_no, ranges).await?;
            let events = stored.into_events(Want::NoArtifacts, Contents::All, &chunks.of(found.version()))?;
            if let Some(waited) = accepted.waited_in(&events) {
                let (seq, at) = (unsigned(found.columns.last_seq), Timestamp::from_ms(found.columns.at));
                let (version, prev_artifact) = (found.version(), found.prev_artifact);
                return Ok(Accepting { version, prev_artifact, seq, at, waited });
            }
        }
    }
}

const EARLIER: &str = concat!(
    "select ",
    log_columns!(),
    " from log l where l.task_no = $1::bigint and l.version <= $2::bigint order by l.version desc limit $3::bigint"
);

/// The commit that had set the status at that time; none if it is too far back.
async fn status_at(shared: &Shared, task_no: i64, version: i64) -> Result<Option<i64>, StoreError> {
    let mut next = version;
    let mut examined = 0;
    while examined < COMMITS_MAX {
        let rows = shared.database.read(EARLIER, &[&task_no, &next, &COMMITS_PAGE]).await?;
        if rows.is_empty() {
            break;
        }
        examined += rows.len();
        for row in &rows {
            let found = LogRow::read(row)?;
            if sets_status(&found.record)? {
                return Ok(Some(found.version()));
            }
            next = found.version() - 1;
        }
    }
    Ok(None)
}
