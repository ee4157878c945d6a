//! `/metrics` in Prometheus' text form: what the server counts, and after it what its host writes with the functions here
//! (`Operations::metrics`). Every family is described in `docs/metrics.md`, which a test compares with this.

use std::fmt::Write as _;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use switchboard_engine::Readiness;
use switchboard_engine::histogram::{Histogram, MICROS_BOUNDS};

use super::metrics::{Handshake, Operation, Outcome, REASONS};
use crate::server::edge::request_record::BindingKind;
use crate::server::edge::shared::Shared;

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

pub(crate) fn read(counter: &AtomicU64) -> u64 {
    counter.load(Relaxed)
}

pub(crate) fn family(out: &mut String, name: &str, kind: &str, help: &str) {
    let _ = writeln!(out, "# HELP switchboard_{name} {help}\n# TYPE switchboard_{name} {kind}");
}

pub(crate) fn single(out: &mut String, name: &str, kind: &str, help: &str, value: impl std::fmt::Display) {
    family(out, name, kind, help);
    let _ = writeln!(out, "switchboard_{name} {value}");
}

pub(crate) fn sample(out: &mut String, name: &str, labels: &[(&str, &str)], value: u64) {
    let _ = writeln!(out, "switchboard_{name}{{{}}} {value}", written(labels));
}

/// Series without an observation are left out: most combinations of labels never occur.
pub(crate) fn histogram(out: &mut String, name: &str, labels: &[(&str, &str)], histogram: &Histogram) {
    let counts = histogram.buckets();
    if counts.iter().any(|count| *count > 0) {
        buckets(out, name, &written(labels), &MICROS_BOUNDS, &counts, histogram.seconds_sum());
    }
}

/// `counts` has one more than there are bounds, for what is above all of them.
pub(crate) fn buckets(
    out: &mut String,
    name: &str,
    labels: &str,
    micros_bounds: &[u64],
    counts: &[u64],
    seconds_sum: f64,
) {
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
