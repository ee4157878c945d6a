//! What an engine and its store count, in Prometheus' text form: the host's part of `/metrics`.

use std::fmt::Write as _;

use switchboard_core::model::TaskState;
use switchboard_engine::ports::store::COMMIT_MICROS_BOUNDS;
use switchboard_engine::runs::{RunCounters, RunEnd};
use switchboard_engine::{Engine, QueueAges};

use crate::server::operator::exposition::{buckets, family, histogram, read, sample, single};

/// The agent of runs whose agent is not served. No agent can have this name.
const UNSERVED: &str = "(unserved)";

/// Runs, deliveries, and what the store says; webhook endpoints by name only if asked for.
pub(crate) async fn render(engine: &Engine, with_endpoints: bool) -> String {
    let ages = engine.queue_ages().await;
    let mut out = String::with_capacity(8 * 1024);
    write_runs(&mut out, engine, &ages);
    write_deliveries(&mut out, engine, &ages, with_endpoints);
    write_store(&mut out, engine);
    out
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
