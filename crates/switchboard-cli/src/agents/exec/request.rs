//! What a command is told about its message beside the message itself: its standard input, what the request said, and
//! the few facts that systems pass along with it (skill, depth, source agent), under the names that these systems use.

use serde_json::value::RawValue;
use std::collections::BTreeMap;
use switchboard::{Json, PartContent, Turn};

/// Longer values stay in the file: the system refuses to start a program with a variable of 128 KiB.
const VARIABLE_BYTES_MAX: usize = 4 * 1024;

/// The variables that are taken from metadata, and the keys they are found under: those of corvid, then those of others.
const FACTS: [(&str, [&str; 2]); 3] = [
    ("A2A_SKILL", ["skill", "skillId"]),
    ("A2A_DEPTH", ["depth", "delegationDepth"]),
    ("A2A_SOURCE_AGENT", ["sourceAgent", "callerApp"]),
];

/// The standard input of a command: the text of the message or, if it has none, its data, one JSON value per line.
pub(super) fn input(turn: &Turn) -> String {
    let text = turn.text();
    if !text.is_empty() {
        return text;
    }
    let data = turn.message().parts.iter().filter_map(|part| match &part.content {
        PartContent::Data(json) => Some(json.as_str()),
        PartContent::Text(_) | PartContent::Raw(_) | PartContent::Url(_) => None,
    });
    data.collect::<Vec<_>>().join("\n")
}

/// The request without its message, as JSON: its metadata, the media types it takes and the extensions it activated, as far
/// as it said anything of them; and what was said before in its context, if the agent is to remember that.
pub(super) fn request_json(turn: &Turn) -> String {
    let mut members = Vec::new();
    if let Some(metadata) = turn.metadata() {
        members.push(format!("\"metadata\":{}", metadata.as_str()));
    }
    for (name, values) in [("acceptedOutputModes", turn.accepted_output_modes()), ("extensions", turn.extensions())] {
        if !values.is_empty() {
            members.push(format!("\"{name}\":{}", serde_json::json!(values)));
        }
    }
    if !turn.context().is_empty() {
        let context: Vec<String> = turn
            .context()
            .iter()
            .map(|message| String::from_utf8_lossy(&switchboard::json::message(message)).into_owned())
            .collect();
        members.push(format!("\"context\":[{}]", context.join(",")));
    }
    format!("{{{}}}", members.join(","))
}

/// The variables for what the metadata of the request, or else of the message, says of its origin.
pub(super) fn facts(turn: &Turn) -> Vec<(&'static str, String)> {
    let sources: Vec<_> =
        [turn.metadata(), turn.message().metadata.as_ref()].into_iter().flatten().filter_map(members).collect();
    let find = |keys: [&str; 2]| {
        sources.iter().find_map(|members| keys.iter().find_map(|key| plain(members.get(*key)?.get())))
    };
    FACTS.into_iter().filter_map(|(variable, keys)| Some((variable, find(keys)?))).collect()
}

/// The variables by which programs join the trace of the message, under the names that OpenTelemetry has for them.
pub(super) fn trace(turn: &Turn) -> Vec<(&'static str, String)> {
    let Some(trace) = turn.trace() else { return Vec::new() };
    let state = trace.trace_state().map(|state| ("TRACESTATE", state.to_owned()));
    std::iter::once(("TRACEPARENT", trace.trace_parent())).chain(state).collect()
}

fn members(metadata: &Json) -> Option<BTreeMap<String, &RawValue>> {
    serde_json::from_str(metadata.as_str()).ok()
}

/// A string or a number that fits a variable.
fn plain(json: &str) -> Option<String> {
    let text = match serde_json::from_str(json).ok()? {
        serde_json::Value::String(text) => text,
        serde_json::Value::Number(number) => number.to_string(),
        _ => return None,
    };
    (text.len() <= VARIABLE_BYTES_MAX).then_some(text)
}
