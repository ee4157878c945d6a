//! What a server sends to a collector, and what it does if the collector does not take it.

use std::collections::BTreeSet;
use std::time::Duration;

use switchboard::{Otlp, Server};

use crate::support::collector::{Collector, Span};
use crate::support::edge::{Edge, echo, get, message, post, with};

fn edge_of(otlp: Otlp) -> Edge {
    Edge::new(Server::builder().agent(echo()).otlp(otlp))
}

fn to(collector: &Collector) -> Otlp {
    Otlp::new(&collector.url()).unwrap()
}

async fn stop(edge: &Edge) {
    edge.handle.shutdown(Duration::from_secs(1)).await;
}

fn send(text: &str) -> http::Request<http_body_util::Full<bytes::Bytes>> {
    post("/message:send", message(text).to_string())
}

#[tokio::test]
async fn metrics_over_otlp_are_those_of_the_page() {
    let collector = Collector::start();
    let edge = edge_of(to(&collector).with_headers("authorization=Bearer%20abc").unwrap());
    edge.task("hello").await;
    edge.task("fail it").await;
    let page = edge.get("/metrics").await.text();
    stop(&edge).await;
    let metrics = collector.metrics();
    let with_samples: BTreeSet<&str> = page
        .lines()
        .filter_map(|line| line.split(['{', ' ']).next().filter(|name| !name.starts_with('#')))
        .map(|name| ["_bucket", "_sum", "_count"].iter().find_map(|end| name.strip_suffix(end)).unwrap_or(name))
        .collect();
    let missing: Vec<_> = with_samples.iter().filter(|name| !metrics.contains_key(**name)).collect();
    assert!(missing.is_empty() && with_samples.len() > 40, "{missing:?}");
    for line in page.lines().filter_map(|line| line.strip_prefix("# TYPE ")) {
        let (name, kind) = line.split_once(' ').unwrap();
        if let Some(metric) = metrics.get(name) {
            assert_eq!(metric.kind, kind, "{name}");
        }
    }
    assert_eq!(metrics["switchboard_tasks"].series["state=completed "], 1.0);
    assert_eq!(metrics["switchboard_run_duration_seconds"].series["agent=echo "], 2.0);
    assert!(collector.heads().iter().all(|head| head.contains("authorization: Bearer abc")), "{:?}", collector.heads());
}

#[tokio::test]
async fn a_refusal_is_a_span_that_says_why_and_only_a_failure_of_the_server_is_an_error() {
    let collector = Collector::start();
    let edge = edge_of(to(&collector));
    let trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    edge.ask(with(get("/tasks/none"), "traceparent", trace)).await;
    edge.ask(get("/healthz")).await;
    edge.ask(with(get("/healthz"), "traceparent", trace)).await;
    stop(&edge).await;
    let spans = collector.spans();
    let seen: Vec<_> = spans.iter().map(|span| (span.name.as_str(), span.says("switchboard.reason"))).collect();
    assert_eq!(seen, [("GetTask", "TASK_NOT_FOUND"), ("Probe", "")], "a probe begins no trace");
    assert!(spans.iter().all(|span| span.trace == trace[3..35] && span.parent == trace[36..52]), "{spans:#?}");
    assert_eq!((spans[0].says("http.response.status_code"), &spans[0].error), ("404", &None));
}

#[tokio::test]
async fn what_the_caller_does_not_record_is_passed_on_and_not_sent() {
    let collector = Collector::start();
    let edge = edge_of(to(&collector));
    let trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00";
    edge.ask(with(send("one"), "traceparent", trace)).await;
    stop(&edge).await;
    assert!(collector.spans().is_empty());

    let collector = Collector::start();
    let edge = edge_of(to(&collector).with_sample_ratio(0.0).unwrap());
    edge.ask(send("two")).await;
    let recorded = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    edge.ask(with(send("three"), "traceparent", recorded)).await;
    stop(&edge).await;
    let traces: BTreeSet<String> = collector.spans().into_iter().map(|span| span.trace).collect();
    assert_eq!(traces.len(), 1, "what its caller records is recorded, whatever the ratio: {traces:?}");
}

#[tokio::test]
async fn a_collector_that_is_busy_is_asked_again_and_one_that_refuses_is_not() {
    let collector = Collector::start();
    collector.answer_next("503 Busy\r\nRetry-After: 0");
    let edge = edge_of(to(&collector));
    edge.ask(send("hello")).await;
    let is_request = |span: &Span| span.name == "SendMessage";
    let found = tokio::task::spawn_blocking(move || (collector.span("the second try", is_request), collector));
    let (_, collector) = found.await.unwrap();
    let spans = collector.spans().len();
    collector.answer_next("400 No");
    edge.ask(send("hello again")).await;
    stop(&edge).await;
    assert_eq!(collector.spans().len(), spans, "it is given up");
    let page = edge.get("/metrics").await.text();
    let lost = page.lines().find(|line| line.starts_with("switchboard_otlp_spans_dropped_total{reason=\"not_taken\"}"));
    assert!(lost.is_some_and(|line| !line.ends_with(" 0")), "{lost:?}");
    assert!(page.contains("switchboard_otlp_failures_total{signal=\"traces\"} 1\n"), "{page}");
}

/// Nothing listens at the address. Requests do not notice, and what was lost is counted.
#[tokio::test(start_paused = true)]
async fn a_collector_that_cannot_be_reached_holds_nothing_up() {
    let edge = edge_of(Otlp::new("http://127.0.0.1:1").unwrap());
    for number in 0..20 {
        edge.task(&format!("hello {number}")).await;
    }
    // Longer than all tries together.
    tokio::time::sleep(Duration::from_secs(120)).await;
    let page = edge.get("/metrics").await.text();
    let count = |start: &str| -> u64 {
        let line = page.lines().find(|line| line.starts_with(start)).unwrap_or_else(|| panic!("{start}: {page}"));
        line.rsplit(' ').next().unwrap().parse().unwrap()
    };
    assert_eq!(count("switchboard_otlp_spans_sent_total"), 0);
    assert!(count("switchboard_otlp_spans_dropped_total{reason=\"not_taken\"}") >= 40, "{page}");
    assert!(count("switchboard_otlp_failures_total{signal=\"metrics\"}") >= 1, "{page}");
    stop(&edge).await;
}

/// The trace of a message is stored with it and comes back to whoever works on it; nothing of it is shown.
#[tokio::test(start_paused = true)]
async fn a_trace_is_shown_to_no_caller() {
    let edge = Edge::usual();
    let trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    let sent = edge.ask(with(with(send("hello"), "traceparent", trace), "tracestate", "congo=t61rcWkgMzE")).await;
    let id = sent.json()["task"]["id"].as_str().unwrap().to_owned();
    let read = edge.get(&format!("/tasks/{id}")).await.text();
    for text in [sent.text(), read] {
        assert!(!text.contains("0af7651916cd") && !text.contains("congo"), "{text}");
    }
}
