//! The verdict: what was seen, whether it was enough, and every fault; for people and as one line for programs.

use std::time::Duration;

use super::faults::{Faults, Kind};
use super::performance::{Counts, Performance, Plot};

/// What a run must have seen to prove anything: so many in so long, in proportion for other lengths.
struct Minimum {
    what: &'static str,
    count: u64,
    within: Duration,
    of: fn(&Counts) -> u64,
}

const SECONDS: Duration = Duration::from_secs(5);
const MINUTE: Duration = Duration::from_secs(60);
const MINUTES: Duration = Duration::from_secs(300);

const MINIMUMS: [Minimum; 5] = [
    Minimum { what: "kills", count: 1, within: SECONDS, of: |seen| seen.kills },
    Minimum { what: "acknowledged events", count: 10_000, within: MINUTE, of: |seen| seen.acknowledged },
    Minimum { what: "resumed streams", count: 100, within: MINUTES, of: |seen| seen.resumed },
    Minimum { what: "webhook retries", count: 100, within: MINUTES, of: |seen| seen.webhooks_repeated },
    Minimum { what: "kills while a send was unanswered", count: 20, within: MINUTES, of: |seen| seen.kills_felt },
];

/// With relays much of the time is spent waiting for the other of two servers, so there are fewer events.
const RELAY_MINIMUMS: [Minimum; 7] = [
    Minimum { what: "kills", count: 1, within: SECONDS, of: |seen| seen.kills },
    Minimum { what: "kills of the upstream", count: 1, within: SECONDS, of: |seen| seen.upstream_kills },
    Minimum { what: "cuts of the network", count: 1, within: SECONDS, of: |seen| seen.cuts },
    Minimum { what: "acknowledged events", count: 1_000, within: MINUTE, of: |seen| seen.acknowledged },
    Minimum { what: "resumed streams", count: 100, within: MINUTES, of: |seen| seen.resumed },
    Minimum { what: "webhook retries", count: 20, within: MINUTES, of: |seen| seen.webhooks_repeated },
    Minimum { what: "kills while a send was unanswered", count: 20, within: MINUTES, of: |seen| seen.kills_felt },
];

/// Several servers, one of whose agents is a relay.
#[cfg(feature = "postgres")]
const REPLICAS_MINIMUMS: [Minimum; 8] = [
    Minimum { what: "kills", count: 1, within: SECONDS, of: |seen| seen.kills },
    Minimum { what: "kills of the upstream", count: 1, within: SECONDS, of: |seen| seen.upstream_kills },
    Minimum { what: "cuts of the network", count: 1, within: SECONDS, of: |seen| seen.cuts },
    // Where they cannot be cut, this was said before.
    Minimum {
        what: "cuts of links to the database",
        count: 1,
        within: SECONDS,
        of: |seen| seen.database_cuts.unwrap_or(u64::MAX),
    },
    Minimum { what: "acknowledged events", count: 10_000, within: MINUTE, of: |seen| seen.acknowledged },
    Minimum { what: "resumed streams", count: 100, within: MINUTES, of: |seen| seen.resumed },
    Minimum { what: "webhook retries", count: 100, within: MINUTES, of: |seen| seen.webhooks_repeated },
    Minimum { what: "kills while a send was unanswered", count: 20, within: MINUTES, of: |seen| seen.kills_felt },
];

impl Minimum {
    /// How many it takes for a run that was asked to last so long: at least one.
    fn needed(&self, asked: Duration) -> u64 {
        (self.count * asked.as_secs() / self.within.as_secs()).max(1)
    }
}

impl Counts {
    /// What was not seen often enough in a run that was asked to last so long.
    pub(super) fn shortfalls(&self, plot: Plot, asked: Duration) -> Vec<String> {
        let mut shortfalls = Vec::new();
        let minimums: &[Minimum] = match plot {
            Plot::Peace | Plot::Server => &MINIMUMS,
            Plot::Relay => &RELAY_MINIMUMS,
            #[cfg(feature = "postgres")]
            Plot::Replicas => &REPLICAS_MINIMUMS,
        };
        for minimum in minimums {
            let (seen, needed) = ((minimum.of)(self), minimum.needed(asked));
            if seen < needed {
                shortfalls.push(format!("{seen} {}, and it takes {needed}", minimum.what));
            }
        }
        shortfalls
    }

    /// In the middle of a run.
    pub(super) fn text(&self, plot: Plot) -> String {
        let Self { kills, acknowledged, resumed, webhooks_repeated, upstream_kills, cuts, database_cuts, .. } = self;
        let behind = match plot.relayed() {
            [] => String::new(),
            _ => format!(", {upstream_kills} of the upstream, {} cuts", cuts + database_cuts.unwrap_or(0)),
        };
        format!(
            "{kills} kills{behind}, {acknowledged} acknowledged events, {resumed} resumed streams, \
             {webhooks_repeated} repeated webhooks"
        )
    }
}

pub(super) struct Verdict<'a> {
    pub(super) seed: u64,
    pub(super) seen: &'a Performance,
    pub(super) faults: &'a Faults,
}

impl Verdict<'_> {
    pub(super) fn is_good(&self) -> bool {
        self.word() == "pass"
    }

    /// A fault is a fault, however little was seen.
    fn word(&self) -> &'static str {
        match (self.faults.total(), self.shortfalls().is_empty()) {
            (0, true) => "pass",
            (0, false) => "not enough",
            _ => "fail",
        }
    }

    /// What was not seen often enough.
    pub(super) fn shortfalls(&self) -> Vec<String> {
        self.seen.counts.shortfalls(self.seen.plot, self.seen.asked)
    }

    /// One line of JSON, its keys always in this order.
    pub(super) fn json(&self) -> String {
        let seen = self.seen;
        let mut line = format!(
            "{{\"seed\":{},\"seconds\":{},\"kills\":{},\"freezes\":{}",
            self.seed,
            seen.length.as_secs(),
            seen.counts.kills,
            seen.deeds.freezes,
        );
        if !seen.plot.relayed().is_empty() {
            let Counts { upstream_kills, cuts, .. } = seen.counts;
            let (freezes, left_over) = (seen.behind.deeds.freezes, seen.behind.left_over);
            line.push_str(&format!(
                ",\"upstream_kills\":{upstream_kills},\"upstream_freezes\":{freezes},\"cuts\":{cuts},\
                 \"left_over\":{left_over}"
            ));
        }
        if let Some(database_cuts) = seen.counts.database_cuts {
            line.push_str(&format!(",\"database_cuts\":{database_cuts}"));
        }
        let (requests, acknowledged) = (seen.requests, seen.counts.acknowledged);
        line.push_str(&format!(",\"requests\":{requests},\"acknowledged_events\":{acknowledged}"));
        for kind in Kind::ALL {
            line.push_str(&format!(",\"{}\":{}", kind.key(), self.faults.count(kind)));
        }
        line.push_str(&format!(",\"verdict\":\"{}\"}}", self.word()));
        line
    }

    pub(super) fn text(&self) -> String {
        let Performance { deeds, counts, .. } = self.seen;
        let servers = match self.seen.plot {
            Plot::Peace | Plot::Server => "the server was",
            Plot::Relay => "the gateway was",
            #[cfg(feature = "postgres")]
            Plot::Replicas => "the servers were",
        };
        let mut text = format!(
            "In {} s {servers} killed {} times, {} of them while a send was unanswered, frozen {} times, {} of them \
             longer than a lease, and stopped in order {} times.\n{}\
             Clients made {} requests, wrote down {} acknowledged events, and resumed {} streams; {} webhooks were \
             delivered again.\n\n",
            self.seen.length.as_secs(),
            counts.kills,
            counts.kills_felt,
            deeds.freezes,
            deeds.long_freezes,
            deeds.stops,
            self.behind_text(),
            self.seen.requests,
            counts.acknowledged,
            counts.resumed,
            counts.webhooks_repeated
        );
        for kind in Kind::ALL {
            text.push_str(&format!("  {:<14}{:>6}  {}\n", kind.key(), self.faults.count(kind), kind.meaning()));
        }
        for line in &self.faults.lines {
            text.push_str(&format!("\nfault: {line}"));
        }
        for line in self.shortfalls() {
            text.push_str(&format!("\ntoo little was seen to tell: {line}"));
        }
        text.push_str(&format!("\nverdict: {} (seed {})", self.word(), self.seed));
        text
    }

    /// What happened behind the gateway.
    fn behind_text(&self) -> String {
        let Performance { plot, behind, counts, .. } = self.seen;
        if plot.relayed().is_empty() {
            return String::new();
        }
        let database = counts.database_cuts.map(|cuts| format!("Links to the database were cut {cuts} times.\n"));
        database.unwrap_or_default()
            + &format!(
                "The upstream was killed {} times, frozen {} times and stopped in order {} times, and the network between them was \
             cut {} times. {} tasks that were canceled at the gateway went on at the upstream.\n",
                counts.upstream_kills, behind.deeds.freezes, behind.deeds.stops, counts.cuts, behind.left_over
            )
    }
}

#[cfg(test)]
#[path = "verdict_tests.rs"]
mod tests;
