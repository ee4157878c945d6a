//! `/metrics` in Prometheus' text form. Every family is described in `docs/metrics.md`, which a test compares with this.

use std::fmt::Write as _;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use switchboard_core::model::TaskState;
use switchboard_engine::histogram::{Histogram, MICROS_BOUNDS};
use switchboard_engine::ports::store::COMMIT_MICROS_BOUNDS;
use switchboard_engine::runs::{RunCounters, RunEnd};
use switchboard_engine::{Engine, QueueAges, Readiness};

use super::metrics::{Handshake, Operation, Outcome, REASONS};
use crate::server::edge::note::BindingKind;
use crate::server::edge::shared::Shared;

/// The agent of runs whose agent is not served. No agent can have this name.
const UNSERVED: &str = "(unserved)";

/// Everything that is counted; webhook endpoints by name only if asked for.
pub(crate) async fn render(shared: &Shared, with_endpoints: bool) -> String {
    let operations = shared.operations.as_deref();
    let of_host = match operations {
        Some(operations) => operations.metrics(with_endpoints).await,
        None => String::new(),
    };
    let metrics = &*shared.metrics;
    let mut out = String::with_capacity(16 * 1024);
    family(&mut out, "build_info", "gauge", "The version of this build, as a label; the value is always 1.");
    sample(&mut out, "build_info", &[("version", env!("CARGO_PKG_VERSION"))], 1);
    let _ = writeln!(
        out,
        "# HELP process_start_time_seconds When this server began, in seconds since 1970.\n\
         # TYPE process_start_time_seconds gauge\nprocess_start_time_seconds {}",
        metrics.started_at.as_ms() as f64 / 1e3
    );
    let is_ready =
        operations.map_or(!shared.supervisor.is_draining(), |operations| operations.readiness() == Readiness::Ready);
    single(&mut out, "ready", "gauge", "Whether this process should be given work.", u64::from(is_ready));
    write_requests(&mut out, shared);
    write_connections(&mut out, shared);
    out + &of_host
}

/// What an engine counts: runs, deliveries, and what its store says.
pub(crate) async fn render_engine(engine: &Engine, with_endpoints: bool) -> String {
    let ages = engine.queue_ages().await;
    let mut out = String::with_capacity(8 * 1024);
    write_runs(&mut out, engine, &ages);
    write_deliveries(&mut out, engine, &ages, with_endpoints);
    write_store(&mut out, engine);
    out
}

fn write_requests(out: &mut String, shared: &Shared) {
    let metrics = &shared.metrics;
    let names = std::iter::once("").chain(shared.own_site.agents.iter().map(|agent| agent.name.as_str()));
    family(out, "requests_total", "counter", "Requests answered, by agent, operation and outcome.");
    for (agent, operations) in names.zip(&metrics.requests) {
        for (operation, outcomes) in Operation::ALL.iter().zip(operations) {
            for (outcome, count) in Outcome::WORDS.iter().zip(outcomes) {
                // Most of the product of the three never happens.
                if let count @ 1.. = read(count) {
                    let labels = [("agent", agent), ("operation", operation.word()), ("outcome", outcome)];
                    sample(out, "requests_total", &labels, count);
                }
            }
        }
    }
    family(out, "refusals_total", "counter", "Requests refused or failed, by the reason that the client was given.");
    for (reason, count) in REASONS.iter().zip(&metrics.refusals) {
        sample(out, "refusals_total", &[("reason", reason)], read(count));
    }
    family(out, "request_duration_seconds", "histogram", "Time from a request's head to the head of its answer.");
    for (operation, bindings) in Operation::ALL.iter().zip(&metrics.request_seconds) {
        for (binding, seconds) in BindingKind::ALL.iter().zip(bindings) {
            let labels = [("operation", operation.word()), ("binding", binding.word())];
            histogram(out, "request_duration_seconds", &labels, seconds);
        }
    }
}

fn write_connections(out: &mut String, shared: &Shared) {
    let (metrics, tls) = (&shared.metrics, shared.tls.as_ref());
    single(out, "connections_total", "counter", "Connections accepted.", read(&metrics.connections));
    let connections = shared.supervisor.connections_alive() as u64;
    single(out, "connections_open", "gauge", "Connections open now.", connections);
    if let Some(tls) = tls {
        family(out, "tls_handshakes_total", "counter", "TLS handshakes by outcome.");
        for (outcome, count) in Handshake::WORDS.iter().zip(&metrics.handshakes) {
            sample(out, "tls_handshakes_total", &[("outcome", outcome)], read(count));
        }
        let [made, failed] = tls.reloads();
        single(out, "tls_reloads_total", "counter", "Times that the certificate was read again and taken.", made);
        single(out, "tls_reload_failures_total", "counter", "Times that the new certificate was not good.", failed);
    }
    let opened = read(&metrics.streams_opened);
    let open = opened.saturating_sub(read(&metrics.streams_closed));
    single(out, "streams_opened_total", "counter", "Streams opened.", opened);
    single(out, "streams_open", "gauge", "Streams open now.", open);
    single(out, "update_encodes_total", "counter", "Updates encoded for streams.", read(&metrics.encodes));
}

fn write_runs(out: &mut String, engine: &Engine, ages: &QueueAges) {
    let agents = engine.agents();
    let named = agents.iter().map(|agent| (agent.name.as_str(), agent.source.runs()));
    let runs: Vec<(&str, &RunCounters)> = named.chain([(UNSERVED, &engine.counters().unserved_runs)]).collect();
    single(out, "runs_alive", "gauge", "Runs at work or waiting to be started.", engine.runs_alive() as u64);
    single(out, "runs_waiting", "gauge", "Runs that wait to be started.", ages.runs_waiting as u64);
    let oldest = ages.oldest_run.as_secs_f64();
    single(out, "run_queue_oldest_seconds", "gauge", "How long the run that waits longest has waited.", oldest);
    type Read = fn(&RunCounters) -> u64;
    let families: [(&str, &str, Read); 4] = [
        ("runs_started_total", "Runs started.", RunCounters::started),
        ("runs_recovered_total", "Runs taken up after an interruption.", RunCounters::recovered),
        ("runs_failed_total", "Runs that left their task failed, timeouts aside.", RunCounters::failed),
        ("runs_timed_out_total", "Runs that took or waited longer than they may.", RunCounters::timed_out),
    ];
    for (name, help, read) in families {
        family(out, name, "counter", help);
        for (agent, counters) in &runs {
            sample(out, name, &[("agent", agent)], read(counters));
        }
    }
    family(out, "runs_ended_total", "counter", "Runs ended, by the way they ended.");
    for (agent, counters) in &runs {
        for how in RunEnd::ALL {
            sample(out, "runs_ended_total", &[("agent", agent), ("reason", how.word())], counters.ended(how));
        }
    }
    family(out, "run_duration_seconds", "histogram", "How long runs were at work.");
    for (agent, counters) in &runs {
        histogram(out, "run_duration_seconds", &[("agent", agent)], counters.seconds());
    }
}

fn write_deliveries(out: &mut String, engine: &Engine, ages: &QueueAges, with_endpoints: bool) {
    let counters = engine.counters();
    for (name, help, counter) in [
        ("deliveries_made_total", "Updates delivered to webhooks.", &counters.deliveries_made),
        ("deliveries_failed_total", "Webhook attempts that failed.", &counters.deliveries_failed),
        ("deliveries_parked_total", "Webhooks given up on.", &counters.deliveries_parked),
        ("deliveries_held_total", "Put back because an endpoint was down or busy.", &counters.deliveries_held),
        ("deliveries_skipped_total", "Updates not sent to receivers far behind.", &counters.deliveries_skipped),
        ("deliveries_redriven_total", "Deliveries an operator made due.", &counters.deliveries_redriven),
        ("deliveries_purged_total", "Dead letters an operator dropped.", &counters.deliveries_purged),
    ] {
        single(out, name, "counter", help, read(counter));
    }
    let (under_way, down) = engine.outbox().gauges();
    single(out, "deliveries_under_way", "gauge", "Deliveries under way now.", under_way as u64);
    single(out, "delivery_endpoints_down", "gauge", "Endpoints whose deliveries wait for a probe.", down as u64);
    // Left out if the store did not say.
    family(out, "delivery_queue_oldest_seconds", "gauge", "How long the delivery that is most overdue has been due.");
    if let Some(oldest) = ages.oldest_delivery {
        let _ = writeln!(out, "switchboard_delivery_queue_oldest_seconds {}", oldest.as_secs_f64());
    }
    if with_endpoints {
        family(out, "delivery_endpoint_up", "gauge", "Whether an endpoint that was called lately takes deliveries.");
        for health in engine.outbox().endpoints() {
            sample(out, "delivery_endpoint_up", &[("endpoint", health.endpoint.as_str())], u64::from(!health.open));
        }
    }
}

fn write_store(out: &mut String, engine: &Engine) {
    let stats = engine.store_stats();
    family(out, "tasks", "gauge", "Tasks that are kept, by state.");
    // Left out while a large file is being counted, right after the start.
    for (state, count) in TaskState::ALL.iter().zip(stats.tasks.iter().flatten().copied()) {
        sample(out, "tasks", &[("state", state.word())], count);
    }
    single(out, "commits_total", "counter", "Commits made durable.", stats.commits);
    single(out, "commit_conflicts_total", "counter", "Commits that came second.", stats.conflicts);
    single(out, "commit_failures_total", "counter", "Commits the store did not take.", stats.failures);
    let help = "Transactions; commits that waited together share one.";
    single(out, "commit_batches_total", "counter", help, stats.batches);
    single(out, "store_rows_written_total", "counter", "Rows written.", stats.rows_written);
    single(out, "store_bytes_written_total", "counter", "Bytes of content written.", stats.bytes_written);
    single(out, "store_queue_depth", "gauge", "Commits waiting for the writer.", stats.queue_depth);
    family(out, "commit_seconds", "histogram", "Time from asking for a commit to its answer.");
    let seconds = stats.commit_micros_sum as f64 / 1e6;
    buckets(out, "commit_seconds", "", &COMMIT_MICROS_BOUNDS, &stats.commit_seconds, seconds);
}

fn read(counter: &AtomicU64) -> u64 {
    counter.load(Relaxed)
}

fn family(out: &mut String, name: &str, kind: &str, help: &str) {
    let _ = writeln!(out, "# HELP switchboard_{name} {help}\n# TYPE switchboard_{name} {kind}");
}

fn single(out: &mut String, name: &str, kind: &str, help: &str, value: impl std::fmt::Display) {
    family(out, name, kind, help);
    let _ = writeln!(out, "switchboard_{name} {value}");
}

fn sample(out: &mut String, name: &str, labels: &[(&str, &str)], value: u64) {
    let _ = writeln!(out, "switchboard_{name}{{{}}} {value}", written(labels));
}

/// Series without an observation are left out: most combinations of labels never occur.
fn histogram(out: &mut String, name: &str, labels: &[(&str, &str)], histogram: &Histogram) {
    let counts = histogram.buckets();
    if counts.iter().any(|count| *count > 0) {
        buckets(out, name, &written(labels), &MICROS_BOUNDS, &counts, histogram.seconds_sum());
    }
}

/// `counts` has one more than there are bounds, for what is above all of them.
fn buckets(out: &mut String, name: &str, labels: &str, micros_bounds: &[u64], counts: &[u64], seconds_sum: f64) {
    let comma = if labels.is_empty() { "" } else { "," };
    let braces = if labels.is_empty() { String::new() } else { format!("{{{labels}}}") };
    let mut sum = 0;
    for (bound, count) in micros_bounds.iter().zip(counts) {
        sum += count;
        let seconds = *bound as f64 / 1e6;
        let _ = writeln!(out, "switchboard_{name}_bucket{{{labels}{comma}le=\"{seconds}\"}} {sum}");
    }
    sum += counts.last().copied().unwrap_or_default();
    let _ = writeln!(out, "switchboard_{name}_bucket{{{labels}{comma}le=\"+Inf\"}} {sum}");
    let _ = writeln!(out, "switchboard_{name}_sum{braces} {seconds_sum}");
    let _ = writeln!(out, "switchboard_{name}_count{braces} {sum}");
}

/// Labels as they stand between braces, their values escaped as the format asks.
fn written(labels: &[(&str, &str)]) -> String {
    let mut out = String::new();
    for (name, value) in labels {
        let comma = if out.is_empty() { "" } else { "," };
        let value = value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
        let _ = write!(out, "{comma}{name}=\"{value}\"");
    }
    out
}
