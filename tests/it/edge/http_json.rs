//! The HTTP+JSON binding: statuses and bodies of each operation, parameters in paths and queries.

use expect_test::expect;
use http::Method;
use serde_json::json;

use crate::support::edge::{Edge, get, message, post, redacted, request, with};

#[tokio::test(start_paused = true)]
async fn every_operation_answers_200_with_a_bare_message() {
    let edge = Edge::usual();
    let id = edge.task("ask which?").await;
    let config = json!({"id": "c", "url": "https://hooks.example/"}).to_string();
    let mut shown = String::new();
    for (method, path, body) in [
        (Method::POST, "/message:send", message("hello").to_string()),
        (Method::GET, "/tasks/ID", String::new()),
        (Method::GET, "/tasks?contextId=nothing", String::new()),
        (Method::POST, "/tasks/ID/pushNotificationConfigs", config),
        (Method::GET, "/tasks/ID/pushNotificationConfigs/c", String::new()),
        (Method::GET, "/tasks/ID/pushNotificationConfigs", String::new()),
        (Method::DELETE, "/tasks/ID/pushNotificationConfigs/c", String::new()),
        (Method::DELETE, "/tasks/ID/pushNotificationConfigs/c", String::new()),
        (Method::POST, "/tasks/ID:cancel", String::new()),
    ] {
        let answer = edge.ask(request(method.clone(), &path.replace("ID", &id), body)).await;
        let body = redacted(&answer.text().replace(&id, "ID"));
        let (status, kind) = (answer.status.as_u16(), answer.header("content-type"));
        shown.push_str(&format!("{method} {path}: {status} {kind}\n  {body}\n"));
    }
    expect![[r#"
        POST /message:send: 200 application/a2a+json
          {"task":{"id":"<id 1>","contextId":"<id 2>","status":{"state":"TASK_STATE_COMPLETED","timestamp":"<time>"},"artifacts":[{"artifactId":"artifact-1-1","parts":[{"text":"hello"}]}],"history":[{"messageId":"m-1","contextId":"<id 2>","taskId":"<id 1>","role":"ROLE_USER","parts":[{"text":"hello"}]}]}}
        GET /tasks/ID: 200 application/a2a+json
          {"id":"ID","contextId":"<id 1>","status":{"state":"TASK_STATE_INPUT_REQUIRED","message":{"messageId":"<id 2>","contextId":"<id 1>","taskId":"ID","role":"ROLE_AGENT","parts":[{"text":"which?"}]},"timestamp":"<time>"},"history":[{"messageId":"m-1","contextId":"<id 1>","taskId":"ID","role":"ROLE_USER","parts":[{"text":"ask which?"}]}]}
        GET /tasks?contextId=nothing: 200 application/a2a+json
          {"tasks":[],"nextPageToken":"","pageSize":50,"totalSize":0}
        POST /tasks/ID/pushNotificationConfigs: 200 application/a2a+json
          {"id":"c","taskId":"ID","url":"https://hooks.example/"}
        GET /tasks/ID/pushNotificationConfigs/c: 200 application/a2a+json
          {"id":"c","taskId":"ID","url":"https://hooks.example/"}
        GET /tasks/ID/pushNotificationConfigs: 200 application/a2a+json
          {"configs":[{"id":"c","taskId":"ID","url":"https://hooks.example/"}]}
        DELETE /tasks/ID/pushNotificationConfigs/c: 200 application/a2a+json
          {}
        DELETE /tasks/ID/pushNotificationConfigs/c: 200 application/a2a+json
          {}
        POST /tasks/ID:cancel: 200 application/a2a+json
          {"id":"ID","contextId":"<id 1>","status":{"state":"TASK_STATE_CANCELED","timestamp":"<time>"},"history":[{"messageId":"m-1","contextId":"<id 1>","taskId":"ID","role":"ROLE_USER","parts":[{"text":"ask which?"}]},{"messageId":"<id 2>","contextId":"<id 1>","taskId":"ID","role":"ROLE_AGENT","parts":[{"text":"which?"}]}]}
    "#]].assert_eq(&shown);
}

#[tokio::test(start_paused = true)]
async fn the_task_of_the_path_wins_over_the_bodys() {
    let edge = Edge::usual();
    let id = edge.task("hello").await;
    let config = json!({"id": "c", "taskId": "another", "url": "https://hooks.example/"}).to_string();
    let made = edge.post(&format!("/tasks/{id}/pushNotificationConfigs"), config).await.json();
    assert_eq!(made["taskId"], id);
}

#[tokio::test(start_paused = true)]
async fn a_cancel_may_have_a_body_or_none() {
    let edge = Edge::usual();
    for body in ["", "  ", "{}", r#"{"metadata":{"why":"late"}}"#, r#"{"id":"ignored"}"#] {
        let id = edge.task("ask which?").await;
        assert_eq!(edge.post(&format!("/tasks/{id}:cancel"), body).await.gist(), "200", "{body}");
    }
    let id = edge.task("ask which?").await;
    for body in ["[]", r#"{"metadata":[]}"#, r#"{"metadata":7}"#] {
        assert_eq!(edge.post(&format!("/tasks/{id}:cancel"), body).await.gist(), "400 INVALID_PARAMS", "{body}");
    }
    assert_eq!(edge.post(&format!("/tasks/{id}:cancel"), "{").await.gist(), "400 PARSE_ERROR");
}

#[tokio::test(start_paused = true)]
async fn queries_are_read_in_both_spellings_and_checked() {
    let edge = Edge::usual();
    let id = edge.task("hello").await;
    for query in ["", "?", "?historyLength=0", "?history_length=1", "?unknown=1&&", "?historyLength=2147483647"] {
        assert_eq!(edge.get(&format!("/tasks/{id}{query}")).await.gist(), "200", "{query}");
    }
    let mut shown = String::new();
    for query in [
        "pageSize=0",
        "pageSize=101",
        "pageSize=ten",
        "pageSize=5&pageSize=6",
        "historyLength=-1",
        "historyLength=",
        "status=working",
        "status=TASK_STATE_UNSPECIFIED",
        "status=3",
        "status=99",
        "includeArtifacts=yes",
        "includeArtifacts=true",
        "statusTimestampAfter=yesterday",
        "statusTimestampAfter=2020-01-01T00%3A00%3A00Z",
        "statusTimestampAfter=2020-01-01T00:00:00%2B02:00",
        "pageToken=nonsense",
        "page_size=5&include_artifacts=false&context_id=x",
    ] {
        let answer = edge.get(&format!("/tasks?{query}")).await;
        let json = answer.json();
        let said = json["error"]["message"].as_str().map_or("fine".to_owned(), str::to_owned);
        shown.push_str(&format!("{query}: {} {said}\n", answer.status.as_u16()));
    }
    expect![[r#"
        pageSize=0: 400 Invalid parameters: pageSize: must be between 1 and 100
        pageSize=101: 400 Invalid parameters: pageSize: must be between 1 and 100
        pageSize=ten: 400 Invalid parameters: pageSize: must be a whole number of 32 bits
        pageSize=5&pageSize=6: 400 Invalid parameters: pageSize: must be given once
        historyLength=-1: 400 Invalid parameters: historyLength: must not be negative
        historyLength=: 400 Invalid parameters: historyLength: must be a whole number of 32 bits
        status=working: 400 Invalid parameters: status: working is not a task state; use a name such as TASK_STATE_WORKING
        status=TASK_STATE_UNSPECIFIED: 200 fine
        status=3: 200 fine
        status=99: 400 Invalid parameters: status: 99 is not a task state; use a name such as TASK_STATE_WORKING
        includeArtifacts=yes: 400 Invalid parameters: includeArtifacts: must be true or false
        includeArtifacts=true: 200 fine
        statusTimestampAfter=yesterday: 400 Invalid parameters: statusTimestampAfter: must be a timestamp such as 2026-02-03T10:00:00.000Z
        statusTimestampAfter=2020-01-01T00%3A00%3A00Z: 200 fine
        statusTimestampAfter=2020-01-01T00:00:00%2B02:00: 200 fine
        pageToken=nonsense: 400 Invalid parameters: pageToken: is not a token this server gave out; repeat the list without it
        page_size=5&include_artifacts=false&context_id=x: 200 fine
    "#]].assert_eq(&shown);
}

#[tokio::test(start_paused = true)]
async fn history_length_in_the_query_cuts_the_history() {
    let edge = Edge::usual();
    let id = edge.task("hello").await;
    let whole = edge.get(&format!("/tasks/{id}")).await.json();
    let cut = edge.get(&format!("/tasks/{id}?historyLength=0")).await.json();
    assert_eq!((whole["history"].as_array().map(Vec::len), cut.get("history")), (Some(1), None));
}

#[tokio::test(start_paused = true)]
async fn a_body_that_says_it_is_not_json_is_refused() {
    let edge = Edge::usual();
    let asked = |kind: &str| {
        with(with(post("/message:send", message("hello").to_string()), "content-type", ""), "content-type", kind)
    };
    for kind in ["application/json", "application/a2a+json", "application/a2a+json;charset=UTF-8"] {
        assert_eq!(edge.ask(asked(kind)).await.gist(), "200", "{kind}");
    }
    for kind in ["text/plain", "application/x-www-form-urlencoded"] {
        assert_eq!(edge.ask(asked(kind)).await.gist(), "400 CONTENT_TYPE_NOT_SUPPORTED", "{kind}");
    }
    // A request without a body has no type to be wrong.
    assert_eq!(edge.ask(with(get("/tasks"), "content-type", "text/plain")).await.gist(), "200");
}
