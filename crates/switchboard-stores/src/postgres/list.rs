//! Lists the tasks of a scope, newest status first. A cursor names the last task shown, so commits between two pages move tasks
//! to the front and shift nothing.

use switchboard_core::model::Timestamp;
use switchboard_engine::ports::store::{ListCursor, ListPage, ListQuery, Scope, StoreError, StoredTask, TaskKey};
use tokio_postgres::Row;

use super::fold::fold;
use super::outlined::fold_within;
use super::rows::{TaskRow, get, task_columns};
use super::shared::Shared;
use super::text;
use crate::record::{HistoryBounds, ListPaging, Want, signed, state_number, unsigned};

macro_rules! page_sql {
    ($context:literal) => {
        concat!(
            "select ",
            task_columns!(),
            " from task t where t.scope_no = $1::bigint and t.phase = 1 and t.status_at >= $2::bigint
               and ($3::smallint is null or t.state = $3) ",
            $context,
            " and (t.status_at, t.task_no) < ($5::bigint, $6::bigint)
              order by t.status_at desc, t.task_no desc limit $7::bigint"
        )
    };
}

macro_rules! count_sql {
    ($context:literal) => {
        concat!(
            "select count(*) from task t where t.scope_no = $1::bigint and t.phase = 1 and t.status_at >= $2::bigint
               and ($3::smallint is null or t.state = $3) ",
            $context
        )
    };
}

// With and without a context, because each has its index.
const PAGE: &str = page_sql!("and $4::text is null");
const PAGE_OF_CONTEXT: &str = page_sql!("and t.context_id = $4::text");
const COUNT: &str = count_sql!("and $4::text is null");
const COUNT_OF_CONTEXT: &str = count_sql!("and t.context_id = $4::text");

pub(super) async fn list(shared: &Shared, scope: &Scope, query: &ListQuery) -> Result<ListPage, StoreError> {
    let mut page = one_page(shared, scope, query).await?;
    // A page must not be empty because all of its tasks are damaged.
    while let (true, Some(after)) = (page.tasks.is_empty(), page.next) {
        page = one_page(shared, scope, &ListQuery { after: Some(after), ..query.clone() }).await?;
    }
    Ok(page)
}

async fn one_page(shared: &Shared, scope: &Scope, query: &ListQuery) -> Result<ListPage, StoreError> {
    let mut page = ListPage { tasks: Vec::new(), next: None, total: 0 };
    let Some(numbers) = shared.scopes.find(&shared.database, scope).await? else { return Ok(page) };
    let since = query.status_since.map_or(i64::MIN, Timestamp::as_ms);
    let state = query.state.map(|state| i16::try_from(state_number(state)).unwrap_or(0));
    let context = query.context_id.as_ref().map(|context| text::stored(context.as_str()));
    let context = context.as_deref();
    let after = query.after.unwrap_or(ListCursor { status_at: Timestamp::from_ms(i64::MAX), key: TaskKey(i64::MAX) });
    let (page_sql, count_sql) = if context.is_some() { (PAGE_OF_CONTEXT, COUNT_OF_CONTEXT) } else { (PAGE, COUNT) };
    let counted = shared.database.read(count_sql, &[&numbers.scope_no, &since, &state, &context]).await?;
    page.total = counted.first().map_or(Ok(0), |row| get(row, 0)).map(unsigned)?;
    if query.page_size == 0 {
        return Ok(page);
    }
    // One more than a page, to know whether another page follows.
    let limit = signed(query.page_size as u64).saturating_add(1);
    let (status_at, key) = (after.status_at.as_ms(), after.key.0);
    let params: super::connect::Params<'_> = &[&numbers.scope_no, &since, &state, &context, &status_at, &key, &limit];
    let rows = shared.database.read(page_sql, params).await?;
    let cursor = |row: &Row| -> Result<ListCursor, StoreError> {
        Ok(ListCursor { status_at: Timestamp::from_ms(get(row, 5)?), key: TaskKey(get(row, 0)?) })
    };
    let shown = &rows[..rows.len().min(query.page_size)];
    if rows.len() > shown.len() {
        page.next = shown.last().map(cursor).transpose()?;
    }
    let mut page = ListPaging::of(page, query);
    for row in shown {
        let stored = match read(shared, row, scope, query).await {
            Ok(Some(stored)) => stored,
            // It was removed since it was listed.
            Ok(None) => continue,
            Err(error @ StoreError::Corrupt(_)) => {
                // The other tasks are still listed.
                let _ = shared.quarantine.task((&*text::read(get(row, 1)?)).into(), error);
                continue;
            }
            Err(error) => return Err(error),
        };
        if !page.add(cursor(row)?, stored) {
            break;
        }
    }
    Ok(page.finish())
}

async fn read(shared: &Shared, row: &Row, scope: &Scope, query: &ListQuery) -> Result<Option<StoredTask>, StoreError> {
    let row = TaskRow::read(row, &scope.agent)?;
    let id = row.head.id.clone();
    let history = HistoryBounds::of_list(query);
    let read = match query.artifacts {
        true => fold_within(shared, row, query.bytes_max, history).await,
        false => fold(shared, row, Want::NoArtifacts, history).await,
    };
    match read {
        Err(StoreError::Corrupt(_)) if super::read::find(shared, scope, &id).await?.is_none() => Ok(None),
        result => result.map(Some),
    }
}
