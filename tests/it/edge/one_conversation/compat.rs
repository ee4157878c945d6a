//! How the compat dialects say a call, each on its own mount, and where their answers keep the task. What they
//! have no words for is left out.

use bytes::Bytes;
use http::Request;
use http_body_util::Full;
use serde_json::{Value, json};

use super::Call;
use super::json::{content_of, file, with_metadata};
use crate::support::edge::{Answer, events, post, rpc_body, unversioned};

fn call(path: &str, method: &str, params: Value) -> Request<Full<Bytes>> {
    unversioned(post(path, rpc_body(method, params)))
}

pub(super) fn agent_native(call: &Call) -> Request<Full<Bytes>> {
    let params = |params: &Value| {
        let said = &params["message"];
        let message = json!({"role": "user", "parts": parts(said, "type"), "metadata": said["metadata"], "taskId": said["taskId"]});
        let is_async = params["configuration"]["returnImmediately"] == true;
        json!({"message": message, "contextId": said["contextId"], "metadata": params["metadata"], "async": is_async})
    };
    let (method, params) = match call {
        Call::Send(said) => ("message/send", params(said)),
        Call::Stream(said) => ("message/stream", params(said)),
        Call::Cancel(id) => ("tasks/cancel", json!({"id": id})),
    };
    self::call("/dialects/agent-native/_agent-native/a2a", method, params)
}

pub(super) fn selectools(call: &Call) -> Request<Full<Bytes>> {
    let Call::Send(params) = call else { panic!("selectools has neither streams nor cancels") };
    let said = &params["message"];
    let message = json!({
        "kind": "message", "messageId": said["messageId"], "role": "user", "parts": parts(said, "kind"),
        "contextId": said["contextId"], "metadata": said["metadata"],
    });
    self::call("/dialects/selectools/a2a", "message/send", json!({"message": message}))
}

pub(super) fn corvid(call: &Call) -> Request<Full<Bytes>> {
    let Call::Send(params) = call else { panic!("corvid has neither streams nor cancels") };
    let text = &params["message"]["parts"][0]["text"];
    unversioned(post("/dialects/corvid/a2a/tasks/send", json!({"params": {"message": text}}).to_string()))
}

pub(super) fn nexus(call: &Call) -> Request<Full<Bytes>> {
    let (method, params) = match call {
        Call::Send(params) | Call::Stream(params) => {
            let said = &params["message"];
            let parts: Vec<Value> = said["parts"].as_array().unwrap().iter().map(nexus_part).collect();
            let id = said["taskId"].as_str().map_or_else(|| nexus_id(said), str::to_owned);
            let method = if matches!(call, Call::Stream(_)) { "message/stream" } else { "message/send" };
            (method, json!({"id": id, "message": {"role": "user", "parts": parts}}))
        }
        Call::Cancel(id) => ("tasks/cancel", json!({"id": id})),
    };
    self::call("/dialects/nexus/rpc", method, params)
}

/// The id that a client of NEXUS chooses for the task a message begins.
pub(super) fn nexus_id(message: &Value) -> String {
    let number = message["messageId"].as_str().and_then(|id| id.strip_prefix("m-")).expect("messages are numbered");
    format!("00000000-1111-0000-0000-00000000000{number}")
}

fn nexus_part(part: &Value) -> Value {
    match content_of(part) {
        ("text", text) => json!({"type": "text", "data": text}),
        ("raw", bytes) => json!({"type": "file", "data": file(part, "bytes", bytes)}),
        ("url", uri) => json!({"type": "file", "data": file(part, "uri", uri)}),
        (_, data) => json!({"type": "data", "data": data}),
    }
}

/// Parts that say what they are under this name.
fn parts(message: &Value, kind: &str) -> Vec<Value> {
    let own = |part: &Value| match content_of(part) {
        ("text", text) => json!({kind: "text", "text": text}),
        ("raw", bytes) => json!({kind: "file", "file": file(part, "bytes", bytes)}),
        ("url", uri) => json!({kind: "file", "file": file(part, "uri", uri)}),
        (_, data) => json!({kind: "data", "data": data}),
    };
    let parts = message["parts"].as_array().unwrap().iter();
    parts.map(|part| with_metadata(own(part), part.get("metadata").cloned())).collect()
}

pub(super) fn task_of_corvid(_: &Call, answer: &Answer) -> (String, String) {
    (text(&answer.json()["id"]), text(&answer.json()["state"]))
}

pub(super) fn task_of_nexus(call: &Call, answer: &Answer) -> (String, String) {
    let answer = match call {
        Call::Stream(_) => events(&answer.text()).pop().expect("a stream has events"),
        Call::Send(_) | Call::Cancel(_) => answer.json(),
    };
    let result = &answer["result"];
    (text(&result["id"]), text(&result["status"]))
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_else(|| panic!("no text in {value}")).to_owned()
}
