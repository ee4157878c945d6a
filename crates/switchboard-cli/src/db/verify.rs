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
    let mut faults: Vec<Fault> = Vec::new();
    let mut keep = |fault: Fault| {
        if faults.len() < FAULTS_MAX {
            faults.push(fault);
        }
    };
    let checked = database::verify_with_keys(file, keys, &mut keep).map_err(Failure::runtime)?;
    let report = if json { as_json(file, &checked, &faults).to_string() } else { as_text(file, &checked, &faults) };
    if checked.faults == 0 {
        return Ok(report);
    }
    output::say(report);
    Err(Failure::Runtime(format!("{} has {} faults", file.display(), checked.faults)))
}

fn as_text(file: &Path, checked: &Checked, faults: &[Fault]) -> String {
    let mut text = format!(
        "{}: looked at {} tasks ({} of them compacted), {} commits with {} events, {} pieces of content ({}), {} webhooks, \
         {} accepted messages and {} entries of the audit log",
        file.display(),
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

fn as_json(file: &Path, checked: &Checked, faults: &[Fault]) -> Value {
    let listed: Vec<Value> = faults.iter().map(|fault| json!({"task": fault.task, "what": fault.what})).collect();
    json!({
        "file": file.display().to_string(),
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
