//! ListTasks: the caller's tasks, newest status first, by stable cursor.

use std::fmt::Write as _;

use switchboard_core::call::{Caller, ListTasks, Reply, TaskPage};
use switchboard_core::error::ProtocolError;
use switchboard_core::model::{ArtifactView, TaskView, Timestamp};

use crate::engine_state::{EngineState, Registered};
use crate::ports::store::{ListCursor, ListQuery, TaskKey};
use crate::reply_size::weight;

pub(crate) async fn list_tasks(
    engine: &EngineState,
    agent: &Registered,
    caller: &Caller,
    list: ListTasks,
) -> Result<Reply, ProtocolError> {
    let page_size = match list.page_size {
        None => engine.limits.list_page_size_default,
        Some(size) if (1..=engine.limits.list_page_size_max).contains(&size) => size,
        Some(_) => {
            let description = format!("must be between 1 and {}", engine.limits.list_page_size_max);
            return Err(ProtocolError::invalid("pageSize", description));
        }
    };
    let token = list.page_token.as_deref().filter(|token| !token.is_empty());
    let after = token.map(|token| decode_token(token, &list)).transpose()?;
    let bytes_max = engine.reply_bytes_max(caller);
    let query = ListQuery {
        context_id: list.context_id.clone(),
        state: list.state,
        status_since: list.status_since,
        page_size: page_size as usize,
        after,
        artifacts: list.include_artifacts,
        bytes_max,
    };
    let scope = engine.scope(caller, agent);
    let page = engine.store.list(&scope, &query).await.map_err(|error| engine.store_failed(&error))?;
    let artifacts = if list.include_artifacts { ArtifactView::AlwaysListed } else { ArtifactView::Omitted };
    let mut next = page.next;
    let mut tasks = Vec::with_capacity(page.tasks.len());
    let mut left = bytes_max;
    let mut last = None;
    for stored in page.tasks {
        let stored = engine.with_links(&scope, stored);
        let view = TaskView { task: stored.folded.task.clone(), history_length: list.history_length, artifacts };
        let view = engine.fitted(&scope, view, bytes_max);
        let weight = weight(&view);
        if weight > left && !tasks.is_empty() {
            // A page of large tasks holds fewer of them.
            next = last;
            break;
        }
        left = left.saturating_sub(weight);
        tasks.push(view);
        last = Some(ListCursor { status_at: stored.head.status_at, key: stored.key });
    }
    Ok(Reply::Tasks(TaskPage {
        tasks,
        next_page_token: next.map(|cursor| encode_token(cursor, &list)).unwrap_or_default(),
        page_size,
        total_size: page.total,
    }))
}

/// A token is a position and a hash of the filters it belongs to, in hexadecimal. It grants no access, because the
/// scope of a list comes from the caller. It contains the store's number of a task, which reveals roughly how many
/// tasks all owners have had (see SECURITY.md).
fn encode_token(cursor: ListCursor, list: &ListTasks) -> String {
    let mut token = String::with_capacity(40);
    let _ = write!(token, "{:016x}{:016x}{:08x}", cursor.status_at.as_ms(), cursor.key.0, filter_mark(list));
    token
}

fn decode_token(token: &str, list: &ListTasks) -> Result<ListCursor, ProtocolError> {
    let bad = |why: &str| ProtocolError::invalid("pageToken", why);
    let number = |from: usize, to: usize| token.get(from..to).and_then(|hex| u64::from_str_radix(hex, 16).ok());
    let parsed = (token.len() == 40).then(|| Some((number(0, 16)?, number(16, 32)?, number(32, 40)?))).flatten();
    let Some((status_at, key, mark)) = parsed else {
        return Err(bad("is not a token this server gave out; repeat the list without it"));
    };
    if mark != u64::from(filter_mark(list)) {
        return Err(bad("belongs to a list with other filters; repeat the list without it"));
    }
    Ok(ListCursor { status_at: Timestamp::from_ms(status_at.cast_signed()), key: TaskKey(key.cast_signed()) })
}

/// A short hash of the filters (FNV-1a): a token used with other filters would skip tasks silently.
fn filter_mark(list: &ListTasks) -> u32 {
    let context = list.context_id.as_ref().map_or("", |id| id.as_str());
    let state = list.state.map_or("", |state| state.word());
    let since = list.status_since.map_or(i64::MIN, Timestamp::as_ms);
    let bytes = context.bytes().chain([0]).chain(state.bytes()).chain(since.to_le_bytes());
    bytes.fold(0x811c_9dc5, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193))
}
