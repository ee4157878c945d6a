//! JSON-RPC as clients of A2A 0.3 and 0.2 speak it: no version, methods with a slash, bare results with a `kind`.

use std::time::Duration;

use expect_test::expect;
use serde_json::{Value, json};
use switchboard::{AgentBuilder, Part, Replies, Server, Turn};

use crate::support::edge::{Edge, echo, events, old_message, post, redacted, rpc_body, unversioned, with};

fn with_configuration(text: &str, configuration: Value) -> Value {
    let mut params = old_message(text);
    params["configuration"] = configuration;
    params
}

/// Starts a task that works until it is canceled, and gives its id.
async fn working(edge: &Edge) -> String {
    let started = edge.old_rpc("message/send", with_configuration("wait", json!({"blocking": false}))).await.json();
    started["result"]["id"].as_str().unwrap().to_owned()
}

#[tokio::test(start_paused = true)]
async fn a_send_is_answered_with_a_bare_task() {
    let edge = Edge::usual();
    expect![[r#"
        200 application/json
        {"jsonrpc":"2.0","id":1,"result":{"kind":"task","id":"<id 1>","contextId":"<id 2>","status":{"state":"completed","timestamp":"<time>"},"artifacts":[{"artifactId":"artifact-1-1","parts":[{"kind":"text","type":"text","text":"hello"}]}],"history":[{"kind":"message","messageId":"m-1","contextId":"<id 2>","taskId":"<id 1>","role":"user","parts":[{"kind":"text","type":"text","text":"hello"}]}]}}
    "#]].assert_eq(&edge.old_rpc("message/send", old_message("hello")).await.picture());
}

#[tokio::test(start_paused = true)]
async fn a_stream_ends_with_the_event_that_says_so() {
    let edge = Edge::usual();
    let stream = edge.old_rpc("message/stream", old_message("chunks 2")).await;
    expect![[r#"
        id: 1
        data: {"jsonrpc":"2.0","id":1,"result":{"kind":"task","id":"<id 1>","contextId":"<id 2>","status":{"state":"submitted","timestamp":"<time>"},"history":[{"kind":"message","messageId":"m-1","contextId":"<id 2>","taskId":"<id 1>","role":"user","parts":[{"kind":"text","type":"text","text":"chunks 2"}]}]}}

        id: 2
        data: {"jsonrpc":"2.0","id":1,"result":{"kind":"artifact-update","taskId":"<id 1>","contextId":"<id 2>","artifact":{"artifactId":"artifact-1-1","parts":[{"kind":"text","type":"text","text":"1 "}]},"append":false,"lastChunk":false}}

        id: 3
        data: {"jsonrpc":"2.0","id":1,"result":{"kind":"artifact-update","taskId":"<id 1>","contextId":"<id 2>","artifact":{"artifactId":"artifact-1-1","parts":[{"kind":"text","type":"text","text":"2 "}]},"append":true,"lastChunk":false}}

        id: 4
        data: {"jsonrpc":"2.0","id":1,"result":{"kind":"status-update","taskId":"<id 1>","contextId":"<id 2>","status":{"state":"completed","timestamp":"<time>"},"final":true}}

    "#]].assert_eq(&redacted(&stream.text()));
    let asking = events(&edge.old_rpc("message/stream", old_message("ask why?")).await.text());
    let last = &asking.last().unwrap()["result"];
    assert_eq!((&last["status"]["state"], &last["final"]), (&json!("input-required"), &json!(true)));
}

#[tokio::test(start_paused = true)]
async fn a_follower_leaves_where_the_task_waits() {
    let edge = Edge::new(Server::builder().agent(AgentBuilder::from_fn("Slow", |turn: Turn| async move {
        tokio::time::sleep(Duration::from_secs(5)).await;
        Ok(turn.ask("why?").await?)
    })));
    let id = working(&edge).await;
    let seen = events(&edge.old_rpc("tasks/resubscribe", json!({"id": id})).await.text());
    let kinds: Vec<_> = seen.iter().map(|event| event["result"]["kind"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["task", "status-update"]);
    assert_eq!(seen[1]["result"]["final"], true);
}

#[tokio::test(start_paused = true)]
async fn tasks_are_read_and_canceled() {
    let edge = Edge::usual();
    let id = working(&edge).await;
    let read = edge.old_rpc("tasks/get", json!({"id": id})).await.json();
    assert_eq!((&read["result"]["kind"], &read["result"]["id"]), (&json!("task"), &json!(id)));
    let canceled = edge.old_rpc("tasks/cancel", json!({"id": id})).await.json();
    assert_eq!(canceled["result"]["status"]["state"], "canceled");
    let again = edge.old_rpc("tasks/cancel", json!({"id": id})).await.json();
    assert_eq!(again["error"]["code"], -32002, "it is over");
    let done = edge.task("hello").await;
    expect![[r#"
        200 application/json
        {"jsonrpc":"2.0","id":1,"error":{"code":-32002,"message":"Task cannot be canceled: it is completed","data":{"reason":"TASK_NOT_CANCELABLE","taskId":"<id 1>","state":"completed"}}}
    "#]].assert_eq(&edge.old_rpc("tasks/cancel", json!({"id": done})).await.picture());
    assert_eq!(edge.old_rpc("tasks/get", json!({"id": "none"})).await.json()["error"]["code"], -32001);
    assert_eq!(edge.old_rpc("tasks/resubscribe", json!({"id": id})).await.json()["error"]["code"], -32004);
}

#[tokio::test(start_paused = true)]
async fn webhooks_are_set_read_listed_and_deleted() {
    let edge = Edge::usual();
    let id = working(&edge).await;
    let config =
        json!({"id": "b", "url": "https://hooks.example/", "authentication": {"schemes": ["Bearer", "Basic"]}});
    let set = edge.old_rpc("tasks/pushNotificationConfig/set", json!({"taskId": id, "pushNotificationConfig": config}));
    let kept = json!({"taskId": id, "pushNotificationConfig":
        {"id": "b", "url": "https://hooks.example/", "authentication": {"schemes": ["Bearer"]}}});
    assert_eq!(set.await.json()["result"], kept);
    let nameless = json!({"taskId": id, "pushNotificationConfig": {"url": "https://hooks.example/2"}});
    let named = edge.old_rpc("tasks/pushNotificationConfig/set", nameless).await.json();
    assert_eq!(named["result"]["pushNotificationConfig"]["id"].as_str().unwrap().len(), 36, "the server names it");
    let get = |params: Value| edge.old_rpc("tasks/pushNotificationConfig/get", params);
    assert_eq!(get(json!({"id": id, "pushNotificationConfigId": "b"})).await.json()["result"], kept);
    assert_eq!(get(json!({"id": id})).await.json()["result"]["taskId"], json!(id), "one of them");
    let list = async || edge.old_rpc("tasks/pushNotificationConfig/list", json!({"id": id})).await.json();
    assert_eq!(list().await["result"].as_array().unwrap().len(), 2);
    let delete = json!({"id": id, "pushNotificationConfigId": "b"});
    let deleted = edge.old_rpc("tasks/pushNotificationConfig/delete", delete).await;
    assert_eq!(deleted.text(), r#"{"jsonrpc":"2.0","id":1,"result":null}"#);
    assert_eq!(list().await["result"].as_array().unwrap().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_message_without_an_id_is_given_one() {
    let edge = Edge::usual();
    let params = json!({"message": {"role": "user", "parts": [{"kind": "text", "text": "hello"}]}});
    let task = edge.old_rpc("message/send", params).await.json();
    assert_eq!(task["result"]["history"][0]["messageId"].as_str().unwrap().len(), 36);
}

#[tokio::test(start_paused = true)]
async fn a_direct_reply_is_a_bare_message() {
    let brief =
        AgentBuilder::from_fn("Brief", |turn: Turn| async move { Ok(turn.reply(vec![Part::text("yes")]).await?) });
    let edge = Edge::new(Server::builder().agent(brief.traits(|traits| traits.with_replies(Replies::Message))));
    expect![[r#"
        200 application/json
        {"jsonrpc":"2.0","id":1,"result":{"kind":"message","messageId":"<id 1>","contextId":"<id 2>","role":"agent","parts":[{"kind":"text","type":"text","text":"yes"}]}}
    "#]].assert_eq(&edge.old_rpc("message/send", old_message("will you?")).await.picture());
}

#[tokio::test(start_paused = true)]
async fn refusals_are_spelled_as_0_3_does() {
    let edge = Edge::new(Server::builder().agent(echo().streaming(false).push_notifications(false)));
    for (method, params, code) in [
        ("tasks/foo", json!({}), -32601),
        ("message/send", json!({"message": {"kind": "message"}}), -32602),
        ("message/send", json!([]), -32602),
        ("message/stream", old_message("x"), -32004),
        ("tasks/pushNotificationConfig/list", json!({"id": "x"}), -32003),
        ("agent/getAuthenticatedExtendedCard", json!({}), -32007),
    ] {
        let error = edge.old_rpc(method, params.clone()).await.json()["error"].clone();
        assert_eq!(error["code"], code, "{method} {params} {error}");
        assert!(error["data"]["reason"].is_string(), "{method} {error}");
    }
    // Before it is known what is asked, the shape is that for requests which name no version.
    for body in ["{", "[]", r#"{"jsonrpc":"2.0","id":1}"#] {
        let error = edge.ask(unversioned(post("/", body))).await.json()["error"].clone();
        assert!(error["data"]["reason"].is_string(), "{body} {error}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_refused_stream_is_an_event_for_clients_that_name_events_on_any_line() {
    let edge = Edge::usual();
    let asking = |method: &str, accept: &[&str]| {
        let call = unversioned(post("/", rpc_body(method, json!({"id": "none"}))));
        accept.iter().fold(call, |call, line| with(call, "accept", line))
    };
    for accept in [
        &["text/event-stream"][..],
        // As the Python SDK 0.3 sends it.
        &["*/*", "text/event-stream"],
        &["text/event-stream", "*/*"],
        &["application/json", "Text/Event-Stream;q=0.9"],
        &["application/json, text/event-stream"],
    ] {
        for method in ["tasks/resubscribe", "message/stream"] {
            let streamed = edge.ask(asking(method, accept)).await;
            let head = (streamed.status.as_u16(), streamed.header("content-type"));
            assert_eq!(head, (200, "text/event-stream"), "{method} {accept:?}");
            let [event] = &events(&streamed.text())[..] else { panic!("{}", streamed.text()) };
            assert_eq!(event["id"], 1);
            assert!(event["error"]["code"].is_i64(), "{event}");
        }
    }
    for (method, accept) in [
        ("tasks/resubscribe", &["*/*"][..]),
        ("tasks/resubscribe", &[]),
        ("tasks/resubscribe", &["text/event-streams", "text/*"]),
        ("tasks/get", &["application/json, text/event-stream"]),
    ] {
        let plain = edge.ask(asking(method, accept)).await;
        assert_eq!(plain.header("content-type"), "application/json", "{method} {accept:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn the_two_versions_see_the_same_tasks() {
    let edge = Edge::usual();
    let sent = edge.old_rpc("message/send", old_message("hello")).await.json();
    let id = sent["result"]["id"].as_str().unwrap();
    let new = edge.rpc("GetTask", json!({"id": id})).await.json();
    assert_eq!(new["result"]["artifacts"][0]["parts"], json!([{"text": "hello"}]));
    let old = edge.old_rpc("tasks/get", json!({"id": edge.task("again").await})).await.json();
    assert_eq!(old["result"]["artifacts"][0]["parts"], json!([{"kind": "text", "type": "text", "text": "again"}]));
}

#[tokio::test(start_paused = true)]
async fn extensions_go_by_their_older_header() {
    let edge = Edge::new(Server::builder().agent(echo().extension("https://ext.example/x", "x", true)));
    let call = || unversioned(post("/", rpc_body("message/send", old_message("hello"))));
    assert_eq!(edge.ask(call()).await.json()["error"]["code"], -32008);
    let answer = edge.ask(with(call(), "x-a2a-extensions", "https://ext.example/x, https://ext.example/y")).await;
    assert_eq!((answer.gist(), answer.header("x-a2a-extensions")), ("200".to_owned(), "https://ext.example/x"));
}
