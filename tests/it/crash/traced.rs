//! One trace through a gateway, its upstream, a command and a webhook, with a gateway that is killed in between: what a collector was
//! sent is one tree.

use std::path::Path;

use serde_json::json;

use super::http::{ask, message};
use super::process::{Server, eventually, free_addr};
use super::receiver::Receiver;
use crate::support::collector::{Collector, Span};

const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";
const CALLER: &str = "b7ad6b7169203331";

/// Says in which trace it was started, and ends when it is told to.
const UPSTREAM: &str = r#"
[[agent]]
name = "Work"
command = 'echo "$TRACEPARENT $TRACESTATE" > trace; while [ ! -e go-on ]; do sleep 0.02; done; echo done'
shell = true
"#;

fn serve(folder: &Path, name: &str, collector: &Collector, more: &[&str]) -> Server {
    let url = collector.url();
    let args = [&["--otlp-endpoint", &url, "--otlp-service-name", name], more].concat();
    Server::start_with(&folder.join("data"), free_addr(), &args)
}

#[test]
fn a_trace_goes_on_through_a_relay_a_command_and_webhooks_after_the_gateway_was_killed() {
    let (folder, collector, hooks) = (tempfile::tempdir().unwrap(), Collector::start(), Receiver::start());
    let (theirs, ours) = (folder.path().join("upstream"), folder.path().join("gateway"));
    std::fs::create_dir(&theirs).unwrap();
    std::fs::create_dir(&ours).unwrap();
    std::fs::write(theirs.join("switchboard.toml"), UPSTREAM).unwrap();
    let upstream = serve(&theirs, "upstream", &collector, &[]);
    let relay = format!("[[agent]]\nname = \"Front\"\nurl = \"http://{}\"\n", upstream.addr);
    std::fs::write(ours.join("switchboard.toml"), relay).unwrap();
    let gateway_args = ["--outbound-allow", "127.0.0.0/8"];
    let gateway = serve(&ours, "gateway", &collector, &gateway_args);

    let mut send = message("m-1", "go");
    send["configuration"] =
        json!({"returnImmediately": true, "taskPushNotificationConfig": {"url": hooks.url(), "id": "hook"}});
    let parent = format!("00-{TRACE}-{CALLER}-01");
    let headers = [("traceparent", parent.as_str()), ("tracestate", "congo=t61rcWkgMzE")];
    let sent = ask(gateway.addr, "SendMessage", &send, &headers).unwrap().unwrap();
    let task = sent["task"]["id"].as_str().unwrap().to_owned();

    let of = |service: &'static str, name: &'static str| {
        move |span: &Span| span.service == service && span.name == name && span.trace == TRACE
    };
    let request = collector.span("the request", of("gateway", "SendMessage"));
    assert_eq!((request.parent.as_str(), request.kind, request.state.as_str()), (CALLER, 2, "congo=t61rcWkgMzE"));
    let said = ["operation", "binding", "dialect", "agent"].map(|name| request.says(&format!("switchboard.{name}")));
    assert_eq!(said, ["SendMessage", "jsonrpc", "1.0", "front"]);
    assert_eq!(request.says("http.response.status_code"), "200");

    // The upstream is at work when the gateway dies.
    let sent_on = collector.span("the call to the upstream", of("gateway", "call"));
    let arrived = collector.span("the call at the upstream", of("upstream", "SendStreamingMessage"));
    assert_eq!((&arrived.parent, &arrived.state, sent_on.kind), (&sent_on.id, &request.state, 3));
    let told = eventually("the command runs", || std::fs::read_to_string(theirs.join("trace")).ok());
    gateway.kill();
    let gateway = serve(&ours, "gateway", &collector, &gateway_args);
    let again = collector.span("the stream is gone on with", of("upstream", "SubscribeToTask"));
    std::fs::write(theirs.join("go-on"), "").unwrap();

    // Every post names the trace; the span of each is under the request that opened the task.
    let mut posts = Vec::new();
    loop {
        let call = hooks.next();
        assert_eq!(call.headers["tracestate"], "congo=t61rcWkgMzE");
        posts.push(call.headers["traceparent"].clone());
        let is_last = String::from_utf8_lossy(&call.body).contains("TASK_STATE_COMPLETED");
        call.answer(200);
        if is_last {
            break;
        }
    }
    let run = collector.span("the second attempt", |span| {
        of("gateway", "run")(span) && span.says("switchboard.task.state") == "completed"
    });
    let said = ["agent", "attempt", "run.end", "task.id"].map(|name| run.says(&format!("switchboard.{name}")));
    assert_eq!(said, ["front", "2", "completed", &task]);
    assert_eq!((&run.parent, run.error.as_ref(), &again.parent), (&request.id, None, &run.id));
    assert_ne!(sent_on.parent, run.id, "the first attempt made the call");
    let worked = collector.span("the run of the upstream", of("upstream", "run"));
    assert_eq!(worked.parent, arrived.id);
    assert_eq!(told.trim(), format!("00-{TRACE}-{}-01 congo=t61rcWkgMzE", worked.id));
    for post in posts {
        let id = post.strip_prefix(&format!("00-{TRACE}-")).and_then(|rest| rest.strip_suffix("-01")).unwrap();
        // A post of the gateway that was killed may have no span.
        let span = collector.spans().into_iter().find(|span| span.id == id);
        assert!(span.is_none_or(|span| span.parent == request.id && span.name == "webhook" && span.kind == 4));
    }
    let posted = collector.span("a post", of("gateway", "webhook"));
    assert_eq!((posted.parent.as_str(), posted.says("http.response.status_code")), (request.id.as_str(), "200"));
    let commit = collector.span("a commit", of("upstream", "commit"));
    assert!([&arrived.id, &worked.id].contains(&&commit.parent), "{commit:?}");
    gateway.interrupt();
    upstream.interrupt();
}

/// A server that stops in order sends what is left, metrics included.
#[test]
fn an_orderly_stop_sends_the_last_spans_and_metrics() {
    let (folder, collector) = (tempfile::tempdir().unwrap(), Collector::start());
    let server = serve(folder.path(), "one", &collector, &["--otlp-interval", "3600"]);
    ask(server.addr, "SendMessage", &message("m-1", "hello"), &[]).unwrap().unwrap();
    server.terminate();
    let spans = collector.spans();
    let request = spans.iter().find(|span| span.name == "SendMessage").expect("the request was sent");
    let run = spans.iter().find(|span| span.name == "run").expect("the run was sent");
    assert_eq!((request.parent.as_str(), &run.parent, &run.trace), ("", &request.id, &request.trace));
    assert!(spans.iter().all(|span| span.name != "Probe"), "{spans:#?}");
    let metrics = collector.metrics();
    let (labels, count) =
        metrics["switchboard_requests_total"].series.iter().find(|(labels, _)| labels.contains("Send")).unwrap();
    assert_eq!((labels.as_str(), *count), ("agent=demo operation=SendMessage outcome=ok ", 1.0));
    assert_eq!(metrics["switchboard_run_duration_seconds"].series["agent=demo "], 1.0);
}
