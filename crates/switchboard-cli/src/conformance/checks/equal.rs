//! Checks that compare interfaces with each other. They are made on each interface, against all the others.

use serde_json::json;

use super::super::bench::{Bench, Checked, fault, hold, shown_json, skip};
use super::super::check::{Check, EVERYWHERE, Needs};
use super::super::wire::{Meaning, Operation, Options};
use super::{each, must};

pub(super) const CHECKS: &[Check] = &[
    must(
        "equal-task",
        "BIND-EQUIV-001, BIND-EQUIV-002",
        "5.1",
        EVERYWHERE,
        "All bindings MUST give the same: a task that was made on one is found, in the same state, on every other.",
        each!(equal_task),
    )
    .needs(Needs::OtherInterfaces),
    must(
        "equal-errors",
        "BIND-EQUIV-003",
        "5.1, 5.4",
        EVERYWHERE,
        "All bindings MUST map errors alike: what is refused on one is refused on every other.",
        each!(equal_errors),
    )
    .needs(Needs::OtherInterfaces),
];

async fn equal_task(bench: &Bench<'_>) -> Checked {
    let task = bench.finished().await?;
    let own = bench.form().state(task);
    for other in bench.all.iter().filter(|other| *other != bench.to && other.tenant == bench.to.tenant) {
        let got = bench.wire.call(other, Operation::Get, &json!({ "id": task["id"] }), &Options::default()).await;
        let reply = got.map_err(|why| fault(format!("the task on {other}"), why))?;
        let Meaning::Result(same) = &reply.meaning else {
            return Err(fault(format!("the task on {other}"), reply.shown()));
        };
        let state = other.form().state(same);
        let is_same = same["id"] == task["id"] && state == own;
        hold(is_same, &format!("the task in the state {own:?} on {other}"), || shown_json(same))?;
    }
    Ok(())
}

async fn equal_errors(bench: &Bench<'_>) -> Checked {
    let Meaning::Refused(_) = &bench.unknown().await?.meaning else {
        return Err(skip("an unknown task is no error here: see get-unknown"));
    };
    for other in bench.all.iter().filter(|other| *other != bench.to) {
        let id = json!({ "id": super::super::fresh_id() });
        let got = bench.wire.call(other, Operation::Get, &id, &Options::default()).await;
        let reply = got.map_err(|why| fault(format!("an error on {other}"), why))?;
        let is_refused = matches!(reply.meaning, Meaning::Refused(_));
        hold(is_refused, &format!("an error on {other}, too"), || reply.shown())?;
    }
    Ok(())
}
