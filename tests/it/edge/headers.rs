//! Headers in and out: extensions that were activated, and the name of each request.

use serde_json::{Value, json};
use switchboard::{Server, Turn};
use switchboard_core::dialect::v1_0::proto::generated as wire;

use crate::support::edge::{Edge, echo, get, message, old_message, post, rpc_body, unversioned, with};
use crate::support::grpc::{V1_0, grpc_request};

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
async fn a_client_that_accepts_nothing_the_agent_writes_is_told_what_it_gets() {
    let agent = || echo().output_modes(["text/plain", "text/csv"]);
    let edge = Edge::new(Server::builder().agent(agent()));
    let accepting = |mut params: Value, modes: &[&str]| {
        params["configuration"] = json!({"acceptedOutputModes": modes});
        params
    };
    let grpc = |modes: &[&str]| {
        let part = wire::Part { content: Some(wire::part::Content::Text("hi".to_owned())), ..Default::default() };
        let message = wire::Message { message_id: "m".to_owned(), role: 1, parts: vec![part], ..Default::default() };
        let accepted_output_modes = modes.iter().map(|mode| (*mode).to_owned()).collect();
        let configuration = wire::SendMessageConfiguration { accepted_output_modes, ..Default::default() };
        let send = wire::SendMessageRequest {
            message: Some(message),
            configuration: Some(configuration),
            ..Default::default()
        };
        grpc_request(&format!("{V1_0}/SendMessage"), &send)
    };
    // What crewAI sends by default, and what this agent writes.
    for (modes, told) in
        [(&["application/json"][..], "text/plain, text/csv"), (&["application/json", "text/*"], ""), (&[], "")]
    {
        for request in [
            post("/", rpc_body("SendMessage", accepting(message("hi"), modes))),
            post("/", rpc_body("SendStreamingMessage", accepting(message("hi"), modes))),
            post("/message:send", accepting(message("hi"), modes).to_string()),
            unversioned(post("/", rpc_body("message/send", accepting(old_message("hi"), modes)))),
            unversioned(post("/", rpc_body("message/stream", accepting(old_message("hi"), modes)))),
            grpc(modes),
        ] {
            let name = request.uri().to_string();
            let answer = edge.ask(request).await;
            assert_eq!((answer.status.as_u16(), answer.header("a2a-output-modes")), (200, told), "{name} {modes:?}");
        }
    }
    let strict = Edge::new(Server::builder().agent(agent().strict_output_modes(true)));
    let refused = strict.rpc("SendMessage", accepting(message("hi"), &["application/json"])).await;
    assert_eq!((&refused.json()["error"]["code"], refused.header("a2a-output-modes")), (&json!(-32005), ""));
    let refused = strict.old_rpc("message/send", accepting(old_message("hi"), &["application/json"])).await;
    assert_eq!(refused.json()["error"]["code"], -32005);
}

#[tokio::test(start_paused = true)]
async fn every_line_of_a_header_counts() {
    let edge = Edge::usual();
    let twice = |lines: &[&str]| {
        lines.iter().fold(unversioned(get("/tasks")), |request, line| with(request, "a2a-version", line))
    };
    for lines in [&["1.0"][..], &["1.0", "1.0"], &[" ", "1.0"]] {
        assert_eq!(edge.ask(twice(lines)).await.gist(), "200", "{lines:?}");
    }
    let torn = edge.ask(twice(&["1.0", "0.3"])).await;
    assert_eq!(torn.gist(), "400 VERSION_NOT_SUPPORTED", "lines that differ are no version");
    assert!(torn.text().contains("1.0, 0.3"), "{}", torn.text());

    let card = "/.well-known/agent-card.json";
    let etag = edge.get(card).await.header("etag").to_owned();
    let known = with(with(get(card), "if-none-match", "\"other\""), "if-none-match", &etag);
    assert_eq!(edge.ask(known).await.status, 304);
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
        let said = turn.trace().map(|trace| (trace.trace_parent(), trace.trace_state().unwrap_or_default().to_owned()));
        let said = said.map_or("none".to_owned(), |(parent, state)| format!("{parent} {state}"));
        Ok(turn.answer(said).await?)
    });
    let edge = Edge::new(Server::builder().agent(agent));
    let trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    let sending = || post("/message:send", message("hello").to_string());
    let said = async |request| edge.ask(request).await.json()["task"]["artifacts"][0]["parts"][0]["text"].clone();
    assert_eq!(said(with(sending(), "traceparent", trace)).await, format!("{trace} "));
    let both = with(with(sending(), "traceparent", trace), "tracestate", "congo=t61rcWkgMzE");
    assert_eq!(said(both).await, format!("{trace} congo=t61rcWkgMzE"));
    for unfit in ["00-trace-01", &trace.to_uppercase(), &format!("{trace}-00")] {
        assert_eq!(said(with(sending(), "traceparent", unfit)).await, "none", "{unfit}");
    }
    assert_eq!(said(with(sending(), "tracestate", "a=1")).await, "none");
}
