//! NEXUS on its own mount and by the shape of its messages: its codes, and tasks whose ids clients choose.

use http::Method;
use serde_json::{Value, json};
use switchboard::{CardForm, Dialect, Server, Tokens};

use crate::support::edge::{
    Answer, Edge, echo, events, get, message, old_message, post, request, rpc_body, unversioned, with,
};

const MOUNT: &str = "/dialects/nexus/rpc";

fn params(id: Option<&str>, text: &str) -> Value {
    let mut params = json!({"message": {"role": "user", "parts": [{"type": "text", "data": text}]}});
    if let Some(id) = id {
        params["id"] = json!(id);
    }
    params
}

async fn call(edge: &Edge, path: &str, method: &str, params: Value) -> Value {
    let answer = edge.ask(unversioned(post(path, rpc_body(method, params)))).await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    answer.json()
}

fn error(answer: &Value) -> (i64, &str) {
    (answer["error"]["code"].as_i64().unwrap(), answer["error"]["message"].as_str().unwrap())
}

fn said(role: &str, text: &str) -> Value {
    json!({"role": role, "parts": [{"type": "text", "data": text}]})
}

#[tokio::test(start_paused = true)]
async fn a_send_is_answered_with_the_whole_conversation() {
    let edge = Edge::usual();
    for path in [MOUNT, "/dialects/nexus", "/", "/rpc", "/a2a"] {
        let answer = call(&edge, path, "message/send", params(None, "hello")).await;
        let id = answer["result"]["id"].clone();
        let expected = json!({
            "id": id,
            "status": "completed",
            "messages": [said("user", "hello"), said("agent", "hello")],
            "artifacts": [{"parts": [{"type": "text", "data": "hello"}]}],
        });
        assert_eq!(answer, json!({"jsonrpc": "2.0", "id": 1, "result": expected}), "{path}");
        // What a task was begun in is how it is shown to those who do not say what they speak.
        assert_eq!(call(&edge, path, "tasks/get", json!({"id": id})).await["result"], expected, "{path}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_client_chooses_the_id_of_its_task() {
    let edge = Edge::usual();
    let first = call(&edge, "/rpc", "message/send", params(Some("task/uuid here"), "ask why?")).await;
    assert_eq!(
        (&first["result"]["id"], &first["result"]["status"]),
        (&json!("task/uuid here"), &json!("input-required"))
    );
    // The same again, as a gateway does that has had no answer: the same task, and nothing is said twice.
    let again = call(&edge, "/rpc", "message/send", params(Some("task/uuid here"), "ask why?")).await;
    assert_eq!(again, first);
    // Something else under the same id goes on with the task.
    let second = call(&edge, "/rpc", "message/send", params(Some("task/uuid here"), "because")).await["result"].clone();
    let messages =
        json!([said("user", "ask why?"), said("agent", "why?"), said("user", "because"), said("agent", "because")]);
    assert_eq!((&second["status"], &second["messages"]), (&json!("completed"), &messages));
    // And nothing goes on with a task that is over.
    let third = call(&edge, "/rpc", "message/send", params(Some("task/uuid here"), "and?")).await;
    assert_eq!(error(&third).0, -32602);
    // For the others, the task has an id of ours. Whoever names no version may be a client of NEXUS.
    assert_eq!(edge.get("/tasks/task%2Fuuid%20here").await.status, 404);
    let open = call(&edge, "/rpc", "tasks/get", json!({"id": "task/uuid here"})).await;
    assert_eq!(open["result"], second);
    let listed = edge.get("/tasks").await.json();
    let id = listed["tasks"][0]["id"].as_str().unwrap().to_owned();
    assert!(listed["tasks"].as_array().unwrap().len() == 1 && id.len() == 36, "{listed}");
    let by_id = call(&edge, MOUNT, "tasks/get", json!({"id": id})).await;
    assert_eq!((&by_id["result"]["id"], &by_id["result"]["messages"]), (&json!(id), &second["messages"]));
}

/// The events of a stream that is asked for under the id "s-1".
async fn stream(edge: &Edge, path: &str, method: &str, params: Value) -> Vec<Value> {
    let body = json!({"jsonrpc": "2.0", "id": "s-1", "method": method, "params": params}).to_string();
    let answer = edge.ask(unversioned(post(path, body))).await;
    assert_eq!(
        (answer.status.as_u16(), answer.header("content-type")),
        (200, "text/event-stream"),
        "{}",
        answer.text()
    );
    let told = events(&answer.text());
    assert!(told.iter().all(|event| event["id"] == "s-1" && event["result"]["id"].is_string()), "{told:?}");
    told.iter().map(|event| event["result"].clone()).collect()
}

#[tokio::test(start_paused = true)]
async fn a_stream_tells_the_task_after_each_change() {
    let edge = Edge::usual();
    for path in [MOUNT, "/", "/rpc"] {
        let id = format!("stream{}", path.replace('/', "-"));
        let told = stream(&edge, path, "message/stream", params(Some(&id), "chunks 3")).await;
        assert!(
            told.iter().all(|task| task["id"] == *id && task["messages"][0] == said("user", "chunks 3")),
            "{told:?}"
        );
        assert_eq!(told[0]["status"], "submitted");
        let last = told.last().unwrap();
        assert_eq!((&last["status"], &last["messages"][1]), (&json!("completed"), &said("agent", "1 2 3 ")));
        assert_eq!(call(&edge, MOUNT, "tasks/get", json!({"id": id})).await["result"], *last);
    }
    // A failure is a task, and a question ends the stream: the client has to answer it.
    let failed = stream(&edge, MOUNT, "message/stream", params(None, "fail no disk")).await;
    assert_eq!(failed.last().unwrap()["status"], "failed");
    let asked = stream(&edge, MOUNT, "message/stream", params(Some("asked"), "ask why?")).await;
    assert_eq!(asked.last().unwrap()["status"], "input-required");
    let answered = stream(&edge, MOUNT, "message/stream", params(Some("asked"), "because")).await;
    assert_eq!(answered.last().unwrap()["messages"][3], said("agent", "because"));
    let over = call(&edge, MOUNT, "tasks/resubscribe", json!({"id": "asked"})).await;
    assert_eq!(error(&over).0, -32602);
}

#[tokio::test(start_paused = true)]
async fn a_task_at_work_is_followed_by_its_id() {
    let edge = Edge::usual();
    let sending = call(&edge, MOUNT, "message/send", params(Some("t"), "wait"));
    let following = async {
        while call(&edge, MOUNT, "tasks/get", json!({"id": "t"})).await["result"]["status"] != "working" {
            tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        }
        let canceling = async {
            tokio::time::sleep(std::time::Duration::from_millis(10)).await;
            call(&edge, MOUNT, "tasks/cancel", json!({"id": "t"})).await
        };
        tokio::join!(stream(&edge, MOUNT, "tasks/resubscribe", json!({"id": "t"})), canceling).0
    };
    let (_, told) = tokio::join!(sending, following);
    let states: Vec<_> = told.iter().map(|task| task["status"].as_str().unwrap()).collect();
    assert_eq!(states, ["working", "canceled"]);
}

#[tokio::test(start_paused = true)]
async fn an_agent_without_streams_has_no_such_method() {
    let edge = Edge::new(Server::builder().agent(echo().streaming(false)));
    for (method, params) in [("message/stream", params(None, "hello")), ("tasks/resubscribe", json!({"id": "t"}))] {
        let refused = call(&edge, MOUNT, method, params).await;
        assert_eq!(error(&refused), (-32601, format!("Method not found: {method}").as_str()));
    }
    let card = edge.get("/dialects/nexus/.well-known/agent.json").await.json();
    assert_eq!(card["capabilities"]["streaming"], false);
}

#[tokio::test(start_paused = true)]
async fn only_in_this_dialect_is_an_id_a_choice() {
    let edge = Edge::usual();
    let mut old = old_message("hello");
    old["id"] = json!("mine");
    let old = edge.old_rpc("message/send", old).await.json();
    assert_ne!(old["result"]["id"], "mine");
}

#[tokio::test(start_paused = true)]
async fn two_owners_may_choose_the_same_id_and_learn_nothing_of_each_other() {
    let tokens = Tokens::parse("sk-token-alice-01234 alice\nsk-token-bob-0123456 bob").unwrap();
    let edge = Edge::new(Server::builder().agent(echo()).tokens(tokens));
    let by = |token: &str, path: &str, method: &str, params: Value| {
        let request = unversioned(post(path, rpc_body(method, params)));
        with(request, "authorization", &format!("Bearer {token}"))
    };
    let (alice, bob) = ("sk-token-alice-01234", "sk-token-bob-0123456");
    let first = edge.ask(by(alice, "/rpc", "message/send", params(Some("t-1"), "hello"))).await.json();
    assert_eq!(first["result"]["id"], "t-1");
    // Whether Alice has a task of this name or not, Bob's calls are answered alike, but for the name.
    for path in [MOUNT, "/rpc"] {
        for (method, id) in [("tasks/get", "t-1"), ("tasks/cancel", "t-1"), ("tasks/resubscribe", "t-1")] {
            let foreign = edge.ask(by(bob, path, method, json!({"id": id}))).await;
            let missing = edge.ask(by(bob, path, method, json!({"id": "t-2"}))).await;
            assert_eq!(foreign.status, missing.status);
            assert_eq!(foreign.text().replace("t-1", "t-2"), missing.text(), "{method}");
        }
    }
    let own = edge.ask(by(bob, "/rpc", "message/send", params(Some("t-1"), "mine"))).await.json();
    assert_eq!((&own["result"]["id"], &own["result"]["messages"][1]), (&json!("t-1"), &said("agent", "mine")));
    for (token, text) in [(alice, "hello"), (bob, "mine")] {
        for path in [MOUNT, "/rpc"] {
            let read = edge.ask(by(token, path, "tasks/get", json!({"id": "t-1"}))).await.json();
            assert_eq!(read["result"]["messages"][0], said("user", text));
        }
    }
    let over = edge.ask(by(alice, MOUNT, "tasks/cancel", json!({"id": "t-1"}))).await.json();
    assert_eq!(error(&over).0, -32002);
    let refused = edge.ask(unversioned(post(MOUNT, rpc_body("tasks/get", json!({"id": "t-1"}))))).await;
    assert_eq!(refused.status, 401);
    assert_eq!(refused.json()["error"]["message"], "Authentication required");
    let card = edge.ask(get("/dialects/nexus/.well-known/agent.json")).await.json();
    assert_eq!(card["authentication"], json!({"schemes": ["bearer"]}));
}

#[tokio::test(start_paused = true)]
async fn bad_input_has_the_codes_of_json_rpc() {
    let edge = Edge::usual();
    let ask = async |body: &str| -> Answer { edge.ask(unversioned(post(MOUNT, body.to_owned()))).await };
    for (body, code, text) in [
        ("{", -32700, "Parse error"),
        ("[]", -32600, "Invalid Request: "),
        (r#"{"jsonrpc":"1.0","id":1,"method":"tasks/get"}"#, -32600, "Invalid Request: "),
        (
            r#"{"jsonrpc":"2.0","id":null,"method":"tasks/get","params":{"id":"x"}}"#,
            -32600,
            "Invalid Request: id must be",
        ),
        (r#"{"jsonrpc":"2.0","method":"tasks/get","params":{"id":"x"}}"#, -32600, "Invalid Request: id must be"),
        (r#"{"jsonrpc":"2.0","id":"a","method":"tasks/list"}"#, -32601, "Method not found: tasks/list"),
        (
            r#"{"jsonrpc":"2.0","id":"a","method":"task/get"}"#,
            -32601,
            "Method not found: task/get; did you mean tasks/get?",
        ),
        (r#"{"jsonrpc":"2.0","id":"a","method":"SendMessage"}"#, -32601, "Method not found: SendMessage"),
        (r#"{"jsonrpc":"2.0","id":"a","method":"tasks/get","params":{"id":"x"}}"#, -32602, "Task not found: x"),
        (r#"{"jsonrpc":"2.0","id":"a","method":"message/send"}"#, -32602, "Invalid params: message: is required"),
    ] {
        let answer = ask(body).await;
        assert_eq!(answer.status, 200, "{body}");
        let answer = answer.json();
        let (found, said) = error(&answer);
        assert!(found == code && said.starts_with(text), "{body}: {answer}");
    }
    // A header counts for nothing on a mount.
    let versioned = edge.post(MOUNT, rpc_body("tasks/get", json!({"id": "x"}))).await.json();
    assert_eq!(error(&versioned).0, -32602);
    assert_eq!(edge.ask(request(Method::GET, MOUNT, "")).await.status, 405);
    // A message with parts of two systems is refused, not guessed.
    let mixed =
        json!({"message": {"role": "user", "parts": [{"type": "text", "data": "x"}, {"type": "text", "text": "x"}]}});
    assert_eq!(error(&call(&edge, "/", "message/send", mixed).await).0, -32602);
}

#[tokio::test(start_paused = true)]
async fn an_agent_may_say_that_what_nothing_decides_is_nexus() {
    let unknown = json!({"id": "nobody"});
    let edge = Edge::usual();
    assert_eq!(error(&call(&edge, "/", "tasks/get", unknown.clone()).await).0, -32001);
    for agent in [
        echo().compat(|compat| compat.default = Some(Dialect::Nexus)),
        echo().compat(|compat| compat.claim = Some(Dialect::Nexus)),
    ] {
        let edge = Edge::new(Server::builder().agent(agent));
        let answer = call(&edge, "/", "tasks/get", unknown.clone()).await;
        assert_eq!(error(&answer), (-32602, "Task not found: nobody"));
    }
}

#[tokio::test(start_paused = true)]
async fn a_running_task_can_be_canceled_and_a_finished_one_cannot() {
    let edge = Edge::usual();
    let sending = call(&edge, MOUNT, "message/send", params(Some("t"), "wait"));
    let canceling = async {
        while call(&edge, MOUNT, "tasks/get", json!({"id": "t"})).await["result"]["status"] != "working" {
            tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        }
        call(&edge, MOUNT, "tasks/cancel", json!({"id": "t"})).await
    };
    let (sent, canceled) = tokio::join!(sending, canceling);
    assert_eq!((&sent["result"]["status"], &canceled["result"]["status"]), (&json!("canceled"), &json!("canceled")));
    assert_eq!(error(&call(&edge, MOUNT, "tasks/cancel", json!({"id": "t"})).await).0, -32002);
    call(&edge, MOUNT, "message/send", params(Some("u"), "hello")).await;
    assert_eq!(error(&call(&edge, MOUNT, "tasks/cancel", json!({"id": "u"})).await).0, -32002);
}

#[tokio::test(start_paused = true)]
async fn tasks_are_read_across_dialects() {
    let edge = Edge::usual();
    let id = call(&edge, "/", "message/send", params(None, "hello")).await["result"]["id"].clone();
    let path = format!("/tasks/{}", id.as_str().unwrap());
    assert_eq!(edge.get(&path).await.json()["artifacts"][0]["parts"], json!([{"text": "hello"}]));
    let old = with(unversioned(post("/", rpc_body("tasks/get", json!({"id": id})))), "a2a-version", "0.3");
    let old = edge.ask(old).await.json();
    assert_eq!((&old["result"]["kind"], &old["result"]["status"]["state"]), (&json!("task"), &json!("completed")));
    let new = edge.post("/message:send", message("from 1.0").to_string()).await.json();
    let read = call(&edge, MOUNT, "tasks/get", json!({"id": new["task"]["id"]})).await;
    assert_eq!(read["result"]["messages"], json!([said("user", "from 1.0"), said("agent", "from 1.0")]));
    let old = edge.old_rpc("message/send", old_message("from 0.3")).await.json();
    let read = call(&edge, MOUNT, "tasks/get", json!({"id": old["result"]["id"]})).await;
    assert_eq!(
        (&read["result"]["status"], &read["result"]["messages"][1]),
        (&json!("completed"), &said("agent", "from 0.3"))
    );
}

#[tokio::test(start_paused = true)]
async fn its_card_is_on_its_mount_and_where_an_agent_asks_for_it() {
    let edge = Edge::new(Server::builder().agent(echo().card_form(CardForm::Compat(Dialect::Nexus))));
    let card = edge.ask(unversioned(get("/.well-known/agent.json"))).await.json();
    assert_eq!(
        card,
        json!({
            "name": "Echo",
            "description": "Says what it was told",
            "url": "http://127.0.0.1:8080",
            "version": "1.0.0",
            "capabilities": {"streaming": true, "pushNotifications": false, "stateTransitionHistory": false},
            "skills": [{"id": "echo", "name": "Echo", "description": "Repeats a text", "tags": ["test"], "examples": []}],
        })
    );
    let mounted = edge.get("/dialects/nexus/.well-known/agent.json").await.json();
    assert_eq!(mounted["url"], "http://127.0.0.1:8080/dialects/nexus");
}
