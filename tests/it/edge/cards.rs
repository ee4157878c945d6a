//! The public card: what it says, and how it is cached.

use expect_test::expect;
use http::Method;
use switchboard::{Server, Tokens};

use crate::support::edge::{Edge, echo, get, request, with};

const CARD: &str = "/.well-known/agent-card.json";

#[tokio::test(start_paused = true)]
async fn the_card_says_what_is_served_and_where() {
    let edge = Edge::new(
        Server::builder().agent(echo()).allow_unauthenticated(true).public_url("https://agents.example/a2a/"),
    );
    expect![[r#"
        200 application/json
        {"name":"Echo","description":"Says what it was told","supportedInterfaces":[{"url":"https://agents.example/a2a","protocolBinding":"JSONRPC","protocolVersion":"1.0"},{"url":"https://agents.example/a2a","protocolBinding":"HTTP+JSON","protocolVersion":"1.0"},{"url":"https://agents.example/a2a/rpc","protocolBinding":"JSONRPC","protocolVersion":"0.3"},{"url":"https://agents.example/a2a","protocolBinding":"HTTP+JSON","protocolVersion":"0.3"}],"version":"1.0.0","capabilities":{"streaming":true,"pushNotifications":true,"extensions":[{"uri":"https://github.com/switchboard-a2a/switchboard/blob/main/docs/idempotent-sends.md","description":"A message with an Idempotency-Key may be sent again"}],"extendedAgentCard":false},"defaultInputModes":["text/plain"],"defaultOutputModes":["text/plain"],"skills":[{"id":"echo","name":"Echo","description":"Repeats a text","tags":["test"]}]}
    "#]].assert_eq(&edge.get(CARD).await.picture());
    let own = edge.get(&format!("/agents/echo{CARD}")).await.json();
    assert_eq!(own["supportedInterfaces"][0]["url"], "https://agents.example/a2a/agents/echo");
}

#[tokio::test(start_paused = true)]
async fn the_card_of_a_server_with_tokens_says_how_to_call() {
    let tokens = Tokens::parse("a-token-of-alice-for-tests alice").unwrap();
    let edge = Edge::new(Server::builder().agent(echo()).tokens(tokens));
    let card = edge.get(CARD).await;
    assert_eq!(card.status, 200, "the card itself is for everybody");
    expect![[r#"
        {
          "bearer": {
            "httpAuthSecurityScheme": {
              "description": "A token given out by the operator of this server",
              "scheme": "Bearer"
            }
          }
        }
        [
          {
            "schemes": {
              "bearer": {}
            }
          }
        ]
    "#]]
    .assert_eq(&format!("{:#}\n{:#}\n", card.json()["securitySchemes"], card.json()["securityRequirements"]));
}

#[tokio::test(start_paused = true)]
async fn a_card_that_is_known_is_not_sent_again() {
    let edge = Edge::usual();
    let card = edge.get(CARD).await;
    let (tag, date) = (card.header("etag").to_owned(), card.header("last-modified").to_owned());
    assert_eq!(card.header("cache-control"), "public, max-age=300");
    assert!(tag.starts_with('"') && tag.ends_with('"') && tag.len() == 18, "{tag}");
    let asked = |name: &'static str, value: &str| with(get(CARD), name, value);
    for known in [
        asked("if-none-match", &tag),
        asked("if-none-match", &format!("W/{tag}")),
        asked("if-none-match", &format!("\"other\", {tag}")),
        asked("if-none-match", "*"),
        asked("if-modified-since", &date),
        with(asked("if-none-match", &tag), "if-modified-since", "Thu, 01 Jan 1970 00:00:00 GMT"),
    ] {
        let answer = edge.ask(known).await;
        assert_eq!((answer.status.as_u16(), answer.body.len()), (304, 0));
        assert_eq!((answer.header("etag"), answer.header("cache-control")), (tag.as_str(), "public, max-age=300"));
    }
    for unknown in [
        asked("if-none-match", "\"other\""),
        asked("if-none-match", tag.trim_matches('"')),
        asked("if-modified-since", "Thu, 01 Jan 1970 00:00:00 GMT"),
        asked("if-modified-since", "yesterday"),
        with(asked("if-none-match", "\"other\""), "if-modified-since", &date),
    ] {
        let answer = edge.ask(unknown).await;
        assert_eq!((answer.status.as_u16(), &answer.body), (200, &card.body));
    }
}

#[tokio::test(start_paused = true)]
async fn the_tag_follows_the_content() {
    let tag = async |description: &str| {
        let edge = Edge::new(Server::builder().agent(echo().description(description)));
        edge.get(CARD).await.header("etag").to_owned()
    };
    assert_eq!(tag("one").await, tag("one").await);
    assert_ne!(tag("one").await, tag("two").await);
}

#[tokio::test(start_paused = true)]
async fn head_is_get_without_the_body() {
    let edge = Edge::usual();
    let (whole, head) = (edge.get(CARD).await, edge.ask(request(Method::HEAD, CARD, "")).await);
    assert_eq!((head.status, head.body.len()), (whole.status, 0));
    for name in ["content-type", "etag", "last-modified", "cache-control"] {
        assert_eq!(head.header(name), whole.header(name), "{name}");
    }
}

#[tokio::test(start_paused = true)]
async fn any_page_may_read_the_card() {
    let edge = Edge::new(
        Server::builder()
            .agent(echo())
            .host_check(true)
            .allow_unauthenticated(true)
            .public_url("https://agents.example"),
    );
    let asked = |origin: &str| {
        let request = with(get(CARD), "host", "agents.example");
        if origin.is_empty() { request } else { with(request, "origin", origin) }
    };
    // Also to those who say nothing: a cache would hand their answer to a page.
    for origin in ["https://anywhere.example", "null", ""] {
        let answer = edge.ask(asked(origin)).await;
        assert_eq!((answer.status.as_u16(), answer.header("access-control-allow-origin")), (200, "*"), "{origin}");
    }
    let mut preflight = asked("https://anywhere.example");
    *preflight.method_mut() = Method::OPTIONS;
    let answer = edge.ask(preflight).await;
    assert_eq!((answer.status.as_u16(), answer.header("access-control-allow-origin")), (204, "*"));
}

#[tokio::test(start_paused = true)]
async fn an_agent_that_names_no_version_is_at_1_0_0() {
    const CARDS: [&str; 6] = [
        "/.well-known/agent-card.json",
        "/dialects/agent-native/.well-known/agent-card.json",
        "/dialects/nexus/.well-known/agent.json",
        "/dialects/selectools/.well-known/agent.json",
        "/dialects/corvid/.well-known/agent-card.json",
        "/api/agents/echo/agent-card",
    ];
    // The originals of two systems name their package there.
    let ours = env!("CARGO_PKG_VERSION");
    for (agent, expected) in
        [(echo(), ["1.0.0", "1.0.0", "1.0.0", ours, ours, ours]), (echo().version("7.1"), ["7.1"; 6])]
    {
        let edge = Edge::new(Server::builder().agent(agent));
        for (path, expected) in CARDS.iter().zip(expected) {
            assert_eq!(edge.get(path).await.json()["version"], expected, "{path}");
        }
    }
}
