//! The JSON-RPC envelope: methods, ids as they were written, and what is wrong with a wrong one.

use expect_test::expect;
use serde_json::{Value, json};
use switchboard::Server;

use crate::support::edge::{Edge, echo, events, message, old_message, post, redacted, rpc_body, unversioned, with};

#[tokio::test(start_paused = true)]
async fn all_eleven_methods_answer() {
    let edge = Edge::usual();
    let asked = edge.rpc("SendMessage", message("ask which?")).await.json();
    let id = asked["result"]["task"]["id"].as_str().unwrap().to_owned();
    let config = json!({"taskId": id, "id": "c", "url": "https://hooks.example/"});
    let mut shown = String::new();
    for (method, params) in [
        ("SendMessage", message("hello")),
        ("SendStreamingMessage", message("hello")),
        ("GetTask", json!({"id": id})),
        ("ListTasks", json!({})),
        ("CreateTaskPushNotificationConfig", config),
        ("GetTaskPushNotificationConfig", json!({"taskId": id, "id": "c"})),
        ("ListTaskPushNotificationConfigs", json!({"taskId": id})),
        ("DeleteTaskPushNotificationConfig", json!({"taskId": id, "id": "c"})),
        ("CancelTask", json!({"id": id})),
        ("SubscribeToTask", json!({"id": id})),
        ("GetExtendedAgentCard", json!({})),
    ] {
        let answer = edge.rpc(method, params).await;
        let kind = answer.header("content-type").to_owned();
        let gist = match serde_json::from_slice::<Value>(&answer.body) {
            Ok(json) if json.get("error").is_some() => answer.gist(),
            Ok(json) => keys(&json["result"]),
            Err(_) => format!("{} events", answer.text().matches("data: ").count()),
        };
        shown.push_str(&format!("{method}: {kind}, {gist}\n"));
    }
    expect![[r#"
        SendMessage: application/json, task
        SendStreamingMessage: text/event-stream, 3 events
        GetTask: application/json, contextId history id status
        ListTasks: application/json, nextPageToken pageSize tasks totalSize
        CreateTaskPushNotificationConfig: application/json, id taskId url
        GetTaskPushNotificationConfig: application/json, id taskId url
        ListTaskPushNotificationConfigs: application/json, configs
        DeleteTaskPushNotificationConfig: application/json, null
        CancelTask: application/json, contextId history id status
        SubscribeToTask: application/json, 200 UNSUPPORTED_OPERATION
        GetExtendedAgentCard: application/json, 200 UNSUPPORTED_OPERATION
    "#]]
    .assert_eq(&shown);
}

fn keys(value: &Value) -> String {
    match value {
        Value::Object(map) => map.keys().cloned().collect::<Vec<_>>().join(" "),
        other => other.to_string(),
    }
}

/// A call with any text where the id is.
fn with_id(id: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"GetTask","params":{{"id":"t"}}}}"#)
}

#[tokio::test(start_paused = true)]
async fn an_id_comes_back_as_it_was_written() {
    let edge = Edge::usual();
    for id in [
        r#""a string""#,
        r#""""#,
        r#""with \"quotes\" and \u00e9scapes""#,
        "0",
        "7",
        "-7",
        "9007199254740993",
        "123456789012345678901234567890",
        "null",
    ] {
        let text = edge.post("/", with_id(id)).await.text();
        let expected = format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{{"code":-32001,"#);
        assert!(text.starts_with(&expected), "{id}: {text}");
    }
    let notification = r#"{"jsonrpc":"2.0","method":"GetTask","params":{"id":"t"}}"#;
    assert!(edge.post("/", notification).await.text().starts_with(r#"{"jsonrpc":"2.0","id":null,"#));
}

#[tokio::test(start_paused = true)]
async fn an_id_of_another_kind_is_refused_and_not_echoed() {
    let edge = Edge::usual();
    let long = format!("\"{}\"", "x".repeat(600));
    for id in ["1.5", "1e3", "true", "{}", "[1]", "-", "01", long.as_str()] {
        let answer = edge.post("/", with_id(id)).await;
        assert_eq!(answer.status, 200);
        let error = answer.json();
        assert_eq!(error["id"], Value::Null, "{id}");
        let code = error["error"]["code"].as_i64().unwrap();
        assert!(code == -32600 || code == -32700, "{id}: {error}");
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_wrong_with_an_envelope_is_said() {
    let edge = Edge::usual();
    let mut shown = String::new();
    for body in [
        "",
        "{",
        "not json",
        r#"{"jsonrpc":"2.0","id":1,"method":"GetTask"} trailing"#,
        "null",
        "7",
        r#""text""#,
        "[]",
        r#"[{"jsonrpc":"2.0","id":1,"method":"GetTask"}]"#,
        r#"["2.0",1,"GetTask",{"id":"t"}]"#,
        "[1,",
        "{}",
        r#"{"id":1,"method":"GetTask"}"#,
        r#"{"jsonrpc":"1.0","id":1,"method":"GetTask"}"#,
        r#"{"jsonrpc":2.0,"id":1,"method":"GetTask"}"#,
        r#"{"jsonrpc":"2.0","id":1}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":""}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":null}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":7}"#,
        r#"{"jsonrpc":"2.0","id":1,"id":2,"method":"GetTask"}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"Nothing"}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"message/send"}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"gettask"}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"GetTask"}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"GetTask","params":null}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"GetTask","params":[]}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"GetTask","params":"t"}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"GetTask","params":{"id":7}}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"GetTask","params":{"id":7},"more":{}}"#,
        r#"{"jsonrpc":"2.0","method":"GetTask","params":{"id":"none"},"more":{},"id":2}"#,
        r#"{"method":"GetTask","params":{"id":"none"},"id":3,"jsonrpc":"2.0","more":{}}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"GetTask","params":{"id":"none"},"params":{"id":"none"}}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"GetTask","params":{"id":"none",}}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"GetTask","params":{"id":"none"}}}"#,
    ] {
        let answer = edge.post("/", body).await;
        assert_eq!((answer.status.as_u16(), answer.header("content-type")), (200, "application/json"), "{body}");
        let json = answer.json();
        let (code, text) = (&json["error"]["code"], json["error"]["message"].as_str().unwrap());
        shown.push_str(&format!("{body}\n  {code} id {}: {text}\n", json["id"]));
    }
    expect![[r#"

          -32700 id null: Invalid JSON payload: EOF while parsing a value at line 1 column 0
        {
          -32700 id null: Invalid JSON payload: EOF while parsing an object at line 1 column 1
        not json
          -32700 id null: Invalid JSON payload: expected ident at line 1 column 2
        {"jsonrpc":"2.0","id":1,"method":"GetTask"} trailing
          -32700 id null: Invalid JSON payload: trailing characters at line 1 column 45
        null
          -32600 id null: Invalid request: send one request object
        7
          -32600 id null: Invalid request: send one request object
        "text"
          -32600 id null: Invalid request: send one request object
        []
          -32600 id null: Invalid request: batches are not supported; send one request object
        [{"jsonrpc":"2.0","id":1,"method":"GetTask"}]
          -32600 id null: Invalid request: batches are not supported; send one request object
        ["2.0",1,"GetTask",{"id":"t"}]
          -32600 id null: Invalid request: batches are not supported; send one request object
        [1,
          -32700 id null: Invalid JSON payload: EOF while parsing a value at line 1 column 3
        {}
          -32600 id null: Invalid request: jsonrpc must be "2.0"
        {"id":1,"method":"GetTask"}
          -32600 id 1: Invalid request: jsonrpc must be "2.0"
        {"jsonrpc":"1.0","id":1,"method":"GetTask"}
          -32600 id 1: Invalid request: jsonrpc must be "2.0"
        {"jsonrpc":2.0,"id":1,"method":"GetTask"}
          -32600 id 1: Invalid request: invalid type: floating point `2.0`, expected a string at line 1 column 14
        {"jsonrpc":"2.0","id":1}
          -32600 id 1: Invalid request: method is missing
        {"jsonrpc":"2.0","id":1,"method":""}
          -32600 id 1: Invalid request: method is missing
        {"jsonrpc":"2.0","id":1,"method":null}
          -32600 id 1: Invalid request: method is missing
        {"jsonrpc":"2.0","id":1,"method":7}
          -32600 id 1: Invalid request: invalid type: integer `7`, expected a string at line 1 column 34
        {"jsonrpc":"2.0","id":1,"id":2,"method":"GetTask"}
          -32600 id null: Invalid request: duplicate field `id` at line 1 column 28
        {"jsonrpc":"2.0","id":1,"method":"Nothing"}
          -32601 id 1: Method not found: Nothing
        {"jsonrpc":"2.0","id":1,"method":"message/send"}
          -32601 id 1: Method not found: message/send; A2A 1.0 calls it SendMessage; to speak 0.3 instead, leave the header A2A-Version out
        {"jsonrpc":"2.0","id":1,"method":"gettask"}
          -32601 id 1: Method not found: gettask; did you mean GetTask?
        {"jsonrpc":"2.0","id":1,"method":"GetTask"}
          -32602 id 1: Invalid parameters: id: is required and must not be empty
        {"jsonrpc":"2.0","id":1,"method":"GetTask","params":null}
          -32602 id 1: Invalid parameters: id: is required and must not be empty
        {"jsonrpc":"2.0","id":1,"method":"GetTask","params":[]}
          -32602 id 1: Invalid parameters: params: invalid type: sequence, expected an object
        {"jsonrpc":"2.0","id":1,"method":"GetTask","params":"t"}
          -32602 id 1: Invalid parameters: params: invalid type: string "t", expected an object
        {"jsonrpc":"2.0","id":1,"method":"GetTask","params":{"id":7}}
          -32602 id 1: Invalid parameters: id: invalid type: integer `7`, expected a string
        {"jsonrpc":"2.0","id":1,"method":"GetTask","params":{"id":7},"more":{}}
          -32602 id 1: Invalid parameters: id: invalid type: integer `7`, expected a string
        {"jsonrpc":"2.0","method":"GetTask","params":{"id":"none"},"more":{},"id":2}
          -32001 id 2: Task not found
        {"method":"GetTask","params":{"id":"none"},"id":3,"jsonrpc":"2.0","more":{}}
          -32001 id 3: Task not found
        {"jsonrpc":"2.0","id":1,"method":"GetTask","params":{"id":"none"},"params":{"id":"none"}}
          -32600 id 1: Invalid request: duplicate field `params` at line 1 column 74
        {"jsonrpc":"2.0","id":1,"method":"GetTask","params":{"id":"none",}}
          -32700 id null: Invalid JSON payload: key must be a string at line 1 column 66
        {"jsonrpc":"2.0","id":1,"method":"GetTask","params":{"id":"none"}}}
          -32700 id null: Invalid JSON payload: trailing characters at line 1 column 67
    "#]]
    .assert_eq(&shown);
}

#[tokio::test(start_paused = true)]
async fn unknown_members_are_ignored() {
    let edge = Edge::usual();
    let mut params = message("hello");
    params["kind"] = "message".into();
    params["message"]["kind"] = json!({"nested": [1, 2]});
    params["configuration"] = json!({"blocking": true});
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": params, "meta": {}});
    assert_eq!(edge.post("/", body.to_string()).await.gist(), "200");
}

#[tokio::test(start_paused = true)]
async fn a_body_that_says_it_is_not_json_is_refused() {
    let edge = Edge::usual();
    let asked = |kind: &str| {
        let request = with(post("/", with_id("1")), "content-type", "");
        if kind.is_empty() { request } else { with(request, "content-type", kind) }
    };
    for kind in ["", "application/json", "application/a2a+json", "Application/JSON; charset=utf-8"] {
        assert_eq!(edge.ask(asked(kind)).await.gist(), "200 TASK_NOT_FOUND", "{kind}");
    }
    for kind in ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data", "application/jsonp", "json"]
    {
        assert_eq!(edge.ask(asked(kind)).await.gist(), "200 CONTENT_TYPE_NOT_SUPPORTED", "{kind}");
    }
    expect![[r#"
        200 application/json
        {"jsonrpc":"2.0","id":null,"error":{"code":-32005,"message":"Content-Type text/plain is not supported; send application/json","data":[{"@type":"type.googleapis.com/google.rpc.ErrorInfo","reason":"CONTENT_TYPE_NOT_SUPPORTED","domain":"a2a-protocol.org"}]}}
    "#]].assert_eq(&edge.ask(asked("text/plain")).await.picture());
}

#[tokio::test(start_paused = true)]
async fn what_a_send_and_a_delete_answer_with() {
    let edge = Edge::usual();
    let sent = edge.rpc("SendMessage", message("hello")).await;
    expect![[r#"
        200 application/json
        {"jsonrpc":"2.0","id":1,"result":{"task":{"id":"<id 1>","contextId":"<id 2>","status":{"state":"TASK_STATE_COMPLETED","timestamp":"<time>"},"artifacts":[{"artifactId":"artifact-1-1","parts":[{"text":"hello"}]}],"history":[{"messageId":"m-1","contextId":"<id 2>","taskId":"<id 1>","role":"ROLE_USER","parts":[{"text":"hello"}]}]}}}
    "#]].assert_eq(&sent.picture());
    let id = sent.json()["result"]["task"]["id"].as_str().unwrap().to_owned();
    let deleted = edge.rpc("DeleteTaskPushNotificationConfig", json!({"taskId": id, "id": "none"})).await;
    assert_eq!(redacted(&deleted.text()), r#"{"jsonrpc":"2.0","id":1,"result":null}"#);
}

#[tokio::test(start_paused = true)]
async fn the_tenant_is_a_parameter() {
    let edge = Edge::new(Server::builder().agent(echo()).tenants(["acme", "globex"]));
    let mut params = message("hello");
    params["tenant"] = "globex".into();
    assert_eq!(edge.rpc("SendMessage", params).await.gist(), "200");
    let listed = async |tenant: &str| {
        edge.rpc("ListTasks", json!({"tenant": tenant})).await.json()["result"]["totalSize"].as_u64().unwrap()
    };
    assert_eq!((listed("globex").await, listed("acme").await, listed("").await), (1, 0, 0));
    let refused = edge.rpc("ListTasks", json!({"tenant": "initech"})).await;
    assert_eq!(refused.gist(), "403 PERMISSION_DENIED");
}

/// By JSON-RPC it would be a notification, which is not answered; clients that forget the id need to hear what came of
/// it.
#[tokio::test(start_paused = true)]
async fn a_request_without_an_id_is_answered_under_null() {
    let edge = Edge::usual();
    let without =
        |method: &str, params: Value| json!({"jsonrpc": "2.0", "method": method, "params": params}).to_string();
    let sent = edge.post("/", without("SendMessage", message("hello"))).await.json();
    assert_eq!(
        (sent.get("id"), &sent["result"]["task"]["status"]["state"]),
        (Some(&Value::Null), &json!("TASK_STATE_COMPLETED"))
    );
    let refused = edge.post("/", without("GetTask", json!({"id": "nobody"}))).await.json();
    assert_eq!((refused.get("id"), &refused["error"]["code"]), (Some(&Value::Null), &json!(-32001)));
    let old = edge.ask(unversioned(post("/", without("message/send", old_message("hello"))))).await.json();
    assert_eq!((old.get("id"), &old["result"]["status"]["state"]), (Some(&Value::Null), &json!("completed")));
    let streamed = edge.post("/", without("SendStreamingMessage", message("hello"))).await;
    assert!(events(&streamed.text()).iter().all(|event| event.get("id") == Some(&Value::Null)));
}

/// As `docs/errors.md` has it: a stream that is refused before it begins is refused like any other call.
#[tokio::test(start_paused = true)]
async fn a_refused_stream_has_the_status_of_any_refused_call() {
    let edge = Edge::new(Server::builder().agent(echo().streaming(false)));
    let only_events = |request| with(request, "accept", "text/event-stream");
    let old = |path: &str| unversioned(post(path, rpc_body("message/stream", old_message("hello"))));
    let native = json!({"message": {"role": "user", "parts": [{"type": "text", "text": "hello"}]}});
    for (name, request, status, kind, code) in [
        ("1.0", post("/", rpc_body("SendStreamingMessage", message("hello"))), 200, "application/json", -32004),
        (
            "1.0, unknown task",
            post("/", rpc_body("SubscribeToTask", json!({"id": "x"}))),
            200,
            "application/json",
            -32004,
        ),
        ("0.3", old("/"), 200, "application/json", -32004),
        ("0.3, only events", only_events(old("/")), 200, "text/event-stream", -32004),
        (
            "agent-native",
            unversioned(post("/_agent-native/a2a", rpc_body("message/stream", native))),
            200,
            "application/json",
            -32601,
        ),
    ] {
        let answer = edge.ask(request).await;
        assert_eq!((answer.status.as_u16(), answer.header("content-type")), (status, kind), "{name}");
        let error = match kind {
            "text/event-stream" => events(&answer.text()).remove(0),
            _ => answer.json(),
        };
        assert_eq!(error["error"]["code"], code, "{name}");
    }
    for (path, gist) in
        [("/message:stream", "400 UNSUPPORTED_OPERATION"), ("/v1/message:stream", "400 UNSUPPORTED_OPERATION")]
    {
        let body = json!({"message": {"messageId": "m", "role": "ROLE_USER", "parts": [{"text": "x"}], "content": [{"text": "x"}]}});
        let request = post(path, body.to_string());
        let request = if path.starts_with("/v1") { unversioned(request) } else { request };
        assert_eq!(edge.ask(request).await.gist(), gist, "{path}");
    }
}
