//! Skills that ask for more than the server asks of everybody: checked after the message was read and before it is accepted.

use serde_json::{Value, json};
use switchboard::model::SecurityRequirement;
use switchboard::{Issuer, Server, Skill, Tokens};

use crate::support::edge::{Edge, echo, get, message, old_message, post, rpc_body, unversioned, with};
use crate::support::issuers::{Signer, now_s};

const ALICE: &str = "a-token-of-alice-for-tests";

fn asks(scheme: &str, scopes: &[&str]) -> SecurityRequirement {
    let scopes = scopes.iter().map(|scope| (*scope).to_owned()).collect();
    SecurityRequirement { schemes: vec![(scheme.to_owned(), scopes)] }
}

fn for_skill(mut params: Value, place: &str, id: &str) -> Value {
    params[place] = json!({"skillId": id});
    params
}

#[tokio::test(start_paused = true)]
async fn a_skill_may_ask_for_another_scheme_or_for_scopes() {
    let signer = Signer::new("key-1");
    let keys = json!({"keys": [signer.jwk()]}).to_string();
    let issuer = Issuer::new("https://login.example", "agents").keys(keys).unwrap();
    let agent =
        echo().skill(Skill::new("vault", "Vault", "Keeps things").security(asks("apiKey", &[]))).extended_skill(
            Skill::new("paint", "Paint", "Paints").security(asks("jwt", &["paint"])).security(asks("apiKey", &[])),
        );
    let tokens = Tokens::parse(&format!("{ALICE} alice\n")).unwrap();
    let edge = Edge::new(Server::builder().agent(agent).tokens(tokens).api_key_header("X-API-Key").issuer(issuer));
    let jwt = |scope: &str| {
        let claims =
            json!({"iss": "https://login.example", "aud": "agents", "sub": "a", "scope": scope, "exp": now_s() + 900});
        ("authorization", format!("Bearer {}", signer.token(&claims)))
    };
    let (bearer, key) = (("authorization", format!("Bearer {ALICE}")), ("x-api-key", ALICE.to_owned()));
    for (skill, (name, value), expected) in [
        ("echo", &bearer, "200"),
        ("unknown", &bearer, "200"),
        ("vault", &bearer, "401 UNAUTHENTICATED"),
        ("vault", &key, "200"),
        ("vault", &jwt("paint"), "401 UNAUTHENTICATED"),
        ("paint", &bearer, "401 UNAUTHENTICATED"),
        ("paint", &key, "200"),
        ("paint", &jwt("draw paint"), "200"),
        ("paint", &jwt("draw"), "403 PERMISSION_DENIED"),
    ] {
        let count = async || edge.ask(with(get("/tasks"), name, value)).await.json()["totalSize"].as_u64().unwrap();
        let before = count().await;
        let in_request = post("/", rpc_body("SendMessage", for_skill(message("hi"), "metadata", skill)));
        let mut of_message = message("hi");
        of_message["message"]["metadata"] = json!({"skill": skill});
        let in_message = post("/message:send", of_message.to_string());
        let in_stream = post("/message:stream", for_skill(message("hi"), "metadata", skill).to_string());
        let old = unversioned(post("/", rpc_body("message/send", for_skill(old_message("hi"), "metadata", skill))));
        for asked in [in_request, in_message, in_stream, old] {
            let place = asked.uri().clone();
            assert_eq!(edge.ask(with(asked, name, value)).await.gist(), expected, "{skill} by {name} at {place}");
        }
        assert_eq!(count().await > before, expected == "200", "{skill} by {name}: only what is allowed is stored");
    }
}

#[test]
fn a_skill_cannot_ask_for_what_the_server_does_not_have() {
    let agent = || echo().skill(Skill::new("vault", "Vault", "Keeps things").security(asks("apiKey", &[])));
    let why = Server::builder().agent(agent()).build().unwrap_err().to_string();
    assert_eq!(why, "agent \"echo\", skill \"vault\": \"apiKey\" is no security scheme of this server; it has none");
}
