//! Corvid over HTTP: its two paths, the agent that takes its calls, its limits, and its behavioural examples.

use std::time::Duration;

use http::Method;
use serde_json::{Value, json};
use switchboard::{AgentBuilder, CardForm, CorvidOptions, Dialect, Effects, Server, Tokens, Turn};

use crate::support::edge::{Answer, Edge, echo, get, message, old_message, post, request, unversioned, with};

fn project() -> AgentBuilder {
    echo().compat(|compat| compat.default_project = true)
}

fn edge() -> Edge {
    Edge::new(Server::builder().agent(project()))
}

async fn send(edge: &Edge, body: Value) -> Answer {
    edge.ask(unversioned(post("/a2a/tasks/send", body.to_string()))).await
}

async fn look(edge: &Edge, id: &Value) -> Value {
    look_at(edge, "/a2a/tasks", id).await
}

async fn look_at(edge: &Edge, tasks: &str, id: &Value) -> Value {
    let answer = edge.ask(unversioned(get(&format!("{tasks}/{}", id.as_str().unwrap())))).await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    answer.json()
}

/// Looks every three seconds, as its client does, until the task has ended.
async fn poll(edge: &Edge, id: &Value) -> Value {
    poll_at(edge, "/a2a/tasks", id).await
}

async fn poll_at(edge: &Edge, tasks: &str, id: &Value) -> Value {
    loop {
        let task = look_at(edge, tasks, id).await;
        if ["completed", "failed"].contains(&task["state"].as_str().unwrap()) {
            return task;
        }
        tokio::time::sleep(Duration::from_secs(3)).await;
    }
}

fn error(answer: &Answer) -> (u16, String) {
    let body = answer.json();
    assert_eq!(body.as_object().unwrap().len(), 1, "{body}");
    (answer.status.as_u16(), body["error"].as_str().unwrap().to_owned())
}

/// Says "Hi there" after a second and ends after another, but not when it is told to hang.
fn slow() -> AgentBuilder {
    AgentBuilder::from_fn("Slow", |turn: Turn| async move {
        if turn.text() == "hang" {
            std::future::pending::<()>().await;
        }
        tokio::time::sleep(Duration::from_secs(1)).await;
        turn.artifact_writer().text("Hi there").await?;
        tokio::time::sleep(Duration::from_secs(1)).await;
        Ok(())
    })
    .compat(|compat| compat.default_project = true)
}

#[tokio::test(start_paused = true)]
async fn example_1_an_inbound_task_lives_from_working_to_completed() {
    let edge = Edge::new(Server::builder().agent(slow()));
    let task = send(&edge, json!({"message": "Hello"})).await.json();
    let members: Vec<_> = task.as_object().unwrap().keys().cloned().collect();
    let mut expected = ["id", "state", "messages", "sessionId", "createdAt", "updatedAt"].map(str::to_owned);
    expected.sort();
    let mut sorted = members;
    sorted.sort();
    assert_eq!(sorted, expected);
    assert_eq!(task["state"], "working");
    let hello = json!({"role": "user", "parts": [{"type": "text", "text": "Hello"}]});
    assert_eq!(task["messages"], json!([hello]));
    tokio::time::sleep(Duration::from_millis(1500)).await;
    let midway = look(&edge, &task["id"]).await;
    let said = json!({"role": "agent", "parts": [{"type": "text", "text": "Hi there"}]});
    assert_eq!((&midway["state"], &midway["messages"]), (&json!("working"), &json!([hello, said])));
    let done = poll(&edge, &task["id"]).await;
    assert_eq!((&done["state"], &done["messages"]), (&json!("completed"), &json!([hello, said])));
    assert_eq!((&done["sessionId"], &done["createdAt"]), (&task["sessionId"], &task["createdAt"]));
}

/// Says something three times, then answers.
fn talker() -> AgentBuilder {
    AgentBuilder::from_fn("Talker", |turn: Turn| async move {
        for note in ["looking", "reading"] {
            tokio::time::sleep(Duration::from_secs(1)).await;
            turn.working(note).await?;
        }
        let mut writer = turn.artifact_writer();
        for piece in ["It is ", "blue"] {
            tokio::time::sleep(Duration::from_secs(1)).await;
            writer.text(piece).await?;
        }
        tokio::time::sleep(Duration::from_secs(1)).await;
        Ok(())
    })
    .compat(|compat| compat.default_project = true)
}

/// The texts of a task's messages.
fn said(task: &Value) -> Vec<String> {
    let messages = task["messages"].as_array().unwrap().iter();
    messages.map(|message| message["parts"][0]["text"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test(start_paused = true)]
async fn what_the_agent_says_is_added_to_the_messages() {
    let edge = Edge::new(Server::builder().agent(talker()));
    let task = send(&edge, json!({"message": "What colour?"})).await.json();
    let mut texts = vec![said(&task).join(" | ")];
    tokio::time::sleep(Duration::from_millis(500)).await;
    for _ in 0..5 {
        tokio::time::sleep(Duration::from_secs(1)).await;
        texts.push(said(&look(&edge, &task["id"]).await).join(" | "));
    }
    let expected = [
        "What colour?",
        "What colour? | looking",
        "What colour? | looking | reading",
        "What colour? | looking | reading | It is ",
        "What colour? | looking | reading | It is blue",
        "What colour? | looking | reading | It is blue",
    ];
    assert_eq!(texts, expected);
}

#[tokio::test(start_paused = true)]
async fn a_send_is_at_work_however_quick_the_agent() {
    let quick = project().traits(|traits| traits.with_effects(Effects::Never));
    let edge = Edge::new(Server::builder().agent(quick));
    let task = send(&edge, json!({"message": "Hello"})).await.json();
    assert_eq!((&task["state"], said(&task)), (&json!("working"), vec!["Hello".to_owned()]));
    assert_eq!(said(&poll(&edge, &task["id"]).await), ["Hello", "Hello"]);
}

/// Clients cannot answer a question in this dialect, so it must not keep a task open for ever.
#[tokio::test(start_paused = true)]
async fn a_task_that_asks_back_ends_by_its_time() {
    let agent = AgentBuilder::from_fn("Asker", |turn: Turn| async move {
        match turn.text().as_str() {
            "log in" => {
                turn.require_auth("Who are you?").await?;
                std::future::pending::<()>().await;
            }
            _ => turn.ask("Which one?").await?,
        }
        Ok(())
    });
    let edge = Edge::new(Server::builder().agent(agent.compat(|compat| compat.default_project = true)));
    for message in ["do it", "log in"] {
        let task = send(&edge, json!({"params": {"message": message, "timeoutMs": 5000}})).await.json();
        tokio::time::sleep(Duration::from_millis(4900)).await;
        assert_eq!(look(&edge, &task["id"]).await["state"], "working", "{message}");
        tokio::time::sleep(Duration::from_millis(200)).await;
        let failed = look(&edge, &task["id"]).await;
        assert_eq!((&failed["state"], said(&failed).last().unwrap().as_str()), (&json!("failed"), "Task timed out"));
    }
    // In other dialects a question waits for as long as it likes.
    let asked = edge.post("/message:send", message("do it").to_string()).await.json();
    tokio::time::sleep(Duration::from_secs(86_400)).await;
    let read = edge.get(&format!("/tasks/{}", asked["task"]["id"].as_str().unwrap())).await.json();
    assert_eq!(read["status"]["state"], "TASK_STATE_INPUT_REQUIRED");
}

#[tokio::test(start_paused = true)]
async fn example_2_a_task_that_takes_too_long_has_timed_out() {
    let edge = Edge::new(Server::builder().agent(slow()));
    let task = send(&edge, json!({"params": {"message": "hang", "timeoutMs": 5000}})).await.json();
    tokio::time::sleep(Duration::from_millis(4900)).await;
    assert_eq!(look(&edge, &task["id"]).await["state"], "working");
    tokio::time::sleep(Duration::from_millis(200)).await;
    let failed = look(&edge, &task["id"]).await;
    assert_eq!(failed["state"], "failed");
    let last = failed["messages"].as_array().unwrap().last().unwrap().clone();
    assert_eq!(last, json!({"role": "agent", "parts": [{"type": "text", "text": "Task timed out"}]}));
    // Without a limit of its own it is five minutes; one that the agent does not give is no reason to refuse.
    for (body, seconds) in [(json!({"message": "hang"}), 300), (json!({"message": "hang", "timeoutMs": 600_000}), 300)]
    {
        let task = send(&edge, body).await.json();
        tokio::time::sleep(Duration::from_secs(seconds - 1)).await;
        assert_eq!(look(&edge, &task["id"]).await["state"], "working");
        tokio::time::sleep(Duration::from_secs(2)).await;
        assert_eq!(look(&edge, &task["id"]).await["state"], "failed");
    }
}

/// The server's side of it: a post with the message, then looks until it has ended, and the last thing that the agent said.
#[tokio::test(start_paused = true)]
async fn example_3_a_remote_invocation_finds_its_answer() {
    let edge = edge();
    let sent = send(&edge, json!({"params": {"message": "Summarize this"}})).await;
    assert_eq!((sent.status.as_u16(), sent.header("content-type")), (200, "application/json"));
    let done = poll(&edge, &sent.json()["id"]).await;
    let messages = done["messages"].as_array().unwrap();
    let answer = messages.iter().rfind(|message| message["role"] == "agent").unwrap();
    assert_eq!(answer["parts"][0]["text"], "Summarize this");
    let failed = send(&edge, json!({"message": "fail no paper"})).await.json();
    let failed = poll(&edge, &failed["id"]).await;
    assert_eq!(failed["messages"][1]["parts"][0]["text"], "no paper");
}

/// The server's side of it: a card may be kept for five minutes, and is then asked for again.
#[tokio::test(start_paused = true)]
async fn example_4_a_card_may_be_kept_for_five_minutes() {
    let edge = Edge::new(Server::builder().agent(project().card_form(CardForm::Compat(Dialect::Corvid))));
    let card = edge.ask(unversioned(get("/.well-known/agent-card.json"))).await;
    assert_eq!((card.status.as_u16(), card.header("cache-control")), (200, "public, max-age=300"));
    let again = with(unversioned(get("/.well-known/agent-card.json")), "if-none-match", card.header("etag"));
    assert_eq!(edge.ask(again).await.status, 304);
    let card = card.json();
    assert!(card["name"].is_string() && card["version"].is_string());
    assert_eq!(card["supportedProtocols"][0]["endpoint"], "http://127.0.0.1:8080/a2a/tasks/send");
}

#[tokio::test(start_paused = true)]
async fn example_5_without_an_agent_that_takes_calls_there_is_none() {
    let edge = Edge::usual();
    let answer = send(&edge, json!({"message": "Hello"})).await;
    assert_eq!(error(&answer), (404, "Agent with default project not found".to_owned()));
}

#[tokio::test(start_paused = true)]
async fn the_first_agent_that_takes_calls_gets_them() {
    let says =
        |name: &'static str| AgentBuilder::from_fn(name, move |turn: Turn| async move { Ok(turn.answer(name).await?) });
    let server = Server::builder().agent(says("None"));
    let server = server
        .agent(says("First").compat(|compat| compat.default_project = true))
        .agent(says("Second").compat(|compat| compat.default_project = true));
    let edge = Edge::new(server);
    for (tasks, expected) in [
        ("/a2a/tasks", "First"),
        ("/dialects/corvid/a2a/tasks", "First"),
        // A path that names an agent means it.
        ("/agents/none/a2a/tasks", "None"),
        ("/agents/second/dialects/corvid/a2a/tasks", "Second"),
    ] {
        let task = edge.post(&format!("{tasks}/send"), r#"{"message":"who?"}"#).await.json();
        let done = poll_at(&edge, tasks, &task["id"]).await;
        assert_eq!(done["messages"][1]["parts"][0]["text"], expected, "{tasks}");
    }
    let nobody = edge.post("/agents/nobody/a2a/tasks/send", r#"{"message":"who?"}"#).await;
    assert_eq!(error(&nobody), (404, "Agent not found".to_owned()));
}

#[tokio::test(start_paused = true)]
async fn each_source_may_send_five_times_a_minute() {
    let edge = edge();
    let from = |source: &str| json!({"message": "x", "sourceAgent": source});
    for _ in 0..5 {
        assert_eq!(send(&edge, from("rook")).await.status, 200);
        assert_eq!(send(&edge, json!({"message": "x"})).await.status, 200);
    }
    let refused = send(&edge, from("rook")).await;
    assert_eq!(error(&refused), (429, "Rate limit exceeded. Try again later.".to_owned()));
    assert_eq!(refused.header("retry-after"), "60");
    assert_eq!(send(&edge, json!({"message": "x"})).await.status, 429);
    let named = |source| with(unversioned(post("/a2a/tasks/send", r#"{"message":"x"}"#)), "x-source-agent", source);
    assert_eq!(edge.ask(named("rook")).await.status, 429);
    assert_eq!(edge.ask(named("jay")).await.status, 200);
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(send(&edge, from("rook")).await.status, 200);
}

#[tokio::test(start_paused = true)]
async fn a_call_is_passed_on_three_times_at_most() {
    let deep = |depth: u32| json!({"message": "x", "depth": depth, "sourceAgent": depth.to_string()});
    let edge = edge();
    assert_eq!(send(&edge, deep(3)).await.status, 200);
    assert_eq!(error(&send(&edge, deep(4)).await), (400, "Invocation depth limit exceeded.".to_owned()));
    let mut options = CorvidOptions::default();
    options.depth_max = 1;
    let edge = Edge::new(Server::builder().agent(project().compat(|compat| compat.corvid = options)));
    assert_eq!(send(&edge, deep(2)).await.status, 400);
}

#[tokio::test(start_paused = true)]
async fn bad_input_is_refused_with_a_status_and_a_text() {
    let edge = edge();
    for (body, expected) in [
        ("{", 400),
        ("[]", 400),
        (r#"{"message":{"role":"user","parts":[]}}"#, 400),
        (r#"{"params":{"message":""}}"#, 400),
        (r#"{"message":"x","timeoutMs":10}"#, 400),
    ] {
        let answer = edge.ask(unversioned(post("/a2a/tasks/send", body))).await;
        assert_eq!(error(&answer).0, expected, "{body}");
    }
    assert_eq!(error(&edge.get("/a2a/tasks/nobody").await), (404, "Task not found".to_owned()));
    let form = with(request(Method::POST, "/a2a/tasks/send", "message=x"), "content-type", "text/plain");
    assert_eq!(error(&edge.ask(form).await).0, 400);
    let put = edge.ask(request(Method::PUT, "/a2a/tasks/send", "")).await;
    assert_eq!((put.status.as_u16(), put.header("allow")), (405, "POST"));
    let delete = edge.ask(request(Method::DELETE, "/a2a/tasks/x", "")).await;
    assert_eq!((delete.status.as_u16(), delete.header("allow")), (405, "GET"));
}

#[tokio::test(start_paused = true)]
async fn only_holders_of_a_token_get_in_and_each_sees_their_own() {
    let tokens = Tokens::parse("sk-token-alice-01234 alice\nsk-token-bob-0123456 bob").unwrap();
    let edge = Edge::new(Server::builder().agent(project()).tokens(tokens));
    let refused = send(&edge, json!({"message": "x"})).await;
    assert_eq!(error(&refused), (401, "Authentication required".to_owned()));
    assert!(refused.header("www-authenticate").starts_with("Bearer"));
    let by = |request, token: &str| with(request, "authorization", &format!("Bearer {token}"));
    let alice = "sk-token-alice-01234";
    let task = edge.ask(by(post("/a2a/tasks/send", r#"{"message":"x"}"#), alice)).await.json();
    let path = format!("/a2a/tasks/{}", task["id"].as_str().unwrap());
    assert_eq!(edge.ask(by(get(&path), alice)).await.status, 200);
    assert_eq!(edge.ask(by(get(&path), "sk-token-bob-0123456")).await.status, 404);
    // The card says so, and every client can read it.
    let card = edge.get("/api/agents/echo/agent-card").await.json();
    assert_eq!(card["authentication"], json!({"schemes": ["Bearer"]}));
}

#[tokio::test(start_paused = true)]
async fn each_agent_has_its_card() {
    let edge =
        Edge::new(Server::builder().agent(echo()).allow_unauthenticated(true).public_url("https://agents.example/x"));
    let card = edge.get("/x/api/agents/echo/agent-card").await;
    assert_eq!((card.status.as_u16(), card.header("cache-control")), (200, "public, max-age=300"));
    let card = card.json();
    assert_eq!(card["url"], "https://agents.example/x/api/agents/echo");
    let endpoint = &card["supportedProtocols"][0]["endpoint"];
    assert_eq!(endpoint, "https://agents.example/x/agents/echo/a2a/tasks/send");
    assert_eq!(error(&edge.get("/api/agents/nobody/agent-card").await), (404, "Agent not found".to_owned()));
}

#[tokio::test(start_paused = true)]
async fn a_task_is_read_in_other_dialects_and_theirs_are_read_here() {
    let edge = edge();
    let task = send(&edge, json!({"message": "hello"})).await.json();
    let id = task["id"].as_str().unwrap();
    poll(&edge, &task["id"]).await;
    let new = edge.get(&format!("/tasks/{id}")).await.json();
    assert_eq!(new["status"]["state"], "TASK_STATE_COMPLETED");
    assert_eq!(new["artifacts"][0]["parts"][0]["text"], "hello");
    assert_eq!(new["contextId"], task["sessionId"]);
    let old = edge.old_rpc("tasks/get", json!({"id": id})).await.json();
    assert_eq!(old["result"]["status"]["state"], "completed");
    let new = edge.post("/message:send", message("from 1.0").to_string()).await.json();
    assert_eq!(look(&edge, &new["task"]["id"]).await["messages"][1]["parts"][0]["text"], "from 1.0");
    let old = edge.old_rpc("message/send", old_message("ask why?")).await.json();
    let asking = look(&edge, &old["result"]["id"]).await;
    assert_eq!((&asking["state"], &asking["messages"][1]["parts"][0]["text"]), (&json!("working"), &json!("why?")));
}
