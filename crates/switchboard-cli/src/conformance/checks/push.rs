//! Checks of the four calls on push notification configurations. Nothing is delivered: the task has ended, or its webhook is at an
//! address that is reserved for documentation. What is delivered is looked at in `delivery`.

use serde_json::{Value, json};

use super::super::bench::{
    Bench, Checked, Finding, PUSH_NOT_SUPPORTED, TASK_NOT_FOUND, as_skip, fault, hold, shown_json, skip, text_of,
};
use super::super::check::{Check, EVERYWHERE, Needs, V1};
use super::super::wire::{Meaning, Operation};
use super::{each, must};

const WEBHOOK: &str = "https://example.com/switchboard-conformance";

pub(super) const CHECKS: &[Check] = &[
    must(
        "push-create",
        "PUSH-CREATE-001",
        "3.1.7",
        EVERYWHERE,
        "CreateTaskPushNotificationConfig MUST establish the webhook and return its configuration.",
        each!(create),
    )
    .needs(Needs::Push),
    must(
        "push-get",
        "PUSH-GET-001",
        "3.1.8",
        EVERYWHERE,
        "GetTaskPushNotificationConfig MUST return the configuration.",
        each!(get),
    )
    .needs(Needs::Push),
    must(
        "push-get-unknown",
        "PUSH-GET-002",
        "3.1.8",
        EVERYWHERE,
        "GetTaskPushNotificationConfig MUST fail if there is no such configuration.",
        each!(get_unknown),
    )
    .needs(Needs::Push),
    must(
        "push-list",
        "PUSH-LIST-001",
        "3.1.9",
        EVERYWHERE,
        "ListTaskPushNotificationConfigs MUST return all active configurations of the task.",
        each!(list),
    )
    .needs(Needs::Push),
    must(
        "push-delete",
        "PUSH-DEL-001",
        "3.1.10",
        EVERYWHERE,
        "DeleteTaskPushNotificationConfig MUST remove the configuration for good.",
        each!(delete),
    )
    .needs(Needs::Push),
    must(
        "push-delete-twice",
        "PUSH-DEL-002",
        "3.1.10",
        EVERYWHERE,
        "DeleteTaskPushNotificationConfig MUST be idempotent.",
        each!(delete_twice),
    )
    .needs(Needs::Push),
    must(
        "push-unknown-task",
        "PUSH-CREATE-001",
        "3.1.7",
        EVERYWHERE,
        "A configuration for a task that does not exist gives TaskNotFoundError.",
        each!(unknown_task),
    )
    .needs(Needs::Push),
    must(
        "push-not-declared",
        "CORE-CAP-001",
        "3.3.4",
        V1,
        "Without the capability, these calls MUST give PushNotificationNotSupportedError.",
        each!(not_declared),
    )
    .needs(Needs::NoPush),
];

fn config(task: &Value) -> Value {
    json!({ "taskId": task["id"], "id": super::super::fresh_id(), "url": WEBHOOK, "token": "switchboard-conformance" })
}

/// A task to register a webhook for, preferably one that has not ended.
async fn task(bench: &Bench<'_>) -> Result<Value, Finding> {
    match bench.waiting().await {
        Ok(task) => Ok(task),
        Err(_) => bench.task().await.cloned(),
    }
}

/// A configuration that was just made: its task, and its id.
async fn made(bench: &Bench<'_>) -> Result<(Value, String), Finding> {
    let task = task(bench).await?;
    let created = bench.result(Operation::CreatePush, config(&task)).await.map_err(as_skip)?;
    let (id, _) = bench.form().push_config(&created);
    Ok((task, id.ok_or_else(|| skip("the configuration has no id: see push-create"))?))
}

async fn create(bench: &Bench<'_>) -> Checked {
    let task = task(bench).await?;
    let created = bench.result(Operation::CreatePush, config(&task)).await?;
    let (id, url) = bench.form().push_config(&created);
    hold(id.is_some(), "a configuration with an id", || shown_json(&created))?;
    hold(url.as_deref() == Some(WEBHOOK), &format!("the url {WEBHOOK}"), || shown_json(&created))
}

async fn get(bench: &Bench<'_>) -> Checked {
    let (task, id) = made(bench).await?;
    let got = bench.result(Operation::GetPush, json!({ "taskId": task["id"], "id": id })).await?;
    let (got_id, url) = bench.form().push_config(&got);
    let is_same = got_id.as_ref() == Some(&id) && url.as_deref() == Some(WEBHOOK);
    hold(is_same, &format!("the configuration {id} with the url {WEBHOOK}"), || shown_json(&got))
}

async fn get_unknown(bench: &Bench<'_>) -> Checked {
    let task = task(bench).await?;
    let params = json!({ "taskId": task["id"], "id": super::super::fresh_id() });
    let reply = bench.call(Operation::GetPush, params).await?;
    match &reply.meaning {
        Meaning::Refused(_) => Ok(()),
        Meaning::Result(_) | Meaning::Nothing(_) => Err(fault("an error", reply.shown())),
    }
}

async fn listed(bench: &Bench<'_>, task: &Value) -> Result<Vec<String>, Finding> {
    let listed = bench.result(Operation::ListPush, json!({ "taskId": text_of(task, "id") })).await?;
    let all = bench.form().push_configs(&listed);
    Ok(all.iter().filter_map(|config| bench.form().push_config(config).0).collect())
}

async fn list(bench: &Bench<'_>) -> Checked {
    let (task, id) = made(bench).await?;
    let ids = listed(bench, &task).await?;
    hold(ids.contains(&id), &format!("a list with {id}"), || shown_json(&json!(ids)))
}

async fn delete(bench: &Bench<'_>) -> Checked {
    let (task, id) = made(bench).await?;
    bench.result(Operation::DeletePush, json!({ "taskId": task["id"], "id": id })).await?;
    let reply = bench.call(Operation::GetPush, json!({ "taskId": task["id"], "id": id })).await?;
    match &reply.meaning {
        Meaning::Refused(_) => Ok(()),
        Meaning::Result(_) | Meaning::Nothing(_) => Err(fault("an error, since it was deleted", reply.shown())),
    }
}

async fn delete_twice(bench: &Bench<'_>) -> Checked {
    let (task, id) = made(bench).await?;
    let params = json!({ "taskId": task["id"], "id": id });
    bench.result(Operation::DeletePush, params.clone()).await.map_err(as_skip)?;
    bench.result(Operation::DeletePush, params).await.map(drop)
}

async fn unknown_task(bench: &Bench<'_>) -> Checked {
    let reply = bench.call(Operation::CreatePush, config(&json!({ "id": super::super::fresh_id() }))).await?;
    bench.refused(&reply, &[&TASK_NOT_FOUND]).map(drop)
}

async fn not_declared(bench: &Bench<'_>) -> Checked {
    let reply = bench.call(Operation::CreatePush, config(&json!({ "id": super::super::fresh_id() }))).await?;
    bench.refused(&reply, &[&PUSH_NOT_SUPPORTED]).map(drop)
}
