//! Which entries the audit log gets. Refusals are bounded: beyond [`AUDIT_REFUSALS_PER_MIN`] in a minute they are counted, to be
//! summed up in one entry for each reason when the minute is over.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

/// What is written to the audit log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AuditLevel {
    /// Nothing.
    Off,
    /// Refusals, changes of credentials and rules, and what operators do.
    #[default]
    Default,
    /// Every accepted message as well.
    All,
}

/// Refusals in any minute that are entries of their own.
const AUDIT_REFUSALS_PER_MIN: u32 = 60;

/// What the engine remembers between two entries.
pub(crate) struct Auditor {
    level: AuditLevel,
    refusals: Mutex<Refusals>,
}

/// The refusals of the minute that the first of them began.
#[derive(Default)]
struct Refusals {
    /// Whether a minute has begun; a task ends it.
    is_counting: bool,
    written: u32,
    left_out: BTreeMap<&'static str, u64>,
}

impl Auditor {
    pub(crate) fn new(level: AuditLevel) -> Self {
        Self { level, refusals: Mutex::default() }
    }

    /// Whether there are entries at all.
    pub(crate) fn is_off(&self) -> bool {
        self.level == AuditLevel::Off
    }

    /// Whether accepted messages have an entry.
    pub(crate) fn has_sends(&self) -> bool {
        self.level == AuditLevel::All
    }

    /// Counts a refusal. Whether it is an entry of its own, and whether it is the first of a minute.
    pub(crate) fn count_refusal(&self, reason: &'static str) -> (bool, bool) {
        let mut refusals = self.refusals.lock().unwrap_or_else(PoisonError::into_inner);
        let is_first = !std::mem::replace(&mut refusals.is_counting, true);
        let is_written = refusals.written < AUDIT_REFUSALS_PER_MIN;
        match is_written {
            true => refusals.written += 1,
            false => *refusals.left_out.entry(reason).or_default() += 1,
        }
        (is_written, is_first)
    }

    /// Ends the minute, and returns what was left out in it.
    pub(crate) fn end_minute(&self) -> BTreeMap<&'static str, u64> {
        let mut refusals = self.refusals.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::take(&mut *refusals).left_out
    }
}

#[cfg(test)]
mod tests {
    use super::{AUDIT_REFUSALS_PER_MIN, AuditLevel, Auditor};

    #[test]
    fn a_flood_of_refusals_is_summed_up_by_reason() {
        let auditor = Auditor::new(AuditLevel::Default);
        for round in 0..2 {
            for nth in 0..AUDIT_REFUSALS_PER_MIN {
                assert_eq!(auditor.count_refusal("UNAUTHENTICATED"), (true, nth == 0), "round {round}");
            }
            for reason in ["UNAUTHENTICATED", "UNAUTHENTICATED", "PERMISSION_DENIED"] {
                assert_eq!(auditor.count_refusal(reason), (false, false));
            }
            assert_eq!(auditor.end_minute(), [("PERMISSION_DENIED", 1), ("UNAUTHENTICATED", 2)].into());
        }
        assert!(auditor.end_minute().is_empty());
    }
}
