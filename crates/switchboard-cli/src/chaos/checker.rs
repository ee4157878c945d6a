//! The checker: holds what the server says in the end against the ledger. Pure, so that each fault can be shown to be
//! noticed.

use std::collections::{BTreeMap, BTreeSet};

use super::book::{Book, Record};
use super::faults::{Faults, Kind};
use super::found::{Found, Logged, Shown};
use super::upstream::{self, Upstream};
use super::wish::{End, INPUT_REQUIRED, is_terminal};

/// Everything the server says in the end, and what it has done.
#[derive(Debug, Default)]
pub(super) struct Evidence {
    pub(super) tasks: BTreeMap<String, Found>,
    /// How many tasks it lists; none if it did not say.
    pub(super) listed: Option<u64>,
    /// Processes of commands that were still there when every task had ended.
    pub(super) orphans: Vec<String>,
    /// What is wrong by itself, whatever the ledger says.
    pub(super) misdeeds: Vec<String>,
    /// The tasks of the upstream, in a run with relays.
    pub(super) upstream: Option<Upstream>,
}

pub(super) fn check(book: &Book, evidence: &Evidence) -> Faults {
    let mut faults = Faults::default();
    for (task, record) in &book.tasks {
        judge(task, record, evidence.tasks.get(task).unwrap_or(&Found::Missing), &mut faults);
    }
    for (n, (wish, _)) in &book.unanswered {
        faults.add(Kind::Stuck, 1, || format!("message {n} ({wish:?}) was never answered"));
    }
    for what in &book.mixed_up {
        faults.add(Kind::Duplicated, 1, || what.clone());
    }
    faults.add(Kind::WrongContent, book.stray_hooks, || "webhooks of tasks that nobody was told of".to_owned());
    let known = book.tasks.len() as u64;
    match evidence.listed {
        Some(listed) => {
            let more = listed.saturating_sub(known);
            faults.add(Kind::Duplicated, more, || format!("the server lists {listed} tasks for {known} messages"));
        }
        None => faults.add(Kind::WrongContent, 1, || "the server does not say how many tasks it has".to_owned()),
    }
    for orphan in &evidence.orphans {
        faults.add(Kind::Orphans, 1, || orphan.clone());
    }
    for misdeed in &evidence.misdeeds {
        faults.add(Kind::WrongContent, 1, || misdeed.clone());
    }
    if let Some(upstream) = &evidence.upstream {
        upstream::check(book, &evidence.tasks, upstream, &mut faults);
    }
    faults
}

fn judge(task: &str, record: &Record, found: &Found, faults: &mut Faults) {
    readers(task, record, faults);
    match found {
        Found::Missing => faults.add(Kind::Lost, record.last_seen().max(1), || {
            format!("task {task} (message {}) was accepted and is not there", record.n)
        }),
        Found::Unreadable(why) => faults.add(Kind::Lost, record.last_seen().max(1), || {
            format!("task {task} (message {}) cannot be read: {why}", record.n)
        }),
        Found::There(shown) => {
            log(task, record, shown, faults);
            end(task, record, shown, faults);
            if record.hook {
                hooks(task, record, shown, faults);
            }
        }
    }
}

/// What each reader was shown must be numbered without gaps, in order, from 1.
fn readers(task: &str, record: &Record, faults: &mut Faults) {
    for seen in record.seen.values() {
        let mut shown = BTreeSet::new();
        for (seq, _) in seen {
            let last = shown.last().copied().unwrap_or(0);
            if !shown.insert(*seq) {
                faults.add(Kind::Duplicated, 1, || format!("event {seq} of task {task} was shown twice to a reader"));
            } else if *seq < last {
                faults.add(Kind::OutOfOrder, 1, || format!("event {seq} of task {task} was shown after event {last}"));
            }
        }
        let last = shown.last().copied().unwrap_or(0);
        faults.add(Kind::Lost, last - shown.len() as u64, || {
            format!("a reader of task {task} was shown event {last}, but only {} events", shown.len())
        });
    }
}

fn log(task: &str, record: &Record, shown: &Shown, faults: &mut Faults) {
    let mut kept = BTreeMap::new();
    for Logged { seq, digest, .. } in &shown.log {
        let last = kept.last_key_value().map_or(0, |(last, _)| *last);
        if kept.insert(*seq, *digest).is_some() {
            faults.add(Kind::Duplicated, 1, || format!("event {seq} of task {task} is there twice"));
        } else if *seq < last {
            faults.add(Kind::OutOfOrder, 1, || format!("event {seq} of task {task} comes after event {last}"));
        }
    }
    let last = kept.last_key_value().map_or(0, |(last, _)| *last).max(record.last_seen());
    let missing: Vec<u64> = (1..=last).filter(|seq| !kept.contains_key(seq)).collect();
    faults.add(Kind::Lost, missing.len() as u64, || {
        let why = shown.log_trouble.as_deref().unwrap_or("the stream ended without them");
        format!("events {missing:?} of task {task}, which has {last}, are not there: {why}")
    });
    if let Some(trouble) = shown.log_trouble.as_ref().filter(|_| missing.is_empty()) {
        faults.add(Kind::WrongContent, 1, || format!("the stream of task {task} did not end well: {trouble}"));
    }
    for (seq, digest) in record.seen.values().flatten() {
        let differs = kept.get(seq).is_some_and(|kept| kept != digest);
        faults.add(Kind::WrongContent, differs.into(), || format!("event {seq} of task {task} is not what was shown"));
    }
    let first_end = shown.log.iter().position(|event| event.state.as_deref().is_some_and(is_terminal));
    let after_end = first_end.is_some_and(|at| at + 1 < shown.log.len());
    faults.add(Kind::TwoTerminals, after_end.into(), || format!("task {task} went on after its end"));
}

fn end(task: &str, record: &Record, shown: &Shown, faults: &mut Faults) {
    let state = shown.state.as_str();
    if !is_terminal(state) {
        return faults.add(Kind::Stuck, 1, || format!("task {task} ({:?}) is still {state}", record.wish));
    }
    let others = record.told.iter().map(|(told, _)| told).chain(&record.canceled);
    for other in others.filter(|other| *other != state && *other != INPUT_REQUIRED) {
        faults.add(Kind::TwoTerminals, 1, || format!("task {task} is {state}, but somebody was told {other}"));
    }
    let now = shown.artifacts.digest;
    let changed = record.told.iter().filter(|(told, then)| told == state && *then != now).count();
    faults.add(Kind::WrongContent, changed as u64, || format!("the artifacts of task {task} are not what was told"));
    let logged = shown.log.iter().rev().find_map(|event| event.state.as_deref());
    if logged.is_some_and(|logged| logged != state) {
        faults.add(Kind::WrongContent, 1, || format!("task {task} is {state}, but its log ends with {logged:?}"));
    }
    let as_asked = record.wish.ends().iter().any(|end| is_such(shown, end));
    faults.add(Kind::WrongContent, (!as_asked).into(), || {
        let (wish, status) = (&record.wish, &shown.status);
        let (artifacts, assembled) = (&shown.artifacts.beginning, &shown.assembled.beginning);
        format!("task {task} ({wish:?}) ended as {state} {status:?} with {artifacts:?}, by its log {assembled:?}")
    });
}

fn is_such(shown: &Shown, end: &End) -> bool {
    let artifacts = end.artifacts.as_ref().is_none_or(|text| shown.artifacts.is(text) && shown.assembled.is(text));
    end.state == shown.state && artifacts && end.status.as_ref().is_none_or(|text| shown.status == *text)
}

/// Every event must have been taken, none before the one before it, and each with its own content. More than once is
/// allowed.
fn hooks(task: &str, record: &Record, shown: &Shown, faults: &mut Faults) {
    let mut taken = BTreeSet::new();
    let mut complete = 0;
    for arrival in &record.arrivals {
        let seq = arrival.seq;
        let same = shown.log.iter().any(|event| event.seq == seq && event.digest == arrival.digest);
        faults.add(Kind::WrongContent, (!same).into(), || format!("webhook {seq} of task {task} is not its event"));
        if arrival.taken && taken.insert(seq) {
            faults.add(Kind::OutOfOrder, (seq > complete + 1).into(), || {
                format!("webhook {seq} of task {task} came when {complete} had been taken")
            });
            while taken.contains(&(complete + 1)) {
                complete += 1;
            }
        }
    }
    let missing = shown.log.iter().filter(|event| !taken.contains(&event.seq)).count();
    faults.add(Kind::WebhooksLost, missing as u64, || {
        format!("{missing} of {} webhooks of task {task} did not arrive", shown.log.len())
    });
}

#[cfg(test)]
#[path = "checker_tests.rs"]
mod tests;
