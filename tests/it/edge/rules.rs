//! What callers may do: the same on every binding and in every dialect, before anything is stored. Beside each refusal, the same call goes
//! through on a server without that stage.

use http::Request;
use http_body_util::Full;
use serde_json::json;
use switchboard::{Rules, Server, ServerBuilder, Skill, Tokens};

use super::exposure::every_operation;
use crate::support::edge::{Edge, echo, get, message, post, rpc_body, with};

const ALICE: &str = "a-token-of-alice-for-tests";
const BOB: &str = "b-token-of-bob-for-tests";
const CAROL: &str = "c-token-of-carol-for-tests";
const DAVE: &str = "d-token-of-dave-for-tests";

fn server() -> ServerBuilder {
    let tokens = format!("{ALICE} alice acme\n{BOB} bob acme\n{CAROL} carol globex\n{DAVE} dave\n");
    let agent = echo().extended_card(|_| {}).extended_skill(Skill::new("secret", "Secret", "Not for all"));
    Server::builder()
        .agent(agent.compat(|compat| compat.default_project = true))
        .tokens(Tokens::parse(&tokens).unwrap())
}

fn ruled(rules: &str) -> Edge {
    Edge::new(server().rules(Rules::parse(rules).unwrap()))
}

fn by(token: &str, request: Request<Full<bytes::Bytes>>) -> Request<Full<bytes::Bytes>> {
    with(request, "authorization", &format!("Bearer {token}"))
}

fn send(skill: Option<&str>) -> Request<Full<bytes::Bytes>> {
    let mut send = message("hello");
    if let Some(skill) = skill {
        send["metadata"] = json!({"skillId": skill});
    }
    post("/message:send", send.to_string())
}

#[tokio::test(start_paused = true)]
async fn a_caller_without_rights_does_nothing_on_any_binding_or_dialect() {
    let edge = ruled("allow principal:alice * *");
    let free = Edge::new(server());
    for (name, request) in every_operation() {
        if matches!(name, "outbox" | "metrics") {
            // These are for operators, and not about agents.
            continue;
        }
        let refused = edge.ask(by(BOB, request.clone())).await;
        match name {
            "gRPC" => assert_eq!((refused.status.as_u16(), refused.header("grpc-status")), (200, "7"), "{name}"),
            _ => assert_eq!(refused.status, 403, "{name}: {}", refused.text()),
        }
        let allowed = free.ask(by(BOB, request)).await;
        assert_ne!(allowed.status, 403, "{name}");
        assert_ne!(allowed.header("grpc-status"), "7", "{name}");
    }
    assert_eq!(edge.engine.store_stats().commits, 0, "nothing was stored");
    assert!(free.engine.store_stats().commits > 0);
    assert_eq!(edge.ask(by(ALICE, send(None))).await.status, 200);
}

#[tokio::test(start_paused = true)]
async fn rules_tell_agents_skills_and_operations_apart() {
    let edge = ruled(
        "allow tenant:acme     send          echo/echo\n\
         allow tenant:acme     read          echo\n\
         allow principal:carol send,ListTasks *",
    );
    for (token, request, expected) in [
        (ALICE, send(Some("echo")), "200"),
        (ALICE, send(Some("secret")), "403 PERMISSION_DENIED"),
        (ALICE, send(None), "403 PERMISSION_DENIED"),
        (ALICE, get("/tasks"), "200"),
        (ALICE, get("/tasks/none"), "404 TASK_NOT_FOUND"),
        (ALICE, post("/tasks/none:cancel", "{}"), "403 PERMISSION_DENIED"),
        (CAROL, send(None), "200"),
        (CAROL, send(Some("secret")), "200"),
        (CAROL, get("/tasks"), "200"),
        (CAROL, get("/tasks/none"), "403 PERMISSION_DENIED"),
        (DAVE, get("/tasks"), "403 PERMISSION_DENIED"),
    ] {
        let name = format!("{token}: {} {}", request.method(), request.uri());
        assert_eq!(edge.ask(by(token, request)).await.gist(), expected, "{name}");
    }
    // The refusal is the same for a skill that there is and one that there is not.
    let [one, other] = ["secret", "nothing"].map(|skill| by(ALICE, send(Some(skill))));
    assert_eq!(edge.ask(one).await.text(), edge.ask(other).await.text());
}

#[tokio::test(start_paused = true)]
async fn the_extended_card_shows_what_its_reader_may_ask_for() {
    let edge = ruled(
        "deny  principal:bob  send          echo/secret\n\
         allow tenant:acme    *             *\n\
         allow principal:dave send          *",
    );
    let skills = async |token: &str, request: Request<Full<bytes::Bytes>>| {
        let answer = edge.ask(by(token, request)).await;
        let card = answer.json();
        let card = card.get("result").unwrap_or(&card);
        let Some(skills) = card["skills"].as_array() else { return answer.gist() };
        skills.iter().map(|skill| skill["id"].as_str().unwrap()).collect::<Vec<_>>().join(" ")
    };
    for request in [get("/extendedAgentCard"), post("/", rpc_body("GetExtendedAgentCard", json!({})))] {
        assert_eq!(skills(ALICE, request.clone()).await, "echo secret");
        assert_eq!(skills(BOB, request.clone()).await, "echo");
        assert_eq!(skills(DAVE, request.clone()).await, "403 PERMISSION_DENIED");
        assert_eq!(edge.ask(request).await.gist(), "401 UNAUTHENTICATED");
    }
}

#[tokio::test(start_paused = true)]
async fn callers_of_a_tenant_share_their_tasks_only_where_that_is_set() {
    for (shared, expected) in [(true, "200"), (false, "404 TASK_NOT_FOUND")] {
        let edge = Edge::new(server().shared_tenant(shared));
        let sent = edge.ask(by(ALICE, send(None))).await.json();
        let path = format!("/tasks/{}", sent["task"]["id"].as_str().unwrap());
        assert_eq!(edge.ask(by(ALICE, get(&path))).await.gist(), "200");
        assert_eq!(edge.ask(by(BOB, get(&path))).await.gist(), expected);
        assert_eq!(edge.ask(by(CAROL, get(&path))).await.gist(), "404 TASK_NOT_FOUND");
        let artifact = format!("{path}/artifacts/artifact-1-1");
        assert_eq!(edge.ask(by(BOB, get(&artifact))).await.status == 200, shared);
        // Who names no tenant would share with everybody who names none.
        let without = edge.ask(by(DAVE, send(None))).await;
        assert_eq!(without.gist(), if shared { "403 PERMISSION_DENIED" } else { "200" });
    }
}

#[tokio::test(start_paused = true)]
async fn a_protected_card_is_for_known_callers() {
    let edge = Edge::new(server().protect_cards(true));
    let open = Edge::new(server());
    for path in [
        "/.well-known/agent-card.json",
        "/.well-known/agent.json",
        "/agents/echo/.well-known/agent-card.json",
        "/dialects/nexus/.well-known/agent.json",
        "/api/agents/echo/agent-card",
    ] {
        assert_eq!(open.ask(get(path)).await.status, 200, "{path}");
        let refused = edge.ask(get(path)).await;
        assert_eq!((refused.status.as_u16(), refused.header("www-authenticate").is_empty()), (401, false), "{path}");
        let shown = edge.ask(by(ALICE, get(path))).await;
        assert_eq!((shown.status.as_u16(), shown.header("cache-control")), (200, "private, no-cache"), "{path}");
        assert_eq!(shown.body, open.ask(get(path)).await.body, "{path}");
    }
    assert_eq!(edge.ask(get("/healthz")).await.status, 200);
    let nobody = Server::builder().agent(echo()).protect_cards(true).build().unwrap_err().to_string();
    assert!(nobody.contains("knows no callers"), "{nobody}");
}

#[tokio::test]
async fn a_new_file_of_rules_is_used_and_a_bad_one_changes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("rules.txt");
    std::fs::write(&path, "allow * * *\n").unwrap();
    let rules = Rules::from_file(&path).unwrap();
    let edge = Edge::new(server().rules(rules.clone()));
    assert_eq!(edge.ask(by(ALICE, get("/tasks"))).await.status, 200);
    for (bad, why) in [("allow * * *\nallow alice * *\n", "line 2: \"alice\" is nobody"), ("# none\n", "no rule in it")]
    {
        std::fs::write(&path, bad).unwrap();
        let error = rules.reload().await.unwrap_err().to_string();
        assert!(error.starts_with(why), "{error}");
        assert_eq!(edge.ask(by(ALICE, get("/tasks"))).await.status, 200);
    }
    std::fs::write(&path, "allow principal:bob * *\n").unwrap();
    rules.reload().await.unwrap();
    assert_eq!(edge.ask(by(ALICE, get("/tasks"))).await.status, 403);
    assert_eq!(edge.ask(by(BOB, get("/tasks"))).await.status, 200);
}
