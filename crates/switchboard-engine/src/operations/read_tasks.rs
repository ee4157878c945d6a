//! The operations that only read: GetTask, ListTasks, SubscribeToTask and GetExtendedAgentCard, and downloads of one
//! artifact's bytes. A download is no A2A operation, but what a link in a task leads to; the same rules apply: another
//! owner's task is reported as not found.

use std::collections::VecDeque;
use std::fmt::Write as _;
use std::sync::Arc;

use switchboard_core::call::{Caller, ListTasks, Owner, Reply, TaskPage};
use switchboard_core::error::ProtocolError;
use switchboard_core::lifecycle::{Phase, StreamKind, updates};
use switchboard_core::model::{AgentName, ArtifactId, ArtifactView, TaskId, TaskView, Timestamp, Update};

use crate::ports::download::{ArtifactCursor, ArtifactPiece, StoredArtifact, WrittenUpdate};
use crate::ports::outline::PARTS_APART_MAX;
use crate::ports::store::{ListCursor, ListQuery, Scope, StoreError, TaskKey};
use crate::reply_size::weight;
use crate::runs::Registered;
use crate::state::EngineState;
use crate::watching::{Following, follow, resume, snapshot};

pub(crate) async fn get_task(
    engine: &EngineState,
    agent: &Registered,
    caller: &Caller,
    id: &TaskId,
    history_length: Option<u32>,
) -> Result<Reply, ProtocolError> {
    let scope = engine.scope(caller, agent);
    let stored = engine.live_task_view(&scope, id, history_length).await?;
    let view = TaskView { history_length, ..TaskView::whole(stored.folded.task.clone()) };
    Ok(Reply::Task(engine.fitted(&scope, view, engine.reply_bytes_max(caller))))
}

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
        history_max: list.history_length,
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
    // A sign before the digits is none that this server writes.
    let is_hex = token.len() == 40 && token.bytes().all(|byte| byte.is_ascii_hexdigit());
    let parsed = is_hex.then(|| Some((number(0, 16)?, number(16, 32)?, number(32, 40)?))).flatten();
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

#[cfg(test)]
#[path = "read_tasks_tests.rs"]
mod tests;

pub(crate) async fn subscribe(
    engine: &Arc<EngineState>,
    agent: &Registered,
    caller: &Caller,
    id: &TaskId,
) -> Result<Reply, ProtocolError> {
    agent.require_streaming(caller.dialect)?;
    let scope = engine.scope(caller, agent);
    let stored = engine.live_task(&scope, id).await?;
    if let Some(cursor) = &caller.last_event_id {
        return resume(engine, scope, &stored, StreamKind::Subscribe, cursor).await;
    }
    if stored.head.state.is_terminal() {
        let reason = format!(
            "Task {id} is {} and has no more updates; read it with {}, or resume with Last-Event-ID",
            stored.head.state.word(),
            caller.dialect.rules().words.get_task
        );
        return Err(ProtocolError::unsupported(reason));
    }
    let first = VecDeque::from([snapshot(engine, &scope, &stored, None)]);
    let cursor = stored.head.seq;
    follow(engine, Following::of(scope, &stored), StreamKind::Subscribe, first, cursor).await
}

pub(crate) fn get_extended_card(agent: &Registered, caller: &Caller) -> Result<Reply, ProtocolError> {
    if agent.card.get().capabilities.extended_agent_card != Some(true) {
        return Err(ProtocolError::unsupported("This agent has no extended card"));
    }
    // Spec 13.3: the extended card is for authenticated callers. That it exists is no secret, because the public card
    // says so.
    if !caller.authenticated && !agent.extended_card_for_anyone {
        return Err(ProtocolError::Unauthenticated { reason: "the extended card needs a credential".to_owned() });
    }
    let card = agent.extended_card.clone().ok_or(ProtocolError::ExtendedAgentCardNotConfigured)?;
    Ok(Reply::Card(card))
}

pub(crate) async fn artifact(
    engine: &EngineState,
    agent: &str,
    owner: &Owner,
    task: &TaskId,
    artifact: &ArtifactId,
    part: Option<u64>,
) -> Result<StoredArtifact, ProtocolError> {
    if part.is_some_and(|part| part >= PARTS_APART_MAX) {
        let last = PARTS_APART_MAX - 1;
        let description = format!("must be between 0 and {last}; an artifact of more parts is read as a whole");
        return Err(ProtocolError::invalid("part", description));
    }
    let scope = Scope { owner: owner.clone(), agent: AgentName::from(agent) };
    match engine.store.artifact(&scope, task, artifact, part).await {
        Ok(Some(stored)) => Ok(stored),
        Ok(None) => Err(ProtocolError::task_not_found(task)),
        Err(error) => Err(engine.store_failed(&error)),
    }
}

/// What one update of a task wrote to an artifact, whole or one part of it. The whole write is held in memory while it
/// is sent; a write is never larger than a reply.
pub(crate) async fn update(
    engine: &EngineState,
    agent: &str,
    owner: &Owner,
    task: &TaskId,
    artifact: &ArtifactId,
    seq: u64,
    part: Option<u64>,
) -> Result<WrittenUpdate, ProtocolError> {
    let scope = Scope { owner: owner.clone(), agent: AgentName::from(agent) };
    let missing = || ProtocolError::task_not_found(task);
    let stored = engine.store.head(&scope, task).await.map_err(|error| engine.store_failed(&error))?;
    let stored = stored.filter(|stored| stored.head.phase == Phase::Live).ok_or_else(missing)?;
    let after = seq.checked_sub(1).filter(|after| *after < stored.head.seq).ok_or_else(missing)?;
    let page = match engine.store.log(stored.key, after, 1).await {
        Ok(page) => page,
        Err(StoreError::Pruned) => {
            let reason = "is no longer kept by itself; fetch the artifact without it";
            return Err(ProtocolError::invalid("update", reason));
        }
        Err(error) => return Err(engine.store_failed(&error)),
    };
    let written = page.commits.iter().find_map(|commit| {
        let mut updates = updates(task, &stored.head.context_id, commit.first_seq, &commit.events);
        updates.find(|(number, _)| *number == seq)
    });
    match written {
        Some((_, Update::Artifact(update))) if update.artifact.artifact_id == *artifact => {
            WrittenUpdate::of(seq, &update.artifact, part).ok_or_else(missing)
        }
        Some(_) | None => Err(missing()),
    }
}

/// Reads until there are bytes, or the end is reached.
pub(crate) async fn read_artifact(
    engine: &EngineState,
    mut cursor: ArtifactCursor,
    bytes_max: usize,
) -> Result<ArtifactPiece, ProtocolError> {
    loop {
        let piece = match engine.store.read_artifact(cursor, bytes_max).await {
            Ok(piece) => piece,
            Err(StoreError::Pruned) => {
                let reason = "the artifact was replaced or removed while it was read; begin again".to_owned();
                return Err(ProtocolError::Unavailable { reason, retry_after_s: 1 });
            }
            Err(error) => return Err(engine.store_failed(&error)),
        };
        if !piece.bytes.is_empty() || piece.next.is_at_end() {
            return Ok(piece);
        }
        cursor = piece.next;
    }
}
