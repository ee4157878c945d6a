//! Push configurations of a task: create or replace, get, list, delete.

use std::sync::Arc;

use switchboard_core::call::{Caller, PushConfigPage, Reply};
use switchboard_core::error::ProtocolError;
use switchboard_core::model::{ConfigId, PushConfig, TaskId};

use crate::commit::{AppendError, Extras, Step, WriteError, contended};
use crate::ports::store::{PushChange, StoredHead};
use crate::push::put_config;
use crate::runs::Registered;
use crate::state::EngineState;
use crate::state::record::Record;

pub(crate) async fn create(
    engine: &EngineState,
    agent: &Registered,
    caller: &Caller,
    mut config: PushConfig,
) -> Result<Reply, ProtocolError> {
    agent.require_push()?;
    let field = |name: &str| format!("{}{name}", caller.dialect.rules().words.push_config);
    engine.webhook.check(&config.url).map_err(|why| ProtocolError::invalid(field("url"), why))?;
    if let Some(asked) = engine.webhook.challenge(&config.url) {
        asked.await.map_err(|why| ProtocolError::invalid(field("url"), why))?;
    }
    if config.id.is_empty() {
        config.id = engine.uuid().into();
    }
    let id = config.task_id.clone();
    change(engine, agent, caller, &id, |record, configs| {
        let after_seq = record.with_head(|head| head.seq);
        let put = PushChange::Put { config: config.clone(), dialect: caller.dialect, after_seq };
        let put = put_config(configs, put, engine.limits.push_configs_max);
        put.map(Some).map_err(|full| ProtocolError::invalid(field("id"), full))
    })
    .await?;
    Ok(Reply::PushConfig(config))
}

pub(crate) async fn get(
    engine: &EngineState,
    agent: &Registered,
    caller: &Caller,
    task_id: &TaskId,
    id: &ConfigId,
) -> Result<Reply, ProtocolError> {
    agent.require_push()?;
    let configs = read(engine, agent, caller, task_id).await?;
    // Clients of older protocol versions may leave the config id out. The same config is chosen every time.
    let found = match id.is_empty() {
        true => configs.into_iter().min_by(|a, b| a.id.cmp(&b.id)),
        false => configs.into_iter().find(|config| config.id == *id),
    };
    let missing = || ProtocolError::PushConfigNotFound { task_id: task_id.clone(), id: id.clone() };
    found.map(Reply::PushConfig).ok_or_else(missing)
}

pub(crate) async fn list(
    engine: &EngineState,
    agent: &Registered,
    caller: &Caller,
    task_id: &TaskId,
    page_size: Option<u32>,
    page_token: Option<String>,
) -> Result<Reply, ProtocolError> {
    agent.require_push()?;
    let mut configs = read(engine, agent, caller, task_id).await?;
    configs.sort_by(|a, b| a.id.cmp(&b.id));
    // A task keeps few configs, so the token is simply the id of the last one shown.
    if let Some(after) = page_token.filter(|token| !token.is_empty()) {
        if !configs.iter().any(|config| config.id.as_str() == after) {
            return Err(ProtocolError::invalid("pageToken", "is not a token this server gave out"));
        }
        configs.retain(|config| config.id.as_str() > after.as_str());
    }
    let page_size = page_size.filter(|size| *size > 0).unwrap_or(engine.limits.list_page_size_default) as usize;
    let more = configs.len() > page_size;
    configs.truncate(page_size);
    let last = configs.last().filter(|_| more).map(|config| config.id.to_string());
    Ok(Reply::PushConfigs(PushConfigPage { configs, next_page_token: last.unwrap_or_default() }))
}

pub(crate) async fn delete(
    engine: &EngineState,
    agent: &Registered,
    caller: &Caller,
    task_id: &TaskId,
    id: &ConfigId,
) -> Result<Reply, ProtocolError> {
    agent.require_push()?;
    change(engine, agent, caller, task_id, |_, configs| {
        // Spec 3.1.10: deleting twice is no error.
        let known = configs.iter().any(|config| config.id == *id);
        Ok(known.then(|| vec![PushChange::Delete { id: id.clone() }]))
    })
    .await?;
    Ok(Reply::Deleted)
}

async fn read(
    engine: &EngineState,
    agent: &Registered,
    caller: &Caller,
    task_id: &TaskId,
) -> Result<Vec<PushConfig>, ProtocolError> {
    let stored = engine.live_task(&engine.scope(caller, agent), task_id).await?;
    engine.store.push_configs(stored.key).await.map_err(|error| engine.store_failed(&error))
}

/// Changes a task's configs by a commit without events, because commits are the only way to write.
async fn change(
    engine: &EngineState,
    agent: &Registered,
    caller: &Caller,
    task_id: &TaskId,
    decide: impl Fn(&Record, &[PushConfig]) -> Result<Option<Vec<PushChange>>, ProtocolError>,
) -> Result<(), ProtocolError> {
    let scope = engine.scope(caller, agent);
    let stored = engine.live_task(&scope, task_id).await?;
    let key = stored.key;
    let record = Record::stored(StoredHead { key, scope, head: stored.head });
    for _ in 0..engine.limits.commit_attempts_max {
        let configs = engine.store.push_configs(key).await.map_err(|error| engine.store_failed(&error))?;
        let Some(push) = decide(&record, &configs)? else { return Ok(()) };
        let extras = Extras { push, ..Extras::default() };
        match engine.append(&record, Step::from(&record.head(), Arc::from([]), engine.now()), None, extras).await {
            Ok(()) => return Ok(()),
            Err(AppendError::Conflict) => engine.reload(&record).await.map_err(WriteError::into_protocol)?,
            Err(AppendError::Write(error)) => return Err(error.into_protocol()),
        }
    }
    Err(contended(&record.id))
}
