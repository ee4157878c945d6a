//! Interceptors see every exchange on every binding, may add headers, and are told how each exchange ended.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use switchboard::client::{Interceptor, Observed, OutgoingRequest, Received};
use switchboard::{CallErrorKind, ProtocolBinding, Server, TaskId};

use super::{quick, served};
use crate::support::callers::soon;
use crate::support::edge::echo;
use crate::support::scripted::{Script, Scripted, answer, events, json};

/// Writes down what it sees, one line for each.
#[derive(Default)]
struct Recorder {
    name: &'static str,
    lines: Arc<Mutex<Vec<String>>>,
}

impl Recorder {
    fn note(&self, line: String) {
        self.lines.lock().unwrap().push(format!("{}{line}", self.name));
    }

    fn take(&self) -> Vec<String> {
        std::mem::take(&mut self.lines.lock().unwrap())
    }
}

impl Interceptor for Recorder {
    fn on_request(&self, request: &mut OutgoingRequest<'_>) {
        request.headers.append("x-seen", self.name.parse().unwrap());
        let OutgoingRequest { exchange, method, url, body, .. } = request;
        self.note(format!(
            "{exchange} {method} {} with {}",
            url.path(),
            if body.is_empty() { "nothing" } else { "a body" }
        ));
    }

    fn on_received(&self, observed: &Observed<'_>) {
        let what = match &observed.received {
            Received::Head { status, headers } => format!("{status} {:?}", headers.get("content-type").unwrap()),
            Received::Body(body) => format!("body, JSON: {}", body.starts_with(b"{")),
            Received::Event { id, kind, data } => format!("event {id:?} {kind:?}, JSON: {}", data.starts_with('{')),
            Received::Message(message) => format!("message, empty: {}", message.is_empty()),
            Received::End { trailers } => format!("end {:?}", trailers.and_then(|all| all.get("grpc-status"))),
            Received::Failed(error) => format!("failed: {:?}", error.kind()),
            Received::Abandoned => "abandoned".to_owned(),
            other => panic!("{other:?}"),
        };
        self.note(format!("{} {what}", observed.exchange));
    }
}

#[tokio::test]
async fn every_exchange_is_seen_over_every_binding() {
    let (_served, url) = served(Server::builder().agent(echo()).interfaces(ProtocolBinding::ALL)).await;
    for binding in ProtocolBinding::ALL {
        let recorder = Arc::new(Recorder::default());
        let client = quick().bindings([binding]).interceptor(recorder.clone()).build().unwrap();
        let agent = client.agent(&url).await.unwrap();
        let card =
            ["0 GET /.well-known/agent-card.json with nothing", "0 200 \"application/json\"", "0 body, JSON: true"];
        assert_eq!(recorder.take(), card, "{binding}");
        soon(agent.send_text("hello")).await.unwrap();
        let sent = recorder.take();
        let expected: &[&str] = match binding {
            ProtocolBinding::JsonRpc => &["1 POST / with a body", "1 200 \"application/json\"", "1 body, JSON: true"],
            ProtocolBinding::HttpJson => {
                &["1 POST /message:send with a body", "1 200 \"application/a2a+json\"", "1 body, JSON: true"]
            }
            _ => &[
                "1 POST /lf.a2a.v1.A2AService/SendMessage with a body",
                "1 200 \"application/grpc\"",
                "1 message, empty: false",
                "1 end Some(\"0\")",
            ],
        };
        assert_eq!(sent, expected, "{binding}");
        let mut stream = soon(agent.stream_text("chunks 2")).await.unwrap();
        while let Some(frame) = soon(stream.next()).await {
            frame.unwrap();
        }
        let streamed = recorder.take();
        let (came, last) = (&streamed[2..streamed.len() - 1], &streamed[streamed.len() - 1]);
        let event = |number: usize| match binding {
            ProtocolBinding::Grpc => "2 message, empty: false".to_owned(),
            _ => format!("2 event Some(\"{number}\") \"\", JSON: true"),
        };
        assert_eq!(came, (1..=4).map(event).collect::<Vec<_>>(), "{binding}");
        // The end of the task is the end of the stream: its reader does not wait for the connection.
        assert!(["2 abandoned", "2 end Some(\"0\")", "2 end None"].contains(&last.as_str()), "{binding}: {last}");
    }
}

const CARD: &str = r#"{"name":"Old","version":"1","protocolVersion":"0.3.0","url":"","preferredTransport":"JSONRPC"}"#;

#[tokio::test]
async fn several_are_called_in_order_and_add_headers_to_each_attempt() {
    let server = Scripted::start(|count, _| match count {
        0 => json(CARD),
        1 => answer(503, "content-type: text/plain", "later"),
        _ => json(r#"{"jsonrpc":"2.0","id":1,"result":{"kind":"task","id":"t","contextId":"c","status":{"state":"working"}}}"#),
    })
    .await;
    let first = Arc::new(Recorder { name: "a", ..Recorder::default() });
    let second = Arc::new(Recorder { name: "b", lines: first.lines.clone() });
    let client = quick().interceptor(first.clone()).interceptor(second).build().unwrap();
    let agent = client.agent(&server.url).await.unwrap();
    first.take();
    soon(agent.task(&TaskId::from("t"))).await.unwrap();
    let expected = [
        "1 POST / with a body",
        "1 503 \"text/plain\"",
        "1 body, JSON: false",
        "2 POST / with a body",
        "2 200 \"application/json\"",
        "2 body, JSON: true",
    ];
    let expected: Vec<String> = expected.iter().flat_map(|line| [format!("a{line}"), format!("b{line}")]).collect();
    assert_eq!(first.take(), expected);
    for asked in server.asked() {
        assert_eq!(asked.head.matches("x-seen: ").count(), 2, "{}", asked.head);
    }
}

#[tokio::test]
async fn they_are_told_of_failures_and_of_calls_that_are_given_up() {
    let server = Scripted::start(|count, _| match count {
        0 => json(CARD),
        1 => Script::Cut(Vec::new()),
        _ => Script::Stall(events("data: 1\n\n")),
    })
    .await;
    let recorder = Arc::new(Recorder::default());
    let agent = quick().interceptor(recorder.clone()).build().unwrap().agent(&server.url).await.unwrap();
    recorder.take();
    let error = soon(agent.send_text("go")).await.unwrap_err();
    assert_eq!(error.kind(), CallErrorKind::OutcomeUnknown);
    assert_eq!(recorder.take()[1..], ["1 failed: Broken"]);
    let stream = soon(agent.stream_text("go")).await.unwrap();
    drop(stream);
    assert_eq!(recorder.take()[1..], ["2 200 \"text/event-stream\"", "2 abandoned"]);
    let hurried = agent.with_deadline(Duration::from_millis(50));
    soon(hurried.task(&TaskId::from("t"))).await.unwrap_err();
    assert!(recorder.take().iter().any(|line| line == "3 abandoned" || line == "3 failed: TimedOut"));
}
