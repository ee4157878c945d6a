//! `switchboard db verify`: what was looked at, and each fault, for people or as one line of JSON.

use std::path::Path;

use serde_json::{Value, json};
use switchboard::SecretKeySource;
use switchboard::database::{self, Checked, Fault};

use super::size;
use crate::failure::Failure;
use crate::output;

/// Faults that are listed; the others are only counted.
const FAULTS_MAX: usize = 1000;

pub(super) fn verify(file: &Path, keys: &SecretKeySource, json: bool) -> Result<String, Failure> {
    let check = |tell: &mut dyn FnMut(Fault)| database::verify_with_keys(file, keys, tell).map_err(Failure::runtime);
    report(&file.display().to_string(), json, check)
}

/// Runs a check and tells what it found.
pub(super) fn report(
    place: &str,
    json: bool,
    check: impl FnOnce(&mut dyn FnMut(Fault)) -> Result<Checked, Failure>,
) -> Result<String, Failure> {
    let mut faults: Vec<Fault> = Vec::new();
    let mut keep = |fault: Fault| {
        if faults.len() < FAULTS_MAX {
            faults.push(fault);
        }
    };
    let checked = check(&mut keep)?;
    let report = if json { as_json(place, &checked, &faults).to_string() } else { as_text(place, &checked, &faults) };
    if checked.faults == 0 {
        return Ok(report);
    }
    output::say(report);
    Err(Failure::Runtime(format!("{place} has {} faults", checked.faults)))
}

fn as_text(place: &str, checked: &Checked, faults: &[Fault]) -> String {
    let mut text = format!(
        "{place}: looked at {} tasks ({} of them compacted), {} commits with {} events, {} pieces of content ({}), {} webhooks, \
         {} accepted messages and {} entries of the audit log",
        checked.tasks,
        checked.tasks_compacted,
        checked.commits,
        checked.events,
        checked.chunks,
        size(checked.chunk_bytes),
        checked.webhooks,
        checked.accepted,
        checked.audit_entries
    );
    if checked.webhooks_without_key > 0 {
        text.push_str(&format!(
            "\nthe tokens and credentials of {} webhooks cannot be read: their key is not there; without it, they are posted to \
             without them (docs/backup.md)",
            checked.webhooks_without_key
        ));
    }
    for fault in faults {
        text.push_str(&format!("\nfault: {fault}"));
    }
    let unlisted = checked.faults - faults.len() as u64;
    if unlisted > 0 {
        text.push_str(&format!("\nand {unlisted} more"));
    }
    if checked.faults == 0 {
        text.push_str("\nno faults");
    }
    text
}

fn as_json(place: &str, checked: &Checked, faults: &[Fault]) -> Value {
    let listed: Vec<Value> = faults.iter().map(|fault| json!({"task": fault.task, "what": fault.what})).collect();
    json!({
        "file": place,
        "tasks": checked.tasks,
        "tasks_compacted": checked.tasks_compacted,
        "commits": checked.commits,
        "events": checked.events,
        "chunks": checked.chunks,
        "chunk_bytes": checked.chunk_bytes,
        "webhooks": checked.webhooks,
        "webhooks_without_key": checked.webhooks_without_key,
        "accepted": checked.accepted,
        "audit_entries": checked.audit_entries,
        "faults_total": checked.faults,
        "faults": listed,
    })
}
