//! Checks of `SendMessage`.

use serde_json::{Value, json};

use super::super::bench::{
    Bench, CONTENT_TYPE_NOT_SUPPORTED, Checked, INVALID_PARAMS, TASK_NOT_FOUND, UNSUPPORTED_OPERATION, as_skip, fault,
    hold, message, result_of, shown_json, skip, text_of,
};
use super::super::check::{Check, EVERYWHERE, JSON, JSONRPC, V1};
use super::super::wire::forms::{Form, Payload, State};
use super::super::wire::{Meaning, Operation};
use super::{each, must, should};

pub(super) const CHECKS: &[Check] = &[
    must(
        "send-answers",
        "CORE-SEND-001",
        "3.1.1",
        EVERYWHERE,
        "SendMessage MUST return a Task or a Message.",
        each!(answers),
    ),
    must(
        "send-blocks",
        "CORE-EXECUTION-MODE-001",
        "3.2.2",
        V1,
        "Unless returnImmediately is true, the operation MUST wait until the task is terminal or interrupted.",
        each!(blocks),
    ),
    must(
        "send-returns-immediately",
        "CORE-EXECUTION-MODE-002",
        "3.2.2",
        EVERYWHERE,
        "With returnImmediately the operation MUST return as soon as the task is created.",
        each!(returns_immediately),
    ),
    must(
        "send-new-task-id",
        "CORE-MULTI-003",
        "3.4.2",
        EVERYWHERE,
        "Agents MUST generate a unique taskId for each new task.",
        each!(new_task_id),
    ),
    must(
        "send-context-made",
        "CORE-MULTI-001a",
        "3.4.1",
        EVERYWHERE,
        "A contextId that the agent generated MUST be in its answer.",
        each!(context_made),
    ),
    must(
        "send-context-kept",
        "CORE-MULTI-002a",
        "3.4.1",
        EVERYWHERE,
        "An agent that does not accept the contextId of a client MUST refuse it and MUST NOT replace it.",
        each!(context_kept),
    ),
    must(
        "send-context-inferred",
        "CORE-MULTI-005",
        "3.4.3",
        EVERYWHERE,
        "Agents MUST infer the contextId from the task if only a taskId is given.",
        each!(context_inferred),
    ),
    must(
        "send-context-mismatch",
        "CORE-MULTI-006",
        "3.4.3",
        V1,
        "Agents MUST reject a message whose contextId is not that of its task.",
        each!(context_mismatch),
    ),
    must(
        "send-unknown-task",
        "CORE-MULTI-004",
        "3.4.2",
        EVERYWHERE,
        "A taskId that does not exist MUST give TaskNotFoundError.",
        each!(unknown_task),
    ),
    must(
        "send-terminal-task",
        "CORE-SEND-002",
        "3.1.1",
        V1,
        "A message to a task in a terminal state MUST give UnsupportedOperationError.",
        each!(terminal_task),
    ),
    must(
        "send-media-type",
        "CORE-SEND-003",
        "3.1.1, 3.3.2",
        V1,
        "A media type that the agent does not support MUST give ContentTypeNotSupportedError.",
        each!(media_type),
    ),
    must(
        "send-no-message",
        "CORE-ERR-002",
        "3.3.2, 5.7",
        EVERYWHERE,
        "Servers MUST validate all input: a request without its message is refused.",
        each!(no_message),
    ),
    must(
        "send-no-parts",
        "CORE-ERR-002, DM-SERIAL-004",
        "3.3.2, 5.7",
        V1,
        "The parts of a message are required, and a required list MUST have an element.",
        each!(no_parts),
    ),
    must(
        "send-parts-absent",
        "CORE-ERR-002, DM-SERIAL-004",
        "3.3.2, 5.7",
        JSONRPC,
        "Servers MUST validate all input: missing message parts are the example that the specification gives.",
        each!(parts_absent),
    ),
    should(
        "send-no-message-id",
        "DM-SERIAL-004",
        "5.7",
        V1,
        "Implementations SHOULD reject messages with missing required fields: here messageId.",
        each!(no_message_id),
    ),
    should(
        "send-unknown-fields",
        "DM-SERIAL-005",
        "5.7",
        JSON,
        "Implementations SHOULD ignore unrecognized fields.",
        each!(unknown_fields),
    ),
    should(
        "send-history-length",
        "CORE-HIST-003",
        "3.2.4",
        V1,
        "historyLength 0 in the configuration of a send SHOULD leave out the history.",
        each!(history_length),
    ),
];

async fn answers(bench: &Bench<'_>) -> Checked {
    let result = result_of(bench.sent().await?)?;
    match bench.form().payload(&result) {
        Payload::Task(_) | Payload::Message(_) => Ok(()),
        Payload::Status(_) | Payload::Artifact(_) | Payload::Unknown => {
            let expected = match bench.form() {
                Form::Kinds => "an object whose kind is task or message",
                Form::V1 | Form::Proto03 => "exactly one of the members task and message",
            };
            Err(fault(expected, shown_json(&result)))
        }
    }
}

async fn blocks(bench: &Bench<'_>) -> Checked {
    let task = match &bench.texts.slow {
        None => bench.task().await?.clone(),
        Some(text) => {
            let result = bench.result(Operation::Send, json!({ "message": message(text) })).await?;
            match bench.form().payload(&result) {
                Payload::Task(task) => task.clone(),
                _ => return Err(skip("the agent answered with a message")),
            }
        }
    };
    let is_settled = bench.form().state(&task).is_some_and(State::is_settled);
    hold(is_settled, "a task in a terminal or interrupted state", || shown_json(&task["status"]))
}

async fn returns_immediately(bench: &Bench<'_>) -> Checked {
    if bench.texts.slow.is_none() {
        return Err(skip("needs a text on which the agent works for some seconds: name one with --slow-text"));
    }
    let text = bench.texts.slow.as_deref().unwrap_or_default();
    let params = json!({ "message": message(text), "configuration": { "returnImmediately": true } });
    let result = bench.result(Operation::Send, params).await?;
    let Payload::Task(task) = bench.form().payload(&result) else {
        return Err(skip("the agent answered with a message"));
    };
    let is_early = bench.form().state(task).is_some_and(|state| !state.is_terminal());
    let came = shown_json(&task["status"]);
    bench.drop_task(task).await;
    hold(is_early, "a task that is not in a terminal state yet", || came)
}

async fn new_task_id(bench: &Bench<'_>) -> Checked {
    let first = text_of(bench.task().await?, "id").to_owned();
    let result = bench.result(Operation::Send, json!({ "message": message(&bench.texts.plain) })).await?;
    let Payload::Task(task) = bench.form().payload(&result) else { return Err(skip("the second answer is no task")) };
    hold(text_of(task, "id") != first, "another id than that of the task before", || format!("{first} twice"))
}

/// What was answered to a send: a task or a message.
fn answer<'v>(bench: &Bench<'_>, result: &'v Value) -> Result<&'v Value, super::super::bench::Finding> {
    match bench.form().payload(result) {
        Payload::Task(value) | Payload::Message(value) => Ok(value),
        _ => Err(skip("neither a task nor a message came: see send-answers")),
    }
}

async fn context_made(bench: &Bench<'_>) -> Checked {
    let result = result_of(bench.sent().await?).map_err(as_skip)?;
    let answer = answer(bench, &result)?;
    hold(!text_of(answer, "contextId").is_empty(), "a contextId", || shown_json(answer))
}

async fn context_kept(bench: &Bench<'_>) -> Checked {
    let own = super::super::fresh_id();
    let mut message = message(&bench.texts.plain);
    message["contextId"] = json!(own);
    let reply = bench.call(Operation::Send, json!({ "message": message })).await?;
    match &reply.meaning {
        Meaning::Refused(_) => Ok(()),
        Meaning::Nothing(_) => Err(fault("an answer in this context, or an error", reply.shown())),
        Meaning::Result(result) => {
            let answer = answer(bench, result)?;
            hold(text_of(answer, "contextId") == own, &format!("the contextId {own}, or an error"), || {
                shown_json(&answer["contextId"])
            })
        }
    }
}

async fn context_inferred(bench: &Bench<'_>) -> Checked {
    let task = bench.waiting().await?;
    let mut message = message(&bench.texts.plain);
    message["taskId"] = task["id"].clone();
    let result = bench.result(Operation::Send, json!({ "message": message })).await?;
    let answer = answer(bench, &result)?;
    hold(answer["contextId"] == task["contextId"], &format!("the contextId {}", shown_json(&task["contextId"])), || {
        shown_json(&answer["contextId"])
    })
}

async fn context_mismatch(bench: &Bench<'_>) -> Checked {
    let task = match bench.waiting().await {
        Ok(task) => task,
        Err(_) => bench.task().await?.clone(),
    };
    let mut message = message(&bench.texts.plain);
    message["taskId"] = task["id"].clone();
    message["contextId"] = json!(super::super::fresh_id());
    let reply = bench.call(Operation::Send, json!({ "message": message })).await?;
    bench.drop_task(&task).await;
    match &reply.meaning {
        Meaning::Refused(_) => Ok(()),
        Meaning::Result(_) | Meaning::Nothing(_) => Err(fault("an error", reply.shown())),
    }
}

async fn unknown_task(bench: &Bench<'_>) -> Checked {
    let mut message = message(&bench.texts.plain);
    message["taskId"] = json!(super::super::fresh_id());
    let reply = bench.call(Operation::Send, json!({ "message": message })).await?;
    bench.refused(&reply, &[&TASK_NOT_FOUND]).map(drop)
}

async fn terminal_task(bench: &Bench<'_>) -> Checked {
    let task = bench.finished().await?;
    let mut message = message(&bench.texts.plain);
    message["taskId"] = task["id"].clone();
    let reply = bench.call(Operation::Send, json!({ "message": message })).await?;
    bench.refused(&reply, &[&UNSUPPORTED_OPERATION]).map(drop)
}

async fn media_type(bench: &Bench<'_>) -> Checked {
    let skills =
        bench.card.json["skills"].as_array().into_iter().flatten().filter_map(|it| it["inputModes"].as_array());
    let mut modes = bench.card.json["defaultInputModes"].as_array().into_iter().chain(skills).flatten();
    if modes.any(|mode| mode.as_str().is_some_and(|mode| mode.contains('*'))) {
        return Err(skip("the card accepts any media type"));
    }
    let mut message = message("");
    message["parts"] = json!([{ "raw": "AAEC", "mediaType": "application/x-switchboard-unknown" }]);
    let reply = bench.call(Operation::Send, json!({ "message": message })).await?;
    bench.refused(&reply, &[&CONTENT_TYPE_NOT_SUPPORTED]).map(drop)
}

async fn no_message(bench: &Bench<'_>) -> Checked {
    let reply = bench.call(Operation::Send, json!({})).await?;
    bench.refused(&reply, &[&INVALID_PARAMS]).map(drop)
}

async fn no_parts(bench: &Bench<'_>) -> Checked {
    let mut message = message("");
    message["parts"] = json!([]);
    let reply = bench.call(Operation::Send, json!({ "message": message })).await?;
    bench.refused(&reply, &[&INVALID_PARAMS]).map(drop)
}

async fn parts_absent(bench: &Bench<'_>) -> Checked {
    let message = json!({ "messageId": super::super::fresh_id(), "role": "ROLE_USER" });
    let reply = bench.call(Operation::Send, json!({ "message": message })).await?;
    bench.refused(&reply, &[&INVALID_PARAMS]).map(drop)
}

async fn no_message_id(bench: &Bench<'_>) -> Checked {
    let message = json!({ "role": "ROLE_USER", "parts": [{ "text": bench.texts.plain }] });
    let reply = bench.call(Operation::Send, json!({ "message": message })).await?;
    bench.refused(&reply, &[&INVALID_PARAMS]).map(drop)
}

async fn unknown_fields(bench: &Bench<'_>) -> Checked {
    let mut message = message(&bench.texts.plain);
    message["xSwitchboardUnknown"] = json!({ "of": ["any", 1] });
    let reply = bench.call(Operation::Send, json!({ "message": message })).await?;
    match &reply.meaning {
        Meaning::Result(_) => Ok(()),
        Meaning::Refused(_) | Meaning::Nothing(_) => {
            Err(fault("the answer that a message without the unknown member gets", reply.shown()))
        }
    }
}

async fn history_length(bench: &Bench<'_>) -> Checked {
    let params = json!({ "message": message(&bench.texts.plain), "configuration": { "historyLength": 0 } });
    let result = bench.result(Operation::Send, params).await?;
    let Payload::Task(task) = bench.form().payload(&result) else { return Err(skip("the answer is no task")) };
    hold(task.get("history").is_none(), "no history", || shown_json(&task["history"]))
}
