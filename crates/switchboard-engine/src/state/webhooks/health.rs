//! A circuit breaker for one endpoint. It opens after a number of consecutive failures, lets one probe through at a
//! time, and closes with the first answer. It has no clock and no randomness of its own: both are arguments.

use switchboard_core::model::Timestamp;

use super::backoff::backoff_ms;

/// When a circuit opens, and how often it is probed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rules {
    pub(super) failures_max: u32,
    pub(super) probe_ms_min: u32,
    pub(super) probe_ms_max: u32,
}

#[derive(Clone, Debug, Default)]
pub(super) struct Health {
    failures: u32,
    /// The time of the first failure after the last answer.
    down_since: Option<Timestamp>,
    last_error: Option<String>,
    open: Option<Open>,
}

#[derive(Clone, Copy, Debug)]
struct Open {
    /// Failed probes; the failures that opened the circuit count as one.
    rounds: u32,
    probe_at: Timestamp,
    probing: bool,
}

/// Why a call to an endpoint failed.
pub(super) struct Failure {
    pub(super) error: String,
    /// How long the endpoint wants no further calls, if it said so.
    pub(super) retry_after_ms: u64,
}

/// Whether a delivery may start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Admission {
    Free,
    /// As the probe that tests whether the endpoint is up again.
    Probe,
    NotBefore(Timestamp),
}

impl Health {
    pub(super) fn admission(&self, now: Timestamp, rules: &Rules) -> Admission {
        match self.open {
            None => Admission::Free,
            // A probe is under way. The other deliveries are held for one probe interval and then ask again.
            Some(open) if open.probing => {
                let wait_ms = backoff_ms(open.rounds, rules.probe_ms_min, rules.probe_ms_max, 0);
                Admission::NotBefore(now.plus_ms(wait_ms))
            }
            Some(open) if open.probe_at <= now => Admission::Probe,
            Some(open) => Admission::NotBefore(open.probe_at),
        }
    }

    /// The delivery that was admitted as the probe has started.
    pub(super) fn probing(&mut self) {
        if let Some(open) = &mut self.open {
            open.probing = true;
        }
    }

    /// The probe ended without a result.
    pub(super) fn probe_lost(&mut self) {
        if let Some(open) = &mut self.open {
            open.probing = false;
        }
    }

    /// The endpoint answered, with whatever status.
    pub(super) fn answered(&mut self) {
        *self = Self::default();
    }

    /// The endpoint did not answer, or answered that it has a problem. While the circuit is open, only the failure of
    /// the probe counts, because other deliveries had started before it opened.
    pub(super) fn failed(&mut self, probe: bool, failure: Failure, now: Timestamp, rules: &Rules, dice: u64) {
        self.failures = self.failures.saturating_add(1);
        self.down_since.get_or_insert(now);
        self.last_error = Some(failure.error);
        let rounds = match self.open {
            Some(open) if probe => open.rounds.saturating_add(1),
            Some(_) => return,
            None if self.failures >= rules.failures_max => 1,
            None => return,
        };
        let wait_ms = backoff_ms(rounds, rules.probe_ms_min, rules.probe_ms_max, dice);
        let wait_ms = wait_ms.max(i64::try_from(failure.retry_after_ms).unwrap_or(i64::MAX));
        self.open = Some(Open { rounds, probe_at: now.plus_ms(wait_ms), probing: false });
    }

    /// An operator asked for a probe now.
    pub(super) fn probe_now(&mut self, now: Timestamp) {
        if let Some(open) = &mut self.open {
            open.probe_at = now;
        }
    }

    pub(super) fn is_open(&self) -> bool {
        self.open.is_some()
    }

    /// Whether there is no failure to remember.
    pub(super) fn is_healthy(&self) -> bool {
        self.failures == 0
    }

    pub(super) fn failures(&self) -> u32 {
        self.failures
    }

    pub(super) fn down_since(&self) -> Option<Timestamp> {
        self.down_since
    }

    pub(super) fn last_error(&self) -> Option<&str> {
        self.last_error.as_deref()
    }

    pub(super) fn probe_at(&self) -> Option<Timestamp> {
        self.open.map(|open| open.probe_at)
    }
}

#[cfg(test)]
mod tests {
    use super::{Admission, Failure, Health, Rules, Timestamp};

    const RULES: Rules = Rules { failures_max: 3, probe_ms_min: 1_000, probe_ms_max: 60_000 };

    fn at(ms: i64) -> Timestamp {
        Timestamp::from_ms(ms)
    }

    fn fail(health: &mut Health, probe: bool, ms: i64) {
        fail_busy(health, probe, ms, 0);
    }

    fn fail_busy(health: &mut Health, probe: bool, ms: i64, retry_after_ms: u64) {
        let failure = Failure { error: "no answer".to_owned(), retry_after_ms };
        // The largest value of `dice` makes the longest wait.
        health.failed(probe, failure, at(ms), &RULES, u64::from(u32::MAX));
    }

    /// When the circuit may be probed; it must be open.
    fn probe_at(health: &Health) -> i64 {
        health.probe_at().unwrap().as_ms()
    }

    #[test]
    fn a_circuit_opens_after_failures_in_a_row_only() {
        let mut health = Health::default();
        for round in 0..10 {
            fail(&mut health, false, round);
            fail(&mut health, false, round);
            assert_eq!(health.admission(at(round), &RULES), Admission::Free);
            health.answered();
        }
        for ms in 100..103 {
            fail(&mut health, false, ms);
        }
        assert!(health.is_open());
        assert_eq!(health.down_since(), Some(at(100)));
        assert!(matches!(health.admission(at(103), &RULES), Admission::NotBefore(until) if until > at(500)));
    }

    #[test]
    fn one_probe_at_a_time_and_the_first_answer_closes() {
        let mut health = Health::default();
        for _ in 0..3 {
            fail(&mut health, false, 0);
        }
        let due = probe_at(&health);
        assert!((500..=1_000).contains(&due), "{due}");
        assert_eq!(health.admission(at(due), &RULES), Admission::Probe);
        health.probing();
        assert_eq!(health.admission(at(due), &RULES), Admission::NotBefore(at(due + 500)));
        // A delivery that had started before the circuit opened.
        fail(&mut health, false, due);
        assert_eq!(health.admission(at(due), &RULES), Admission::NotBefore(at(due + 500)));
        health.answered();
        assert_eq!(health.admission(at(due), &RULES), Admission::Free);
        assert!(health.is_healthy());
    }

    #[test]
    fn probes_become_rarer_within_bounds() {
        let mut health = Health::default();
        for _ in 0..3 {
            fail(&mut health, false, 0);
        }
        let mut now = probe_at(&health);
        for round in 2..60 {
            health.probing();
            fail(&mut health, true, now);
            let wait = probe_at(&health) - now;
            let full = (1_000_i64 << (round - 1).min(31)).min(60_000);
            assert!((full / 2..=full).contains(&wait), "{round}: {wait}");
            now += wait;
        }
    }

    #[test]
    fn an_endpoint_that_says_when_to_come_back_is_not_probed_before() {
        let mut health = Health::default();
        for _ in 0..3 {
            fail_busy(&mut health, false, 0, 90_000);
        }
        assert_eq!(probe_at(&health), 90_000);
        // A pause shorter than ours changes nothing, and the pause that it asked for last time no longer counts.
        health.probing();
        fail_busy(&mut health, true, 90_000, 1);
        assert!((91_000..=92_000).contains(&probe_at(&health)), "{}", probe_at(&health));
    }

    #[test]
    fn a_probe_that_found_out_nothing_lets_the_next_one_go() {
        let mut health = Health::default();
        for _ in 0..3 {
            fail(&mut health, false, 0);
        }
        health.probe_now(at(1));
        health.probing();
        health.probe_lost();
        assert_eq!(health.admission(at(1), &RULES), Admission::Probe);
    }
}
