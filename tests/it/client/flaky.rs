//! A network that breaks half of all requests: against an agent that recognises repeats, everything is said once and nothing is begun
//! twice; against one that does not, nothing is sent again.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

use futures_util::{StreamExt, stream};
use switchboard::client::RetryPolicy;
use switchboard::{AgentClient, CallErrorKind, ProtocolBinding, Server, TaskState};

use super::{quick, quick_retries};
use crate::support::callers::soon;
use crate::support::edge::echo;
use crate::support::flaky_proxy::{CALL_FAULTS, CONNECTION_FAULTS, Counts, Fault, FlakyProxy};
use crate::support::grpc::Served;
use crate::support::scripted::{Asked, Script, Scripted, events};

const CALLS: usize = 1_000;
const AT_ONCE: usize = 32;

/// Never gives a call up for the number of its attempts. One in two fails, and over HTTP/2 those of one connection fail together: on a busy
/// machine the last of them fails much more often.
fn patient() -> RetryPolicy {
    let mut retry = quick_retries();
    retry.attempts_max = 10_000;
    retry
}

fn seed() -> u64 {
    let seed = std::env::var("SWITCHBOARD_FLAKY_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(4_711);
    println!("seed {seed}");
    seed
}

fn all_were_drawn(counts: &Counts, without: Option<Fault>) {
    let counts = counts.lock().unwrap();
    let drawn = counts.values().filter(|count| **count >= 10).count();
    assert_eq!(drawn, 11 - usize::from(without.is_some()), "{counts:?}");
}

#[tokio::test]
async fn a_thousand_sends_and_streams_finish_with_every_event_once_and_no_task_twice() {
    let proxy = FlakyProxy::bind().await;
    let url = proxy.url.clone();
    let served = Served::start(Server::builder().agent(echo()).public_url(&url)).await;
    let counts = proxy.start(served.address, seed(), true);
    let mut agents = Vec::new();
    for binding in [ProtocolBinding::JsonRpc, ProtocolBinding::HttpJson] {
        for version in ["1.0", "0.3"] {
            let client = quick().retry(patient()).bindings([binding]).versions([version]).build().unwrap();
            agents.push(client.agent(&url).await.unwrap());
        }
    }
    finish(&agents).await;
    all_were_drawn(&counts, None);
}

#[tokio::test]
async fn over_grpc_a_thousand_sends_and_streams_finish_with_every_event_once_and_no_task_twice() {
    let proxy = FlakyProxy::bind().await;
    let url = proxy.url.clone();
    let served = Served::start(Server::builder().agent(echo()).interfaces(ProtocolBinding::ALL).public_url(&url)).await;
    let counts = proxy.start(served.address, seed(), true);
    let mut agents = Vec::new();
    for version in ["1.0", "0.3"] {
        let client = quick().retry(patient()).bindings([ProtocolBinding::Grpc]).versions([version]).build().unwrap();
        agents.push(client.agent(&url).await.unwrap());
    }
    finish(&agents).await;
    let counts = counts.lock().unwrap();
    let is_drawn = |fault: &Fault| counts.get(fault).is_some_and(|count| *count >= 5);
    assert!(CONNECTION_FAULTS.iter().chain(&CALL_FAULTS).all(is_drawn), "{counts:?}");
}

/// A thousand sends and streams, each of which ends well, once.
async fn finish(agents: &[AgentClient]) {
    let call = |number: usize| async move {
        let agent = &agents[number % agents.len()];
        let sends = (number / agents.len()).is_multiple_of(2);
        if sends { send(agent, number).await } else { follow(agent).await }
    };
    let ids: Vec<String> = soon(stream::iter((0..CALLS).map(call)).buffer_unordered(AT_ONCE).collect()).await;
    assert_eq!(ids.iter().collect::<BTreeSet<_>>().len(), CALLS);
    let page = soon(agents[0].tasks(Default::default())).await.unwrap();
    assert_eq!(page.total_size as usize, CALLS, "each message has opened one task");
}

async fn send(agent: &AgentClient, number: usize) -> String {
    let text = format!("hello {number}");
    let task = agent.send_text(&text).await.unwrap().into_task().unwrap();
    assert_eq!((task.state(), task.artifacts[0].text()), (TaskState::Completed, text));
    task.id.as_str().to_owned()
}

async fn follow(agent: &AgentClient) -> String {
    let mut stream = agent.stream_text("chunks 5").await.unwrap();
    let mut seqs = Vec::new();
    while let Some(frame) = stream.next().await {
        seqs.push(frame.unwrap().seq.unwrap());
    }
    assert_eq!(seqs, [1, 2, 3, 4, 5, 6, 7]);
    let task = stream.task().unwrap();
    assert_eq!(task.artifacts[0].text(), "1 2 3 4 5 ");
    task.id.as_str().to_owned()
}

const CARD: &str = r#"{"name":"Old","version":"1","protocolVersion":"0.3.0","url":"","preferredTransport":"JSONRPC","capabilities":{"streaming":true}}"#;

/// How often each message came, by its text.
type Seen = Arc<Mutex<BTreeMap<String, usize>>>;

/// An agent that begins a task for each message that comes.
async fn forgetful() -> (Scripted, Seen) {
    let seen = Seen::default();
    let noted = seen.clone();
    let server = Scripted::start(move |_, asked| {
        if let Some(text) = text_of(asked) {
            *noted.lock().unwrap().entry(text).or_default() += 1;
        }
        let body = |text: &str| format!("HTTP/1.1 200 X\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{text}", text.len());
        let result = |result: &str| format!(r#"{{"jsonrpc":"2.0","id":1,"result":{result}}}"#);
        let task = |state: &str| result(&format!(r#"{{"kind":"task","id":"t","contextId":"c","status":{{"state":"{state}"}}}}"#));
        Script::Cut(match asked.body.as_str() {
            "" => body(CARD).into_bytes(),
            text if text.contains("message/stream") => {
                let status = r#"{"kind":"status-update","taskId":"t","contextId":"c","status":{"state":"completed"},"final":true}"#;
                let streamed = format!("data: {}\n\ndata: {}\n\n", task("working"), result(status));
                let head = format!("content-type: text/event-stream\r\ncontent-length: {}", streamed.len());
                String::from_utf8(events(&streamed)).unwrap().replace("content-type: text/event-stream", &head).into_bytes()
            }
            text if text.contains("tasks/resubscribe") => {
                body(r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32004,"message":"no"}}"#).into_bytes()
            }
            _ => body(&task("completed")).into_bytes(),
        })
    })
    .await;
    (server, seen)
}

fn text_of(asked: &Asked) -> Option<String> {
    let is_send = asked.body.contains("message/send") || asked.body.contains("message/stream");
    let text = asked.body.split(r#""text":""#).nth(1)?.split('"').next()?;
    is_send.then(|| text.to_owned())
}

#[tokio::test]
async fn against_an_agent_that_does_not_recognise_repeats_nothing_is_sent_again() {
    let proxy = FlakyProxy::bind().await;
    let url = proxy.url.clone();
    let (server, seen) = forgetful().await;
    let to = server.url.trim_start_matches("http://").parse().unwrap();
    let counts = proxy.start(to, seed(), false);
    let client = quick().retry(patient()).build().unwrap();
    let agent = Arc::new(client.agent(&url).await.unwrap());
    let call = |number: usize| {
        let agent = agent.clone();
        async move {
            let text = format!("message {number}");
            let outcome = match number % 2 {
                0 => agent.send_text(&text).await.map(|sent| sent.into_task().unwrap().state()),
                _ => last_state(&agent, &text).await,
            };
            match outcome {
                Ok(state) => assert_eq!(state, TaskState::Completed),
                Err(ref error) => assert_eq!(error.kind(), CallErrorKind::OutcomeUnknown, "{error:?}"),
            }
            (text, outcome.is_ok())
        }
    };
    let outcomes: Vec<(String, bool)> =
        soon(stream::iter((0..CALLS).map(call)).buffer_unordered(AT_ONCE).collect()).await;
    let seen = seen.lock().unwrap();
    for (text, is_done) in &outcomes {
        let times = seen.get(text).copied().unwrap_or(0);
        assert!(if *is_done { times == 1 } else { times <= 1 }, "{text} came {times} times, done: {is_done}");
    }
    let done = outcomes.iter().filter(|(_, is_done)| *is_done).count();
    assert!((CALLS / 4..CALLS).contains(&done), "{done}");
    all_were_drawn(&counts, Some(Fault::Twice));
}

async fn last_state(agent: &AgentClient, text: &str) -> Result<TaskState, switchboard::CallError> {
    let mut stream = agent.stream_text(text).await?;
    while let Some(frame) = stream.next().await {
        frame?;
    }
    Ok(stream.task().unwrap().state())
}
