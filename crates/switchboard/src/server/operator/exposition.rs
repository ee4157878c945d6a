//! `/metrics`: what is counted at the edge, and after it what the host writes (`Operations::metrics`), because the engine and the store
//! count their own.

use std::fmt::Write as _;

use switchboard_core::call::BoxFuture;
use switchboard_core::model::Timestamp;
use switchboard_engine::Readiness;

use crate::server::metrics::{
    BindingKind, Handshake, Operation, Outcome, REASONS, family, histogram, read, sample, single,
};
use crate::server::shared::Shared;
use crate::server::telemetry::MetricsPage;

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
    out += &of_host;
    shared.more_metrics.iter().for_each(|write| write(&mut out));
    if let Some(telemetry) = &shared.telemetry {
        telemetry.write_metrics(&mut out);
    }
    out
}

impl MetricsPage for Shared {
    fn page(&self) -> BoxFuture<'_, String> {
        Box::pin(render(self, false))
    }

    fn counted_from(&self) -> Timestamp {
        self.metrics.started_at
    }
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
    family(out, "held_bytes", "gauge", "Bytes of requests and answers that are held now, small ones not counted.");
    let (bodies, replies) = (shared.budgets.bodies.usage(), shared.budgets.replies.usage());
    sample(out, "held_bytes", &[("what", "bodies")], bodies.held);
    sample(out, "held_bytes", &[("what", "replies")], replies.held);
    family(
        out,
        "limit_refusals_total",
        "counter",
        "Requests refused because a limit on what is held at once was reached.",
    );
    for (limit, count) in shared.budgets.refusals() {
        sample(out, "limit_refusals_total", &[("limit", limit)], count);
    }
    let unread = read(&shared.unread.ended) + read(&metrics.unread_sockets);
    single(out, "unread_connections_total", "counter", "Connections ended because an answer was not read.", unread);
    single(out, "update_encodes_total", "counter", "Updates encoded for streams.", read(&metrics.encodes));
}
