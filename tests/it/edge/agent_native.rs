//! Agent-native on its own path, on its own mount, and by the shape of its messages on shared paths.

use http::Method;
use serde_json::{Value, json};
use switchboard::{AgentBuilder, CardForm, Dialect, Effects, Server, Skill, Tokens, Turn};

use crate::support::edge::{Edge, echo, events, get, message, post, request, rpc_body, unversioned, with};

const PATH: &str = "/_agent-native/a2a";
const ALICE: &str = "a-token-of-alice-for-tests";
const BOB: &str = "b-token-of-bob-for-tests";

fn says(text: &str) -> Value {
    json!({"message": {"role": "user", "parts": [{"type": "text", "text": text}]}})
}

fn later(text: &str) -> Value {
    let mut params = says(text);
    params["async"] = json!(true);
    params
}

async fn call_at(edge: &Edge, path: &str, method: &str, params: Value) -> Value {
    let answer = edge.ask(unversioned(post(path, rpc_body(method, params)))).await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    answer.json()
}

async fn call(edge: &Edge, method: &str, params: Value) -> Value {
    call_at(edge, PATH, method, params).await
}

async fn call_as(edge: &Edge, token: &str, method: &str, params: Value) -> Value {
    let request = unversioned(post(PATH, rpc_body(method, params)));
    edge.ask(with(request, "authorization", &format!("Bearer {token}"))).await.json()
}

fn guarded() -> Edge {
    let tokens = Tokens::parse(&format!("{ALICE} alice\n{BOB} bob\n")).unwrap();
    Edge::new(Server::builder().agent(echo()).tokens(tokens))
}

/// Reads a task until it is in a state.
async fn read_until(edge: &Edge, id: &Value, state: &str) -> Value {
    loop {
        let task = call(edge, "tasks/get", json!({"id": id})).await["result"].clone();
        if task["status"]["state"] == state {
            return task;
        }
        tokio::task::yield_now().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_send_waits_and_its_answer_is_in_the_status() {
    let edge = Edge::usual();
    let mut params = says("hello");
    params["contextId"] = json!("c-1");
    params["metadata"] = json!({"callerApp": "mail", "googleToken": "secret", "userEmail": "a@b"});
    for path in
        [PATH, "/_agent-native/a2a/", "/agents/echo/_agent-native/a2a", "/dialects/agent-native/_agent-native/a2a"]
    {
        let task = call_at(&edge, path, "message/send", params.clone()).await["result"].clone();
        let said = json!({"role": "agent", "parts": [{"type": "text", "text": "hello"}]});
        let expected = json!({
            "id": task["id"], "contextId": "c-1",
            "status": {"state": "completed", "message": said, "timestamp": task["status"]["timestamp"]},
            "history": [{"role": "user", "parts": [{"type": "text", "text": "hello"}]}, said],
            "artifacts": [], "metadata": {"callerApp": "mail"},
        });
        assert_eq!(task, expected, "{path}");
        assert!(task["status"]["timestamp"].as_str().unwrap().ends_with('Z'));
        assert_eq!(call(&edge, "tasks/get", json!({"id": task["id"]})).await["result"], task);
    }
}

#[tokio::test(start_paused = true)]
async fn parts_of_all_types_reach_the_agent() {
    let agent = AgentBuilder::from_fn("Counter", |turn: Turn| async move {
        let message = turn.message();
        turn.answer(format!("{} parts, {}", message.parts.len(), turn.text())).await?;
        Ok(())
    });
    let edge = Edge::new(Server::builder().agent(agent.skill(Skill::new("count", "Count", "Counts parts"))));
    let parts = json!([
        {"type": "text", "text": "a"}, {"type": "data", "data": {"x": 1}}, {"type": "text", "text": "b"},
        {"type": "file", "file": {"name": "r.csv", "mimeType": "text/csv", "bytes": "YQ=="}},
    ]);
    let task = call(&edge, "message/send", json!({"message": {"role": "user", "parts": parts}})).await;
    assert_eq!(task["result"]["status"]["message"]["parts"][0]["text"], "4 parts, a\nb");
    assert_eq!(task["result"]["history"][0]["parts"], parts);
}

/// What the original's type of a file allows, and it looks at nothing of it.
#[tokio::test(start_paused = true)]
async fn a_file_is_handed_on_as_it_was_sent() {
    let edge = Edge::usual();
    let text = json!({"type": "text", "text": "x"});
    for file in [
        json!({"name": "r.csv", "mimeType": "text/csv", "bytes": "YQ=="}),
        json!({"uri": "https://files.example/r.csv"}),
        json!({"bytes": "YQ"}),
        json!({"bytes": "not base64!"}),
        json!({"name": "", "mimeType": "", "bytes": "YQ=="}),
        json!({"name": "r.csv"}),
        json!({"bytes": "YQ==", "size": 1, "tags": ["a", {"b": null}]}),
        json!({}),
    ] {
        let parts = json!([text, {"type": "file", "file": file}]);
        let sent = call(&edge, "message/send", json!({"message": {"role": "user", "parts": parts}})).await;
        assert_eq!(sent["result"]["history"][0]["parts"], parts, "{sent}");
        let read = call(&edge, "tasks/get", json!({"id": sent["result"]["id"]})).await;
        assert_eq!(read["result"]["history"][0]["parts"], parts);
    }
    let with_metadata = json!([{"type": "file", "file": {"size": 1}, "metadata": {"k": 1}}]);
    let sent = call(&edge, "message/send", json!({"message": {"role": "user", "parts": with_metadata}})).await;
    assert_eq!(sent["result"]["history"][0]["parts"], with_metadata);
    // Bytes and an address together could mean either.
    let both = json!([{"type": "file", "file": {"bytes": "YQ==", "uri": "https://files.example/r.csv"}}]);
    let refused = call(&edge, "message/send", json!({"message": {"role": "user", "parts": both}})).await;
    assert_eq!(refused["error"]["code"], -32602, "{refused}");
}

/// The echo, as an agent that could answer in the same step in which its message is accepted.
fn quick() -> AgentBuilder {
    echo().traits(|traits| traits.with_effects(Effects::Never))
}

#[tokio::test(start_paused = true)]
async fn an_async_send_is_at_work_however_quick_the_agent() {
    let edge = Edge::new(Server::builder().agent(quick()));
    let task = call(&edge, "message/send", later("hello")).await["result"].clone();
    assert_eq!((&task["status"]["state"], &task["status"]["message"]), (&json!("working"), &Value::Null));
    let done = read_until(&edge, &task["id"], "completed").await;
    assert_eq!(done["status"]["message"]["parts"][0]["text"], "hello");
    assert_eq!(call(&edge, "message/send", says("hello")).await["result"]["status"]["state"], "completed");
}

#[tokio::test(start_paused = true)]
async fn an_async_send_returns_at_once_and_is_polled() {
    let edge = Edge::usual();
    let task = call(&edge, "message/send", later("wait")).await["result"].clone();
    assert_eq!(task["status"]["state"], "working");
    let canceled = call(&edge, "tasks/cancel", json!({"id": task["id"]})).await;
    assert_eq!(canceled["result"]["status"]["state"], "canceled");
    let again = call(&edge, "tasks/cancel", json!({"id": task["id"]})).await;
    assert_eq!(again["error"]["code"], -32002);
    let done = call(&edge, "message/send", later("hello")).await["result"]["id"].clone();
    let done = read_until(&edge, &done, "completed").await;
    assert_eq!(done["status"]["message"]["parts"][0]["text"], "hello");
    let late = call(&edge, "tasks/cancel", json!({"id": done["id"]})).await;
    assert_eq!(late["error"]["code"], -32002, "what is over stays as it is");
    // Only the member beside the message counts.
    let mut passed_on = says("hello");
    passed_on["metadata"] = json!({"async": true});
    assert_eq!(call(&edge, "message/send", passed_on).await["result"]["status"]["state"], "completed");
}

#[tokio::test(start_paused = true)]
async fn a_stream_is_told_in_whole_tasks_under_the_id_0() {
    let agent = AgentBuilder::from_fn("Talker", |turn: Turn| async move {
        for word in ["one", "two", "three"] {
            turn.working(word).await?;
        }
        turn.answer("done").await?;
        Ok(())
    });
    let edge = Edge::new(Server::builder().agent(agent.skill(Skill::new("talk", "Talk", "Talks"))));
    let stream = edge.ask(unversioned(post(PATH, rpc_body("message/stream", says("go"))))).await;
    assert_eq!(stream.header("content-type"), "text/event-stream");
    let events = events(&stream.text());
    let told: Vec<_> = events
        .iter()
        .map(|event| {
            assert_eq!((&event["id"], &event["result"]["history"][0]["parts"][0]["text"]), (&json!(0), &json!("go")));
            let status = &event["result"]["status"];
            format!("{} {}", status["state"].as_str().unwrap(), status["message"]["parts"][0]["text"].as_str().unwrap())
        })
        .collect();
    assert_eq!(told, ["working one", "working two", "working three", "completed done"]);
    // Nothing is said before the agent speaks.
    let short = Edge::usual().ask(unversioned(post(PATH, rpc_body("message/stream", says("hello"))))).await.text();
    let last = crate::support::edge::events(&short).pop().unwrap();
    assert_eq!(last["result"]["status"]["state"], "completed");
    assert!(!short.contains("submitted") && !short.contains("artifactId"), "{short}");
}

#[tokio::test(start_paused = true)]
async fn an_agent_without_streams_says_so() {
    let edge = Edge::new(Server::builder().agent(echo().streaming(false)));
    let refused = call(&edge, "message/stream", says("hello")).await;
    let expected = json!({"jsonrpc": "2.0", "id": 1, "error": {"code": -32601, "message": "Streaming not supported"}});
    assert_eq!(refused, expected);
}

#[tokio::test(start_paused = true)]
async fn a_failed_run_is_an_error_for_who_waits_and_a_task_for_who_polls() {
    let edge = Edge::usual();
    let failed = call(&edge, "message/send", says("fail no disk")).await;
    assert_eq!(failed, json!({"jsonrpc": "2.0", "id": 1, "error": {"code": -32000, "message": "no disk"}}));
    let polled = call(&edge, "message/send", later("fail no disk")).await["result"]["id"].clone();
    let polled = read_until(&edge, &polled, "failed").await;
    assert_eq!(polled["status"]["message"]["parts"][0]["text"], "no disk");
    let stream = edge.ask(unversioned(post(PATH, rpc_body("message/stream", says("fail no disk"))))).await;
    let expected = json!({"jsonrpc": "2.0", "id": 0, "error": {"code": -32000, "message": "no disk"}});
    assert_eq!(events(&stream.text()), [expected]);
}

#[tokio::test(start_paused = true)]
async fn other_verbs_are_told_that_the_endpoint_is_there() {
    let edge = Edge::usual();
    for method in [Method::GET, Method::PUT, Method::DELETE, Method::OPTIONS, Method::PATCH] {
        for path in [PATH, "/dialects/agent-native/a2a"] {
            let answer = edge.ask(unversioned(request(method.clone(), path, ""))).await;
            let got = (answer.status.as_u16(), answer.text());
            assert_eq!(got, (405, r#"{"error":"Method not allowed"}"#.to_owned()), "{method} {path}");
            assert_eq!(answer.header("allow"), "POST");
        }
    }
    let browser = with(request(Method::OPTIONS, PATH, ""), "access-control-request-method", "POST");
    assert_eq!(edge.ask(browser).await.status, 204);
    assert_eq!(edge.ask(request(Method::OPTIONS, "/a2a", "")).await.status, 204);
}

#[tokio::test(start_paused = true)]
async fn what_is_no_request_is_a_bad_one() {
    let edge = Edge::usual();
    for (body, id) in [
        ("", "null"),
        ("{", "null"),
        ("[]", "null"),
        ("5", "null"),
        ("{}", "null"),
        (r#"{"jsonrpc":"1.0","id":7,"method":"tasks/get"}"#, "7"),
        (r#"{"jsonrpc":"2.0","id":"x"}"#, "\"x\""),
        (r#"{"jsonrpc":"2.0","id":7,"method":""}"#, "7"),
        (r#"{"jsonrpc":"2.0","id":7,"method":5}"#, "7"),
    ] {
        let answer = edge.ask(unversioned(post(PATH, body))).await;
        let text =
            format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{{"code":-32600,"message":"Invalid JSON-RPC request"}}}}"#);
        assert_eq!((answer.status.as_u16(), answer.text()), (400, text), "{body}");
    }
    for (method, params, expected) in [
        ("message/send", json!({}), "-32602 Invalid params: message with role and parts required"),
        ("tasks/get", json!({}), "-32602 Invalid params: id required"),
        ("tasks/get", json!({"id": "nope"}), "-32001 Task not found"),
        ("tasks/cancel", json!({"id": "nope"}), "-32001 Task not found"),
        ("tasks/send", says("hello"), "-32601 Method not found: tasks/send"),
        ("mesage/send", says("hello"), "-32601 Method not found: mesage/send; did you mean message/send?"),
        ("SendMessage", says("hello"), "-32601 Method not found: SendMessage"),
        (
            "message/send",
            message("1.0 has no types"),
            "-32602 Invalid params: message.role: ROLE_USER is neither user nor agent",
        ),
    ] {
        let error = call(&edge, method, params).await["error"].clone();
        assert_eq!(format!("{} {}", error["code"], error["message"].as_str().unwrap()), expected, "{method}");
    }
}

#[tokio::test(start_paused = true)]
async fn who_may_not_call_hears_so_in_the_shape_of_the_place() {
    let edge = guarded();
    for request in [unversioned(post(PATH, "{")), with(unversioned(post(PATH, "{")), "authorization", "Bearer nobody")]
    {
        let answer = edge.ask(request).await;
        let expected =
            json!({"jsonrpc": "2.0", "id": null, "error": {"code": -32001, "message": "Authentication required"}});
        assert_eq!((answer.status.as_u16(), answer.json()), (401, expected));
        assert!(answer.header("www-authenticate").starts_with("Bearer"));
    }
    let task = call_as(&edge, ALICE, "message/send", says("hello")).await["result"]["id"].clone();
    for method in ["tasks/get", "tasks/cancel"] {
        let refused = call_as(&edge, BOB, method, json!({"id": task})).await;
        assert_eq!(refused["error"], json!({"code": -32001, "message": "Task not found"}), "{method}");
    }
    assert_eq!(call_as(&edge, ALICE, "tasks/get", json!({"id": task})).await["result"]["id"], task);
}

#[tokio::test(start_paused = true)]
async fn a_key_names_one_task_until_that_task_fails() {
    let edge = guarded();
    let keyed = |mut params: Value| {
        params["idempotencyKey"] = json!("k-1");
        params
    };
    let send = async |token: &str, params: Value| call_as(&edge, token, "message/send", params).await["result"].clone();
    let first = send(ALICE, keyed(later("hello"))).await;
    assert_eq!(send(ALICE, keyed(later("hello"))).await["id"], first["id"]);
    assert_ne!(send(BOB, keyed(later("hello"))).await["id"], first["id"], "a key is its owner's");
    assert_ne!(send(ALICE, keyed(says("hello"))).await["id"], first["id"], "who waits needs no key");
    let other = |mut params: Value| {
        params["idempotencyKey"] = json!("k-2");
        params
    };
    let mut failed = Vec::new();
    for _ in 0..3 {
        let id = send(ALICE, other(later("fail x"))).await["id"].clone();
        while call_as(&edge, ALICE, "tasks/get", json!({"id": id})).await["result"]["status"]["state"] != "failed" {
            tokio::task::yield_now().await;
        }
        assert!(!failed.contains(&id), "a key whose task failed is free again");
        failed.push(id);
    }
    // Anonymous callers have no keys.
    let open = Edge::usual();
    let ids = [
        call(&open, "message/send", keyed(later("hello"))).await,
        call(&open, "message/send", keyed(later("hello"))).await,
    ];
    assert_ne!(ids[0]["result"]["id"], ids[1]["result"]["id"]);
}

#[tokio::test(start_paused = true)]
async fn a_question_is_a_task_that_waits() {
    let edge = Edge::usual();
    let task = call(&edge, "message/send", says("ask which?")).await["result"].clone();
    assert_eq!(task["status"]["state"], "input-required");
    assert_eq!(task["status"]["message"]["parts"][0]["text"], "which?");
    let mut answer = says("that one");
    answer["message"]["taskId"] = task["id"].clone();
    let task = call(&edge, "message/send", answer).await["result"].clone();
    assert_eq!(task["status"]["message"]["parts"][0]["text"], "that one");
    assert_eq!(task["history"].as_array().unwrap().len(), 4, "{task}");
}

#[tokio::test(start_paused = true)]
async fn on_everybody_s_paths_the_message_tells() {
    let edge = Edge::usual();
    for path in ["/", "/rpc", "/a2a", "/a2a/", "/agents/echo"] {
        let task = call_at(&edge, path, "message/send", says("hello")).await["result"].clone();
        assert_eq!((&task["kind"], &task["status"]["message"]["parts"][0]["text"]), (&Value::Null, &json!("hello")));
        // A read tells nothing, so it is answered in 0.3, with the answer where this task's client looks for it.
        let read = call_at(&edge, path, "tasks/get", json!({"id": task["id"]})).await["result"].clone();
        let part = json!([{"kind": "text", "type": "text", "text": "hello"}]);
        assert_eq!((&read["kind"], &read["status"]["message"]["parts"]), (&json!("task"), &part), "{path}");
        assert_eq!(read["artifacts"][0]["parts"], part);
        let versioned =
            with(unversioned(post(path, rpc_body("tasks/get", json!({"id": task["id"]})))), "a2a-version", "0.3");
        let read = edge.ask(versioned).await.json()["result"].clone();
        assert_eq!(
            (&read["kind"], &read["status"]["message"]),
            (&json!("task"), &Value::Null),
            "0.3 has it in artifacts"
        );
    }
    let failed = call_at(&edge, "/a2a", "message/send", says("fail x")).await;
    assert_eq!(failed["error"]["code"], -32000);
    let new = edge.post(PATH, rpc_body("SendMessage", message("hello"))).await.json();
    assert_eq!(new["result"]["task"]["status"]["state"], "TASK_STATE_COMPLETED", "whoever says 1.0 gets 1.0 anywhere");
}

#[tokio::test(start_paused = true)]
async fn its_card_is_public_and_shows_no_tenants() {
    let agent = || {
        let private = ["mcp__user_ab12_gmail", "mcp__org_7_slack"];
        let agent = private.into_iter().fold(echo(), |agent, id| agent.skill(Skill::new(id, "x", "y")));
        agent.skill(Skill::new("mcp__stdio_fs", "Files", "Reads files"))
    };
    let edge = |agent: AgentBuilder| {
        let tokens = Tokens::parse(&format!("{ALICE} alice")).unwrap();
        Edge::new(Server::builder().agent(agent).tokens(tokens).public_url("https://agents.example"))
    };
    let expected = |url: &str| {
        json!({
            "name": "Echo", "description": "Says what it was told", "url": url, "version": "1.0.0",
            "protocolVersion": "0.3",
            "capabilities": {"streaming": true, "pushNotifications": false, "stateTransitionHistory": true},
            "skills": [
                {"id": "echo", "name": "Echo", "description": "Repeats a text", "tags": ["test"]},
                {"id": "mcp__stdio_fs", "name": "Files", "description": "Reads files", "tags": []},
            ],
            "securitySchemes": {"apiKey": {"type": "http", "scheme": "bearer"}},
            "security": [{"apiKey": []}],
        })
    };
    let mounted = edge(agent());
    let card = mounted.ask(unversioned(get("/dialects/agent-native/.well-known/agent-card.json"))).await.json();
    assert_eq!(card, expected("https://agents.example/dialects/agent-native/_agent-native/a2a"));
    let asked = edge(agent().card_form(CardForm::Compat(Dialect::AgentNative)));
    let card = asked.ask(unversioned(get("/agents/echo/.well-known/agent-card.json"))).await.json();
    assert_eq!(card, expected("https://agents.example/agents/echo/_agent-native/a2a"));
}
