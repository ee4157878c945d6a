//! `switchboard audit`: checks and exports the audit log, of a database or of an export.

use std::fs::File;
use std::io::BufReader;
use std::path::Path;

use serde_json::{Value, json};
use switchboard::audit_log::{self, AuditChain, AuditHash, Position, StoredEntry};

use crate::cli::{AuditCommand, AuditVerifyArgs};
use crate::config::Environment;
use crate::data_args::DatabaseArgs;
use crate::db::postgres::is_meant;
use crate::db::{database, settings};
use crate::failure::Failure;
use crate::{output, postgres_options};

/// Runs the command and returns the text to print at its end.
///
/// # Errors
/// When the log cannot be read, is broken, or does not hold the entry that was noted.
pub(crate) fn run(command: &AuditCommand, environment: &Environment, folder: &Path) -> Result<String, Failure> {
    match command {
        AuditCommand::Verify(args) => verify(args, environment, folder),
        AuditCommand::Export(args) => export(|show| {
            read(&args.of, environment, folder, &mut |before, entry| show(entry.export_line(&before.hash)))
        }),
    }
}

/// Checks the chains of a database, in a folder or in PostgreSQL, and shows each entry with the position of the one before.
fn read(
    of: &DatabaseArgs,
    environment: &Environment,
    folder: &Path,
    show: &mut dyn FnMut(&Position, &StoredEntry),
) -> Result<Vec<AuditChain>, Failure> {
    match is_meant(of, environment, folder)? {
        true => postgres_options::read_audit(&settings(of, environment, folder)?, environment, show),
        false => audit_log::read(&database(of, environment, folder)?, show).map_err(Failure::runtime),
    }
}

/// Prints the entries, and fails at the first that does not follow.
fn export(read: impl FnOnce(&mut dyn FnMut(String)) -> Result<Vec<AuditChain>, Failure>) -> Result<String, Failure> {
    let mut last: Option<String> = None;
    // The last line is printed by the caller.
    let chains = read(&mut |line| {
        if let Some(line) = last.replace(line) {
            output::say(line);
        }
    });
    match broken(&chains?) {
        None => last.ok_or_else(|| Failure::Runtime("the audit log is empty".to_owned())),
        Some(why) => {
            last.into_iter().for_each(output::say);
            Err(Failure::Runtime(why))
        }
    }
}

fn verify(args: &AuditVerifyArgs, environment: &Environment, folder: &Path) -> Result<String, Failure> {
    let noted = args.noted.as_deref().map(parse_noted).transpose()?;
    let (mut entries, mut is_noted) = (0_u64, false);
    let mut show = |position: Position| {
        entries += 1;
        is_noted |= noted == Some(position);
    };
    let chains = match &args.file {
        Some(file) => {
            let wrong = |error: std::io::Error| Failure::Runtime(format!("{}: {error}", file.display()));
            let export = BufReader::new(File::open(folder.join(file)).map_err(wrong)?);
            audit_log::verify_export(export, &mut show).map_err(wrong)?
        }
        None => read(&args.of, environment, folder, &mut |_, entry| show(Position { no: entry.no, hash: entry.hash }))?,
    };
    // The last entry that was removed is known by its hash, too.
    is_noted |= noted.is_some_and(|noted| chains.iter().any(|chain| chain.anchor == noted));
    let broken = broken(&chains);
    let report = if args.json { as_json(&chains, entries).to_string() } else { as_text(&chains, entries) };
    let lost = noted.filter(|_| !is_noted).map(|noted| lost(&noted, &chains));
    match broken.or(lost) {
        None => Ok(report),
        Some(why) => {
            output::say(report);
            Err(Failure::Runtime(why))
        }
    }
}

fn parse_noted(text: &str) -> Result<Position, Failure> {
    let parsed = text
        .split_once(':')
        .and_then(|(no, hash)| Some(Position { no: no.parse().ok()?, hash: AuditHash::parse(hash)? }));
    parsed.ok_or_else(|| {
        Failure::Usage(format!("--noted: expected the number and the hash of an entry, as in 12:9f86…, got {text:?}"))
    })
}

fn broken(chains: &[AuditChain]) -> Option<String> {
    let chain = chains.iter().find(|chain| chain.broken.is_some())?;
    Some(format!("the audit log is broken: {} (chain {})", chain.broken.as_deref().unwrap_or_default(), chain.id))
}

fn lost(noted: &Position, chains: &[AuditChain]) -> String {
    let Position { no, hash } = noted;
    match chains.iter().any(|chain| *no < chain.anchor.no) {
        true => format!("entry {no} is no longer kept, so it cannot be compared; note a newer one"),
        false => format!("the log has no entry {no} with the hash {hash}: it is not the log that was noted"),
    }
}

fn as_text(chains: &[AuditChain], entries: u64) -> String {
    let mut text = format!("looked at {entries} entries of the audit log");
    for AuditChain { id, anchor, last, broken } in chains {
        text.push_str(&format!("\nchain {id}: entries {} to {}", anchor.no + 1, last.no));
        match broken {
            Some(why) => text.push_str(&format!("\nbroken: {why}")),
            None => text.push_str(&format!("\nnote it elsewhere: {}:{}", last.no, last.hash)),
        }
    }
    text
}

fn as_json(chains: &[AuditChain], entries: u64) -> Value {
    let chain = |AuditChain { id, anchor, last, broken }: &AuditChain| {
        json!({
            "chain": id,
            "first": anchor.no + 1,
            "last": last.no,
            "hash": last.hash.to_string(),
            "broken": broken,
        })
    };
    json!({"entries": entries, "chains": chains.iter().map(chain).collect::<Vec<_>>()})
}

#[cfg(test)]
#[path = "audit_tests.rs"]
mod tests;
