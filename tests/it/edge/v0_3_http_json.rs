//! HTTP+JSON under `/v1` as clients of A2A 0.3 speak it: protobuf's JSON mapping of that version's proto.

use expect_test::expect;
use http::{Method, Request};
use http_body_util::Full;
use serde_json::{Value, json};
use switchboard::{Server, Tokens};

use crate::support::edge::{Answer, Edge, echo, events, get, post, redacted, request, unversioned, with};

fn body(text: &str) -> Value {
    json!({"message": {"messageId": "m-1", "role": "ROLE_USER", "content": [{"text": text}]}})
}

async fn ask(edge: &Edge, request: Request<Full<bytes::Bytes>>) -> Answer {
    edge.ask(unversioned(request)).await
}

async fn send(edge: &Edge, text: &str) -> Answer {
    ask(edge, post("/v1/message:send", body(text).to_string())).await
}

async fn working(edge: &Edge) -> String {
    let mut body = body("wait");
    body["configuration"] = json!({"blocking": false});
    let started = ask(edge, post("/v1/message:send", body.to_string())).await.json();
    started["task"]["id"].as_str().unwrap().to_owned()
}

#[tokio::test(start_paused = true)]
async fn a_send_and_a_stream() {
    let edge = Edge::usual();
    expect![[r#"
        200 application/json
        {"task":{"id":"<id 1>","contextId":"<id 2>","status":{"state":"TASK_STATE_COMPLETED","timestamp":"<time>"},"artifacts":[{"artifactId":"artifact-1-1","parts":[{"text":"hello"}]}],"history":[{"messageId":"m-1","contextId":"<id 2>","taskId":"<id 1>","role":"ROLE_USER","content":[{"text":"hello"}]}]}}
    "#]].assert_eq(&send(&edge, "hello").await.picture());
    let stream = ask(&edge, post("/v1/message:stream", body("chunks 1").to_string())).await;
    expect![[r#"
        id: 1
        data: {"task":{"id":"<id 1>","contextId":"<id 2>","status":{"state":"TASK_STATE_SUBMITTED","timestamp":"<time>"},"history":[{"messageId":"m-1","contextId":"<id 2>","taskId":"<id 1>","role":"ROLE_USER","content":[{"text":"chunks 1"}]}]}}

        id: 2
        data: {"artifactUpdate":{"taskId":"<id 1>","contextId":"<id 2>","artifact":{"artifactId":"artifact-1-1","parts":[{"text":"1 "}]}}}

        id: 3
        data: {"statusUpdate":{"taskId":"<id 1>","contextId":"<id 2>","status":{"state":"TASK_STATE_COMPLETED","timestamp":"<time>"},"final":true}}

    "#]].assert_eq(&redacted(&stream.text()));
}

#[tokio::test(start_paused = true)]
async fn tasks_are_read_followed_and_canceled() {
    let edge = Edge::usual();
    let id = working(&edge).await;
    let path = format!("/v1/tasks/{id}");
    let task = ask(&edge, get(&format!("{path}?history_length=1"))).await.json();
    assert_eq!((&task["id"], &task["history"][0]["content"]), (&json!(id), &json!([{"text": "wait"}])));
    // Bodies of these may be anything that says nothing.
    let canceled = ask(&edge, post(&format!("{path}:cancel"), format!(r#"{{"name":"tasks/{id}"}}"#))).await;
    assert_eq!(canceled.json()["status"]["state"], "TASK_STATE_CANCELLED");
    let again = ask(&edge, post(&format!("{path}:cancel"), "null")).await;
    assert_eq!(again.gist(), "409 TASK_NOT_CANCELABLE", "it is over");
    let done = edge.task("hello").await;
    let too_late = ask(&edge, post(&format!("/v1/tasks/{done}:cancel"), "null")).await;
    assert_eq!(too_late.gist(), "409 TASK_NOT_CANCELABLE");
    for verb in [Method::GET, Method::POST] {
        let id = working(&edge).await;
        let follow = unversioned(request(verb, &format!("/v1/tasks/{id}:subscribe"), ""));
        let (stream, _) = tokio::join!(edge.ask(follow), async {
            tokio::task::yield_now().await;
            ask(&edge, post(&format!("/v1/tasks/{id}:cancel"), "")).await
        });
        let seen = events(&stream.text());
        let last = &seen.last().unwrap()["statusUpdate"];
        assert_eq!((&last["status"]["state"], &last["final"]), (&json!("TASK_STATE_CANCELLED"), &json!(true)));
    }
}

#[tokio::test(start_paused = true)]
async fn webhooks_are_resources_with_names() {
    let edge = Edge::usual();
    let id = working(&edge).await;
    let path = format!("/v1/tasks/{id}/pushNotificationConfigs");
    let config = json!({"id": "pc", "url": "https://hooks.example/", "token": "k"});
    let name = format!("tasks/{id}/pushNotificationConfigs/pc");
    let given = json!({"name": name, "pushNotificationConfig": config});
    let kept = json!({"name": name, "pushNotificationConfig": {"id": "pc", "url": "https://hooks.example/"}});
    let created = ask(&edge, post(&path, json!({"config": given}).to_string())).await.json();
    assert_eq!(created, kept);
    assert_eq!(ask(&edge, get(&format!("{path}/pc"))).await.json(), kept);
    assert_eq!(ask(&edge, get(&path)).await.json(), json!({"configs": [kept]}));
    let deleted = ask(&edge, request(Method::DELETE, &format!("{path}/pc"), "")).await;
    assert_eq!((deleted.status.as_u16(), deleted.text()), (200, "{}".to_owned()));
    assert_eq!(ask(&edge, get(&path)).await.json(), json!({"configs": []}));
}

#[tokio::test(start_paused = true)]
async fn refusals_are_the_bare_error() {
    let edge = Edge::usual();
    expect![[r#"
        404 application/json
        {"code":-32001,"message":"Task not found","data":{"reason":"TASK_NOT_FOUND","taskId":"none"}}
    "#]]
    .assert_eq(&ask(&edge, get("/v1/tasks/none")).await.picture());
    for (request, gist) in [
        (post("/v1/message:send", "{"), "400 PARSE_ERROR"),
        (post("/v1/message:send", "{}"), "400 INVALID_PARAMS"),
        (get("/v1/message:send"), "405 METHOD_NOT_FOUND"),
        (get("/v1/tasks"), "404 METHOD_NOT_FOUND"),
        (get("/v1/card"), "404 EXTENDED_AGENT_CARD_NOT_CONFIGURED"),
        (get("/v1/tasks/x?historyLength=-1"), "400 INVALID_PARAMS"),
        (
            with(request(Method::POST, "/v1/message:send", "{}"), "content-type", "text/plain"),
            "400 CONTENT_TYPE_NOT_SUPPORTED",
        ),
    ] {
        let place = format!("{} {}", request.method(), request.uri());
        assert_eq!(ask(&edge, request).await.gist(), gist, "{place}");
    }
}

#[tokio::test(start_paused = true)]
async fn the_body_of_one_version_on_the_path_of_the_other_is_refused() {
    let edge = Edge::usual();
    let new_body = json!({"message": {"messageId": "m", "role": "ROLE_USER", "parts": [{"text": "x"}]}}).to_string();
    let refused = ask(&edge, post("/v1/message:send", new_body.clone())).await;
    assert!(refused.text().contains("message.content: is what HTTP+JSON of A2A 0.3 calls"), "{}", refused.text());
    let old_on_new = edge.post("/message:send", body("x").to_string()).await;
    assert!(old_on_new.text().contains("message.parts: needs at least one part"), "{}", old_on_new.text());
    assert_eq!(ask(&edge, post("/message:send", new_body)).await.gist(), "400 VERSION_NOT_SUPPORTED");
    assert_eq!(edge.post("/v1/message:send", body("x").to_string()).await.gist(), "404 METHOD_NOT_FOUND");
}

#[tokio::test(start_paused = true)]
async fn the_extended_card_is_at_the_paths_of_0_3_and_of_0_2() {
    const TOKEN: &str = "a-token-of-alice-for-tests";
    let tokens = Tokens::parse(&format!("{TOKEN} alice")).unwrap();
    let extended = echo().extended_card(|card| card.description.push_str(", and more"));
    let edge = Edge::new(Server::builder().agent(extended).tokens(tokens));
    for path in ["/v1/card", "/agent/authenticatedExtendedCard", "/agents/echo/agent/authenticatedExtendedCard"] {
        let refused = ask(&edge, get(path)).await;
        assert_eq!(refused.gist(), "401 UNAUTHENTICATED", "{path}");
        assert_eq!(refused.header("www-authenticate"), "Bearer realm=\"switchboard\"");
        let card = ask(&edge, with(get(path), "authorization", &format!("Bearer {TOKEN}"))).await.json();
        assert_eq!(card["description"], "Says what it was told, and more", "{path}");
        assert_eq!(card["securitySchemes"]["bearer"]["type"], "http");
    }
}
