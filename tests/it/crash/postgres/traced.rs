//! A trace goes on when another server takes a run over.

use serde_json::json;

use super::super::http::{ask, message};
use super::super::process::{Server, eventually, free_addr};
use super::Cluster;
use crate::support::collector::Collector;

const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";

#[test]
#[ignore = "starts PostgreSQL"]
fn a_run_that_another_server_takes_over_stays_in_its_trace() {
    let (cluster, collector) = (Cluster::new(), Collector::start());
    let agent = "\n[[agent]]\nname = \"Slow\"\nshell = true\n\
        command = 'echo \"$A2A_ATTEMPT\" >> attempts; if [ \"$A2A_ATTEMPT\" = 1 ]; then sleep 600; fi; echo \"$TRACEPARENT\"'\n";
    cluster.configure(&format!("lease_s = 1\n{agent}"));
    let [first, second] = ["first", "second"].map(|name| {
        let addr = free_addr();
        let arguments = ["serve", "--listen", &addr.to_string(), "--replica", name, "--grace", "0"];
        let otlp = ["--otlp-endpoint", &collector.url(), "--otlp-service-name", name];
        Server::start_by(cluster.command(&[&arguments[..], &otlp[..]].concat()), addr)
    });
    let mut send = message("m-1", "go");
    send["configuration"] = json!({"returnImmediately": true});
    let parent = format!("00-{TRACE}-b7ad6b7169203331-01");
    let sent = ask(first.addr, "SendMessage", &send, &[("traceparent", &parent)]).unwrap().unwrap();
    let id = sent["task"]["id"].as_str().unwrap().to_owned();
    let request = collector.span("the request", |span| span.service == "first" && span.name == "SendMessage");
    let attempts = || std::fs::read_to_string(cluster.folder.path().join("attempts")).unwrap_or_default();
    eventually("the command runs", || (attempts() == "1\n").then_some(()));
    first.kill();
    let run = collector.span("the second attempt", |span| {
        span.service == "second" && span.name == "run" && span.says("switchboard.attempt") == "2"
    });
    assert_eq!((run.trace.as_str(), &run.parent, run.says("switchboard.task.id")), (TRACE, &request.id, id.as_str()));
    let task = super::get(&second, &id);
    let said = format!("00-{TRACE}-{}-01\n", run.id);
    assert_eq!(task["artifacts"][0]["parts"][0]["text"], said, "{task}");
    // Lease steals are counted where they are made.
    second.terminate();
    assert_eq!(collector.metrics()["switchboard_lease_steals_total"].series[""], 1.0);
}
