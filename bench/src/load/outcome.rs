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

impl Outcome {
    /// Several runs as one. Of latencies the middle run's are taken: they do not add up.
    #[must_use]
    pub fn of_all(runs: Vec<Outcome>) -> Outcome {
        let middle = |value: fn(&Outcome) -> f64| {
            let mut values: Vec<f64> = runs.iter().map(value).collect();
            values.sort_by(f64::total_cmp);
            values.get(values.len() / 2).copied().unwrap_or_default()
        };
        let requests = runs.iter().map(|run| run.requests).sum::<u64>();
        let seconds = runs.iter().map(|run| run.seconds).sum::<f64>();
        let per_request = |value: fn(&Outcome) -> f64| {
            runs.iter().map(|run| value(run) * run.requests as f64).sum::<f64>() / requests.max(1) as f64
        };
        Outcome {
            requests,
            errors: runs.iter().map(|run| run.errors).sum(),
            seconds,
            per_second: requests as f64 / seconds,
            p50_ms: middle(|run| run.p50_ms),
            p99_ms: middle(|run| run.p99_ms),
            reply_bytes: per_request(|run| run.reply_bytes),
            events: per_request(|run| run.events),
            first_error: runs.iter().find_map(|run| run.first_error.clone()),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{Outcome, Tally};

    #[test]
    fn several_runs_weigh_by_their_requests() {
        let run = |requests: usize, bytes: usize, ms: u64, seconds: u64| {
            let mut tally = Tally::default();
            (0..requests).for_each(|_| tally.record(Duration::from_millis(ms), Ok((bytes, 1))));
            tally.record(Duration::ZERO, Err(format!("{bytes}")));
            tally.finish(Duration::from_secs(seconds))
        };
        let all = Outcome::of_all(vec![run(30, 100, 1, 1), run(10, 500, 9, 1), run(0, 7, 0, 2), run(40, 200, 2, 4)]);
        assert_eq!((all.requests, all.errors, all.seconds, all.per_second), (80, 4, 8.0, 10.0));
        assert_eq!((all.reply_bytes, all.events, all.p50_ms), (200.0, 1.0, 2.0));
        assert_eq!(all.first_error.as_deref(), Some("100"));
    }
}
