//! Checks of `SendStreamingMessage` and `SubscribeToTask`.

use serde_json::{Value, json};

use super::super::bench::{
    Bench, Checked, Finding, TASK_NOT_FOUND, UNSUPPORTED_OPERATION, fault, hold, message, shown_end, shown_head,
    shown_json,
};
use super::super::check::{Check, EVERYWHERE, JSON, JSONRPC, Needs, V1};
use super::super::wire::forms::{Form, Payload, State};
use super::super::wire::{Events, Meaning, Operation, Reply, StreamEnd, StreamEvent, Streamed};
use super::{each, must};

pub(super) const CHECKS: &[Check] = &[
    must(
        "stream-opens",
        "CORE-STREAM-001",
        "3.1.2",
        EVERYWHERE,
        "SendStreamingMessage MUST establish a streaming connection.",
        each!(opens),
    )
    .needs(Needs::Streaming),
    must(
        "stream-content-type",
        "JSONRPC-SSE-001, HTTP_JSON-SSE-001",
        "9.4.2, 11.7",
        JSON,
        "A stream MUST be server-sent events with the content type text/event-stream.",
        each!(content_type),
    )
    .needs(Needs::Streaming),
    must(
        "stream-framing",
        "JSONRPC-SSE-001, HTTP_JSON-SSE-001",
        "9.4.2, 11.7",
        JSON,
        "The data of each event MUST be one JSON document: a JSON-RPC response, or a StreamResponse.",
        each!(framing),
    )
    .needs(Needs::Streaming),
    must(
        "stream-rpc-id",
        "JSONRPC-SSE-001",
        "9.4.2",
        JSONRPC,
        "Each event MUST be a JSON-RPC response with the id of the request.",
        each!(rpc_id),
    )
    .needs(Needs::Streaming),
    must(
        "stream-one-payload",
        "CORE-STREAM-001",
        "3.2.3",
        EVERYWHERE,
        "A StreamResponse MUST hold exactly one of task, message, statusUpdate and artifactUpdate.",
        each!(one_payload),
    )
    .needs(Needs::Streaming),
    must(
        "stream-first",
        "CORE-STREAM-003",
        "3.1.2",
        V1,
        "The stream of a task MUST begin with the Task.",
        each!(first),
    )
    .needs(Needs::Streaming),
    must(
        "stream-message-alone",
        "CORE-STREAM-002",
        "3.1.2",
        EVERYWHERE,
        "A stream with a Message MUST hold that one Message and nothing else.",
        each!(message_alone),
    )
    .needs(Needs::Streaming),
    must(
        "stream-same-task",
        "CORE-STREAM-003",
        "4.2.1, 4.2.2",
        EVERYWHERE,
        "Updates MUST carry the taskId and the contextId of their task.",
        each!(same_task),
    )
    .needs(Needs::Streaming),
    must(
        "stream-order",
        "STREAM-ORDER-001",
        "3.5.2",
        EVERYWHERE,
        "Events MUST be delivered in the order in which they came about: nothing changes after a terminal state.",
        each!(order),
    )
    .needs(Needs::Streaming),
    must(
        "stream-ends",
        "CORE-STREAM-003",
        "3.1.2",
        EVERYWHERE,
        "The stream MUST close when the task reaches a terminal state, which it shows before.",
        each!(ends),
    )
    .needs(Needs::Streaming),
    must(
        "stream-equals-task",
        "STREAM-ORDER-001",
        "3.1.2, 3.1.3",
        EVERYWHERE,
        "What a stream ended with is what GetTask returns.",
        each!(equals_task),
    )
    .needs(Needs::Streaming),
    must(
        "stream-refused-plainly",
        "CORE-ERR-001",
        "9.5, 11.6",
        JSON,
        "A streaming call that fails at once is answered with an error of its binding.",
        each!(refused_plainly),
    )
    .needs(Needs::Streaming),
    must(
        "stream-not-declared",
        "CORE-CAP-002",
        "3.3.4",
        V1,
        "Without the capability, streaming calls MUST give UnsupportedOperationError.",
        each!(not_declared),
    )
    .needs(Needs::NoStreaming),
    must(
        "subscribe-first",
        "STREAM-SUB-001",
        "3.1.6",
        V1,
        "SubscribeToTask MUST return the Task as the first event.",
        each!(subscribe_first),
    )
    .needs(Needs::Streaming),
    must(
        "subscribe-ends",
        "STREAM-SUB-002",
        "3.1.6",
        V1,
        "The stream of a subscription MUST end when the task reaches a terminal state.",
        each!(subscribe_ends),
    )
    .needs(Needs::Streaming),
    must(
        "subscribe-alike",
        "STREAM-ORDER-002, STREAM-ORDER-003",
        "3.5.2",
        V1,
        "Events MUST go to all streams of a task, to each in the same order.",
        each!(subscribe_alike),
    )
    .needs(Needs::Streaming),
    must(
        "subscribe-leaving",
        "STREAM-ORDER-004",
        "3.5.2",
        V1,
        "Closing a stream MUST NOT affect other streams or the task.",
        each!(subscribe_leaving),
    )
    .needs(Needs::Streaming),
    must(
        "subscribe-terminal",
        "STREAM-SUB-003",
        "3.1.6",
        V1,
        "SubscribeToTask MUST return UnsupportedOperationError for a task in a terminal state.",
        each!(subscribe_terminal),
    )
    .needs(Needs::Streaming),
    must(
        "subscribe-unknown",
        "STREAM-SUB-004",
        "3.1.6",
        EVERYWHERE,
        "SubscribeToTask MUST return TaskNotFoundError for a task that does not exist.",
        each!(subscribe_unknown),
    )
    .needs(Needs::Streaming),
];

/// The state that an event shows, if it shows one.
fn state(form: Form, event: &StreamEvent) -> Option<State> {
    match form.payload(&event.payload) {
        Payload::Task(value) | Payload::Status(value) => form.state(value),
        Payload::Message(_) | Payload::Artifact(_) | Payload::Unknown => None,
    }
}

fn is_message(form: Form, event: &StreamEvent) -> bool {
    matches!(form.payload(&event.payload), Payload::Message(_))
}

async fn opens(bench: &Bench<'_>) -> Checked {
    match bench.streamed().await? {
        Streamed::Events(events) => hold(!events.all.is_empty(), "at least one event", || shown_end(events)),
        Streamed::Whole(reply) => Err(fault("a stream", format!("{}; {}", shown_head(&reply.raw), reply.shown()))),
    }
}

async fn content_type(bench: &Bench<'_>) -> Checked {
    let raw = match bench.streamed().await? {
        Streamed::Events(events) => &events.raw,
        Streamed::Whole(reply) => &reply.raw,
    };
    hold(raw.media_type() == "text/event-stream", "Content-Type: text/event-stream", || shown_head(raw))
}

async fn framing(bench: &Bench<'_>) -> Checked {
    let events = bench.events().await?;
    match events.all.iter().find_map(|event| event.fault.as_ref()) {
        Some(why) => Err(fault("events whose data is one JSON document", why)),
        None => match &events.end {
            StreamEnd::Broken(why) => Err(fault("an orderly end of the stream", why)),
            StreamEnd::Closed | StreamEnd::Left | StreamEnd::TimedOut => Ok(()),
        },
    }
}

async fn rpc_id(bench: &Bench<'_>) -> Checked {
    let events = bench.events().await?;
    for event in &events.all {
        hold(event.json["jsonrpc"] == "2.0", "jsonrpc: \"2.0\"", || shown_json(&event.json))?;
        hold(event.json["id"] == events.asked_id, &format!("id: {}", events.asked_id), || {
            shown_json(&event.json["id"])
        })?;
    }
    Ok(())
}

async fn one_payload(bench: &Bench<'_>) -> Checked {
    let form = bench.form();
    let wrong = bench.events().await?.all.iter().find(|event| form.payload(&event.payload) == Payload::Unknown);
    let expected = match form {
        Form::Kinds => "an object whose kind is task, message, status-update or artifact-update",
        Form::V1 | Form::Proto03 => "exactly one of task, message, statusUpdate and artifactUpdate",
    };
    wrong.map_or(Ok(()), |event| Err(fault(expected, shown_json(&event.json))))
}

async fn first(bench: &Bench<'_>) -> Checked {
    let events = bench.events().await?;
    hold(is_first_right(bench.form(), events), "a task, or one message", || shown_json(&events.all[0].payload))
}

fn is_first_right(form: Form, events: &Events) -> bool {
    events
        .all
        .first()
        .is_some_and(|event| matches!(form.payload(&event.payload), Payload::Task(_) | Payload::Message(_)))
}

async fn message_alone(bench: &Bench<'_>) -> Checked {
    let events = bench.events().await?;
    if !events.all.iter().any(|event| is_message(bench.form(), event)) {
        return Err(super::super::bench::skip("the agent answers with a task"));
    }
    hold(events.all.len() == 1, "one event", || format!("{} events", events.all.len()))?;
    hold(events.end == StreamEnd::Closed, "a closed stream", || shown_end(events))
}

async fn same_task(bench: &Bench<'_>) -> Checked {
    let (form, events) = (bench.form(), bench.events().await?);
    let mut known: Option<(Value, Value)> = None;
    for event in &events.all {
        let ids = match form.payload(&event.payload) {
            Payload::Task(task) => (task["id"].clone(), task["contextId"].clone()),
            Payload::Status(update) | Payload::Artifact(update) => {
                (update["taskId"].clone(), update["contextId"].clone())
            }
            Payload::Message(_) | Payload::Unknown => continue,
        };
        let known = known.get_or_insert_with(|| ids.clone());
        hold(*known == ids, &format!("taskId {} and contextId {}", known.0, known.1), || shown_json(&event.payload))?;
    }
    Ok(())
}

async fn order(bench: &Bench<'_>) -> Checked {
    let (form, events) = (bench.form(), bench.events().await?);
    let mut ended = None;
    for event in &events.all {
        // A server may repeat the whole task before it closes the stream.
        let is_snapshot = matches!(form.payload(&event.payload), Payload::Task(_));
        let now = state(form, event);
        if let Some(before) = ended {
            let is_same = is_snapshot && now == Some(before);
            hold(is_same, &format!("nothing after the state {before:?}"), || shown_json(&event.payload))?;
        }
        ended = ended.or(now.filter(|state| state.is_terminal()));
    }
    Ok(())
}

async fn ends(bench: &Bench<'_>) -> Checked {
    let (form, events) = (bench.form(), bench.events().await?);
    if events.all.iter().any(|event| is_message(form, event)) {
        return hold(events.end == StreamEnd::Closed, "a closed stream", || shown_end(events));
    }
    let last = events.all.iter().rev().find_map(|event| state(form, event));
    let is_settled = last.is_some_and(State::is_settled);
    hold(is_settled, "a terminal or interrupted state before the end", || shown_end(events))?;
    // Whether a stream stays open while the client is asked is left to the server.
    let may_stay_open = last.is_some_and(|state| !state.is_terminal());
    hold(may_stay_open || events.end == StreamEnd::Closed, "a closed stream", || shown_end(events))
}

async fn equals_task(bench: &Bench<'_>) -> Checked {
    let (form, events) = (bench.form(), bench.events().await?);
    let Some(id) = events.all.iter().find_map(|event| match form.payload(&event.payload) {
        Payload::Task(task) => Some(task["id"].clone()),
        Payload::Status(update) | Payload::Artifact(update) => Some(update["taskId"].clone()),
        Payload::Message(_) | Payload::Unknown => None,
    }) else {
        return Err(super::super::bench::skip("the agent answers with a message"));
    };
    let streamed = events.all.iter().rev().find_map(|event| state(form, event));
    let task = bench.result(Operation::Get, json!({ "id": id })).await?;
    let stored = form.state(&task);
    hold(streamed == stored, &format!("the state {streamed:?}, with which the stream ended"), || format!("{stored:?}"))
}

/// The answer to a streaming call that must be refused. An error may also come as the only event of a stream.
async fn refusal(bench: &Bench<'_>, operation: Operation, params: Value) -> Result<Reply, Finding> {
    match bench.follow(operation, params, &|_| true).await? {
        Streamed::Whole(reply) => Ok(*reply),
        Streamed::Events(events) => {
            let Some(event) = events.all.first() else { return Err(fault("an error", shown_end(&events))) };
            let mut raw = events.raw.clone();
            raw.body = event.json.to_string().into();
            let is_error = event.json.get("error").is_some();
            hold(is_error, "an error", || format!("a stream that begins with {}", shown_json(&event.payload)))?;
            let meaning = super::super::wire::http::jsonrpc_meaning(&raw, false);
            Ok(Reply { raw, meaning })
        }
    }
}

async fn refused_plainly(bench: &Bench<'_>) -> Checked {
    let streamed = bench.follow(Operation::Stream, json!({}), &|_| true).await?;
    match streamed {
        Streamed::Whole(reply) => match &reply.meaning {
            Meaning::Refused(_) => Ok(()),
            Meaning::Result(_) | Meaning::Nothing(_) => Err(fault("an error", reply.shown())),
        },
        Streamed::Events(events) => {
            let is_error = events.all.first().is_some_and(|event| event.json.get("error").is_some());
            hold(is_error, "an error, since the request has no message", || shown_end(&events))
        }
    }
}

async fn not_declared(bench: &Bench<'_>) -> Checked {
    let params = json!({ "message": message(&bench.texts.plain) });
    let reply = refusal(bench, Operation::Stream, params).await?;
    bench.refused(&reply, &[&UNSUPPORTED_OPERATION]).map(drop)
}

/// A task that can be subscribed to: at work if the agent is slow enough, else waiting for its client.
async fn live(bench: &Bench<'_>) -> Result<Value, Finding> {
    match bench.running().await {
        Ok(task) => Ok(task),
        Err(why) => bench.waiting().await.map_err(|_| why),
    }
}

async fn subscribe_first(bench: &Bench<'_>) -> Checked {
    let task = live(bench).await?;
    let events = bench.subscribed(&task, &|all| !all.is_empty()).await;
    bench.drop_task(&task).await;
    let events = events?;
    let Some(event) = events.all.first() else { return Err(fault("the task", shown_end(&events))) };
    match bench.form().payload(&event.payload) {
        Payload::Task(shown) => hold(shown["id"] == task["id"], "this task", || shown_json(&shown["id"])),
        _ => Err(fault("the task", shown_json(&event.payload))),
    }
}

async fn subscribe_ends(bench: &Bench<'_>) -> Checked {
    let task = bench.running().await?;
    let events = bench.subscribed(&task, &|_| false).await?;
    let last = events.all.iter().rev().find_map(|event| state(bench.form(), event));
    let is_settled = last.is_some_and(State::is_settled);
    hold(is_settled, "a terminal or interrupted state", || shown_end(&events))?;
    let may_stay_open = last.is_some_and(|state| !state.is_terminal());
    hold(may_stay_open || events.end == StreamEnd::Closed, "a closed stream", || shown_end(&events))
}

/// The updates of a stream, without the task that it begins with and the one that it may end with.
fn updates(form: Form, events: &Events) -> Vec<Value> {
    let is_update = |event: &&StreamEvent| !matches!(form.payload(&event.payload), Payload::Task(_));
    events.all.iter().filter(is_update).map(|event| event.payload.clone()).collect()
}

async fn subscribe_alike(bench: &Bench<'_>) -> Checked {
    let task = bench.running().await?;
    let (first, second) = tokio::join!(bench.subscribed(&task, &|_| false), bench.subscribed(&task, &|_| false));
    let (first, second) = (updates(bench.form(), &first?), updates(bench.form(), &second?));
    // They may have begun at different moments, so the shorter one is the end of the longer one.
    let (long, short) = if first.len() >= second.len() { (first, second) } else { (second, first) };
    hold(long.ends_with(&short) && !short.is_empty(), "the same updates in both streams", || {
        format!("{} updates in one and {} in the other, which are not its last ones", long.len(), short.len())
    })
}

async fn subscribe_leaving(bench: &Bench<'_>) -> Checked {
    let task = bench.running().await?;
    bench.subscribed(&task, &|all| !all.is_empty()).await?;
    let again = bench.subscribed(&task, &|_| false).await;
    let now = bench.result(Operation::Get, json!({ "id": task["id"] })).await?;
    let is_canceled = bench.form().state(&now) == Some(State::Canceled);
    let expected = "a task that goes on after a client has left";
    hold(!is_canceled, expected, || shown_json(&now["status"]))?;
    let events = again?;
    let last = events.all.iter().rev().find_map(|event| state(bench.form(), event));
    hold(last.is_some_and(State::is_settled), expected, || shown_end(&events))
}

async fn subscribe_terminal(bench: &Bench<'_>) -> Checked {
    let task = bench.finished().await?;
    let reply = refusal(bench, Operation::Subscribe, json!({ "id": task["id"] })).await?;
    bench.refused(&reply, &[&UNSUPPORTED_OPERATION]).map(drop)
}

async fn subscribe_unknown(bench: &Bench<'_>) -> Checked {
    let reply = refusal(bench, Operation::Subscribe, json!({ "id": super::super::fresh_id() })).await?;
    bench.refused(&reply, &[&TASK_NOT_FOUND]).map(drop)
}
