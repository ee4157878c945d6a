//! For operators: health, readiness, numbers, and the page for people.

use expect_test::expect;
use serde_json::json;

use crate::support::callers::soon;
use crate::support::edge::{Edge, message};

#[tokio::test(start_paused = true)]
async fn a_server_is_healthy_always_and_ready_until_it_goes_down() {
    let edge = Edge::usual().ready().await;
    let id = edge.task("hello").await;
    assert_eq!(edge.get("/healthz").await.picture(), "200 text/plain; charset=utf-8\nok\n\n");
    assert_eq!(edge.get("/readyz").await.picture(), "200 text/plain; charset=utf-8\nready\n\n");
    edge.engine.begin_drain();
    assert_eq!(edge.get("/healthz").await.gist(), "200");
    assert_eq!(edge.get("/readyz").await.picture(), "503 text/plain; charset=utf-8\ndraining: shutting down\n\n");
    assert_eq!(edge.get(&format!("/tasks/{id}")).await.gist(), "200", "what is in flight is still answered");
}

#[tokio::test(start_paused = true)]
async fn a_server_that_takes_up_old_runs_is_not_ready_yet() {
    use switchboard::Server;
    // Nothing was started, so nothing was taken up.
    let server = Server::builder().agent(crate::support::edge::echo()).build().unwrap();
    assert_eq!(server.engine().unwrap().readiness(), switchboard_engine::Readiness::Recovering);
    let local = server.local("echo").unwrap();
    local.send_text("hello").await.unwrap();
    // The first call has started what looks for old runs.
    soon(async {
        while server.engine().unwrap().readiness() != switchboard_engine::Readiness::Ready {
            tokio::task::yield_now().await;
        }
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_store_that_fails_is_a_reason_not_to_be_ready_until_it_works_again() {
    use crate::support::gated_store::GatedStore;
    let store = GatedStore::open(std::sync::Arc::new(switchboard_engine::system::SystemClock));
    let builder = switchboard::Server::builder().agent(crate::support::edge::echo()).store(store.clone());
    let edge = Edge::new(builder).ready().await;
    let earlier = edge.task("before").await;
    store.fail(true);
    let refused = edge.post("/message:send", message("during").to_string()).await;
    assert_eq!((refused.gist().as_str(), refused.header("retry-after")), ("503 UNAVAILABLE", "1"));
    let failing = "503 text/plain; charset=utf-8\nthe store does not take commits: the disk is full\n\n";
    assert_eq!(edge.get("/readyz").await.picture(), failing);
    assert_eq!(edge.metric("switchboard_ready").await, 0);
    assert_eq!(edge.get(&format!("/tasks/{earlier}")).await.gist(), "200", "what is stored can still be read");

    // It is asked at a steady pace, not more often.
    let asked = store.probes();
    tokio::time::sleep(std::time::Duration::from_secs(60)).await;
    assert!((59..=60).contains(&(store.probes() - asked)), "{}", store.probes() - asked);
    assert_eq!(edge.get("/readyz").await.picture(), failing);

    store.fail(false);
    tokio::time::sleep(std::time::Duration::from_secs(2)).await;
    assert_eq!(edge.get("/readyz").await.gist(), "200", "nobody had to send anything");
    let asked = store.probes();
    edge.task("after").await;
    tokio::time::sleep(std::time::Duration::from_secs(60)).await;
    assert_eq!(store.probes(), asked, "a store that works is left alone");
}

#[tokio::test(start_paused = true)]
async fn requests_are_counted_by_operation_and_outcome() {
    let edge = Edge::usual();
    // The server is ready after its first sweep.
    tokio::task::yield_now().await;
    let id = edge.task("hello").await;
    edge.get(&format!("/tasks/{id}")).await;
    edge.get("/tasks/none").await;
    edge.rpc("GetTask", json!({"id": "none"})).await;
    edge.rpc("Nothing", json!({})).await;
    edge.post("/message:stream", message("hello").to_string()).await;
    let metrics = edge.get("/metrics").await;
    assert_eq!(metrics.header("content-type"), "text/plain; version=0.0.4; charset=utf-8");
    let counted: String = metrics
        .text()
        .lines()
        .filter(|line| {
            let is_histogram = line.contains("seconds") || line.contains("_bucket{");
            !line.starts_with('#') && !line.ends_with(" 0") && !is_histogram && !line.contains("bytes")
        })
        .map(|line| format!("{line}\n"))
        .collect();
    expect![[r#"
        switchboard_build_info{version="0.1.0"} 1
        switchboard_ready 1
        switchboard_requests_total{agent="echo",operation="SendMessage",outcome="ok"} 1
        switchboard_requests_total{agent="echo",operation="SendStreamingMessage",outcome="ok"} 1
        switchboard_requests_total{agent="echo",operation="GetTask",outcome="ok"} 1
        switchboard_requests_total{agent="echo",operation="GetTask",outcome="refused"} 2
        switchboard_requests_total{agent="echo",operation="unknown",outcome="refused"} 1
        switchboard_refusals_total{reason="TASK_NOT_FOUND"} 2
        switchboard_refusals_total{reason="METHOD_NOT_FOUND"} 1
        switchboard_streams_opened_total 1
        switchboard_update_encodes_total 3
        switchboard_runs_started_total{agent="echo"} 2
        switchboard_runs_ended_total{agent="echo",reason="completed"} 2
        switchboard_tasks{state="completed"} 2
        switchboard_commits_total 4
        switchboard_commit_batches_total 4
        switchboard_store_rows_written_total 8
        switchboard_commit_batch_size_sum 4
        switchboard_commit_batch_size_count 4
        switchboard_store_processes 1
    "#]]
    .assert_eq(&counted);
}

#[tokio::test(start_paused = true)]
async fn every_family_says_what_it_is() {
    let edge = Edge::usual();
    let metrics = edge.get("/metrics").await.text();
    for line in metrics.lines().filter(|line| !line.starts_with('#')) {
        let name = line.split(['{', ' ']).next().unwrap();
        let family = ["_bucket", "_sum", "_count"].iter().find_map(|end| name.strip_suffix(end)).unwrap_or(name);
        assert!(metrics.contains(&format!("# TYPE {family} ")), "{line}");
        assert!(metrics.contains(&format!("# HELP {family} ")), "{line}");
        assert!(line.rsplit(' ').next().unwrap().parse::<f64>().is_ok(), "{line}");
    }
}

#[tokio::test(start_paused = true)]
async fn open_streams_are_a_gauge() {
    let edge = Edge::usual();
    assert_eq!(edge.metric("switchboard_streams_open").await, 0);
    let stream = edge.open(crate::support::edge::post("/message:stream", message("wait").to_string())).await;
    assert_eq!(edge.metric("switchboard_streams_open").await, 1);
    drop(stream);
    assert_eq!(edge.metric("switchboard_streams_open").await, 0);
    assert_eq!(edge.metric("switchboard_streams_opened_total").await, 1);
    assert_eq!(edge.metric("switchboard_runs_alive").await, 1);
}

#[tokio::test(start_paused = true)]
async fn the_root_tells_people_where_the_cards_are() {
    let edge = Edge::usual();
    expect![[r#"
        200 text/plain; charset=utf-8
        This is Switchboard. Agents here speak A2A 1.0 and 0.3; their cards say how to call them:

          echo: http://127.0.0.1:8080/agents/echo/.well-known/agent-card.json

    "#]]
    .assert_eq(&edge.get("/").await.picture());
}
