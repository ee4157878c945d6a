//! Tokens in other places than the `Authorization` header, and what several schemes together ask for.

use serde_json::json;
use switchboard::model::SecurityRequirement;
use switchboard::{Server, ServerBuilder, Tokens};

use crate::support::edge::{Edge, echo, get, message, post, rpc_body, with};

const ALICE: &str = "a-token-of-alice-for-tests";

fn builder() -> ServerBuilder {
    let tokens = Tokens::parse(&format!("{ALICE} alice\n")).unwrap();
    Server::builder().agent(echo()).tokens(tokens).basic(true).api_key_header("X-API-Key").api_key_query("api_key")
}

#[tokio::test(start_paused = true)]
async fn a_token_may_stand_where_the_card_says() {
    let edge = Edge::new(builder().api_key_cookie("session"));
    // printf %s alice:a-token-of-alice-for-tests | base64
    let basic = "Basic YWxpY2U6YS10b2tlbi1vZi1hbGljZS1mb3ItdGVzdHM=";
    let send = || post("/message:send", message("hi").to_string());
    for asked in [
        with(send(), "x-api-key", ALICE),
        with(send(), "authorization", basic),
        with(send(), "cookie", &format!("session={ALICE}")),
        post(&format!("/message:send?api_key={ALICE}"), message("hi").to_string()),
        with(post("/", rpc_body("SendMessage", message("hi"))), "x-api-key", ALICE),
    ] {
        let name = format!("{asked:?}");
        assert_eq!(edge.ask(asked).await.gist(), "200", "{name}");
    }
    // A parameter that is a credential disturbs no other one, and a wrong one is refused like any other credential.
    assert_eq!(edge.get(&format!("/tasks?pageSize=1&api_key={ALICE}")).await.gist(), "200");
    assert_eq!(edge.get("/tasks?api_key=wrong").await.gist(), "401 UNAUTHENTICATED");
    let refused = edge.get("/tasks").await;
    let expected = "Bearer realm=\"switchboard\", Basic realm=\"switchboard\", charset=\"UTF-8\"";
    assert_eq!(refused.header("www-authenticate"), expected);
}

#[tokio::test(start_paused = true)]
async fn schemes_that_are_required_together_are_needed_together() {
    let both = SecurityRequirement { schemes: vec![("bearer".to_owned(), vec![]), ("apiKey".to_owned(), vec![])] };
    let edge = Edge::new(builder().require(both));
    let bearer = format!("Bearer {ALICE}");
    assert_eq!(edge.ask(with(get("/tasks"), "authorization", &bearer)).await.gist(), "401 UNAUTHENTICATED");
    assert_eq!(edge.ask(with(get("/tasks"), "x-api-key", ALICE)).await.gist(), "401 UNAUTHENTICATED");
    let asked = with(with(get("/tasks"), "authorization", &bearer), "x-api-key", ALICE);
    assert_eq!(edge.ask(asked).await.gist(), "200");
    let card = edge.get("/.well-known/agent-card.json").await.json();
    assert_eq!(card["securityRequirements"], json!([{"schemes": {"bearer": {}, "apiKey": {}}}]));
}

#[test]
fn what_cannot_be_enforced_is_not_served() {
    let refused = |builder: ServerBuilder| builder.build().expect_err("this must not be served").to_string();
    let unknown = SecurityRequirement { schemes: vec![("mtls".to_owned(), vec![])] };
    assert_eq!(
        refused(builder().require(unknown.clone())),
        "\"mtls\" is no security scheme of this server; it has bearer, basic, apiKey, apiKeyQuery"
    );
    let open = Server::builder().agent(echo());
    assert_eq!(refused(open.require(unknown)), "\"mtls\" is no security scheme of this server; it has none");
    let why = "HTTP Basic and API keys take the tokens of this server, and it has none; give out tokens (ServerBuilder::tokens)";
    assert_eq!(refused(Server::builder().agent(echo()).basic(true)), why);
    assert_eq!(refused(Server::builder().agent(echo()).api_key_header("X-API-Key")), why);
    let secret = switchboard::SharedSecret::new("short");
    let public = Server::builder().agent(echo()).shared_secret(secret).public_url("https://agents.example");
    let why = "the shared secret is shorter than 16 characters and the public URL is not a loopback address; use a longer one";
    assert_eq!(refused(public), why);
}
