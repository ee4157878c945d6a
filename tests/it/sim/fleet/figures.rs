//! What a simulated fleet saw, added up over its cells.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

#[derive(Default)]
pub(super) struct Figures {
    pub(super) broken: Vec<String>,
    pub(super) cells: u64,
    pub(super) replicas: u64,
    pub(super) tasks: u64,
    /// Virtual seconds of the longest cell.
    pub(super) seconds: u64,
    /// Virtual seconds of all replicas together.
    replica_seconds: u64,
    pub(super) killed: u64,
    pub(super) frozen: u64,
    pub(super) cut_off: u64,
    pub(super) stopped: u64,
    pub(super) clock_jumps: u64,
    pub(super) disasters: u64,
    pub(super) sends_repeated: u64,
    /// Writes of runs that the store refused, because another claim is newer.
    pub(super) fenced: u64,
    /// The most runs under way in one cell.
    pub(super) runs_most: usize,
    /// From the moment in which a holder was no longer able to work to the claim of another, in ms.
    takeovers_ms: Vec<u64>,
    /// The same from the last renewal that the store admitted. A renewal may arrive after its replica was frozen, if it was on its
    /// way and the link was cut.
    silences_ms: Vec<u64>,
    /// Runs that were claimed while their holder was able to work, and what was claimed after a release.
    taken_from_the_well: u64,
    /// The runs of a replica that it claimed again itself.
    reclaimed: u64,
    claims: Seconds,
    admitted: u64,
    calls: Seconds,
    by_kind: BTreeMap<&'static str, u64>,
}

/// The holder of a run that is claimed.
pub(super) struct Before {
    /// For how long it has not been able to work, if it is not.
    pub(super) unwell_for: Option<Duration>,
    /// Whether it is the one that claims.
    pub(super) is_same: bool,
}

/// How often something happened in each second of one cell, of which the second with the most is kept.
#[derive(Default)]
struct Seconds {
    second: u64,
    in_second: u64,
    total: u64,
    most: u64,
}

impl Seconds {
    fn one(&mut self, second: u64) {
        if self.second != second {
            (self.second, self.in_second) = (second, 0);
        }
        self.in_second += 1;
        self.total += 1;
        self.most = self.most.max(self.in_second);
    }

    fn add(&mut self, other: &Self) {
        self.total += other.total;
        self.most = self.most.max(other.most);
    }
}

impl Figures {
    pub(super) fn call(&mut self, second: u64, what: &'static str) {
        self.calls.one(second);
        *self.by_kind.entry(what).or_default() += 1;
    }

    pub(super) fn claim_tried(&mut self, second: u64) {
        self.claims.one(second);
    }

    /// A claim was admitted; the last claim or renewal before it was `silent` ago.
    pub(super) fn claim_admitted(&mut self, silent: Duration, before: Option<Before>) {
        self.admitted += 1;
        match before {
            Some(Before { is_same: true, .. }) => self.reclaimed += 1,
            Some(Before { unwell_for: Some(unwell), .. }) => {
                self.takeovers_ms.push(whole_ms(unwell));
                self.silences_ms.push(whole_ms(silent));
            }
            Some(Before { unwell_for: None, .. }) => self.taken_from_the_well += 1,
            // It was released.
            None => {}
        }
    }

    /// How many claims reached the stores, and how many were admitted.
    pub(super) fn claims(&self) -> (u64, u64) {
        (self.claims.total, self.admitted)
    }

    pub(super) fn saw_enough(&self) -> bool {
        let seen = [self.killed, self.frozen, self.cut_off, self.stopped, self.fenced, self.disasters];
        seen.iter().all(|seen| *seen > 0) && self.takeovers_ms.len() > 100
    }

    pub(super) fn calls_per_minute(&self) -> f64 {
        self.calls.total as f64 * 60.0 / self.replica_seconds.max(1) as f64
    }

    /// The calls of one replica, by kind.
    pub(super) fn calls_text(&self) -> String {
        let each = |calls: u64| calls as f64 * 60.0 / self.replica_seconds.max(1) as f64;
        let mut text = format!("{:8.2} calls per replica and minute\n", self.calls_per_minute());
        for (kind, calls) in &self.by_kind {
            text += &format!("{:8.2} {kind}\n", each(*calls));
        }
        text
    }

    /// Says how many replicas a cell had and for how long.
    pub(super) fn of_cell(mut self, replicas: usize) -> Self {
        (self.cells, self.replicas) = (1, replicas as u64);
        self.replica_seconds = self.replicas * self.seconds;
        self
    }

    pub(super) fn add(&mut self, other: Self) {
        self.broken.extend(other.broken);
        for (sum, more) in [
            (&mut self.cells, other.cells),
            (&mut self.replicas, other.replicas),
            (&mut self.tasks, other.tasks),
            (&mut self.replica_seconds, other.replica_seconds),
            (&mut self.killed, other.killed),
            (&mut self.frozen, other.frozen),
            (&mut self.cut_off, other.cut_off),
            (&mut self.stopped, other.stopped),
            (&mut self.clock_jumps, other.clock_jumps),
            (&mut self.disasters, other.disasters),
            (&mut self.sends_repeated, other.sends_repeated),
            (&mut self.fenced, other.fenced),
            (&mut self.taken_from_the_well, other.taken_from_the_well),
            (&mut self.reclaimed, other.reclaimed),
            (&mut self.admitted, other.admitted),
        ] {
            *sum += more;
        }
        self.seconds = self.seconds.max(other.seconds);
        self.runs_most = self.runs_most.max(other.runs_most);
        self.takeovers_ms.extend(other.takeovers_ms);
        self.silences_ms.extend(other.silences_ms);
        self.claims.add(&other.claims);
        self.calls.add(&other.calls);
        for (kind, calls) in other.by_kind {
            *self.by_kind.entry(kind).or_default() += calls;
        }
    }
}

impl fmt::Display for Figures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { cells, replicas, tasks, seconds, .. } = self;
        writeln!(f, "{replicas} replicas in {cells} cells, {tasks} tasks, {seconds} virtual seconds")?;
        let Self { killed, frozen, cut_off, stopped, clock_jumps, disasters, sends_repeated, .. } = self;
        writeln!(f, "killed {killed}, frozen {frozen}, cut off {cut_off}, stopped in order {stopped}")?;
        writeln!(f, "clock jumps {clock_jumps}, disasters of a cell {disasters}, sends repeated {sends_repeated}")?;
        let (most, fenced) = (self.runs_most, self.fenced);
        writeln!(f, "most runs under way in a cell {most}, writes refused by their fence {fenced}")?;
        writeln!(f, "taken over {}, after the failure {}", self.takeovers_ms.len(), spread(&self.takeovers_ms))?;
        writeln!(f, "    and after the last renewal {}", spread(&self.silences_ms))?;
        let (well, own) = (self.taken_from_the_well, self.reclaimed);
        writeln!(f, "taken from a holder that was well again {well}, claimed again by the holder {own}")?;
        let Seconds { total, most, .. } = self.claims;
        writeln!(f, "claims {total}, admitted {}, most in one second of a cell {most}", self.admitted)?;
        writeln!(f, "most calls to a store in one second {}", self.calls.most)?;
        write!(f, "{}", self.calls_text())
    }
}

fn whole_ms(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap()
}

/// The middle and the end of what was measured in ms.
fn spread(ms: &[u64]) -> String {
    let mut ms = ms.to_vec();
    ms.sort_unstable();
    let at = |percent: usize| {
        let place = (ms.len() * percent / 100).min(ms.len().saturating_sub(1));
        ms.get(place).copied().unwrap_or(0) as f64 / 1000.0
    };
    format!("p50 {:.1} s, p99 {:.1} s, most {:.1} s", at(50), at(99), at(100))
}
