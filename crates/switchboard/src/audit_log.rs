//! The audit log of a durable server, read from its database: checked, exported, and added to by tools that change the
//! database while no server runs. `docs/audit.md` says what the log holds.
//!
//! ```no_run
//! use std::path::Path;
//! use switchboard::audit_log;
//!
//! let chains = audit_log::export(Path::new("data/tasks.db"), &mut |line| println!("{line}"))?;
//! assert!(chains.iter().all(|chain| chain.broken.is_none()));
//! # Ok::<(), switchboard::database::FileError>(())
//! ```
//!
//! These functions wait for the disk: from async code, call them on a thread that may.

use std::collections::BTreeMap;
use std::io::{self, BufRead, Read};
use std::path::Path;
use std::sync::Arc;

use serde_json::Value;
use switchboard_core::model::Timestamp;
use switchboard_engine::ports::audit::{ChainPosition, read_export_line};
use switchboard_engine::system::SystemClock;
use switchboard_stores::sqlite::{append_audit, append_audit_unless_old, read_audit};

use crate::database::FileError;
use crate::offline_entry::offline_entry;

pub use switchboard_engine::ports::audit::{AuditHash, ChainPosition as Position, StoredEntry};
pub use switchboard_stores::sqlite::AuditChain;

/// Checks the chains of a database, its server running or not, and shows the position of each entry.
///
/// # Errors
/// When the file is missing, is not Switchboard's, or cannot be read. That a chain is broken is no error: its
/// [`broken`](AuditChain::broken) says where.
pub fn verify(database: &Path, show: &mut dyn FnMut(Position)) -> Result<Vec<AuditChain>, FileError> {
    read_audit(database, &mut |_, entry| show(Position { no: entry.no, hash: entry.hash }))
}

/// Checks the chains of a database, and shows each entry that follows the one before it, with that one's position.
///
/// # Errors
/// As [`verify`].
pub fn read(database: &Path, show: &mut dyn FnMut(&Position, &StoredEntry)) -> Result<Vec<AuditChain>, FileError> {
    read_audit(database, show)
}

/// Writes every entry that follows its predecessor as a line of JSON, up to the first break of its chain.
///
/// # Errors
/// As [`verify`].
pub fn export(database: &Path, write: &mut dyn FnMut(String)) -> Result<Vec<AuditChain>, FileError> {
    read_audit(database, &mut |before, entry| write(entry.export_line(&before.hash)))
}

/// Adds an entry about something that was done to the database while no server runs. It holds no secrets: `operation` is a
/// name such as `db compact`, and `who` the user of the system.
///
/// # Errors
/// When there is no such file, a process has it open, or it cannot be written.
pub fn record_offline(database: &Path, who: &str, operation: &str, reason: &str) -> Result<(), FileError> {
    append_audit(database, Arc::new(SystemClock), offline_entry(who, operation, reason))
}

/// As [`record_offline`], for what does not change the database otherwise, such as a backup: a database of an earlier version is left as it
/// is. Says whether the entry was added.
///
/// # Errors
/// As [`record_offline`].
pub fn record_offline_unless_old(database: &Path, who: &str, operation: &str, reason: &str) -> Result<bool, FileError> {
    append_audit_unless_old(database, Arc::new(SystemClock), offline_entry(who, operation, reason))
}

/// The longest line of an export that is read.
const EXPORT_LINE_BYTES_MAX: u64 = 64 << 10;

/// Checks an export by itself. What comes before its first entry of each chain is not known and taken on trust.
///
/// # Errors
/// When it cannot be read, or a line is not one of an export; the error names the line.
pub fn verify_export(mut lines: impl BufRead, show: &mut dyn FnMut(Position)) -> io::Result<Vec<AuditChain>> {
    let mut chains: BTreeMap<String, AuditChain> = BTreeMap::new();
    let mut line = String::new();
    for number in 1.. {
        line.clear();
        if Read::take(&mut lines, EXPORT_LINE_BYTES_MAX).read_line(&mut line)? == 0 {
            break;
        }
        let not_ours = || io::Error::other(format!("line {number} is not a line of an export"));
        let (id, prev, entry) = stored_entry(line.trim_end()).ok_or_else(not_ours)?;
        let chain = chains.entry(id).or_insert_with_key(|id| {
            let anchor = ChainPosition { no: entry.no.saturating_sub(1), hash: prev };
            AuditChain { id: id.clone(), anchor, last: anchor, broken: None }
        });
        if chain.broken.is_some() {
            continue;
        }
        match chain.last.follow(&chain.id, &entry) {
            Ok(next) => {
                show(next);
                chain.last = next;
            }
            Err(why) => chain.broken = Some(why),
        }
    }
    Ok(chains.into_values().collect())
}

/// The name of the chain, the hash before the entry, and the entry.
fn stored_entry(line: &str) -> Option<(String, AuditHash, StoredEntry)> {
    let (record, prev, hash) = read_export_line(line)?;
    let members: Value = serde_json::from_str(&record).ok()?;
    let at = Timestamp::parse_rfc3339(members["at"].as_str()?)?;
    let no = members["no"].as_u64().filter(|no| *no > 0)?;
    let chain = members["chain"].as_str()?.to_owned();
    Some((chain, prev, StoredEntry { no, at, record, hash }))
}

#[cfg(test)]
mod tests {
    use super::verify_export;

    /// An export that was changed is refused or reported, and one that is verified was not changed.
    #[test]
    fn fuzz_exports() {
        let record = r#"{"chain":"c","no":1,"at":"1970-01-01T00:00:00.000Z","event":"send","decision":"allowed"}"#;
        let begin = super::Position::BEGIN;
        let hash = begin.after(record).hash;
        let line = format!("{},\"prev\":\"{}\",\"hash\":\"{hash}\"}}", record.trim_end_matches('}'), begin.hash);
        let whole = format!("{line}\n").into_bytes();
        switchboard_fuzz::run("exports", &[whole], |input| {
            let Ok(chains) = verify_export(input, &mut |_| {}) else { return };
            for chain in chains.iter().filter(|chain| chain.broken.is_none() && chain.last.hash == hash) {
                assert!(input.windows(line.len()).any(|part| part == line.as_bytes()), "{}", chain.id);
            }
        });
    }
}
