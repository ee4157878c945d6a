//! How each version spells a call in JSON, and where its answers keep the task.

use bytes::Bytes;
use http::Request;
use http_body_util::Full;
use serde_json::{Value, json};

use super::Call;
use crate::support::edge::{Answer, post, rpc_body, unversioned};

/// The task of an answer over HTTP+JSON.
pub(super) fn task(_: &Call, answer: &Answer) -> (String, String) {
    in_envelope(&first(answer))
}

/// The task of an answer over JSON-RPC.
pub(super) fn task_in_result(_: &Call, answer: &Answer) -> (String, String) {
    in_envelope(&first(answer)["result"])
}

/// What was answered, or the first event of a stream.
fn first(answer: &Answer) -> Value {
    let said = answer.text();
    let event = said.lines().find_map(|line| line.strip_prefix("data: "));
    serde_json::from_str(event.unwrap_or(&said)).unwrap_or_else(|error| panic!("{error}: {said}"))
}

/// Some answers have an envelope, because they could also be a message.
fn in_envelope(reply: &Value) -> (String, String) {
    let task = reply.get("task").unwrap_or(reply);
    let text = |value: &Value| value.as_str().unwrap_or_else(|| panic!("no task in {reply}")).to_owned();
    (text(&task["id"]), text(&task["status"]["state"]))
}

pub(super) fn v1_0_rpc(call: &Call) -> Request<Full<Bytes>> {
    let (method, params) = match call {
        Call::Send(params) => ("SendMessage", params.clone()),
        Call::Stream(params) => ("SendStreamingMessage", params.clone()),
        Call::Cancel(id) => ("CancelTask", json!({"id": id})),
    };
    post("/rpc", rpc_body(method, params))
}

pub(super) fn v1_0_http(call: &Call) -> Request<Full<Bytes>> {
    match call {
        Call::Send(params) => post("/message:send", params.to_string()),
        Call::Stream(params) => post("/message:stream", params.to_string()),
        Call::Cancel(id) => post(&format!("/tasks/{id}:cancel"), ""),
    }
}

pub(super) fn v0_3_rpc(call: &Call) -> Request<Full<Bytes>> {
    let (method, params) = match call {
        Call::Send(params) => ("message/send", with_kinds(params, "kind")),
        Call::Stream(params) => ("message/stream", with_kinds(params, "kind")),
        Call::Cancel(id) => ("tasks/cancel", json!({"id": id})),
    };
    unversioned(post("/rpc", rpc_body(method, params)))
}

/// As the samples of the 0.2 specification have it.
pub(super) fn v0_2_rpc(call: &Call) -> Request<Full<Bytes>> {
    let (method, params) = match call {
        Call::Send(params) => ("message/send", with_kinds(params, "type")),
        Call::Stream(params) => ("message/stream", with_kinds(params, "type")),
        Call::Cancel(id) => ("tasks/cancel", json!({"id": id})),
    };
    unversioned(post("/", rpc_body(method, params)))
}

pub(super) fn v0_3_http(call: &Call) -> Request<Full<Bytes>> {
    unversioned(match call {
        Call::Send(params) => post("/v1/message:send", as_proto(params).to_string()),
        Call::Stream(params) => post("/v1/message:stream", as_proto(params).to_string()),
        Call::Cancel(id) => post(&format!("/v1/tasks/{id}:cancel"), "{}"),
    })
}

/// The params of a send in the JSON schema of 0.3, with the kind of a thing under this name.
fn with_kinds(params: &Value, kind: &str) -> Value {
    let mut params = blocking(params);
    let parts = params["message"]["parts"].as_array().unwrap().iter().map(|part| {
        let (data, metadata) = data_of(part);
        let own = match content_of(part) {
            ("text", text) => json!({kind: "text", "text": text}),
            ("raw", bytes) => json!({kind: "file", "file": file(part, "bytes", bytes)}),
            ("url", uri) => json!({kind: "file", "file": file(part, "uri", uri)}),
            _ => json!({kind: "data", "data": data}),
        };
        with_metadata(own, metadata)
    });
    let parts: Vec<Value> = parts.collect();
    params["message"]["parts"] = parts.into();
    params["message"]["role"] = "user".into();
    params["message"][kind] = "message".into();
    params
}

/// The body of a send in the JSON form of 0.3's proto.
fn as_proto(params: &Value) -> Value {
    let mut params = blocking(params);
    let parts = params["message"]["parts"].as_array().unwrap().iter().map(|part| {
        let (data, metadata) = data_of(part);
        let own = match content_of(part) {
            ("text", text) => json!({"text": text}),
            ("raw", bytes) => json!({"file": file(part, "fileWithBytes", bytes)}),
            ("url", uri) => json!({"file": file(part, "fileWithUri", uri)}),
            _ => json!({"data": {"data": data}}),
        };
        with_metadata(own, metadata)
    });
    let content: Vec<Value> = parts.collect();
    let message = params["message"].as_object_mut().unwrap();
    message.remove("parts");
    message.remove("referenceTaskIds");
    message.insert("content".to_owned(), content.into());
    params
}

/// The params with `blocking` said as 0.3 says it.
fn blocking(params: &Value) -> Value {
    let mut params = params.clone();
    let configuration = params.as_object_mut().unwrap().entry("configuration").or_insert_with(|| json!({}));
    let configuration = configuration.as_object_mut().unwrap();
    let immediately = configuration.remove("returnImmediately") == Some(true.into());
    configuration.insert("blocking".to_owned(), (!immediately).into());
    params
}

/// Which of the four kinds of content a part of 1.0 has.
pub(super) fn content_of(part: &Value) -> (&'static str, &Value) {
    let find = |name: &'static str| part.get(name).map(|content| (name, content));
    ["text", "raw", "url", "data"].into_iter().find_map(find).unwrap_or_else(|| panic!("no content in {part}"))
}

pub(super) fn file(part: &Value, name: &str, content: &Value) -> Value {
    json!({name: content, "mimeType": part["mediaType"], "name": part["filename"]})
}

/// The data and the metadata of a part. Data that is no object goes into one, and the metadata say so, as the SDKs do.
fn data_of(part: &Value) -> (Value, Option<Value>) {
    match &part["data"] {
        data @ (Value::Object(_) | Value::Null) => (data.clone(), part.get("metadata").cloned()),
        data => (json!({"value": data}), Some(json!({"data_part_compat": true}))),
    }
}

pub(super) fn with_metadata(mut part: Value, metadata: Option<Value>) -> Value {
    let members = part.as_object_mut().unwrap();
    members.extend(metadata.map(|metadata| ("metadata".to_owned(), metadata)));
    part
}
