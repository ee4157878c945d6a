//! What is counted about upstreams, for `/metrics`. The only label is the agent, of which there are as many as the server was
//! started with.

use std::fmt::Write as _;

use super::breaker::BreakerState;
use super::handle::RelayHandle;

/// Appends the families about these relays, each under the name of its agent, in Prometheus' text form.
pub fn write_metrics(out: &mut String, relays: &[(String, RelayHandle)]) {
    if relays.is_empty() {
        return;
    }
    let mut family = |name: &str, kind: &str, help: &str, value: &dyn Fn(&RelayHandle) -> u64| {
        let _ = writeln!(out, "# HELP switchboard_{name} {help}\n# TYPE switchboard_{name} {kind}");
        for (agent, relay) in relays {
            let _ = writeln!(out, "switchboard_{name}{{agent=\"{agent}\"}} {}", value(relay));
        }
    };
    family("relay_calls_total", "counter", "Calls to the upstream, each try counted.", &|relay| {
        relay.counters().calls()
    });
    family("relay_failures_total", "counter", "Calls to the upstream that failed on the way.", &|relay| {
        relay.counters().failures()
    });
    family("relay_sends_total", "counter", "Messages that the upstream was sent, each try counted.", &|relay| {
        relay.counters().sends()
    });
    family("relay_retries_total", "counter", "Tries of a message after the first.", &|relay| {
        relay.counters().retries()
    });
    family(
        "relay_bridged_total",
        "counter",
        "Streams that broke, or whose gateway died, and were gone on with.",
        &|relay| relay.counters().bridged(),
    );
    family(
        "relay_outcomes_unknown_total",
        "counter",
        "Messages of which is not known whether they arrived, and which were not sent again.",
        &|relay| relay.counters().outcomes_unknown(),
    );
    family("relay_breaker_opened_total", "counter", "Times that the circuit breaker opened.", &|relay| {
        relay.counters().opened()
    });
    family("relay_refused_total", "counter", "Messages that were refused because the upstream was down.", &|relay| {
        relay.counters().refused()
    });
    family("relay_in_flight", "gauge", "Turns at work at the upstream, or waiting for it.", &|relay| relay.in_flight());
    family("relay_streams_open", "gauge", "Streams of the upstream that are open.", &|relay| relay.streams_open());
    let breaker = "The circuit breaker: 0 is closed, 1 lets one call through as a probe, 2 is open.";
    family("relay_breaker_state", "gauge", breaker, &|relay| match relay.breaker() {
        BreakerState::Closed => 0,
        BreakerState::HalfOpen => 1,
        BreakerState::Open => 2,
    });
    family(
        "relay_card_refused",
        "gauge",
        "Whether the card of the upstream has changed and was not accepted.",
        &|relay| u64::from(relay.refused_card().is_some()),
    );
}
