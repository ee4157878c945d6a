//! Paths that try something: percent-encoding, colons, dots, empty segments, reserved names.

use http::Method;
use switchboard::Server;

use crate::support::edge::{Edge, echo, get, message, request};

fn server() -> Edge {
    Edge::new(Server::builder().agent(echo()).tenants(["acme", "globex"]))
}

#[tokio::test(start_paused = true)]
async fn an_id_is_one_segment_however_it_is_spelled() {
    let edge = server();
    for (path, id) in [
        ("/tasks/a%2Fb", "a/b"),
        ("/tasks/a%2fb", "a/b"),
        ("/tasks/..%2F..%2Fmetrics", "../../metrics"),
        ("/tasks/%2e%2e", ".."),
        ("/tasks/x%3Acancel", "x:cancel"),
        ("/tasks/x%3asubscribe", "x:subscribe"),
        ("/tasks/a:b:c", "a:b:c"),
        ("/tasks/caf%C3%A9", "café"),
        ("/tasks/%25", "%"),
        ("/tasks/%252F", "%2F"),
        ("/tasks/a+b", "a+b"),
        ("/tasks/a%20b", "a b"),
    ] {
        let answer = edge.get(path).await;
        assert_eq!(answer.gist(), "404 TASK_NOT_FOUND", "{path}");
        assert_eq!(answer.json()["error"]["details"][0]["metadata"]["taskId"], id, "{path}");
    }
}

#[tokio::test(start_paused = true)]
async fn the_verb_is_what_follows_the_last_colon() {
    let edge = server();
    let id = edge.task("ask which?").await;
    assert_eq!(edge.post(&format!("/tasks/{id}:cancel"), "").await.gist(), "200");
    let answer = edge.post("/tasks/x:cancel:cancel", "").await;
    assert_eq!(answer.json()["error"]["details"][0]["metadata"]["taskId"], "x:cancel");
    for path in ["/tasks/x:nothing", "/tasks/x:", "/tasks/x:CANCEL"] {
        assert_eq!(edge.get(path).await.gist(), "404 TASK_NOT_FOUND", "{path}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_empty_or_impossible_id_is_refused() {
    let edge = server();
    let long = format!("/tasks/{}", "x".repeat(257));
    for path in
        ["/tasks//", "/tasks/:cancel", "/tasks//pushNotificationConfigs", "/tasks/a%00b", "/tasks/a%0Ab", long.as_str()]
    {
        let verb = if path.ends_with(":cancel") { Method::POST } else { Method::GET };
        let answer = edge.ask(request(verb, path, "")).await;
        assert_eq!(answer.gist(), "400 INVALID_PARAMS", "{path}");
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_not_text_is_nowhere() {
    let edge = server();
    for path in
        ["/tasks/%FF", "/tasks/%C3%28", "/tasks/%", "/tasks/%2", "/tasks/%zz", "/%FF/tasks", "/agents/%FF/tasks"]
    {
        assert_eq!(edge.get(path).await.gist(), "404 METHOD_NOT_FOUND", "{path}");
    }
    assert_eq!(edge.get("/tasks?pageToken=%FF").await.gist(), "400 INVALID_PARAMS");
}

#[tokio::test(start_paused = true)]
async fn names_of_places_are_not_spelled_with_percent_signs() {
    let edge = server();
    for path in ["/%74asks", "/message%3Asend", "/%2e%2e/tasks/1/2", "/tasks%2F1/nothing"] {
        assert_eq!(edge.get(path).await.gist(), "404 METHOD_NOT_FOUND", "{path}");
    }
    // A tenant is a value, so it may be; a reserved name stays reserved.
    assert_eq!(edge.get("/%67lobex/tasks").await.gist(), "200");
    for reserved in switchboard::RESERVED {
        let first = format!("%{:02x}", reserved.as_bytes()[0]);
        for name in [(*reserved).to_owned(), format!("{first}{}", &reserved[1..])] {
            if name == "tasks" {
                continue;
            }
            let gist = edge.get(&format!("/{name}/message:send")).await.gist();
            assert_eq!(gist, "404 METHOD_NOT_FOUND", "{name}");
        }
    }
    let unknown = edge.get("/initech/tasks").await;
    assert_eq!(unknown.gist(), "403 PERMISSION_DENIED", "a tenant nobody configured");
}

#[tokio::test(start_paused = true)]
async fn the_tenant_of_the_path_wins_over_the_bodys_and_the_querys() {
    let edge = server();
    let in_body = |tenant: &str| {
        let mut body = message("hello");
        body["tenant"] = tenant.into();
        body.to_string()
    };
    let listed = async |path: &str| edge.get(path).await.json()["totalSize"].as_u64().unwrap();
    assert_eq!(edge.post("/globex/message:send", in_body("acme")).await.gist(), "200");
    assert_eq!((listed("/globex/tasks").await, listed("/acme/tasks").await), (1, 0));
    assert_eq!(edge.post("/message:send", in_body("globex")).await.gist(), "200");
    assert_eq!(
        (listed("/tasks?tenant=globex").await, listed("/tasks").await),
        (2, 0),
        "the first tenant is the default"
    );
    assert_eq!(listed("/acme/tasks?tenant=globex").await, 0);
    assert_eq!(edge.post("/message:send", in_body("initech")).await.gist(), "403 PERMISSION_DENIED");
    assert_eq!(
        edge.post("/globex/message:send", in_body("initech")).await.gist(),
        "200",
        "only the path's is looked at"
    );
}

#[tokio::test(start_paused = true)]
async fn a_server_without_tenants_has_none() {
    let edge = Edge::usual();
    assert_eq!(edge.get("/acme/tasks").await.gist(), "403 PERMISSION_DENIED");
    assert_eq!(edge.ask(get("/tasks?tenant=")).await.gist(), "200", "an empty tenant is no tenant");
}
