//! Checks of `ListTasks`, which only 1.0 has.

use serde_json::{Value, json};
use switchboard_core::model::Timestamp;

use super::super::bench::{Bench, Checked, Finding, INVALID_PARAMS, fault, hold, shown_json, skip};
use super::super::check::{Check, JSON_V1, V1};
use super::super::wire::Operation;
use super::super::wire::forms::State;
use super::{each, must, should};

/// Pages of one task that are read before the checker gives up.
const PAGES_MAX: usize = 20;

pub(super) const CHECKS: &[Check] = &[
    must(
        "list-members",
        "CORE-LIST-004",
        "3.1.4",
        JSON_V1,
        "tasks, nextPageToken, pageSize and totalSize MUST always be present; nextPageToken is empty on the last page.",
        each!(members),
    ),
    must(
        "list-context",
        "CORE-LIST-001",
        "3.1.4",
        V1,
        "ListTasks with a contextId returns the tasks of that context and no others.",
        each!(context),
    ),
    must(
        "list-order",
        "CORE-LIST-003",
        "3.1.4",
        V1,
        "Tasks MUST be sorted by the timestamp of their status, newest first.",
        each!(order),
    ),
    must(
        "list-pages",
        "CORE-LIST-002",
        "3.1.4",
        V1,
        "ListTasks MUST use cursor-based pagination: pages together hold each task once.",
        each!(pages),
    ),
    must(
        "list-no-artifacts",
        "CORE-LIST-005",
        "3.1.4",
        V1,
        "Unless includeArtifacts is true, artifacts MUST be left out.",
        each!(no_artifacts),
    ),
    must(
        "list-artifacts",
        "CORE-LIST-005",
        "3.1.4",
        V1,
        "With includeArtifacts the artifacts of the tasks are returned.",
        each!(artifacts),
    ),
    must(
        "list-status",
        "CORE-LIST-001",
        "3.1.4",
        V1,
        "ListTasks with a status returns the tasks in that state and no others.",
        each!(status),
    ),
    must(
        "list-history",
        "CORE-HIST-002",
        "3.2.4",
        V1,
        "historyLength holds for the tasks of a list, too.",
        each!(history),
    ),
    should(
        "list-page-size",
        "CORE-ERR-002",
        "3.3.2, 6.5",
        V1,
        "Input is validated: pageSize must be between 1 and 100.",
        each!(page_size),
    ),
    should(
        "list-page-token",
        "CORE-ERR-002",
        "3.3.2",
        V1,
        "Input is validated: a pageToken that the server did not give out is refused.",
        each!(page_token),
    ),
];

async fn listed(bench: &Bench<'_>, more: Value) -> Result<(Value, Vec<Value>), Finding> {
    let mut params = json!({ "contextId": bench.shelf().await? });
    if let (Some(params), Some(more)) = (params.as_object_mut(), more.as_object()) {
        params.extend(more.clone());
    }
    let result = bench.result(Operation::List, params).await?;
    let tasks = result["tasks"].as_array().cloned().unwrap_or_default();
    Ok((result, tasks))
}

async fn members(bench: &Bench<'_>) -> Checked {
    let (result, _) = listed(bench, json!({})).await?;
    hold(result["tasks"].is_array(), "tasks, a list", || shown_json(&result))?;
    for name in ["pageSize", "totalSize"] {
        hold(result[name].is_i64(), &format!("{name}, a number"), || shown_json(&result[name]))?;
    }
    hold(result["nextPageToken"] == "", "nextPageToken, an empty text on the last page", || {
        shown_json(&result["nextPageToken"])
    })
}

async fn context(bench: &Bench<'_>) -> Checked {
    let context = bench.shelf().await?;
    let (_, tasks) = listed(bench, json!({})).await?;
    hold(tasks.len() >= 3, "the three tasks of the context", || format!("{} tasks", tasks.len()))?;
    let foreign = tasks.iter().find(|task| task["contextId"] != *context);
    foreign.map_or(Ok(()), |task| Err(fault(format!("contextId {context}"), shown_json(&task["contextId"]))))
}

async fn order(bench: &Bench<'_>) -> Checked {
    let (_, tasks) = listed(bench, json!({})).await?;
    let times: Vec<&str> = tasks.iter().filter_map(|task| task["status"]["timestamp"].as_str()).collect();
    let read: Vec<i64> = times.iter().filter_map(|it| Timestamp::parse_rfc3339(it)).map(Timestamp::as_ms).collect();
    if read.len() < 2 {
        return Err(skip("fewer than two tasks have a timestamp"));
    }
    hold(read.is_sorted_by(|newer, older| newer >= older), "the newest first", || times.join(", "))
}

async fn pages(bench: &Bench<'_>) -> Checked {
    let (_, whole) = listed(bench, json!({})).await?;
    let (mut seen, mut token) = (Vec::new(), String::new());
    for _ in 0..PAGES_MAX.max(whole.len() + 1) {
        let mut more = json!({ "pageSize": 1 });
        if !token.is_empty() {
            more["pageToken"] = json!(token);
        }
        let (result, tasks) = listed(bench, more).await?;
        hold(tasks.len() <= 1, "a page of at most one task", || format!("{} tasks", tasks.len()))?;
        seen.extend(tasks.into_iter().map(|task| task["id"].clone()));
        token = result["nextPageToken"].as_str().unwrap_or_default().to_owned();
        if token.is_empty() {
            break;
        }
    }
    hold(token.is_empty(), "an end of the pages", || format!("a token after {} pages", seen.len()))?;
    let whole: Vec<Value> = whole.into_iter().map(|task| task["id"].clone()).collect();
    hold(seen == whole, &format!("the same tasks as on one page: {}", shown_json(&json!(whole))), || {
        shown_json(&json!(seen))
    })
}

async fn no_artifacts(bench: &Bench<'_>) -> Checked {
    let (_, tasks) = listed(bench, json!({})).await?;
    let found = tasks.iter().find(|task| task.get("artifacts").is_some());
    found.map_or(Ok(()), |task| Err(fault("no artifacts", shown_json(&task["artifacts"]))))
}

async fn artifacts(bench: &Bench<'_>) -> Checked {
    if bench.task().await?["artifacts"].as_array().is_none_or(Vec::is_empty) {
        return Err(skip("the agent answers without artifacts"));
    }
    let (_, tasks) = listed(bench, json!({ "includeArtifacts": true })).await?;
    let found = tasks.iter().any(|task| task["artifacts"].as_array().is_some_and(|all| !all.is_empty()));
    hold(found, "tasks with their artifacts", || shown_json(&json!(tasks)))
}

async fn status(bench: &Bench<'_>) -> Checked {
    let task = bench.finished().await?;
    let state = &task["status"]["state"];
    let (_, same) = listed(bench, json!({ "status": state })).await?;
    hold(!same.is_empty(), &format!("the tasks in the state {state}"), || "no task".to_owned())?;
    let other =
        if bench.form().state(task) == Some(State::Rejected) { "TASK_STATE_FAILED" } else { "TASK_STATE_REJECTED" };
    let (_, others) = listed(bench, json!({ "status": other })).await?;
    hold(others.is_empty(), &format!("no task, since none is in the state {other}"), || shown_json(&json!(others)))
}

async fn history(bench: &Bench<'_>) -> Checked {
    let (_, tasks) = listed(bench, json!({ "historyLength": 0 })).await?;
    let found = tasks.iter().find(|task| task["history"].as_array().is_some_and(|all| !all.is_empty()));
    found.map_or(Ok(()), |task| Err(fault("no history", shown_json(&task["history"]))))
}

async fn page_size(bench: &Bench<'_>) -> Checked {
    let reply = bench.call(Operation::List, json!({ "pageSize": 101 })).await?;
    bench.refused(&reply, &[&INVALID_PARAMS]).map(drop)
}

async fn page_token(bench: &Bench<'_>) -> Checked {
    let reply = bench.call(Operation::List, json!({ "pageToken": "no token of this server" })).await?;
    bench.refused(&reply, &[&INVALID_PARAMS]).map(drop)
}
