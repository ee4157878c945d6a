//! Checks of the objects that come back: their members and how these are spelled. They look at the task of an ordinary send.

use serde_json::Value;

use super::super::bench::{Bench, Checked, Finding, fault, hold, shown_json, skip};
use super::super::check::{Check, EVERYWHERE, JSON_V1, V1};
use super::super::wire::forms::{Form, Payload};
use super::super::wire::{Meaning, shown};
use super::{each, must, should};

pub(super) const CHECKS: &[Check] = &[
    must(
        "task-members",
        "DM-TASK-001",
        "4.1.1",
        EVERYWHERE,
        "A Task MUST have an id and a status.",
        each!(task_members),
    ),
    must(
        "task-state",
        "DM-STATUS-001, DM-TASK-002",
        "4.1.2, 4.1.3",
        EVERYWHERE,
        "The status MUST have a state, which is one of the defined values.",
        each!(task_state),
    ),
    must(
        "task-timestamp",
        "DM-SERIAL-003",
        "5.6.1",
        V1,
        "Timestamps MUST be ISO 8601 in UTC, with Z.",
        each!(timestamps),
    ),
    must(
        "task-messages",
        "DM-MSG-001",
        "4.1.4",
        EVERYWHERE,
        "A Message MUST have a messageId, a role and parts.",
        each!(messages),
    ),
    must(
        "task-roles",
        "DM-MSG-002",
        "4.1.5",
        EVERYWHERE,
        "The role of a message MUST be one of the defined values.",
        each!(roles),
    ),
    must(
        "task-parts",
        "DM-PART-001",
        "4.1.6",
        V1,
        "A Part MUST have exactly one of text, raw, url and data.",
        each!(parts),
    ),
    must(
        "task-artifacts",
        "DM-ART-001",
        "4.1.7",
        EVERYWHERE,
        "An Artifact MUST have an artifactId and parts.",
        each!(artifacts),
    ),
    must("task-camel-case", "DM-SERIAL-001", "5.5", JSON_V1, "JSON MUST use camelCase names.", each!(camel_case)),
    should(
        "task-no-nulls",
        "DM-SERIAL-004",
        "5.7",
        JSON_V1,
        "Fields without a value are left out: ProtoJSON writes no null for them.",
        each!(no_nulls),
    ),
];

/// What the agent answered: a task or a message.
async fn answer<'a>(bench: &'a Bench<'_>) -> Result<Payload<'a>, Finding> {
    let reply = bench.sent().await.map_err(|_| skip("the send had no answer: see send-answers"))?;
    let Meaning::Result(result) = &reply.meaning else { return Err(skip("the send was refused: see send-answers")) };
    match bench.form().payload(result) {
        Payload::Unknown => Err(skip("neither a task nor a message came: see send-answers")),
        known => Ok(known),
    }
}

/// All messages that were answered: of a task, its history and the one in its status.
fn all_messages(payload: Payload<'_>) -> Vec<&Value> {
    match payload {
        Payload::Message(message) => vec![message],
        Payload::Task(task) => {
            let in_status = task["status"].get("message");
            task["history"].as_array().into_iter().flatten().chain(in_status).collect()
        }
        Payload::Status(_) | Payload::Artifact(_) | Payload::Unknown => Vec::new(),
    }
}

fn all_artifacts(payload: Payload<'_>) -> Vec<&Value> {
    match payload {
        Payload::Task(task) => task["artifacts"].as_array().into_iter().flatten().collect(),
        _ => Vec::new(),
    }
}

async fn task_members(bench: &Bench<'_>) -> Checked {
    let task = bench.task().await?;
    let has_id = task["id"].as_str().is_some_and(|id| !id.is_empty());
    hold(has_id, "an id that is a text", || shown_json(&task["id"]))?;
    hold(task["status"].is_object(), "a status", || shown_json(task))?;
    let is_kind = bench.form() != Form::Kinds || task["contextId"].is_string();
    hold(is_kind, "a contextId", || shown_json(task))
}

async fn task_state(bench: &Bench<'_>) -> Checked {
    let task = bench.task().await?;
    let form = bench.form();
    let is_known = form.state(task).is_some();
    hold(is_known, &format!("one of {}", form.state_names().join(", ")), || shown_json(&task["status"]["state"]))
}

async fn timestamps(bench: &Bench<'_>) -> Checked {
    let task = bench.task().await?;
    let Some(timestamp) = task["status"].get("timestamp") else {
        return Err(skip("the status has no timestamp, which is allowed"));
    };
    let is_utc = timestamp.as_str().is_some_and(is_timestamp);
    hold(is_utc, "a time such as 2025-10-28T10:30:00.000Z", || shown_json(timestamp))
}

/// `YYYY-MM-DDTHH:MM:SS`, perhaps with a fraction, and `Z`.
pub(super) fn is_timestamp(text: &str) -> bool {
    let Some(rest) = text.strip_suffix('Z') else { return false };
    let (whole, fraction) = rest.split_once('.').unwrap_or((rest, "0"));
    let is_shaped = whole.len() == 19
        && whole.bytes().zip("0000-00-00T00:00:00".bytes()).all(|(byte, like)| match like {
            b'0' => byte.is_ascii_digit(),
            sign => byte == sign,
        });
    is_shaped && !fraction.is_empty() && fraction.bytes().all(|byte| byte.is_ascii_digit())
}

async fn messages(bench: &Bench<'_>) -> Checked {
    let all = all_messages(answer(bench).await?);
    if all.is_empty() {
        return Err(skip("the answer has no messages"));
    }
    let parts = bench.form().parts_member();
    for message in all {
        let has_id = message["messageId"].as_str().is_some_and(|id| !id.is_empty());
        hold(has_id, "messageId, a text", || shown_json(message))?;
        hold(message["role"].is_string(), "role", || shown_json(message))?;
        let has_parts = message[parts].as_array().is_some_and(|parts| !parts.is_empty());
        hold(has_parts, &format!("{parts}, with at least one element"), || shown_json(message))?;
    }
    Ok(())
}

async fn roles(bench: &Bench<'_>) -> Checked {
    let all = all_messages(answer(bench).await?);
    if all.is_empty() {
        return Err(skip("the answer has no messages"));
    }
    let roles = bench.form().roles();
    for message in all {
        let is_known = message["role"].as_str().is_some_and(|role| roles.contains(&role));
        hold(is_known, &format!("{} or {}", roles[0], roles[1]), || shown_json(&message["role"]))?;
    }
    Ok(())
}

async fn parts(bench: &Bench<'_>) -> Checked {
    let payload = answer(bench).await?;
    let holders = all_messages(payload).into_iter().chain(all_artifacts(payload));
    for part in holders.flat_map(|holder| holder["parts"].as_array().into_iter().flatten()) {
        let count = ["text", "raw", "url", "data"].iter().filter(|name| part.get(**name).is_some()).count();
        hold(count == 1, "exactly one of text, raw, url and data", || shown_json(part))?;
    }
    Ok(())
}

async fn artifacts(bench: &Bench<'_>) -> Checked {
    let all = all_artifacts(answer(bench).await?);
    if all.is_empty() {
        return Err(skip("the answer has no artifacts"));
    }
    for artifact in all {
        let has_id = artifact["artifactId"].as_str().is_some_and(|id| !id.is_empty());
        hold(has_id, "artifactId, a text", || shown_json(artifact))?;
        let has_parts = artifact["parts"].as_array().is_some_and(|parts| !parts.is_empty());
        hold(has_parts, "parts, with at least one element", || shown_json(artifact))?;
    }
    Ok(())
}

/// Walks through the members of an object that the protocol names. What metadata and data hold is free.
fn each_member(value: &Value, found: &mut dyn FnMut(&str, &Value) -> Checked) -> Checked {
    match value {
        Value::Object(members) => {
            for (name, value) in members {
                found(name, value)?;
                if !matches!(name.as_str(), "metadata" | "data" | "params" | "header") {
                    each_member(value, found)?;
                }
            }
            Ok(())
        }
        Value::Array(items) => items.iter().try_for_each(|item| each_member(item, found)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Ok(()),
    }
}

async fn camel_case(bench: &Bench<'_>) -> Checked {
    let (Payload::Task(value) | Payload::Message(value)) = answer(bench).await? else { return Ok(()) };
    each_member(value, &mut |name, _| match name.contains(['_', '-']) {
        true => Err(fault("names in camelCase", shown(name))),
        false => Ok(()),
    })
}

async fn no_nulls(bench: &Bench<'_>) -> Checked {
    let (Payload::Task(value) | Payload::Message(value)) = answer(bench).await? else { return Ok(()) };
    // A data part may hold null.
    each_member(value, &mut |name, value| match value.is_null() && name != "data" {
        true => Err(fault("no member that is null", format!("{}: null", shown(name)))),
        false => Ok(()),
    })
}

#[cfg(test)]
mod tests {
    use super::is_timestamp;

    #[test]
    fn times_are_in_utc_and_say_so() {
        for good in ["2025-10-28T10:30:00.000Z", "2025-10-28T10:30:00Z", "2025-10-28T10:30:00.123456789Z"] {
            assert!(is_timestamp(good), "{good}");
        }
        for bad in [
            "2025-10-28T10:30:00",
            "2025-10-28T10:30:00+00:00",
            "2025-10-28 10:30:00Z",
            "1761647400",
            "2025-10-28T10:30:00.Z",
        ] {
            assert!(!is_timestamp(bad), "{bad}");
        }
    }
}
