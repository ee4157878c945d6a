//! The extended card: for callers with a credential, unless the operator says otherwise.

use serde_json::json;
use switchboard::{AgentBuilder, Server, Tokens};

use crate::support::edge::{Edge, echo, get, post, rpc_body, with};

const TOKEN: &str = "a-token-of-alice-for-tests";

fn extended() -> AgentBuilder {
    echo().extended_card(|card| card.description.push_str(", and more for those we know"))
}

async fn gists(edge: &Edge, token: Option<&str>) -> (String, String) {
    let bearer = |request| match token {
        Some(token) => with(request, "authorization", &format!("Bearer {token}")),
        None => request,
    };
    let rest = edge.ask(bearer(get("/extendedAgentCard"))).await;
    let rpc = edge.ask(bearer(post("/", rpc_body("GetExtendedAgentCard", json!({}))))).await;
    (rest.gist(), rpc.gist())
}

fn both(rest: &str, rpc: &str) -> (String, String) {
    (rest.to_owned(), rpc.to_owned())
}

#[tokio::test(start_paused = true)]
async fn an_agent_without_one_says_so() {
    let edge = Edge::usual();
    assert_eq!(gists(&edge, None).await, both("400 UNSUPPORTED_OPERATION", "200 UNSUPPORTED_OPERATION"));
    assert_eq!(edge.get("/.well-known/agent-card.json").await.json()["capabilities"]["extendedAgentCard"], false);
}

#[tokio::test(start_paused = true)]
async fn a_credential_is_needed() {
    let edge = Edge::new(Server::builder().agent(extended()));
    assert_eq!(
        gists(&edge, None).await,
        both("401 UNAUTHENTICATED", "401 UNAUTHENTICATED"),
        "nobody can have one here"
    );

    let tokens = Tokens::parse(&format!("{TOKEN} alice")).unwrap();
    let edge = Edge::new(Server::builder().agent(extended()).tokens(tokens));
    assert_eq!(gists(&edge, None).await, both("401 UNAUTHENTICATED", "401 UNAUTHENTICATED"));
    assert_eq!(gists(&edge, Some(TOKEN)).await, both("200", "200"));

    let answer = edge.ask(with(get("/extendedAgentCard"), "authorization", &format!("Bearer {TOKEN}"))).await;
    let card = answer.json();
    assert_eq!(card["description"], "Says what it was told, and more for those we know");
    assert_eq!(card["capabilities"]["extendedAgentCard"], true);
    assert_eq!(answer.header("cache-control"), "private, max-age=60");
    let public = edge.get("/.well-known/agent-card.json").await.json();
    assert_eq!(card["supportedInterfaces"], public["supportedInterfaces"], "both name the place they were read at");
    assert_eq!(public["description"], "Says what it was told");
}

#[tokio::test(start_paused = true)]
async fn the_operator_may_show_it_to_anyone() {
    let edge = Edge::new(Server::builder().agent(extended().extended_card_for_anyone()));
    assert_eq!(gists(&edge, None).await, both("200", "200"));
}

#[tokio::test(start_paused = true)]
async fn params_may_be_left_out() {
    let edge = Edge::new(Server::builder().agent(extended().extended_card_for_anyone()));
    for params in ["", r#","params":null"#, r#","params":{}"#] {
        let body = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"GetExtendedAgentCard"{params}}}"#);
        assert_eq!(edge.post("/", body).await.gist(), "200", "{params}");
    }
}
