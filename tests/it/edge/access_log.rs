//! The access log: one line per request, when its answer has gone out.

use std::sync::{Arc, Mutex};

use switchboard::{AccessLog, Server, Tokens};

use crate::support::edge::{Edge, echo, get, message, post, with};

/// A server whose lines are kept.
fn logged() -> (Edge, Arc<Mutex<Vec<String>>>) {
    let lines: Arc<Mutex<Vec<String>>> = Arc::default();
    let into = lines.clone();
    let log = AccessLog::new(move |line| into.lock().unwrap().push(line.to_owned()));
    let tokens = Tokens::parse("a-long-token-of-alice alice").unwrap();
    (Edge::new(Server::builder().agent(echo()).tokens(tokens).access_log(log)), lines)
}

/// A line without the time it was written and how long the request took.
fn picture(line: &str) -> String {
    let words: Vec<&str> = line.strip_suffix('\n').expect("a line ends").split(' ').collect();
    let [time, peer, principal, method, path, status, bytes, seconds, operation, agent, id] = words[..] else {
        panic!("not eleven words: {line}")
    };
    assert!(time.ends_with('Z') && time.len() == 24, "{line}");
    assert!(seconds.parse::<f64>().is_ok(), "{line}");
    format!("{peer} {principal} {method} {path} {status} {bytes} {operation} {agent} {id}")
}

fn as_alice<B>(request: http::Request<B>) -> http::Request<B> {
    let request = with(request, "authorization", "Bearer a-long-token-of-alice");
    with(request, "x-request-id", "r-1")
}

#[tokio::test(start_paused = true)]
async fn a_request_has_one_line_that_holds_nothing_of_what_was_said() {
    let (edge, lines) = logged();
    let answer = edge.ask(as_alice(post("/message:send", message("hunter2").to_string()))).await;
    edge.ask(as_alice(get("/tasks/none?historyLength=1&secret=hunter2"))).await;
    edge.ask(with(get("/tasks/none"), "x-request-id", "r-2")).await;
    let lines = lines.lock().unwrap();
    let sent = format!("- alice POST /message:send 200 {} SendMessage echo r-1", answer.body.len());
    assert_eq!(picture(&lines[0]), sent);
    assert!(picture(&lines[1]).starts_with("- alice GET /tasks/none 404 "), "{}", lines[1]);
    assert!(picture(&lines[2]).starts_with("- - GET /tasks/none 401 "), "{}", lines[2]);
    assert_eq!(lines.len(), 3);
    assert!(lines.iter().all(|line| !line.contains("hunter2")), "{lines:?}");
}

#[tokio::test(start_paused = true)]
async fn the_line_of_a_stream_comes_when_the_stream_ends() {
    let (edge, lines) = logged();
    let stream = edge.open(as_alice(post("/message:stream", message("wait").to_string()))).await;
    assert_eq!(lines.lock().unwrap().len(), 0);
    drop(stream);
    let lines = lines.lock().unwrap();
    assert_eq!(lines.len(), 1);
    assert!(picture(&lines[0]).contains(" POST /message:stream 200 "), "{}", lines[0]);
    assert!(lines[0].contains(" SendStreamingMessage echo "), "{}", lines[0]);
}

#[tokio::test(start_paused = true)]
async fn a_client_that_does_not_wait_is_written_down_as_gone() {
    let (edge, lines) = logged();
    let asked = edge.open(as_alice(post("/message:send", message("wait").to_string())));
    assert!(tokio::time::timeout(std::time::Duration::from_secs(1), asked).await.is_err());
    let lines = lines.lock().unwrap();
    assert_eq!(lines.len(), 1);
    assert_eq!(picture(&lines[0]), "- alice POST /message:send 499 0 SendMessage echo r-1");
}
