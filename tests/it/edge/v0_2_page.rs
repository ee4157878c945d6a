//! `docs/dialects/0.3-and-0.2.md` says what is served: each row of its table is shown here.

use serde_json::json;
use switchboard::{Server, Tokens};

use crate::support::edge::{Edge, echo, get, old_message, post, rpc_body, unversioned, with};

const PAGE: &str = include_str!("../../../docs/dialects/0.3-and-0.2.md");

#[tokio::test(start_paused = true)]
async fn what_0_3_has_is_there_for_0_2() {
    let rows: Vec<&str> = PAGE.lines().filter_map(|line| line.strip_prefix("| ")?.split(" |").next()).skip(2).collect();
    let [card, extended_card, numbers] = rows[..] else { panic!("a row without a test: {rows:?}") };

    let tokens = Tokens::parse("a-token-of-ada-for-tests ada").unwrap();
    let agent = echo().extended_card(|card| card.description.push_str(", and more"));
    let edge = Edge::new(Server::builder().agent(agent).tokens(tokens));
    let known = |request| with(unversioned(request), "authorization", "Bearer a-token-of-ada-for-tests");

    assert_eq!(card, "`/.well-known/agent-card.json`");
    let new = edge.ask(known(get("/.well-known/agent-card.json"))).await;
    assert_eq!(edge.ask(known(get("/.well-known/agent.json"))).await.json(), new.json());

    assert_eq!(extended_card, "`agent/getAuthenticatedExtendedCard`");
    let call = rpc_body("agent/getAuthenticatedExtendedCard", json!({}));
    let called = edge.ask(known(post("/rpc", call))).await.json();
    let read = edge.ask(known(get("/agent/authenticatedExtendedCard"))).await.json();
    assert_eq!((read["description"].as_str(), &read), (Some("Says what it was told, and more"), &called["result"]));

    assert_eq!(numbers, "-32007, and -32008 and -32009 of 1.0");
    let edge = Edge::new(Server::builder().agent(echo().extension("urn:must", "", true)));
    let sent = edge.old_rpc("message/send", old_message("hello")).await;
    assert_eq!(sent.json()["error"]["code"], -32008);
    let edge = Edge::usual();
    let asked = edge.old_rpc("agent/getAuthenticatedExtendedCard", json!({})).await;
    assert_eq!(asked.json()["error"]["code"], -32007);
    let strange = with(unversioned(post("/rpc", rpc_body("message/send", old_message("hello")))), "a2a-version", "0.9");
    assert_eq!(edge.ask(strange).await.json()["error"]["code"], -32009);
}
