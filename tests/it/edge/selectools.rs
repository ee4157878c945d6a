//! Selectools on its own mount and on paths that an agent claims for it: its order of checks, its texts, its limits.

use http::Method;
use serde_json::{Value, json};
use switchboard::{AgentBuilder, Artifact, CardForm, Dialect, Part, Server, Tokens, Turn};

use crate::support::bodies::Untouched;
use crate::support::edge::{Answer, Edge, echo, get, message, post, request, rpc_body, unversioned, with};

const MOUNT: &str = "/dialects/selectools/a2a";
const TOKEN: &str = "sk-token-0123456789";

fn guarded(agent: AgentBuilder) -> Edge {
    let tokens = Tokens::parse(&format!("{TOKEN} alice")).unwrap();
    let agent = agent.compat(|compat| compat.selectools.body_bytes_max = 4096);
    Edge::new(Server::builder().agent(agent).tokens(tokens))
}

async fn call(edge: &Edge, path: &str, method: &str, params: Value) -> Value {
    let answer = edge.ask(unversioned(post(path, rpc_body(method, params)))).await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    answer.json()
}

fn says(parts: Value) -> Value {
    json!({"message": {"role": "user", "parts": parts, "messageId": "m-1"}})
}

fn text(text: &str) -> Value {
    says(json!([{"kind": "text", "text": text}]))
}

async fn send(edge: &Edge, words: &str) -> Value {
    call(edge, MOUNT, "message/send", text(words)).await["result"].clone()
}

fn is_hex(id: &Value) -> bool {
    let id = id.as_str().unwrap();
    id.len() == 32 && id.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// Each refusal of the original, byte for byte, on the mount and where an agent claims the shared path.
#[tokio::test(start_paused = true)]
async fn what_the_original_refuses_is_refused_alike() {
    let cases: Value = serde_json::from_str(include_str!("../../golden/selectools/errors.json")).unwrap();
    for (edge, path) in
        [(guarded(echo()), MOUNT), (guarded(echo().compat(|compat| compat.claim = Some(Dialect::Selectools))), "/a2a")]
    {
        let mut checked = 0;
        for case in cases.as_array().unwrap() {
            let name = case["case"].as_str().unwrap();
            let sent = case["request"].as_str().unwrap();
            let body: Vec<u8> = match name {
                "too-large" => vec![b'x'; 4097],
                "not-utf8" => vec![0xff, 0xfe, b'{'],
                // Needs a task that is there; see below.
                "cancel-stored" => continue,
                _ => sent.as_bytes().to_vec(),
            };
            let request = unversioned(post(path, body));
            let request = match name {
                "no-token" => request,
                "small-bearer" => with(request, "authorization", &format!("bearer {TOKEN}")),
                _ => with(request, "authorization", &format!("Bearer {TOKEN}")),
            };
            let answer = edge.ask(request).await;
            let expected = (case["status"].as_u64().unwrap(), case["reply"].clone());
            assert_eq!((u64::from(answer.status.as_u16()), answer.json()), expected, "{name} {path}");
            assert_eq!(answer.header("www-authenticate"), "");
            checked += 1;
        }
        assert_eq!(checked, 23);
    }
}

#[tokio::test(start_paused = true)]
async fn who_calls_is_asked_before_anything_is_read() {
    let edge = guarded(echo());
    let refused = edge.open(unversioned(request(Method::POST, MOUNT, "")).map(|_| Untouched)).await;
    assert_eq!(refused.status(), 401);
}

#[tokio::test(start_paused = true)]
async fn a_send_waits_and_is_answered_with_a_task_that_can_be_read_again() {
    let edge = Edge::usual();
    let task = send(&edge, "hello").await;
    assert!(is_hex(&task["id"]) && is_hex(&task["contextId"]), "{task}");
    let timestamp = task["status"]["timestamp"].as_str().unwrap();
    assert!(timestamp.len() == 32 && timestamp.ends_with("000+00:00"), "{timestamp}");
    let expected = json!({
        "id": task["id"], "contextId": task["contextId"], "kind": "task",
        "status": {"state": "completed", "timestamp": timestamp},
        "artifacts": [{"artifactId": "artifact-1-1", "name": "response", "parts": [{"kind": "text", "text": "hello"}]}],
        "history": [{
            "role": "user", "parts": [{"kind": "text", "text": "hello"}], "messageId": "m-1",
        }],
    });
    assert_eq!(task, expected);
    assert_eq!(call(&edge, MOUNT, "tasks/get", json!({"id": task["id"]})).await["result"], task);
    let alias = call(&edge, MOUNT, "tasks/send", text("again")).await;
    assert_eq!(alias["result"]["artifacts"][0]["parts"][0]["text"], "again");
    let unnamed = says(json!([{"kind": "text", "text": "x"}]));
    let mut unnamed = unnamed["message"].clone();
    unnamed.as_object_mut().unwrap().remove("messageId");
    let task = call(&edge, MOUNT, "message/send", json!({"message": &unnamed, "contextId": "c-9"})).await;
    assert_eq!(task["result"]["history"], json!([unnamed]), "nothing is made up");
    assert_eq!(task["result"]["contextId"], "c-9");
}

#[tokio::test(start_paused = true)]
async fn data_is_read_with_the_text_and_files_are_not_refused() {
    let edge = Edge::usual();
    let parts = json!([
        {"kind": "text", "text": "one"},
        {"kind": "data", "data": {"a": 1}},
        {"kind": "file", "file": {"name": "x.png", "mimeType": "image/png", "bytes": "aGk="}},
        {"kind": "video"},
    ]);
    let task = call(&edge, MOUNT, "message/send", says(parts.clone())).await["result"].clone();
    assert_eq!(task["artifacts"][0]["parts"][0]["text"], "one\n{\"a\": 1}");
    assert_eq!(task["history"][0]["parts"], parts);
}

#[tokio::test(start_paused = true)]
async fn only_the_newest_tasks_are_kept_for_its_clients() {
    let agent = echo().compat(|compat| compat.selectools.tasks_max = 2);
    let edge = Edge::new(Server::builder().agent(agent));
    let mut ids = Vec::new();
    for words in ["one", "two", "three"] {
        ids.push(send(&edge, words).await["id"].clone());
    }
    let mut found = Vec::new();
    for id in &ids {
        let answer = call(&edge, MOUNT, "tasks/get", json!({"id": id})).await;
        found.push(answer["error"]["code"].as_i64().unwrap_or_default());
    }
    assert_eq!(found, [-32001, 0, 0]);
    let gone = call(&edge, "/agents/echo/dialects/selectools/a2a", "tasks/cancel", json!({"id": ids[0]})).await;
    assert_eq!(gone["error"]["message"], json!(format!("Task not found: '{}'", ids[0].as_str().unwrap())));
    let kept = edge.rpc("GetTask", json!({"id": ids[0]})).await.json();
    assert_eq!(kept["result"]["status"]["state"], "TASK_STATE_COMPLETED", "others still find it");
}

#[tokio::test(start_paused = true)]
async fn no_task_can_be_canceled() {
    let edge = Edge::usual();
    let id = send(&edge, "hello").await["id"].clone();
    let mut working = message("wait");
    working["configuration"] = json!({"returnImmediately": true});
    let at_work = edge.rpc("SendMessage", working).await.json()["result"]["task"]["id"].clone();
    for id in [id, at_work.clone()] {
        let refused = call(&edge, MOUNT, "tasks/cancel", json!({"id": id})).await;
        let text = format!("Task '{}' is in a terminal state", id.as_str().unwrap());
        assert_eq!(refused, json!({"jsonrpc": "2.0", "id": 1, "error": {"code": -32002, "message": text}}));
    }
    let read = edge.rpc("GetTask", json!({"id": at_work})).await.json();
    assert_ne!(read["result"]["status"]["state"], "TASK_STATE_CANCELED");
}

#[tokio::test(start_paused = true)]
async fn a_failure_tells_its_kind_and_nothing_else() {
    let edge = Edge::usual();
    let told = send(&edge, "fail the password is hunter2").await;
    assert!(!told.to_string().replace("fail the password is hunter2", "").contains("hunter2"), "{told}");
    assert_eq!(told["status"]["message"]["parts"][0]["text"], "Agent execution failed (AgentError)");
    assert!(is_hex(&told["status"]["message"]["messageId"]));
    assert_eq!((&told["status"]["state"], &told["artifacts"]), (&json!("failed"), &json!([])));
    let broken = send(&edge, "chunks many").await;
    assert_eq!(broken["status"]["message"]["parts"][0]["text"], "Agent execution failed (RuntimeError)");
}

#[tokio::test(start_paused = true)]
async fn elsewhere_its_requests_are_those_of_0_3() {
    let edge = Edge::usual();
    let data = says(json!([{"kind": "data", "data": {"a": 1}}]));
    assert_eq!(call(&edge, "/a2a", "message/send", data.clone()).await["result"]["status"]["state"], "completed");
    assert_eq!(call(&edge, "/a2a", "tasks/send", data).await["result"]["status"]["state"], "completed");
    // The old name of a send is its own, where it could not have been refused.
    let task = call(&edge, "/a2a", "tasks/send", text("hello")).await["result"].clone();
    assert!(is_hex(&task["id"]), "{task}");
    let task = call(&edge, "/a2a", "message/send", text("hello")).await["result"].clone();
    assert_eq!(task["artifacts"][0]["parts"][0], json!({"kind": "text", "type": "text", "text": "hello"}));
}

#[tokio::test(start_paused = true)]
async fn a_claim_is_for_those_who_name_no_version() {
    let edge = Edge::new(Server::builder().agent(echo().compat(|compat| compat.claim = Some(Dialect::Selectools))));
    for path in ["/", "/rpc", "/a2a", "/agents/echo/a2a"] {
        let task = call(&edge, path, "message/send", text("hello")).await["result"].clone();
        assert!(is_hex(&task["id"]), "{path} {task}");
        let refused = call(&edge, path, "message/stream", text("hello")).await;
        assert_eq!(refused["error"]["message"], "Method not found: 'message/stream'");
    }
    let new = edge.rpc("SendMessage", message("hello")).await.json();
    assert_eq!(new["result"]["task"]["status"]["state"], "TASK_STATE_COMPLETED");
    let old = with(unversioned(post("/a2a", rpc_body("message/send", text("hello")))), "a2a-version", "0.3");
    assert_eq!(edge.ask(old).await.json()["result"]["artifacts"][0]["parts"][0]["type"], "text");
    // On its own mount a version counts for nothing.
    let mounted = edge.post(MOUNT, rpc_body("SendMessage", message("hello"))).await;
    assert_eq!(mounted.json()["error"]["message"], "Method not found: 'SendMessage'");
    let verb = edge.ask(unversioned(request(Method::PUT, "/a2a", ""))).await;
    assert_eq!((verb.status.as_u16(), verb.header("allow")), (405, "POST"));
}

async fn card(edge: &Edge, path: &str) -> Answer {
    edge.ask(unversioned(get(path))).await
}

#[tokio::test(start_paused = true)]
async fn its_card_is_public_on_the_mount_and_wherever_an_agent_asks_for_it() {
    let expected = concat!(
        r#"{"protocolVersion":"0.2.6","name":"Echo","description":"Says what it was told","url":"","version":"{VERSION}","#,
        r#""capabilities":{"streaming":false,"pushNotifications":false,"stateTransitionHistory":false},"#,
        r#""defaultInputModes":["text/plain"],"defaultOutputModes":["text/plain"],"#,
        r#""skills":[{"id":"echo","name":"echo","description":"Repeats a text","tags":["tool"]}]}"#,
    );
    // The original names its package there, and so do we.
    let expected = &expected.replace("{VERSION}", env!("CARGO_PKG_VERSION"));
    let edge = guarded(echo());
    for path in
        ["/dialects/selectools/.well-known/agent.json", "/agents/echo/dialects/selectools/.well-known/agent-card.json"]
    {
        let card = card(&edge, path).await;
        assert_eq!((card.status.as_u16(), card.text().as_str()), (200, expected.as_str()), "{path}");
        let known = with(unversioned(get(path)), "if-none-match", card.header("etag"));
        assert_eq!(edge.ask(known).await.status, 304);
    }
    let edge = guarded(echo().card_form(CardForm::Compat(Dialect::Selectools)));
    assert_eq!(card(&edge, "/.well-known/agent.json").await.text(), *expected);
    let new = edge.get("/.well-known/agent-card.json").await;
    assert!(new.json()["supportedInterfaces"].is_array(), "whoever says 1.0 gets that card");
    let named = echo().compat(|compat| compat.selectools.card_url = "https://agents.example/a2a".to_owned());
    let edge = Edge::new(Server::builder().agent(named));
    let card = card(&edge, "/dialects/selectools/.well-known/agent.json").await;
    assert_eq!(card.json()["url"], "https://agents.example/a2a");
}

/// By the original: the object that came is the history, the artifact is the response, and no output is an empty one.
#[tokio::test(start_paused = true)]
async fn the_result_has_the_shape_of_the_original() {
    let agent = AgentBuilder::from_fn("Mute", |turn: Turn| async move {
        if turn.text() != "hush" {
            turn.artifact(Artifact::new("", vec![Part::text(turn.text())]).with_name("report")).await?;
        }
        Ok(())
    });
    let edge = Edge::new(Server::builder().agent(agent));
    let message = json!({
        "role": "user", "parts": [{"kind": "text", "text": "see"}, {"kind": "data", "data": {"city": "K\u{f6}ln"}}],
        "contextId": "c-1", "taskId": "t-1", "extensions": ["urn:x"], "metadata": {"a": 1}, "x": {"y": [null]},
    });
    let sent = call(&edge, MOUNT, "message/send", json!({"message": message})).await["result"].clone();
    assert_eq!(sent["history"], json!([message]));
    let parts = json!([{"kind": "text", "text": "see\n{\"city\": \"K\u{f6}ln\"}"}]);
    assert_eq!(sent["artifacts"], json!([{"artifactId": "artifact-1-1", "name": "response", "parts": parts}]));
    assert_eq!(call(&edge, MOUNT, "tasks/get", json!({"id": sent["id"]})).await["result"], sent);
    let hushed = call(&edge, MOUNT, "message/send", text("hush")).await["result"].clone();
    let id = format!("{}-response", hushed["id"].as_str().unwrap());
    let empty = json!([{"artifactId": id, "name": "response", "parts": [{"kind": "text", "text": ""}]}]);
    assert_eq!((&hushed["status"]["state"], &hushed["artifacts"]), (&json!("completed"), &empty));
    let refused = call(&edge, MOUNT, "tasks/get", json!({"id": 5})).await;
    assert_eq!(refused["error"], json!({"code": -32001, "message": "Task not found: 5"}));
}
