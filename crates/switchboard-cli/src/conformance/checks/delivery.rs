//! Checks of the webhooks that the agent posts. They need an address at which webhooks arrive, and are skipped without one.

use std::time::Duration;

use serde_json::json;

use super::super::bench::{Bench, Checked, Delivered, Finding, as_skip, fault, hold, shown_json, skip, text_of};
use super::super::check::{Check, EVERYWHERE, Needs, V1};
use super::super::receiver::Delivery;
use super::super::wire::forms::{Form, Payload};
use super::super::wire::{Operation, Version, shown};
use super::{each, must, should};

/// How long a task that must post nothing is looked at, and how often.
const SILENCE_WAIT_MAX: Duration = Duration::from_secs(10);
const SILENCE_LOOK: Duration = Duration::from_millis(100);
/// After the end of that task.
const SILENCE_AFTER: Duration = Duration::from_millis(500);

pub(super) const CHECKS: &[Check] = &[
    must(
        "push-delivered",
        "PUSH-DELIVER-002",
        "4.3.3",
        EVERYWHERE,
        "Agents MUST attempt delivery at least once for each configured webhook.",
        each!(delivered),
    )
    .needs(Needs::Push),
    must(
        "push-delivered-credentials",
        "PUSH-DELIVER-001",
        "4.3.3, 13.2",
        V1,
        "Agents MUST include authentication credentials in webhook requests as the configuration says.",
        each!(credentials),
    )
    .needs(Needs::Push),
    must(
        "push-delivered-payload",
        "PUSH-DELIVER-003",
        "4.3.3",
        EVERYWHERE,
        "A webhook is a StreamResponse with exactly one of task, message, statusUpdate and artifactUpdate (before 1.0: the task).",
        each!(payload),
    )
    .needs(Needs::Push),
    should(
        "push-delivered-content-type",
        "PUSH-DELIVER-003",
        "4.3.3",
        V1,
        "A webhook has the content type application/a2a+json.",
        each!(content_type),
    )
    .needs(Needs::Push),
    must(
        "push-delete-stops",
        "PUSH-DEL-001",
        "3.1.10",
        V1,
        "No further notifications will be sent to the configured webhook after deletion.",
        each!(delete_stops),
    )
    .needs(Needs::Push),
];

/// The first webhook; without one, another check has said so.
fn first(delivered: &Delivered) -> Result<&Delivery, Finding> {
    delivered.all.first().ok_or_else(|| skip("no webhook came: see push-delivered"))
}

async fn delivered(bench: &Bench<'_>) -> Checked {
    let delivered = bench.delivered().await?;
    hold(!delivered.all.is_empty(), "a webhook within some seconds", || "none came".to_owned())
}

async fn credentials(bench: &Bench<'_>) -> Checked {
    let delivered = bench.delivered().await?;
    let expected = &delivered.authorization;
    let came = first(delivered)?.header("authorization");
    hold(came == expected.as_str(), &format!("Authorization: {expected}"), || match came.is_empty() {
        true => "no such header".to_owned(),
        false => format!("Authorization: {}", shown(came)),
    })
}

async fn payload(bench: &Bench<'_>) -> Checked {
    let delivered = bench.delivered().await?;
    for delivery in &delivered.all {
        let expected = "a StreamResponse with one of task, message, statusUpdate and artifactUpdate";
        let Some(json) = delivery.json() else {
            return Err(fault(expected, format!("no JSON: {}", shown(&String::from_utf8_lossy(&delivery.body)))));
        };
        // Before 1.0 a webhook has the form of JSON-RPC on every binding; some agents use that of the binding.
        let forms: &[Form] =
            if bench.to.version == Version::V1_0 { &[Form::V1] } else { &[Form::Kinds, Form::Proto03] };
        let task = forms.iter().find_map(|form| match form.payload(&json) {
            Payload::Task(task) => Some(text_of(task, "id").to_owned()),
            Payload::Message(told) | Payload::Status(told) | Payload::Artifact(told) => {
                Some(text_of(told, "taskId").to_owned())
            }
            Payload::Unknown => None,
        });
        let Some(task) = task else { return Err(fault(expected, shown_json(&json))) };
        hold(task == delivered.task, &format!("an update of the task {}", delivered.task), || shown_json(&json))?;
    }
    first(delivered).map(drop)
}

async fn content_type(bench: &Bench<'_>) -> Checked {
    let delivered = bench.delivered().await?;
    let came = first(delivered)?.header("content-type");
    let media_type = came.split(';').next().unwrap_or_default().trim();
    hold(media_type.eq_ignore_ascii_case("application/a2a+json"), "Content-Type: application/a2a+json", || shown(came))
}

async fn delete_stops(bench: &Bench<'_>) -> Checked {
    let receiver = bench.receiver()?;
    let task = bench.running().await?;
    let name = super::super::fresh_id();
    let created = bench.register(&task, json!({ "url": receiver.url(&name) })).await?;
    let (id, _) = bench.form().push_config(&created);
    let id = id.ok_or_else(|| skip("the configuration has no id: see push-create"))?;
    bench.result(Operation::DeletePush, json!({ "taskId": task["id"], "id": id })).await.map_err(as_skip)?;
    // A webhook that was under way when the deletion came is not counted.
    tokio::time::sleep(SILENCE_LOOK).await;
    let before = receiver.delivered(&name).len();
    let looking = async {
        loop {
            let now = bench.result(Operation::Get, json!({ "id": task["id"] })).await.map_err(as_skip)?;
            if bench.form().state(&now).is_some_and(|state| state.is_settled()) {
                return Ok::<(), Finding>(());
            }
            tokio::time::sleep(SILENCE_LOOK).await;
        }
    };
    match tokio::time::timeout(SILENCE_WAIT_MAX, looking).await {
        Ok(looked) => looked?,
        Err(_) => bench.drop_task(&task).await,
    }
    tokio::time::sleep(SILENCE_AFTER).await;
    let after = receiver.delivered(&name);
    hold(after.len() == before, "no webhook after the deletion", || {
        let last = after.last().and_then(Delivery::json).unwrap_or_default();
        format!("{} more, the last {}", after.len() - before, shown_json(&last))
    })
}
