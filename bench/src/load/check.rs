//! Is this the reply we asked for? Searched as text: parsing every reply would make the load generator the slow side.

use super::connection::Reply;
use super::request::{TEXT, text};

const SUBMITTED: &str = r#""state":"TASK_STATE_SUBMITTED""#;
const WORKING: &str = r#""state":"TASK_STATE_WORKING""#;
const COMPLETED: &str = r#""state":"TASK_STATE_COMPLETED""#;
const COMPLETED_OLD: &str = r#""state":"completed""#;

pub(super) enum Expected<'a> {
    /// A completed task whose artifact holds the text of this serial.
    Echo(u64),
    /// The same, spelled as 0.3 has it.
    EchoOld(u64),
    /// A stream: the task, the artifact with the text of this serial, the completed status.
    Stream(u64),
    /// A task that is not over.
    Begun,
    /// This completed task; none of its text is known where the server keeps nothing and any of ours will do.
    Stored { id: &'a str, text: Option<&'a str> },
}

/// The number of events of a stream (0 for a plain reply), or what is wrong in words.
pub(super) fn reply(reply: &Reply<'_>, expected: &Expected<'_>) -> Result<u64, String> {
    let body = std::str::from_utf8(reply.body).map_err(|_| "the reply is not UTF-8".to_owned())?;
    let verdict = if reply.status == 200 { compare(body, expected) } else { Err("not 200") };
    verdict.map_err(|wrong| format!("{wrong}: {} {}", reply.status, body.chars().take(400).collect::<String>()))
}

fn compare(body: &str, expected: &Expected<'_>) -> Result<u64, &'static str> {
    match expected {
        Expected::Echo(serial) => completed_with(body, COMPLETED, &text(*serial)).map(|()| 0),
        Expected::EchoOld(serial) => completed_with(body, COMPLETED_OLD, &text(*serial)).map(|()| 0),
        Expected::Begun if body.contains(SUBMITTED) || body.contains(WORKING) => Ok(0),
        Expected::Begun => Err("not at work"),
        Expected::Stored { id, .. } if !body.contains(id) => Err("another task"),
        Expected::Stored { text, .. } => completed_with(body, COMPLETED, text.unwrap_or(TEXT)).map(|()| 0),
        Expected::Stream(serial) => stream(body, &text(*serial)),
    }
}

fn completed_with(body: &str, completed: &str, text: &str) -> Result<(), &'static str> {
    if !body.contains(completed) {
        return Err("not completed");
    }
    let artifacts = body.find(r#""artifacts":"#).ok_or("no artifact")?;
    // The text stands in the history too: only the artifact's own counts.
    let end = body[artifacts..].find(r#""history":"#).map_or(body.len(), |length| artifacts + length);
    if body[artifacts..end].contains(text) { Ok(()) } else { Err("not the text that was sent") }
}

fn stream(body: &str, text: &str) -> Result<u64, &'static str> {
    let mut events = 0;
    let mut echoed = false;
    let mut last = "";
    for line in body.split('\n') {
        let Some(data) = line.strip_prefix("data:") else { continue };
        if events == 0 && !data.contains(r#""task":"#) {
            return Err("the first event is not the task");
        }
        echoed = echoed || (data.contains(r#""artifactUpdate":"#) && data.contains(text));
        events += 1;
        last = data;
    }
    match (events >= 3, echoed, last.contains(COMPLETED)) {
        (false, _, _) => Err("fewer than three events"),
        (_, false, _) => Err("no artifact with the text that was sent"),
        (_, _, false) => Err("the stream does not end completed"),
        _ => Ok(events),
    }
}
