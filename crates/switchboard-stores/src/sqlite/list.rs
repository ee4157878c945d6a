//! Lists the tasks of a scope, newest status first. The index is ordered by state, so a list of all states merges eight
//! ranges. A list of one context has its own index. Tasks at work may be in neither index (see `unindexed`), and are
//! found among the newest tasks. A cursor names the last task shown, so commits between two pages
//! move tasks to the front and shift nothing.

use std::borrow::Cow;
use std::sync::atomic::Ordering;

use rusqlite::{Connection, params_from_iter};
use switchboard_core::lifecycle::Phase;
use switchboard_core::model::{TaskState, Timestamp};
use switchboard_engine::ports::store::{ListCursor, ListPage, ListQuery, Scope, StoreError, StoredTask, TaskKey};

use super::error::Failure;
use super::fold::fold;
use super::ledger::find_scope_no;
use super::outlined::fold_within;
use super::quarantine::{Quarantined, TaskRef};
use super::read::at_once;
use super::recent::UnfiledTasks;
use super::rows::{TASK_COLUMNS, TaskColumns, UNINDEXED_TASK, phase_of, task_columns, task_row};
use super::totals::{ByState, CountGeneration, Totals, place_of};
use super::unindexed::AMONG_THE_NEWEST;
use crate::record::{HistoryBounds, ListPaging, Want, phase_number, signed, state_number, unsigned};

pub(super) fn list(
    connection: &Connection,
    shared: &Shared<'_>,
    scope: &Scope,
    query: &ListQuery,
) -> Result<ListPage, Failure> {
    let mut page = one_page(connection, shared, scope, query)?;
    // A page must not be empty because all of its tasks are damaged.
    while let (true, Some(after)) = (page.tasks.is_empty(), page.next) {
        page = one_page(connection, shared, scope, &ListQuery { after: Some(after), ..query.clone() })?;
    }
    Ok(page)
}

/// What the writer shares with lists.
pub(super) struct Shared<'a> {
    pub(super) totals: &'a Totals,
    pub(super) quarantine: &'a Quarantined,
    pub(super) unfiled: &'a UnfiledTasks,
}

fn one_page(
    connection: &Connection,
    shared: &Shared<'_>,
    scope: &Scope,
    query: &ListQuery,
) -> Result<ListPage, Failure> {
    let Shared { totals, quarantine, unfiled } = shared;
    let generation = totals.generation();
    let has_unindexed = unfiled.has_unindexed.load(Ordering::Acquire);
    at_once(connection, || {
        let mut page = ListPage { tasks: Vec::new(), next: None, total: 0 };
        let names = [scope.owner.tenant.as_str(), scope.owner.principal.as_str(), scope.agent.as_str()];
        let Some(scope_no) = find_scope_no(connection, names)? else { return Ok(page) };
        let mut found = Vec::new();
        let ranges = ranges(query, has_unindexed);
        for range in &ranges {
            range.page(connection, scope_no, query, &mut found)?;
        }
        page.total = match (&query.context_id, query.status_since) {
            (None, None) => {
                let counts = counts(connection, totals, generation, scope_no)?;
                query.state.map_or_else(|| counts.iter().sum(), |state| counts[place_of(state)])
            }
            _ => ranges.iter().map(|range| range.count(connection, scope_no, query)).sum::<Result<u64, _>>()?,
        };
        found.sort_unstable_by_key(|cursor| std::cmp::Reverse((cursor.status_at, cursor.key)));
        let more = found.len() > query.page_size;
        found.truncate(query.page_size);
        page.next = found.last().copied().filter(|_| more);
        let sql = format!("SELECT {TASK_COLUMNS} FROM task WHERE task_no = ?1");
        let mut select = connection.prepare_cached(&sql)?;
        let mut page = ListPaging::of(page, query);
        for cursor in found {
            let mut read = || -> Result<StoredTask, Failure> {
                let mut rows = select.query([cursor.key.0])?;
                let gone = || StoreError::Corrupt(format!("task number {} is listed but missing", cursor.key.0));
                let columns = task_columns(rows.next()?.ok_or_else(gone)?)?;
                // The index has no checksum, so its values must equal those of the row.
                if (columns.scope_no, columns.head.status_at) != (scope_no, cursor.status_at.as_ms())
                    || !is_asked_for(query, &columns)
                {
                    return Err(StoreError::Corrupt("it is listed under what it is not".to_owned()).into());
                }
                let row = task_row(&columns, &scope.agent)?;
                let history = HistoryBounds::of_list(query);
                match query.artifacts {
                    true => fold_within(connection, row, query.bytes_max, history),
                    false => fold(connection, row, Want::NoArtifacts, history),
                }
            };
            let stored = match read()
                .map_err(|failure| quarantine.quarantine_if_damaged(connection, &TaskRef::No(cursor.key.0), failure))
            {
                Ok(stored) => stored,
                // The other tasks are still listed.
                Err(Failure(StoreError::Damaged(_))) => continue,
                Err(failure) => return Err(failure),
            };
            if !page.add(cursor, stored) {
                break;
            }
        }
        Ok(page.finish())
    })
}

/// Whether a task matches the query.
fn is_asked_for(query: &ListQuery, columns: &TaskColumns<'_>) -> bool {
    let head = &columns.head;
    phase_of(head) == phase_number(Phase::Live)
        && query.state.is_none_or(|state| head.state == state_number(state))
        && query.context_id.as_ref().is_none_or(|context_id| head.context_id == context_id.as_str())
}

/// The tasks of a scope by state. They are counted if they have not been counted yet.
fn counts(
    connection: &Connection,
    totals: &Totals,
    generation: CountGeneration,
    scope_no: i64,
) -> Result<ByState, Failure> {
    if let Some(known) = totals.listed(scope_no) {
        return Ok(known);
    }
    let mut counts = ByState::default();
    let mut select =
        connection.prepare_cached("SELECT count(*) FROM task WHERE phase = 1 AND scope_no = ?1 AND state = ?2")?;
    let mut select_unindexed = connection.prepare_cached(&format!(
        "SELECT count(*) FROM task WHERE phase = {UNINDEXED_TASK} AND scope_no = ?1 AND state = ?2 AND {AMONG_THE_NEWEST}"
    ))?;
    for state in TaskState::ALL {
        for select in [&mut select, &mut select_unindexed] {
            let count = select.query_row([scope_no, state_number(state)], |row| row.get(0))?;
            counts[place_of(state)] += unsigned(count);
        }
    }
    totals.counted_listed(generation, scope_no, counts);
    Ok(counts)
}

/// One range of an index, which is sorted, or the tasks that the indexes do not have.
enum Range<'a> {
    State(TaskState),
    Context(&'a str, Option<TaskState>),
    Unindexed(Option<&'a str>, Option<TaskState>),
}

fn ranges(query: &ListQuery, has_unindexed: bool) -> Vec<Range<'_>> {
    let context_id = query.context_id.as_ref().map(|context_id| context_id.as_str());
    let mut ranges: Vec<_> = match (context_id, query.state) {
        (Some(context_id), state) => vec![Range::Context(context_id, state)],
        (None, Some(state)) => vec![Range::State(state)],
        (None, None) => TaskState::ALL.into_iter().map(Range::State).collect(),
    };
    ranges.extend(has_unindexed.then_some(Range::Unindexed(context_id, query.state)));
    ranges
}

/// A value to bind; the statements have different parameters.
type Bound<'a> = Box<dyn rusqlite::ToSql + 'a>;

impl Range<'_> {
    /// The condition all statements share. `+` keeps the planner from the other index.
    fn matching(&self) -> Cow<'static, str> {
        let indexed = match self {
            Self::State(_) => "phase = 1 AND scope_no = ?1 AND status_at >= ?2 AND state = ?3",
            Self::Context(_, None) => "phase = 1 AND scope_no = ?1 AND status_at >= ?2 AND context_id = ?3",
            Self::Context(_, Some(_)) => {
                "phase = 1 AND scope_no = ?1 AND status_at >= ?2 AND context_id = ?3 AND +state = ?4"
            }
            Self::Unindexed(..) => {
                let unindexed = format!(
                    "phase = {UNINDEXED_TASK} AND {AMONG_THE_NEWEST} AND scope_no = ?1 AND status_at >= ?2
                     AND (?3 IS NULL OR context_id = ?3) AND (?4 IS NULL OR state = ?4)"
                );
                return unindexed.into();
            }
        };
        indexed.into()
    }

    fn bounds(&self, scope_no: i64, query: &ListQuery) -> Vec<Bound<'_>> {
        let since = query.status_since.map_or(i64::MIN, Timestamp::as_ms);
        let mut bounds: Vec<Bound<'_>> = vec![Box::new(scope_no), Box::new(since)];
        match self {
            Self::State(state) => bounds.push(Box::new(state_number(*state))),
            Self::Context(context_id, state) => {
                bounds.push(Box::new(*context_id));
                if let Some(state) = state {
                    bounds.push(Box::new(state_number(*state)));
                }
            }
            Self::Unindexed(context_id, state) => {
                bounds.push(Box::new(*context_id));
                bounds.push(Box::new(state.map(state_number)));
            }
        }
        bounds
    }

    fn count(&self, connection: &Connection, scope_no: i64, query: &ListQuery) -> Result<u64, Failure> {
        let mut select = connection.prepare_cached(&format!("SELECT count(*) FROM task WHERE {}", self.matching()))?;
        let count = select.query_row(params_from_iter(self.bounds(scope_no, query)), |row| row.get(0))?;
        Ok(unsigned(count))
    }

    /// Adds a limit of one more than a page, to know whether another page follows.
    fn page(
        &self,
        connection: &Connection,
        scope_no: i64,
        query: &ListQuery,
        found: &mut Vec<ListCursor>,
    ) -> Result<(), Failure> {
        let mut bounds = self.bounds(scope_no, query);
        let next = bounds.len() + 1;
        let after =
            query.after.unwrap_or(ListCursor { status_at: Timestamp::from_ms(i64::MAX), key: TaskKey(i64::MAX) });
        bounds.push(Box::new(after.status_at.as_ms()));
        bounds.push(Box::new(after.key.0));
        bounds.push(Box::new(signed(query.page_size as u64).saturating_add(1)));
        let sql = format!(
            "SELECT status_at, task_no FROM task
              WHERE {} AND status_at <= ?{next} AND (status_at < ?{next} OR task_no < ?{})
              ORDER BY status_at DESC, task_no DESC LIMIT ?{}",
            self.matching(),
            next + 1,
            next + 2
        );
        let mut select = connection.prepare_cached(&sql)?;
        let mut rows = select.query(params_from_iter(bounds))?;
        while let Some(row) = rows.next()? {
            found.push(ListCursor { status_at: Timestamp::from_ms(row.get(0)?), key: TaskKey(row.get(1)?) });
        }
        Ok(())
    }
}
