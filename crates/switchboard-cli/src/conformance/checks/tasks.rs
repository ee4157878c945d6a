//! Checks of `GetTask` and `CancelTask`.

use serde_json::json;

use super::super::bench::{
    Bench, Checked, INVALID_PARAMS, NOT_CANCELABLE, TASK_NOT_FOUND, fault, hold, shown_json, skip,
};
use super::super::check::{Check, EVERYWHERE, V1};
use super::super::wire::forms::State;
use super::super::wire::{Meaning, Operation};
use super::{each, may, must, should};

pub(super) const CHECKS: &[Check] = &[
    must("get-task", "CORE-GET-001", "3.1.3", EVERYWHERE, "GetTask returns the current state of the task.", each!(get)),
    must(
        "get-unknown",
        "CORE-GET-002",
        "3.1.3",
        EVERYWHERE,
        "GetTask MUST return TaskNotFoundError for a task that does not exist.",
        each!(get_unknown),
    ),
    should(
        "get-history-zero",
        "CORE-HIST-001",
        "3.2.4",
        V1,
        "With historyLength 0 the history SHOULD be left out.",
        each!(history_zero),
    ),
    must(
        "get-history-limit",
        "CORE-HIST-002",
        "3.2.4",
        V1,
        "The server MUST NOT return more messages than historyLength.",
        each!(history_limit),
    ),
    should(
        "get-history-negative",
        "CORE-ERR-002",
        "3.3.2, 6.5",
        V1,
        "Input is validated: historyLength must be a non-negative integer.",
        each!(history_negative),
    ),
    may(
        "get-history-kept",
        "CORE-HIST-004",
        "3.2.4",
        V1,
        "An agent MAY keep the messages of a task as its history.",
        each!(history_kept),
    ),
    must(
        "cancel-running",
        "CORE-CANCEL-001",
        "3.1.5",
        EVERYWHERE,
        "CancelTask returns the updated task with its cancellation status.",
        each!(cancel_running),
    ),
    must(
        "cancel-terminal",
        "CORE-CANCEL-002",
        "3.1.5",
        EVERYWHERE,
        "CancelTask MUST return TaskNotCancelableError for a task in a terminal state.",
        each!(cancel_terminal),
    ),
    must(
        "cancel-unknown",
        "CORE-CANCEL-003",
        "3.1.5",
        EVERYWHERE,
        "CancelTask MUST return TaskNotFoundError for a task that does not exist.",
        each!(cancel_unknown),
    ),
];

async fn get(bench: &Bench<'_>) -> Checked {
    let task = bench.finished().await?;
    let got = bench.result(Operation::Get, json!({ "id": task["id"] })).await?;
    for name in ["id", "contextId", "status"] {
        hold(got[name] == task[name], &format!("{name}: {}", shown_json(&task[name])), || shown_json(&got[name]))?;
    }
    Ok(())
}

async fn get_unknown(bench: &Bench<'_>) -> Checked {
    bench.refused(bench.unknown().await?, &[&TASK_NOT_FOUND]).map(drop)
}

/// The history of the finished task, under a limit.
async fn history(bench: &Bench<'_>, length: i64) -> Result<usize, super::super::bench::Finding> {
    let task = bench.finished().await?;
    let got = bench.result(Operation::Get, json!({ "id": task["id"], "historyLength": length })).await?;
    Ok(got["history"].as_array().map_or(0, Vec::len))
}

async fn history_zero(bench: &Bench<'_>) -> Checked {
    let count = history(bench, 0).await?;
    hold(count == 0, "no history", || format!("{count} messages"))
}

async fn history_limit(bench: &Bench<'_>) -> Checked {
    // A task with two messages or more shows a limit of one.
    let Ok(task) = bench.waiting().await else {
        let count = history(bench, 1).await?;
        return hold(count <= 1, "at most 1 message", || format!("{count} messages"));
    };
    let mut message = super::super::bench::message(&bench.texts.plain);
    message["taskId"] = task["id"].clone();
    bench.result(Operation::Send, json!({ "message": message })).await?;
    let got = bench.result(Operation::Get, json!({ "id": task["id"], "historyLength": 1 })).await?;
    let count = got["history"].as_array().map_or(0, Vec::len);
    hold(count <= 1, "at most 1 message", || format!("{count} messages"))
}

async fn history_negative(bench: &Bench<'_>) -> Checked {
    let task = bench.finished().await?;
    let reply = bench.call(Operation::Get, json!({ "id": task["id"], "historyLength": -1 })).await?;
    bench.refused(&reply, &[&INVALID_PARAMS]).map(drop)
}

async fn history_kept(bench: &Bench<'_>) -> Checked {
    let task = bench.finished().await?;
    let got = bench.result(Operation::Get, json!({ "id": task["id"] })).await?;
    let count = got["history"].as_array().map_or(0, Vec::len);
    hold(count > 0, "a history", || "none, which is allowed".to_owned())
}

async fn cancel_running(bench: &Bench<'_>) -> Checked {
    let task = bench.running().await?;
    let reply = bench.call(Operation::Cancel, json!({ "id": task["id"] })).await?;
    match &reply.meaning {
        Meaning::Result(canceled) => {
            hold(canceled["id"] == task["id"], "the task", || shown_json(canceled))?;
            let is_canceled = bench.form().state(canceled) == Some(State::Canceled);
            hold(is_canceled, "the state canceled", || shown_json(&canceled["status"]))
        }
        // Cancellation is best effort: an agent may refuse it.
        Meaning::Refused(_) if bench.refused(&reply, &[&NOT_CANCELABLE]).is_ok() => {
            Err(skip("the agent does not let this task be canceled"))
        }
        Meaning::Refused(_) | Meaning::Nothing(_) => {
            Err(fault("the canceled task, or TaskNotCancelableError", reply.shown()))
        }
    }
}

async fn cancel_terminal(bench: &Bench<'_>) -> Checked {
    let task = bench.finished().await?;
    let reply = bench.call(Operation::Cancel, json!({ "id": task["id"] })).await?;
    bench.refused(&reply, &[&NOT_CANCELABLE]).map(drop)
}

async fn cancel_unknown(bench: &Bench<'_>) -> Checked {
    let reply = bench.call(Operation::Cancel, json!({ "id": super::super::fresh_id() })).await?;
    bench.refused(&reply, &[&TASK_NOT_FOUND]).map(drop)
}
