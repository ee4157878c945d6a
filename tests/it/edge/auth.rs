//! Bearer tokens: who is let in, whose tasks they see, and how a refusal looks at each kind of place.

use expect_test::expect;
use http::Request;
use http_body_util::Full;
use serde_json::json;
use switchboard::{Server, ServerBuilder, Tokens};

use crate::support::bodies::Untouched;
use crate::support::edge::{Edge, echo, get, message, post, rpc_body, with};

const ALICE: &str = "a-token-of-alice-for-tests";
const BOB: &str = "b-token-of-bob-for-tests";

fn server() -> Edge {
    let tokens = Tokens::parse(&format!("{ALICE} alice acme,globex\n{BOB} bob globex\n")).unwrap();
    Edge::new(Server::builder().agent(echo()).tokens(tokens))
}

fn authorized(request: Request<Full<bytes::Bytes>>, value: &str) -> Request<Full<bytes::Bytes>> {
    with(request, "authorization", value)
}

fn bearer(request: Request<Full<bytes::Bytes>>, token: &str) -> Request<Full<bytes::Bytes>> {
    authorized(request, &format!("Bearer {token}"))
}

#[tokio::test(start_paused = true)]
async fn a_known_token_is_let_in_and_nothing_else() {
    let edge = server();
    for value in [format!("Bearer {ALICE}"), format!("bearer {ALICE}"), format!("BEARER   {ALICE}  ")] {
        assert_eq!(edge.ask(authorized(get("/tasks"), &value)).await.gist(), "200", "{value}");
    }
    for value in [
        "Bearer".to_owned(),
        "Bearer ".to_owned(),
        "Bearer wrong-token-of-nobody".to_owned(),
        format!("Bearer {ALICE}x"),
        format!("Bearer {}", &ALICE[1..]),
        format!("Bearer {}", ALICE.to_uppercase()),
        format!("Basic {ALICE}"),
        ALICE.to_owned(),
        format!("Bearer {ALICE}, Bearer {BOB}"),
        "Bearer é".to_owned(),
    ] {
        assert_eq!(edge.ask(authorized(get("/tasks"), &value)).await.gist(), "401 UNAUTHENTICATED", "{value}");
    }
    assert_eq!(edge.get("/tasks").await.gist(), "401 UNAUTHENTICATED");
    let twice = bearer(bearer(get("/tasks"), ALICE), ALICE);
    assert_eq!(edge.ask(twice).await.gist(), "401 UNAUTHENTICATED", "two headers are one too many");
    let elsewhere = with(get(&format!("/tasks?access_token={ALICE}")), "x-api-key", ALICE);
    assert_eq!(edge.ask(elsewhere).await.gist(), "401 UNAUTHENTICATED");
}

/// A caller that guesses a token must not learn from the text how near it is.
#[tokio::test(start_paused = true)]
async fn every_cause_of_a_401_has_the_same_text() {
    let edge = server();
    let causes: [&[&str]; 6] = [
        &[],
        &["Bearer wrong-token-of-nobody"],
        &["Bearer"],
        &["Basic YWxpY2U6eA=="],
        &["Bearer \u{e9}"],
        &["Bearer a-token-of-alice-for-tests", "Bearer a-token-of-alice-for-tests"],
    ];
    for (path, body) in [
        ("/rpc", rpc_body("ListTasks", json!({}))),
        ("/message:send", message("hello").to_string()),
        ("/v1/message:send", "{}".to_owned()),
        ("/_agent-native/a2a", "{}".to_owned()),
        ("/dialects/nexus/rpc", "{}".to_owned()),
        ("/dialects/selectools/a2a", "{}".to_owned()),
        ("/agents/echo/a2a/tasks/send", r#"{"message":"x"}"#.to_owned()),
    ] {
        let mut bodies = std::collections::BTreeSet::new();
        for lines in causes {
            let asked = lines.iter().fold(post(path, body.clone()), |asked, line| authorized(asked, line));
            let answer = edge.ask(asked).await;
            assert_eq!(answer.status, 401, "{path} {lines:?}");
            bodies.insert(answer.text());
        }
        assert_eq!(bodies.len(), 1, "{bodies:?}");
    }
}

fn keyed(key: &str) -> ServerBuilder {
    Server::builder().agent(echo()).api_key(key)
}

#[tokio::test(start_paused = true)]
async fn one_key_may_be_shared_by_all_who_call() {
    let tokens = Tokens::parse(&format!("{ALICE} alice\n")).unwrap();
    let edge = Edge::new(keyed("a-key-for-all-who-call").tokens(tokens));
    let task = edge.ask(bearer(post("/message:send", message("hello").to_string()), "a-key-for-all-who-call")).await;
    let path = format!("/tasks/{}", task.json()["task"]["id"].as_str().unwrap());
    assert_eq!(edge.ask(bearer(get(&path), "a-key-for-all-who-call")).await.gist(), "200");
    assert_eq!(edge.ask(bearer(get(&path), ALICE)).await.gist(), "404 TASK_NOT_FOUND", "each has their own");
    assert_eq!(edge.ask(bearer(get(&path), "another-key-of-nobody")).await.gist(), "401 UNAUTHENTICATED");
    assert_eq!(edge.get(&path).await.gist(), "401 UNAUTHENTICATED");
    // Nor is its holder an operator.
    assert_eq!(edge.ask(bearer(get("/api/outbox"), "a-key-for-all-who-call")).await.gist(), "403 PERMISSION_DENIED");
    let card = edge.get("/dialects/agent-native/.well-known/agent-card.json").await.json();
    assert_eq!(card["securitySchemes"], json!({"apiKey": {"type": "http", "scheme": "bearer"}}));
}

fn refused(builder: ServerBuilder) -> String {
    builder.build().expect_err("this must not be served").to_string()
}

#[tokio::test]
async fn a_key_that_can_be_guessed_is_for_this_machine_alone() {
    let edge = Edge::new(keyed("short"));
    let here = bearer(with(get("/tasks"), "host", "localhost"), "short");
    assert_eq!(edge.ask(here).await.gist(), "200");
    let elsewhere = bearer(with(get("/tasks"), "host", "agents.example"), "short");
    assert_eq!(edge.ask(elsewhere).await.gist(), "403 PERMISSION_DENIED");
    let expected = "the API key is shorter than 16 characters and";
    let public = refused(keyed("short").public_url("https://agents.example"));
    assert_eq!(public, format!("{expected} the public URL is not a loopback address; use a longer one"));
    assert!(keyed("short").public_url("http://127.0.0.1:9").build().is_ok());
    let everywhere = keyed("short").build().unwrap().bind("0.0.0.0:0".parse().unwrap()).await;
    let why = everywhere.expect_err("others could reach it").to_string();
    assert_eq!(why, format!("{expected} 0.0.0.0:0 is not a loopback address; use a longer one"));
    assert!(keyed("short").build().unwrap().bind("127.0.0.1:0".parse().unwrap()).await.is_ok());
    assert!(keyed("a-key-for-all-who-call").build().unwrap().bind("0.0.0.0:0".parse().unwrap()).await.is_ok());
}

#[test]
fn a_key_comes_from_a_variable_by_its_name() {
    let named = |name: &str| Server::builder().agent(echo()).api_key_env(name).build();
    let unset = named("SWITCHBOARD_TEST_NO_SUCH_KEY").err().unwrap().to_string();
    assert_eq!(unset, "the variable SWITCHBOARD_TEST_NO_SUCH_KEY, which is to hold the API key, is not set");
    // A variable that every test process has; its value is long enough and no secret.
    assert!(named("CARGO_MANIFEST_DIR").is_ok());
    assert_eq!(refused(keyed(" \n")), "the API key is empty; set it to a long random text");
    assert_eq!(
        refused(keyed("two words and more of them")),
        "the API key must be letters, digits and signs of ASCII, without spaces"
    );
    let tokens = Tokens::parse(&format!("{ALICE} alice\n")).unwrap();
    assert_eq!(refused(keyed(ALICE).tokens(tokens)), "the API key is also the token of somebody");
}

#[tokio::test(start_paused = true)]
async fn a_refusal_has_the_shape_of_its_place() {
    let edge = server();
    let mut shown = String::new();
    for request in [
        get("/tasks/1"),
        post("/message:stream", message("hello").to_string()),
        post("/", "not even json"),
        post("/agents/echo/rpc", rpc_body("ListTasks", json!({}))),
        get("/metrics"),
        get("/extendedAgentCard"),
        // A caller that is not authenticated is not told which verbs there are.
        post("/tasks/1", ""),
    ] {
        let name = format!("{} {}", request.method(), request.uri());
        let answer = edge.ask(request).await;
        assert_eq!(answer.header("www-authenticate"), "Bearer realm=\"switchboard\"", "{name}");
        shown.push_str(&format!("{name}: {}", answer.picture()));
    }
    expect![[r#"
        GET /tasks/1: 401 application/a2a+json
        {"error":{"code":401,"status":"UNAUTHENTICATED","message":"Authentication required: send a token of this server as Authorization: Bearer TOKEN","details":[{"@type":"type.googleapis.com/google.rpc.ErrorInfo","reason":"UNAUTHENTICATED","domain":"a2a-protocol.org"}]}}
        POST /message:stream: 401 application/a2a+json
        {"error":{"code":401,"status":"UNAUTHENTICATED","message":"Authentication required: send a token of this server as Authorization: Bearer TOKEN","details":[{"@type":"type.googleapis.com/google.rpc.ErrorInfo","reason":"UNAUTHENTICATED","domain":"a2a-protocol.org"}]}}
        POST /: 401 application/json
        {"jsonrpc":"2.0","id":null,"error":{"code":-31401,"message":"Authentication required: send a token of this server as Authorization: Bearer TOKEN","data":[{"@type":"type.googleapis.com/google.rpc.ErrorInfo","reason":"UNAUTHENTICATED","domain":"a2a-protocol.org"}]}}
        POST /agents/echo/rpc: 401 application/json
        {"jsonrpc":"2.0","id":null,"error":{"code":-31401,"message":"Authentication required: send a token of this server as Authorization: Bearer TOKEN","data":[{"@type":"type.googleapis.com/google.rpc.ErrorInfo","reason":"UNAUTHENTICATED","domain":"a2a-protocol.org"}]}}
        GET /metrics: 401 application/a2a+json
        {"error":{"code":401,"status":"UNAUTHENTICATED","message":"Authentication required: send a token of this server as Authorization: Bearer TOKEN","details":[{"@type":"type.googleapis.com/google.rpc.ErrorInfo","reason":"UNAUTHENTICATED","domain":"a2a-protocol.org"}]}}
        GET /extendedAgentCard: 401 application/a2a+json
        {"error":{"code":401,"status":"UNAUTHENTICATED","message":"Authentication required: send a token of this server as Authorization: Bearer TOKEN","details":[{"@type":"type.googleapis.com/google.rpc.ErrorInfo","reason":"UNAUTHENTICATED","domain":"a2a-protocol.org"}]}}
        POST /tasks/1: 401 application/a2a+json
        {"error":{"code":401,"status":"UNAUTHENTICATED","message":"Authentication required: send a token of this server as Authorization: Bearer TOKEN","details":[{"@type":"type.googleapis.com/google.rpc.ErrorInfo","reason":"UNAUTHENTICATED","domain":"a2a-protocol.org"}]}}
    "#]].assert_eq(&shown);
}

#[tokio::test(start_paused = true)]
async fn cards_and_health_are_for_everybody() {
    let edge = server().ready().await;
    for path in ["/.well-known/agent-card.json", "/agents/echo/.well-known/agent-card.json", "/healthz", "/readyz", "/"]
    {
        assert_eq!(edge.get(path).await.gist(), "200", "{path}");
    }
    assert_eq!(edge.ask(bearer(get("/metrics"), BOB)).await.gist(), "200");
}

#[tokio::test(start_paused = true)]
async fn a_tenant_must_be_granted() {
    let edge = server();
    let sent = |tenant: &str, token: &str| {
        bearer(post(&format!("{tenant}/message:send"), message("hello").to_string()), token)
    };
    for (tenant, token, expected) in [
        ("", ALICE, "200"),
        ("/acme", ALICE, "200"),
        ("/globex", ALICE, "200"),
        ("/initech", ALICE, "403 PERMISSION_DENIED"),
        ("", BOB, "200"),
        ("/globex", BOB, "200"),
        ("/acme", BOB, "403 PERMISSION_DENIED"),
    ] {
        assert_eq!(edge.ask(sent(tenant, token)).await.gist(), expected, "{tenant} {token}");
        let params = json!({"tenant": tenant.trim_start_matches('/')});
        let call = edge.ask(bearer(post("/", rpc_body("ListTasks", params)), token)).await;
        assert_eq!(call.gist(), expected, "{tenant} {token} over JSON-RPC");
    }
    let known = edge.ask(sent("/acme", BOB)).await.text();
    let unknown = edge.ask(sent("/initech", BOB)).await.text();
    assert_eq!(known, unknown, "a tenant that is there looks like one that is not");
}

#[tokio::test(start_paused = true)]
async fn a_foreign_task_is_a_missing_one_over_http_too() {
    let edge = server();
    let sent = edge.ask(bearer(post("/globex/message:send", message("ask which?").to_string()), ALICE)).await.json();
    let id = sent["task"]["id"].as_str().unwrap().to_owned();
    let body = || message("hello").to_string();
    let config = r#"{"url":"https://hooks.example/"}"#;
    for (method, path, body) in [
        ("GET", "/tasks/ID", String::new()),
        ("POST", "/tasks/ID:cancel", String::new()),
        ("POST", "/tasks/ID:subscribe", String::new()),
        ("POST", "/tasks/ID/pushNotificationConfigs", config.to_owned()),
        ("GET", "/tasks/ID/pushNotificationConfigs", String::new()),
        ("GET", "/tasks/ID/pushNotificationConfigs/c", String::new()),
        ("DELETE", "/tasks/ID/pushNotificationConfigs/c", String::new()),
        ("POST", "/message:send", body().replace("\"role\"", "\"taskId\":\"ID\",\"role\"")),
        ("POST", "/message:stream", body().replace("\"role\"", "\"taskId\":\"ID\",\"role\"")),
    ] {
        let ask = async |token: &str, tenant: &str, id: &str| {
            let path = format!("{tenant}{}", path.replace("ID", id));
            let request = crate::support::edge::request(method.parse().unwrap(), &path, body.replace("ID", id));
            let answer = edge.ask(bearer(request, token)).await;
            format!("{} {}", answer.status, answer.text().replace(id, "ID"))
        };
        let missing = ask(BOB, "/globex", "no-such-task").await;
        assert!(missing.starts_with("404 Not Found"), "{method} {path}: {missing}");
        assert_eq!(ask(BOB, "/globex", &id).await, missing, "{method} {path} by another principal");
        assert_eq!(ask(ALICE, "/acme", &id).await, missing, "{method} {path} in another tenant");
    }
    let listed = edge.ask(bearer(get("/globex/tasks"), BOB)).await.json();
    assert_eq!(listed["totalSize"], 0);
    assert_eq!(edge.ask(bearer(get(&format!("/globex/tasks/{id}")), ALICE)).await.gist(), "200");
}

#[tokio::test(start_paused = true)]
async fn nothing_of_an_unknown_callers_body_is_read() {
    let edge = server();
    for path in ["/", "/message:send"] {
        let request = Request::post(path).header("a2a-version", "1.0").body(Untouched).unwrap();
        assert_eq!(edge.open(request).await.status(), 401, "{path}");
    }
}
