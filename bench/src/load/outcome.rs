//! What a run gave: counts, latencies, and the first thing that went wrong.

use std::time::Duration;

/// What one connection, or all of them together, saw.
#[derive(Default)]
pub(super) struct Tally {
    requests: u64,
    errors: u64,
    first_error: Option<String>,
    reply_bytes: u64,
    events: u64,
    latencies_ns: Vec<u32>,
}

impl Tally {
    /// `result` is the reply's bytes and events, or what was wrong with it.
    pub(super) fn record(&mut self, latency: Duration, result: Result<(usize, u64), String>) {
        match result {
            Ok((bytes, events)) => {
                self.requests += 1;
                self.reply_bytes += bytes as u64;
                self.events += events;
                self.latencies_ns.push(u32::try_from(latency.as_nanos()).unwrap_or(u32::MAX));
            }
            Err(error) => {
                self.errors += 1;
                self.first_error.get_or_insert(error);
            }
        }
    }

    pub(super) fn add(&mut self, other: Tally) {
        self.requests += other.requests;
        self.errors += other.errors;
        self.first_error = self.first_error.take().or(other.first_error);
        self.reply_bytes += other.reply_bytes;
        self.events += other.events;
        self.latencies_ns.extend(other.latencies_ns);
    }

    pub(super) fn finish(mut self, elapsed: Duration) -> Outcome {
        self.latencies_ns.sort_unstable();
        let percentile = |percent: usize| {
            let at = self.latencies_ns.len() * percent / 100;
            self.latencies_ns.get(at).map_or(0.0, |&ns| f64::from(ns) / 1e6)
        };
        let per_request = |count: u64| count as f64 / self.requests.max(1) as f64;
        Outcome {
            requests: self.requests,
            errors: self.errors,
            seconds: elapsed.as_secs_f64(),
            per_second: self.requests as f64 / elapsed.as_secs_f64(),
            p50_ms: percentile(50),
            p99_ms: percentile(99),
            reply_bytes: per_request(self.reply_bytes),
            events: per_request(self.events),
            first_error: self.first_error,
        }
    }
}

#[derive(Clone, Debug, serde::Serialize)]
pub struct Outcome {
    /// Requests whose reply was right.
    pub requests: u64,
    /// Requests refused, broken off, or answered with something else.
    pub errors: u64,
    pub seconds: f64,
    pub per_second: f64,
    pub p50_ms: f64,
    pub p99_ms: f64,
    /// Bytes of an average reply's body, without chunk frames.
    pub reply_bytes: f64,
    /// Events of an average stream; 0 for plain replies.
    pub events: f64,
    pub first_error: Option<String>,
}
