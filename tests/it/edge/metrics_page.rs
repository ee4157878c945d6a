//! `docs/metrics.md` and the dashboard use the names that a server says, and the page knows all of them.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;
use switchboard::client::Client;
use switchboard::{Otlp, Server};
use switchboard_engine::runs::RunEnd;
use switchboard_hub::relay::{Relay, RelayOptions, write_metrics};

use crate::support::edge::{Edge, echo, message, post};

const PAGE: &str = include_str!("../../../docs/metrics.md");
const DASHBOARD: &str = include_str!("../../../docs/grafana/switchboard.json");

/// Names of families with their types, as a server with some traffic and a relay says.
async fn served() -> (String, BTreeMap<String, String>) {
    // Nothing listens there; what is counted about a collector is there all the same.
    let otlp = Otlp::new("http://127.0.0.1:1").unwrap();
    let edge = Edge::new(Server::builder().agent(echo()).otlp(otlp));
    edge.task("hello").await;
    edge.task("fail it").await;
    edge.rpc("GetTask", serde_json::json!({"id": "none"})).await;
    drop(edge.open(post("/message:stream", message("wait").to_string())).await);
    let mut text = edge.get("/metrics").await.text();
    let relay = Relay::new("http://127.0.0.1:1", Client::builder(), RelayOptions::default()).unwrap();
    write_metrics(&mut text, &[("weather".to_owned(), relay.handle())]);
    let types = text.lines().filter_map(|line| line.strip_prefix("# TYPE ")?.split_once(' '));
    let types = types.map(|(name, kind)| (name.to_owned(), kind.to_owned())).collect();
    (text, types)
}

/// Names with their types, as the page has them.
fn documented() -> BTreeMap<String, String> {
    let rows = PAGE.lines().filter_map(|line| {
        let mut cells = line.strip_prefix("| `")?.split('|').map(str::trim);
        let name = cells.next()?.trim_end_matches('`');
        let kind = cells.next()?;
        let is_family = name.starts_with("switchboard_") || name.starts_with("process_");
        is_family.then(|| (name.to_owned(), kind.to_owned()))
    });
    rows.collect()
}

/// Only a port with TLS has these, and only operators see the last.
fn is_special(name: &str) -> bool {
    name.starts_with("switchboard_tls_") || name == "switchboard_delivery_endpoint_up"
}

#[tokio::test(start_paused = true)]
async fn the_page_has_every_family_and_no_other() {
    let (_, mut served) = served().await;
    let mut documented = documented();
    documented.retain(|name, _| !is_special(name));
    served.retain(|name, _| !is_special(name));
    assert_eq!(documented, served);
}

#[tokio::test(start_paused = true)]
async fn what_is_counted_about_a_relay_has_the_name_of_its_agent() {
    let (text, _) = served().await;
    let relays: Vec<_> = text.lines().filter(|line| line.starts_with("switchboard_relay_")).collect();
    assert!(relays.len() > 10 && relays.iter().all(|line| line.contains("{agent=\"weather\"} ")), "{relays:?}");
}

#[test]
fn the_page_has_every_way_a_run_can_end() {
    let section = PAGE.split("| `reason` | the run |").nth(1).unwrap().split("\n\n").next().unwrap();
    let rows = section.lines().filter_map(|line| line.strip_prefix("| `")?.split('`').next());
    assert_eq!(rows.collect::<Vec<_>>(), RunEnd::ALL.map(RunEnd::word));
}

#[tokio::test(start_paused = true)]
async fn the_dashboard_asks_for_what_is_served() {
    let (text, served) = served().await;
    let dashboard: Value = serde_json::from_str(DASHBOARD).unwrap();
    let mut expressions = BTreeSet::new();
    collect(&dashboard, &mut expressions);
    assert!(expressions.len() > 30, "{expressions:?}");
    let mut asked = BTreeSet::new();
    for expression in &expressions {
        for word in expression.split(|letter: char| !(letter.is_ascii_alphanumeric() || letter == '_')) {
            if word.starts_with("switchboard_") || word.starts_with("process_") {
                let is_sample =
                    text.lines().any(|line| line.strip_prefix(word).is_some_and(|rest| rest.starts_with(['{', ' '])));
                assert!(is_sample, "{word} in {expression}");
                asked.insert(
                    ["_bucket", "_sum", "_count"].iter().find_map(|end| word.strip_suffix(end)).unwrap_or(word),
                );
            }
        }
    }
    assert!(asked.len() > 20 && asked.iter().all(|name| served.contains_key(*name)), "{asked:?}");
    let missing: Vec<_> =
        served.keys().filter(|name| name.starts_with("switchboard_relay_") && !asked.contains(name.as_str())).collect();
    assert!(missing.is_empty(), "the dashboard does not show {missing:?}");
}

/// Every query of panels and variables.
fn collect(value: &Value, into: &mut BTreeSet<String>) {
    match value {
        Value::Object(members) => {
            for (name, member) in members {
                match member {
                    Value::String(text) if matches!(name.as_str(), "expr" | "query" | "definition") => {
                        into.insert(text.clone());
                    }
                    member => collect(member, into),
                }
            }
        }
        Value::Array(items) => items.iter().for_each(|item| collect(item, into)),
        _ => {}
    }
}

#[tokio::test(start_paused = true)]
async fn a_histogram_adds_up() {
    let (text, _) = served().await;
    let of = |start: &str| -> Vec<u64> {
        let lines = text.lines().filter(|line| line.starts_with(start));
        lines.map(|line| line.rsplit(' ').next().unwrap().parse().unwrap()).collect()
    };
    let labels = "operation=\"SendMessage\",binding=\"http_json\"";
    let buckets = of(&format!("switchboard_request_duration_seconds_bucket{{{labels}"));
    assert!(buckets.is_sorted() && buckets.last() == Some(&2), "{buckets:?}");
    assert_eq!(of(&format!("switchboard_request_duration_seconds_count{{{labels}")), [2]);
    assert!(text.contains(&format!("switchboard_request_duration_seconds_bucket{{{labels},le=\"+Inf\"}} 2\n")));
    assert_eq!(of("switchboard_run_duration_seconds_count{agent=\"echo\"}"), [2]);
    assert_eq!(of("switchboard_tasks{state=\"completed\"}"), [1]);
    assert_eq!(of("switchboard_tasks{state=\"failed\"}"), [1]);
}
