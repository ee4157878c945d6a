//! Headers in and out: extensions that were activated, and the name of each request.

use switchboard::{Server, Turn};

use crate::support::edge::{Edge, get, message, post, rpc_body, with};

fn server() -> Edge {
    let agent = switchboard::AgentBuilder::from_fn("Extended", |turn: Turn| async move {
        Ok(turn.answer(turn.extensions().join(" ")).await?)
    });
    let agent = agent.extension("urn:one", "", false).extension("https://two.example/v1", "", false);
    Edge::new(Server::builder().agent(agent))
}

#[tokio::test(start_paused = true)]
async fn activated_extensions_reach_the_agent_and_are_echoed() {
    let edge = server();
    for (lines, active) in [
        (&[][..], ""),
        (&["urn:one"][..], "urn:one"),
        (&["urn:none"][..], ""),
        (&["URN:ONE"][..], ""),
        (&["https://two.example/v1, urn:none ,urn:one"][..], "urn:one, https://two.example/v1"),
        (&["https://two.example/v1", "urn:one"][..], "urn:one, https://two.example/v1"),
        (&["https://two.example/v2"][..], ""),
        (&["urn:one,urn:one"][..], "urn:one"),
    ] {
        let asked = |request| lines.iter().fold(request, |request, line| with(request, "a2a-extensions", line));
        let sent = edge.ask(asked(post("/message:send", message("hello").to_string()))).await;
        assert_eq!(sent.header("a2a-extensions"), active, "{lines:?}");
        let told = sent.json()["task"]["artifacts"][0]["parts"][0]["text"].as_str().unwrap_or_default().to_owned();
        assert_eq!(told, active.replace(", ", " "), "{lines:?}");
        for request in [
            post("/", rpc_body("SendMessage", message("hello"))),
            post("/message:stream", message("hello").to_string()),
            get("/tasks"),
            get("/tasks/none"),
        ] {
            assert_eq!(edge.ask(asked(request)).await.header("a2a-extensions"), active, "{lines:?}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn every_request_has_a_name() {
    let edge = Edge::usual();
    let name = async |request| edge.ask(request).await.header("x-request-id").to_owned();
    assert_eq!(name(with(get("/tasks"), "x-request-id", "my-own-7")).await, "my-own-7");
    assert_eq!(name(with(get("/nothing"), "x-request-id", "my-own-8")).await, "my-own-8", "refusals, too");
    let (one, other) = (name(get("/tasks")).await, name(get("/tasks")).await);
    assert!(!one.is_empty() && one != other, "{one} {other}");
    for unfit in ["with space", "x".repeat(129).as_str(), "né"] {
        let given = name(with(get("/tasks"), "x-request-id", unfit)).await;
        assert_ne!(given, unfit);
        assert!(given.len() < 40 && given.is_ascii(), "{given}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_agent_sees_the_trace_its_message_came_with() {
    let agent = switchboard::AgentBuilder::from_fn("Traced", |turn: Turn| async move {
        Ok(turn.answer(turn.trace_parent().unwrap_or("none")).await?)
    });
    let edge = Edge::new(Server::builder().agent(agent));
    let trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    let sent = edge.ask(with(post("/message:send", message("hello").to_string()), "traceparent", trace)).await;
    assert_eq!(sent.json()["task"]["artifacts"][0]["parts"][0]["text"], trace);
}
