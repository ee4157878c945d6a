//! The checks, one file for each area of the protocol.

mod access;
mod bindings;
mod card;
mod delivery;
mod equal;
mod list;
mod push;
mod send;
mod shape;
mod streams;
mod tasks;
mod versions;

use super::check::{Check, Level, Needs, Run, Scope};

/// Every area with its checks, in the order in which they are made.
pub(crate) const AREAS: &[(&str, &[Check])] = &[
    ("The card", card::CHECKS),
    ("Sending a message", send::CHECKS),
    ("The shape of a task", shape::CHECKS),
    ("Getting and canceling a task", tasks::CHECKS),
    ("Listing tasks", list::CHECKS),
    ("Streams", streams::CHECKS),
    ("Push notifications", push::CHECKS),
    ("Delivered webhooks", delivery::CHECKS),
    ("Versions and extensions", versions::CHECKS),
    ("Extended card, credentials, tenants", access::CHECKS),
    ("What each binding has of its own", bindings::CHECKS),
    ("All interfaces alike", equal::CHECKS),
];

/// All checks of all areas.
pub(crate) fn all() -> impl Iterator<Item = &'static Check> {
    AREAS.iter().flat_map(|(_, checks)| checks.iter())
}

const fn check(
    level: Level,
    id: &'static str,
    kit: &'static str,
    section: &'static str,
    scope: Scope,
    rule: &'static str,
    run: Run,
) -> Check {
    Check { id, kit, level, section, rule, scope, needs: Needs::Nothing, run }
}

const fn must(
    id: &'static str,
    kit: &'static str,
    section: &'static str,
    scope: Scope,
    rule: &'static str,
    run: Run,
) -> Check {
    check(Level::Must, id, kit, section, scope, rule, run)
}

const fn should(
    id: &'static str,
    kit: &'static str,
    section: &'static str,
    scope: Scope,
    rule: &'static str,
    run: Run,
) -> Check {
    check(Level::Should, id, kit, section, scope, rule, run)
}

const fn may(
    id: &'static str,
    kit: &'static str,
    section: &'static str,
    scope: Scope,
    rule: &'static str,
    run: Run,
) -> Check {
    check(Level::May, id, kit, section, scope, rule, run)
}

impl Check {
    const fn needs(mut self, needs: Needs) -> Self {
        self.needs = needs;
        self
    }
}

/// A check that is an `async fn` of a bench.
macro_rules! each {
    ($check:path) => {
        $crate::conformance::check::Run::Interface(|bench| Box::pin($check(bench)))
    };
}
use each;
