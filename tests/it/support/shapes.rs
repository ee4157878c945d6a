//! What an answer looks like to a client that knows only the wire: in whose form a task is, and in whose form a
//! refusal. Forms are closed: a member too many or too few is no form at all.

use serde_json::{Map, Value};

use super::edge::Answer;

/// The form of a refusal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// JSON-RPC with a list of details.
    Rpc1_0,
    /// JSON-RPC with an object of data.
    Rpc0_3,
    /// JSON-RPC with a code and a text, as agent-native, selectools and NEXUS do.
    RpcPlain,
    /// A status and a list of details.
    Http1_0,
    /// A bare error.
    Http0_3,
    /// A text, as corvid does.
    Text,
}

/// The form of a refusal and its number (a text has the HTTP status), or what is wrong with the answer.
pub(crate) fn refusal(answer: &Answer) -> Result<(Refusal, i64), String> {
    let text = answer.text();
    let text = text.strip_prefix("data: ").map_or(text.as_str(), str::trim_end);
    let json: Value = serde_json::from_str(text).map_err(|error| format!("{error}: {text}"))?;
    let unknown = || format!("no form of a refusal: {} {json}", answer.status);
    let whole = json.as_object().ok_or_else(unknown)?;
    let form = match json.get("error") {
        None if has(whole, &["code", "message", "data"]) && is_data(&json["data"]) => {
            (Refusal::Http0_3, json["code"].as_i64())
        }
        Some(Value::String(_)) if has(whole, &["error"]) => (Refusal::Text, Some(answer.status.as_u16().into())),
        Some(Value::Object(error)) if has(whole, &["jsonrpc", "id", "error"]) && json["jsonrpc"] == "2.0" => {
            let form = match error.get("data") {
                None if has(error, &["code", "message"]) => Refusal::RpcPlain,
                Some(data) if has(error, &["code", "message", "data"]) && are_details(data) => Refusal::Rpc1_0,
                Some(data) if has(error, &["code", "message", "data"]) && is_data(data) => Refusal::Rpc0_3,
                Some(_) | None => return Err(unknown()),
            };
            (form, error["code"].as_i64())
        }
        Some(Value::Object(error))
            if has(whole, &["error"]) && has(error, &["code", "status", "message", "details"]) =>
        {
            let code = error["code"].as_i64().filter(|code| *code == i64::from(answer.status.as_u16()));
            (Refusal::Http1_0, code.filter(|_| are_details(&error["details"])))
        }
        Some(_) | None => return Err(unknown()),
    };
    match form {
        (form, Some(code)) => Ok((form, code)),
        (_, None) => Err(unknown()),
    }
}

/// Exactly these members, of which the message is a text.
fn has(object: &Map<String, Value>, members: &[&str]) -> bool {
    let is_text = object.get("message").is_none_or(|message| message.as_str().is_some_and(|text| !text.is_empty()));
    is_text && object.len() == members.len() && members.iter().all(|member| object.contains_key(*member))
}

/// Details of 1.0: first what is wrong.
fn are_details(details: &Value) -> bool {
    let is_typed =
        |detail: &Value| detail["@type"].as_str().is_some_and(|kind| kind.starts_with("type.googleapis.com/"));
    details[0]["reason"].is_string()
        && details[0]["domain"] == "a2a-protocol.org"
        && details.as_array().is_some_and(|details| details.iter().all(is_typed))
}

/// Data of 0.3.
fn is_data(data: &Value) -> bool {
    data["reason"].is_string()
}

/// In whose form a task is, and what its agent answered; none if there is no task.
pub(crate) fn task(answer: &Answer) -> Option<(&'static str, String)> {
    let text = answer.text();
    let json: Value = serde_json::from_str(&text).ok()?;
    let text_in = |parts: &Value, name: &str| parts[0][name].as_str().map(str::to_owned);
    let in_artifact = |task: &Value| text_in(&task["artifacts"][0]["parts"], "text");
    if json.get("sessionId").is_some() {
        // Corvid answers before there is an answer; what was said is there.
        return Some(("corvid", text_in(&json["messages"][0]["parts"], "text")?));
    }
    if let Some(task) = json.get("task") {
        let is_old = task["history"][0].get("content").is_some();
        return Some((if is_old { "0.3 REST" } else { "1.0" }, in_artifact(task)?));
    }
    let result = json.get("result")?;
    if let Some(task) = result.get("task") {
        return Some(("1.0", in_artifact(task)?));
    }
    match (&result["status"], result["kind"] == "task", result["artifacts"][0]["name"] == "response") {
        (Value::String(_), ..) => Some(("NEXUS", text_in(&result["artifacts"][0]["parts"], "data")?)),
        (_, true, true) => Some(("selectools", in_artifact(result)?)),
        (_, true, false) => Some(("0.3", in_artifact(result)?)),
        (_, false, _) => {
            let last = result["history"].as_array()?.last()?;
            Some(("agent-native", text_in(&last["parts"], "text")?))
        }
    }
}
