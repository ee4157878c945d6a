//! The audit log: who did or was refused what, in a chain of hashes that shows whether an entry was changed, removed or
//! put in later. It holds no secrets and nothing of what was said to agents.
//!
//! An entry is one line of JSON, the record. Its hash is SHA-256 of the hash of the entry before it, as 64 hexadecimal
//! digits, followed by the record; the first entry follows 64 zeros. So an export can be checked with `sha256sum`. Entries
//! that are no longer kept leave the hash of the last of them behind, the anchor, which the next entry follows.
//!
//! The chain has no secret: it finds changes by anyone who does not rewrite every later entry, and a rewritten chain is
//! found by comparing with the number and hash of an entry that was noted elsewhere.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::net::IpAddr;

use aws_lc_rs::digest::{SHA256, digest};
use switchboard_core::call::BoxFuture;
use switchboard_core::model::{AgentName, TaskId, Timestamp};

use super::common::StoreError;

/// The part of a store that keeps the audit log.
pub trait AuditLog: Send + Sync {
    /// Adds an entry. It returns at once: the entry becomes durable with the next commit, and without one within a second or
    /// when the store is closed.
    fn record(&self, entry: AuditEntry);

    /// Waits until every entry that was recorded before is durable.
    fn flush(&self) -> BoxFuture<'_, Result<(), StoreError>>;

    /// The entries after this number, at most `limit`, of the chain that this process writes.
    fn page(&self, after_no: u64, limit: usize) -> BoxFuture<'_, Result<AuditPage, StoreError>>;

    /// Removes the oldest entries that are no longer kept, at most `limit`, and returns how many. The chain stays
    /// verifiable.
    fn forget(&self, retention: AuditRetention, limit: usize) -> BoxFuture<'_, Result<usize, StoreError>>;
}

/// What the audit log keeps.
#[derive(Clone, Copy, Debug)]
pub struct AuditRetention {
    pub now: Timestamp,
    pub entries_ms: i64,
    pub entries_max: u64,
}

/// What happened, who did it, and what was decided. Empty fields are left out of the record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuditEntry {
    pub at: Timestamp,
    pub event: AuditEvent,
    pub decision: Decision,
    pub tenant: String,
    pub principal: String,
    /// Where the caller is, without its port.
    pub address: Option<IpAddr>,
    /// What was asked for, as in `SendMessage` or `outbox redrive`.
    pub operation: Cow<'static, str>,
    pub agent: Option<AgentName>,
    pub task: Option<TaskId>,
    /// Whose things were acted on, if not the caller's own.
    pub on_behalf_of: String,
    /// Why, as a word of the protocol such as `UNAUTHENTICATED`, or in a few words.
    pub reason: Cow<'static, str>,
    /// How many events the entry stands for, if it is not one.
    pub count: Option<u64>,
}

impl AuditEntry {
    /// An entry of which nothing else is known yet.
    #[must_use]
    pub fn new(at: Timestamp, event: AuditEvent, decision: Decision, operation: impl Into<Cow<'static, str>>) -> Self {
        Self {
            at,
            event,
            decision,
            tenant: String::new(),
            principal: String::new(),
            address: None,
            operation: operation.into(),
            agent: None,
            task: None,
            on_behalf_of: String::new(),
            reason: Cow::Borrowed(""),
            count: None,
        }
    }

    /// The record of this entry at its place in a chain.
    #[must_use]
    pub fn record(&self, chain: &str, no: u64) -> String {
        // All fields are named here, so that the compiler reports an added one.
        let Self {
            at,
            event,
            decision,
            tenant,
            principal,
            address,
            operation,
            agent,
            task,
            on_behalf_of,
            reason,
            count,
        } = self;
        let mut record = String::with_capacity(256);
        let _ = write!(record, "{{\"chain\":");
        push_text(&mut record, chain);
        let _ = write!(record, ",\"no\":{no},\"at\":\"{at}\",\"event\":\"{}\"", event.word());
        let _ = write!(record, ",\"decision\":\"{}\"", decision.word());
        let texts = [
            ("tenant", tenant.as_str()),
            ("principal", principal),
            ("operation", operation),
            ("agent", agent.as_ref().map_or("", AgentName::as_str)),
            ("task", task.as_ref().map_or("", TaskId::as_str)),
            ("onBehalfOf", on_behalf_of),
            ("reason", reason),
        ];
        for (name, text) in texts.into_iter().filter(|(_, text)| !text.is_empty()) {
            let _ = write!(record, ",\"{name}\":");
            push_text(&mut record, text);
        }
        if let Some(address) = address {
            let _ = write!(record, ",\"address\":\"{}\"", address.to_canonical());
        }
        if let Some(count) = count {
            let _ = write!(record, ",\"count\":{count}");
        }
        record.push('}');
        record
    }
}

/// The longest text in a record; longer ones are cut.
const AUDIT_TEXT_BYTES_MAX: usize = 512;

fn push_text(record: &mut String, text: &str) {
    let mut ends = (0..=AUDIT_TEXT_BYTES_MAX.min(text.len())).rev();
    let end = ends.find(|end| text.is_char_boundary(*end)).unwrap_or(0);
    let mark = if end < text.len() { "…" } else { "" };
    // A text is always JSON; the fallback is there because the type of the function says otherwise.
    record.push_str(&serde_json::to_string(&format_args!("{}{mark}", &text[..end]).to_string()).unwrap_or_default());
}

/// The kinds of entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AuditEvent {
    /// A request was refused for who asked, or for how much was asked.
    Refusal,
    /// Refusals that were too many to be entries of their own.
    RefusalsSummed,
    /// A message was accepted.
    Send,
    /// Credentials were changed.
    Credentials,
    /// Rules about who may do what were changed.
    Rules,
    /// An operator changed something on a running server.
    Operator,
    /// Something was changed while no server was running.
    Offline,
    /// Entries were lost because they came faster than they could be written.
    EntriesLost,
}

impl AuditEvent {
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Refusal => "refusal",
            Self::RefusalsSummed => "refusals-summed",
            Self::Send => "send",
            Self::Credentials => "credentials",
            Self::Rules => "rules",
            Self::Operator => "operator",
            Self::Offline => "offline",
            Self::EntriesLost => "entries-lost",
        }
    }
}

/// What was decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    Allowed,
    Refused,
    /// It was allowed and did not work.
    Failed,
}

impl Decision {
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Allowed => "allowed",
            Self::Refused => "refused",
            Self::Failed => "failed",
        }
    }
}

/// A hash of the chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct AuditHash(pub [u8; 32]);

impl AuditHash {
    /// What the first entry of a chain follows.
    pub const BEGIN: Self = Self([0; 32]);

    /// The hash of an entry that follows the one with this hash.
    #[must_use]
    pub fn next(&self, record: &str) -> Self {
        let mut hash = [0; 32];
        hash.copy_from_slice(digest(&SHA256, format!("{self}{record}").as_bytes()).as_ref());
        Self(hash)
    }

    /// Reads 64 hexadecimal digits in lower case.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let digit = |byte: u8| match byte {
            b'0'..=b'9' => Some(byte - b'0'),
            b'a'..=b'f' => Some(byte - b'a' + 10),
            _ => None,
        };
        let (pairs, rest) = text.as_bytes().as_chunks::<2>();
        let mut hash = [0; 32];
        if pairs.len() != hash.len() || !rest.is_empty() {
            return None;
        }
        for (byte, [high, low]) in hash.iter_mut().zip(pairs) {
            *byte = digit(*high)? << 4 | digit(*low)?;
        }
        Some(Self(hash))
    }
}

impl std::fmt::Display for AuditHash {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// Where a chain stands: the number and the hash of an entry. Number 0 is before the first entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChainPosition {
    pub no: u64,
    pub hash: AuditHash,
}

impl ChainPosition {
    pub const BEGIN: Self = Self { no: 0, hash: AuditHash::BEGIN };

    /// The position after an entry with this record.
    #[must_use]
    pub fn after(&self, record: &str) -> Self {
        Self { no: self.no + 1, hash: self.hash.next(record) }
    }

    /// Checks that an entry comes next, and returns the position after it.
    ///
    /// # Errors
    /// What is wrong with the entry.
    pub fn follow(&self, chain: &str, entry: &StoredEntry) -> Result<Self, String> {
        let next = self.after(&entry.record);
        if entry.no != next.no {
            return Err(format!("entry {} is missing; entry {} comes next", next.no, entry.no));
        }
        if entry.hash != next.hash {
            return Err(format!("entry {} does not match its hash", entry.no));
        }
        let mut begins = String::from("{\"chain\":");
        push_text(&mut begins, chain);
        let _ = write!(begins, ",\"no\":{},\"at\":\"{}\",", entry.no, entry.at);
        if !entry.record.starts_with(&begins) {
            return Err(format!("the record of entry {} is about another entry", entry.no));
        }
        Ok(next)
    }
}

/// An entry as it is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredEntry {
    pub no: u64,
    pub at: Timestamp,
    pub record: String,
    pub hash: AuditHash,
}

impl StoredEntry {
    /// The line of an export: the record with the two hashes as its last members.
    #[must_use]
    pub fn export_line(&self, prev: &AuditHash) -> String {
        let members = self.record.strip_suffix('}').unwrap_or(&self.record);
        format!("{members},\"prev\":\"{prev}\",\"hash\":\"{}\"}}", self.hash)
    }
}

/// The record, the hash before it and its own hash, from the line of an export.
#[must_use]
pub fn read_export_line(line: &str) -> Option<(String, AuditHash, AuditHash)> {
    let rest = line.strip_suffix("\"}")?;
    let (rest, hash) = rest.rsplit_once(",\"hash\":\"")?;
    let rest = rest.strip_suffix('"')?;
    let (members, prev) = rest.rsplit_once(",\"prev\":\"")?;
    Some((format!("{members}}}"), AuditHash::parse(prev)?, AuditHash::parse(hash)?))
}

/// Some entries of one chain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuditPage {
    /// The name of the chain; empty as long as it has no entry.
    pub chain: String,
    /// The last entry that is no longer kept.
    pub anchor: ChainPosition,
    pub entries: Vec<StoredEntry>,
}

#[cfg(test)]
#[path = "audit_tests.rs"]
mod tests;
