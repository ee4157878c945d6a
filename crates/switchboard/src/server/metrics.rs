//! What `/metrics` counts at the edge. The engine and the store count their own.

use std::fmt::Write as _;
use std::sync::atomic::{AtomicU64, Ordering};

use switchboard_engine::ports::store::COMMIT_MICROS_BOUNDS;
use switchboard_engine::{Engine, Readiness};

use super::tls::Tls;

/// Operations by name, in the order of the counters; the last is whatever could not be told.
const OPERATIONS: [&str; 13] = [
    "SendMessage",
    "SendStreamingMessage",
    "GetTask",
    "ListTasks",
    "CancelTask",
    "SubscribeToTask",
    "CreateTaskPushNotificationConfig",
    "GetTaskPushNotificationConfig",
    "ListTaskPushNotificationConfigs",
    "DeleteTaskPushNotificationConfig",
    "GetExtendedAgentCard",
    "DownloadArtifact",
    "unknown",
];

/// How a request ended.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Outcome {
    Ok,
    /// The client's mistake, or a refusal it was told about.
    Refused,
    /// Ours.
    Failed,
}

/// How a TLS handshake ended.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Handshake {
    Done,
    Failed,
    /// It did not end in time.
    Late,
    /// The client spoke HTTP without TLS.
    Plain,
}

/// In the order of [`Handshake`].
const HANDSHAKES: [&str; 4] = ["done", "failed", "late", "plain_http"];

#[derive(Default)]
pub(crate) struct Metrics {
    requests: [[AtomicU64; 3]; OPERATIONS.len()],
    streams_opened: AtomicU64,
    streams_closed: AtomicU64,
    encodes: AtomicU64,
    connections: AtomicU64,
    handshakes: [AtomicU64; HANDSHAKES.len()],
}

impl Metrics {
    pub(crate) fn request(&self, operation: &str, outcome: Outcome) {
        let index = OPERATIONS.iter().position(|name| *name == operation).unwrap_or(OPERATIONS.len() - 1);
        self.requests[index][outcome as usize].fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn stream_opened(&self) {
        self.streams_opened.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn stream_closed(&self) {
        self.streams_closed.fetch_add(1, Ordering::Relaxed);
    }

    /// An update was encoded: once per update and dialect, however many follow.
    pub(crate) fn encoded(&self) {
        self.encodes.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn connected(&self) {
        self.connections.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn shook_hands(&self, how: Handshake) {
        self.handshakes[how as usize].fetch_add(1, Ordering::Relaxed);
    }

    /// Everything in Prometheus' text form; endpoints by name only if asked for.
    pub(crate) fn render(&self, engine: &Engine, tls: Option<&Tls>, with_endpoints: bool) -> String {
        let mut out = String::with_capacity(4096);
        family(&mut out, "requests_total", "counter", "Requests by operation and outcome.");
        for (name, outcomes) in OPERATIONS.iter().zip(&self.requests) {
            for (outcome, count) in ["ok", "refused", "failed"].iter().zip(outcomes) {
                let count = count.load(Ordering::Relaxed);
                let _ =
                    writeln!(out, "switchboard_requests_total{{operation=\"{name}\",outcome=\"{outcome}\"}} {count}");
            }
        }
        let opened = self.streams_opened.load(Ordering::Relaxed);
        let open = opened.saturating_sub(self.streams_closed.load(Ordering::Relaxed));
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        single(&mut out, "connections_total", "counter", "Connections accepted.", read(&self.connections));
        let connections = engine.supervisor().connections_alive() as u64;
        single(&mut out, "connections_open", "gauge", "Connections open now.", connections);
        if let Some(tls) = tls {
            self.render_tls(&mut out, tls);
        }
        single(&mut out, "streams_opened_total", "counter", "Streams opened.", opened);
        single(&mut out, "streams_open", "gauge", "Streams open now.", open);
        single(&mut out, "update_encodes_total", "counter", "Updates encoded for streams.", read(&self.encodes));
        let counters = engine.counters();
        single(&mut out, "runs_alive", "gauge", "Runs at work now.", engine.runs_alive() as u64);
        single(&mut out, "runs_started_total", "counter", "Runs started.", read(&counters.runs_started));
        let recovered = read(&counters.runs_recovered);
        single(&mut out, "runs_recovered_total", "counter", "Runs taken up after an interruption.", recovered);
        single(&mut out, "runs_failed_total", "counter", "Runs that failed.", read(&counters.runs_failed));
        let timed_out = read(&counters.runs_timed_out);
        single(&mut out, "runs_timed_out_total", "counter", "Runs ended by their deadline.", timed_out);
        render_deliveries(&mut out, engine, with_endpoints);
        render_store(&mut out, engine);
        let ready = u64::from(engine.readiness() == Readiness::Ready);
        single(&mut out, "ready", "gauge", "Whether this process should be given work.", ready);
        out
    }

    fn render_tls(&self, out: &mut String, tls: &Tls) {
        family(out, "tls_handshakes_total", "counter", "TLS handshakes by outcome.");
        for (outcome, count) in HANDSHAKES.iter().zip(&self.handshakes) {
            let count = count.load(Ordering::Relaxed);
            let _ = writeln!(out, "switchboard_tls_handshakes_total{{outcome=\"{outcome}\"}} {count}");
        }
        let [made, failed] = tls.reloads();
        single(out, "tls_reloads_total", "counter", "Times that the certificate was read again and taken.", made);
        single(out, "tls_reload_failures_total", "counter", "Times that the new certificate was not good.", failed);
    }
}

fn render_deliveries(out: &mut String, engine: &Engine, with_endpoints: bool) {
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
        single(out, name, "counter", help, counter.load(Ordering::Relaxed));
    }
    let (under_way, down) = engine.outbox().gauges();
    single(out, "deliveries_under_way", "gauge", "Deliveries under way now.", under_way as u64);
    single(out, "delivery_endpoints_down", "gauge", "Endpoints whose deliveries wait for a probe.", down as u64);
    if with_endpoints {
        family(out, "delivery_endpoint_up", "gauge", "Whether an endpoint that was called lately takes deliveries.");
        for health in engine.outbox().endpoints() {
            let up = u8::from(!health.open);
            // The host of a checked URL holds nothing that would have to be escaped here.
            let endpoint = health.endpoint.as_str().replace(['"', '\\', '\n'], "?");
            let _ = writeln!(out, "switchboard_delivery_endpoint_up{{endpoint=\"{endpoint}\"}} {up}");
        }
    }
}

fn render_store(out: &mut String, engine: &Engine) {
    let stats = engine.store_stats();
    single(out, "commits_total", "counter", "Commits made durable.", stats.commits);
    single(out, "commit_conflicts_total", "counter", "Commits that came second.", stats.conflicts);
    single(out, "commit_failures_total", "counter", "Commits the store did not take.", stats.failures);
    single(
        out,
        "commit_batches_total",
        "counter",
        "Transactions; commits that waited together share one.",
        stats.batches,
    );
    single(out, "store_rows_written_total", "counter", "Rows written.", stats.rows_written);
    single(out, "store_bytes_written_total", "counter", "Bytes of content written.", stats.bytes_written);
    single(out, "store_queue_depth", "gauge", "Commits waiting for the writer.", stats.queue_depth);
    family(out, "commit_seconds", "histogram", "Time from asking for a commit to its answer.");
    let mut sum = 0;
    for (bound, count) in COMMIT_MICROS_BOUNDS.iter().zip(&stats.commit_seconds) {
        sum += count;
        let seconds = *bound as f64 / 1e6;
        let _ = writeln!(out, "switchboard_commit_seconds_bucket{{le=\"{seconds}\"}} {sum}");
    }
    sum += stats.commit_seconds.last().copied().unwrap_or_default();
    let _ = writeln!(out, "switchboard_commit_seconds_bucket{{le=\"+Inf\"}} {sum}");
    let _ = writeln!(out, "switchboard_commit_seconds_sum {}", stats.commit_micros_sum as f64 / 1e6);
    let _ = writeln!(out, "switchboard_commit_seconds_count {sum}");
}

fn family(out: &mut String, name: &str, kind: &str, help: &str) {
    let _ = writeln!(out, "# HELP switchboard_{name} {help}\n# TYPE switchboard_{name} {kind}");
}

fn single(out: &mut String, name: &str, kind: &str, help: &str, value: u64) {
    family(out, name, kind, help);
    let _ = writeln!(out, "switchboard_{name} {value}");
}
