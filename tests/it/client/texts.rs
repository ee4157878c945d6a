//! Text in, text out: `call_text` as agent-native's client does it, `invoke` as corvid's does, and both against our own server.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use switchboard::client::{CallTextOptions, Client, Credentials, Invocation, InvokeOptions, SignedTokens};
use switchboard::{CallErrorKind, Server, TaskState};
use tokio::time::Instant;

use super::{quick, served};
use crate::support::callers::soon;
use crate::support::edge::echo;
use crate::support::scripted::{Asked, Script, Scripted, answer, json};

/// A server and the seconds, since its start, at which it was asked each thing.
struct Timed {
    server: Scripted,
    times: Arc<Mutex<Vec<(u64, String)>>>,
}

impl Timed {
    async fn start(script: impl Fn(usize, &Asked) -> Script + Send + Sync + 'static) -> Self {
        let times = Arc::new(Mutex::new(Vec::new()));
        let (noted, begun) = (times.clone(), Instant::now());
        let server = Scripted::start(move |count, asked| {
            noted.lock().unwrap().push((begun.elapsed().as_secs(), what(asked)));
            script(count, asked)
        })
        .await;
        Self { server, times }
    }

    fn times(&self) -> Vec<(u64, String)> {
        self.times.lock().unwrap().clone()
    }
}

/// What was asked: the method of JSON-RPC, else method and path.
fn what(asked: &Asked) -> String {
    let method = asked.body.split(r#""method":""#).nth(1).and_then(|rest| rest.split('"').next());
    let is_rpc = asked.body.contains(r#""jsonrpc""#);
    method.filter(|_| is_rpc).map_or_else(|| asked.line.clone(), |method| format!("{method} {}", asked.line))
}

fn times(all: &[(u64, &str)]) -> Vec<(u64, String)> {
    all.iter().map(|(time, what)| (*time, (*what).to_owned())).collect()
}

/// A task of agent-native.
fn native(state: &str, text: &str) -> Script {
    let message = format!(r#","message":{{"role":"agent","parts":[{{"type":"text","text":"{text}"}}]}}"#);
    let message = if text.is_empty() { "" } else { &message };
    let status = format!(r#"{{"state":"{state}","timestamp":"2026-01-01T00:00:00.000Z"{message}}}"#);
    json(&format!(
        r#"{{"jsonrpc":"2.0","id":0,"result":{{"id":"t","status":{status},"history":[],"artifacts":[],"metadata":{{}}}}}}"#
    ))
}

/// An agent of agent-native that has its endpoint at the older path and no card, and answers calls by this script.
async fn native_agent(script: impl Fn(usize) -> Script + Send + Sync + 'static) -> Timed {
    Timed::start(move |count, asked| match asked.line.as_str() {
        "POST /a2a" => script(count - 3),
        _ => answer(404, "", ""),
    })
    .await
}

#[tokio::test(start_paused = true)]
async fn an_agent_of_agent_native_is_asked_asynchronously_and_looked_at_every_two_seconds() {
    let agent = native_agent(|count| match count {
        0 => native("working", ""),
        1 => native("processing", ""),
        2 => answer(502, "", ""),
        _ => native("completed", "done"),
    })
    .await;
    let client = quick().build().unwrap();
    assert_eq!(client.call_text(&agent.server.url, "hello").await.unwrap(), "done");
    let expected = [
        (0, "GET /.well-known/agent-card.json"),
        (0, "GET /.well-known/agent.json"),
        (0, "message/send POST /_agent-native/a2a"),
        (0, "message/send POST /a2a"),
        (2, "tasks/get POST /a2a"),
        (4, "tasks/get POST /a2a"),
        (4, "tasks/get POST /a2a"),
    ];
    assert_eq!(agent.times(), times(&expected));
    let sent = &agent.server.asked()[3].body;
    assert!(sent.contains(r#""async":true"#) && sent.contains(r#"{"type":"text","text":"hello"}"#), "{sent}");
}

#[tokio::test(start_paused = true)]
async fn an_agent_of_agent_native_that_knows_the_caller_is_sent_a_lost_message_again_under_the_same_key() {
    let lost_once = |count| match count {
        0 => Script::Cut(Vec::new()),
        _ => native("completed", "done"),
    };
    let agent = native_agent(lost_once).await;
    let signed = Credentials::signed(SignedTokens::new("ann@example.com").with_secret("s3cret-s3cret-s3cret"));
    let client = quick().credentials(signed).build().unwrap();
    assert_eq!(client.call_text(&agent.server.url, "hello").await.unwrap(), "done");
    let asked = agent.server.asked();
    let key = |body: &str| body.split(r#""idempotencyKey":""#).nth(1).unwrap().split('"').next().unwrap().to_owned();
    let sent: Vec<String> = asked.iter().filter(|one| one.line == "POST /a2a").map(|one| key(&one.body)).collect();
    assert_eq!((sent.len(), &sent[0]), (2, &sent[1]));
    // It does not look at the key of a caller whom it does not know.
    let agent = native_agent(lost_once).await;
    let error = quick().build().unwrap().call_text(&agent.server.url, "hello").await.unwrap_err();
    assert_eq!(error.kind(), CallErrorKind::OutcomeUnknown, "{error}");
}

#[tokio::test(start_paused = true)]
async fn on_demand_there_is_exactly_one_request() {
    for (state, text, expected) in [
        ("completed", "done", Ok("done".to_owned())),
        ("working", "", Err("the agent answered before it was done (task t)".to_owned())),
        ("failed", "no flour", Err("the task failed: no flour (task t)".to_owned())),
        ("input-required", "which?", Err("the agent asks back: which? (task t)".to_owned())),
    ] {
        let agent = native_agent(move |_| native(state, text)).await;
        let options = CallTextOptions::default().one_request(true);
        let said = quick().build().unwrap().call_text_with(&agent.server.url, "hello", &options).await;
        assert_eq!(said.map_err(|error| error.to_string()), expected);
        assert_eq!(agent.times().len(), 4);
        assert!(!agent.server.asked()[3].body.contains(r#""async":true"#));
    }
    let agent = native_agent(|_| Script::Cut(Vec::new())).await;
    let options = CallTextOptions::default().one_request(true);
    let error = quick().build().unwrap().call_text_with(&agent.server.url, "hello", &options).await.unwrap_err();
    assert_eq!((error.kind(), agent.times().len()), (CallErrorKind::OutcomeUnknown, 4), "{error}");
}

#[tokio::test(start_paused = true)]
async fn the_wait_for_a_text_ends_after_five_minutes_with_the_id_of_the_task() {
    let agent = native_agent(|_| native("working", "")).await;
    let error = quick().build().unwrap().call_text(&agent.server.url, "hello").await.unwrap_err();
    assert_eq!((error.kind(), error.task_id().unwrap().as_str()), (CallErrorKind::TimedOut, "t"), "{error}");
    let last = agent.times().last().unwrap().0;
    assert!((296..300).contains(&last), "{last}");
}

#[tokio::test]
async fn our_own_agents_are_asked_for_texts_too() {
    let (_served, url) = served(Server::builder().agent(echo())).await;
    let client = quick().build().unwrap();
    assert_eq!(soon(client.call_text(&url, "hello")).await.unwrap(), "hello");
    assert_eq!(soon(client.call_text(&format!("{url}/dialects/agent-native"), "hello")).await.unwrap(), "hello");
    let asked = soon(client.call_text(&url, "ask which?")).await.unwrap_err();
    assert_eq!(asked.kind(), CallErrorKind::NotCompleted);
    assert!(asked.to_string().starts_with("the agent asks back: which?") && asked.task_id().is_some(), "{asked}");
    let failed = soon(client.call_text(&url, "fail no flour")).await.unwrap_err();
    assert!(failed.to_string().starts_with("the task failed: no flour"), "{failed}");
    let result = soon(client.agent(&url).await.unwrap().send_text("fail no flour")).await.unwrap().result();
    assert_eq!((result.state, result.error.as_deref()), (TaskState::Failed, Some("no flour")));
    assert!(result.json.contains(r#""state":"TASK_STATE_FAILED""#), "{}", result.json);
}

#[tokio::test]
async fn the_stricter_rule_holds_for_what_was_named_as_well() {
    let server = Scripted::start(|_, _| answer(404, "", "")).await;
    let client = Client::builder().build().unwrap();
    let options = CallTextOptions::default().strict_addresses(true);
    let error = soon(client.call_text_with(&server.url, "hello", &options)).await.unwrap_err();
    assert_eq!(error.kind(), CallErrorKind::NotAllowed, "{error}");
    let options = InvokeOptions::default().strict_addresses(true);
    let result = soon(client.invoke(&server.url, "hello", &options)).await;
    assert!(!result.success && result.error.as_deref().is_some_and(|error| error.starts_with("Submit failed: ")));
    assert!(server.asked().is_empty());
    // What the policy allows is allowed here, too.
    let policy = switchboard::outbound::AddressPolicy::parse(["127.0.0.1"]).unwrap();
    let (_served, url) = served(Server::builder().agent(echo())).await;
    let client = Client::builder().policy(policy).build().unwrap().strict_addresses();
    assert_eq!(soon(client.call_text(&url, "hello")).await.unwrap(), "hello");
}

/// A task of corvid.
fn corvid(state: &str, said: &[&str]) -> Script {
    let said: String =
        said.iter().map(|text| format!(r#",{{"role":"agent","parts":[{{"type":"text","text":"{text}"}}]}}"#)).collect();
    let messages = format!(r#"[{{"role":"user","parts":[{{"type":"text","text":"hello"}}]}}{said}]"#);
    let time = "2026-01-01T00:00:00.000Z";
    json(&format!(
        r#"{{"id":"t","state":"{state}","messages":{messages},"sessionId":"s","createdAt":"{time}","updatedAt":"{time}"}}"#
    ))
}

/// An agent of corvid without a card, which answers calls by this script.
async fn corvid_agent(script: impl Fn(usize) -> Script + Send + Sync + 'static) -> Timed {
    Timed::start(move |count, asked| match asked.line.contains("/a2a/") {
        true => script(count - 2),
        false => answer(404, "", ""),
    })
    .await
}

async fn invoked(agent: &Timed, options: &InvokeOptions) -> Invocation {
    quick().build().unwrap().invoke(&agent.server.url, "hello", options).await
}

fn told(result: &Invocation) -> (bool, Option<&str>, Option<&str>, Option<&str>) {
    let Invocation { success, task_id, response_text, error, .. } = result;
    (*success, task_id.as_ref().map(|id| id.as_str()), response_text.as_deref(), error.as_deref())
}

#[tokio::test(start_paused = true)]
async fn an_invocation_is_submitted_and_looked_at_every_three_seconds() {
    let agent = corvid_agent(|count| match count {
        0 | 1 => corvid("working", &[]),
        2 => answer(502, "", ""),
        3 => corvid("working", &["one"]),
        _ => corvid("completed", &["one", "two"]),
    })
    .await;
    let result = invoked(&agent, &InvokeOptions::default().skill("sum").timeout(Duration::from_secs(60))).await;
    assert_eq!(told(&result), (true, Some("t"), Some("two"), None));
    let expected = [
        (0, "GET /.well-known/agent-card.json"),
        (0, "GET /.well-known/agent.json"),
        (0, "POST /a2a/tasks/send"),
        (0, "GET /a2a/tasks/t"),
        (3, "GET /a2a/tasks/t"),
        (6, "GET /a2a/tasks/t"),
        (9, "GET /a2a/tasks/t"),
    ];
    assert_eq!(agent.times(), times(&expected));
    let sent = &agent.server.asked()[2].body;
    assert_eq!(sent, r#"{"params":{"message":"hello","skill":"sum","timeoutMs":60000}}"#);
}

#[tokio::test(start_paused = true)]
async fn an_invocation_never_fails_but_says_why_in_corvids_words() {
    let options = InvokeOptions::default().timeout(Duration::from_secs(10));
    let agent = corvid_agent(|_| answer(500, "content-type: application/json", r#"{"error":"no memory"}"#)).await;
    let result = invoked(&agent, &options).await;
    assert_eq!(told(&result), (false, None, None, Some("Submit failed: HTTP 500 \u{2014} no memory")));

    for (said, expected) in [(&["no flour"][..], "no flour"), (&[], "Task failed")] {
        let agent = corvid_agent(move |_| corvid("failed", said)).await;
        let result = invoked(&agent, &options).await;
        assert_eq!(told(&result), (false, Some("t"), said.first().copied(), Some(expected)));
    }

    let agent = corvid_agent(|_| corvid("working", &[])).await;
    let begun = Instant::now();
    let result = invoked(&agent, &options).await;
    assert_eq!(told(&result), (false, Some("t"), None, Some("Timed out after 10000ms")));
    assert_eq!(begun.elapsed().as_secs(), 10);

    let result = quick().build().unwrap().invoke("not a url", "hello", &options).await;
    assert!(result.error.unwrap().starts_with("Submit failed: an agent is named by a URL"));
}

#[tokio::test]
async fn our_own_agents_are_invoked_in_every_dialect() {
    let (_served, url) = served(Server::builder().agent(echo())).await;
    let client = quick().build().unwrap();
    for path in ["", "/dialects/corvid", "/dialects/agent-native"] {
        let result = soon(client.invoke(&format!("{url}{path}"), "hello", &InvokeOptions::default())).await;
        assert_eq!((result.success, result.response_text.as_deref()), (true, Some("hello")), "{path} {result:?}");
    }
}
