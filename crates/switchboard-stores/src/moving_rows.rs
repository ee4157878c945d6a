//! The rows of a database in the form that both stores have in common. What one of them adds for itself (checksums, links to the process
//! that holds a run, numbers of chunks) is left out, so rows of both can be compared.

use serde::{Deserialize, Serialize};
use switchboard_core::lifecycle::Head;
use switchboard_engine::ports::audit::{ChainPosition, StoredEntry};
use switchboard_engine::ports::calls::CallRow;

use crate::record::Chains;

/// How many rows are moved with one transaction, and about how many bytes of their contents. One commit is never divided.
pub(crate) const PAGE_ROWS: usize = if cfg!(test) { 2 } else { 500 };
pub(crate) const PAGE_BYTES: usize = 4 << 20;

/// The tables, in the order in which they are moved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    Scopes,
    Tasks,
    Commits,
    Webhooks,
    Keys,
    Calls,
    Entries,
    Chains,
}

impl Stage {
    pub(crate) const ALL: [Self; 8] = [
        Self::Scopes,
        Self::Tasks,
        Self::Commits,
        Self::Webhooks,
        Self::Keys,
        Self::Calls,
        Self::Entries,
        Self::Chains,
    ];

    /// What is moved, for people; also how far a move has come is told by it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Scopes => "owners",
            Self::Tasks => "tasks",
            Self::Commits => "commits",
            Self::Webhooks => "webhooks",
            Self::Keys => "accepted messages",
            Self::Calls => "calls",
            Self::Entries => "audit entries",
            Self::Chains => "audit chains",
        }
    }
}

/// The row that was moved last: its number, one within it, and a key in hexadecimal, as far as rows of its kind have them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
pub(crate) struct Cursor {
    pub(crate) no: i64,
    pub(crate) within: i64,
    pub(crate) key: String,
}

impl Cursor {
    fn at(no: i64) -> Self {
        Self { no, ..Self::default() }
    }

    fn within(no: i64, within: i64) -> Self {
        Self { no, within, ..Self::default() }
    }

    /// The bytes of the key; a text that is none stands for no key.
    pub(crate) fn key_bytes(&self) -> Vec<u8> {
        let pairs = self.key.as_bytes().chunks(2).map(|pair| std::str::from_utf8(pair).unwrap_or_default());
        pairs.map_while(|pair| u8::from_str_radix(pair, 16).ok()).collect()
    }
}

/// One row.
#[derive(Debug, PartialEq)]
pub(crate) enum Row {
    Scope(ScopeRow),
    Task(Box<TaskRow>),
    Commit(CommitRow),
    Webhook(Box<WebhookRow>),
    Key(KeyRow),
    Call { call_no: i64, call: Box<CallRow> },
    Entry { chain_no: i64, entry: StoredEntry },
    Chain(ChainRow),
}

/// An owner at an agent.
#[derive(Debug, PartialEq)]
pub(crate) struct ScopeRow {
    pub(crate) scope_no: i64,
    /// Tenant, principal and agent.
    pub(crate) names: [String; 3],
}

#[derive(Debug, PartialEq)]
pub(crate) struct TaskRow {
    pub(crate) task_no: i64,
    pub(crate) scope_no: i64,
    /// Without the name of the agent, which the scope has.
    pub(crate) head: Head,
    pub(crate) chains: Chains,
    pub(crate) floor_seq: i64,
    pub(crate) floor_version: i64,
    pub(crate) run: RunRow,
    pub(crate) created_at: i64,
    pub(crate) updated_at: i64,
    pub(crate) closed_at: Option<i64>,
    /// What it counts of the limits of stored bytes. Records of the two stores differ by the numbers of chunks, and so does this.
    pub(crate) bytes: i64,
}

/// The run of a task, when no process is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RunRow {
    None,
    /// It was released, and is due at this time.
    Released {
        due_at: i64,
    },
    /// The process that held it is gone; whether it had begun.
    Held {
        begun: bool,
    },
}

#[derive(Debug, PartialEq)]
pub(crate) struct CommitRow {
    pub(crate) task_no: i64,
    pub(crate) version: i64,
    pub(crate) last_seq: i64,
    pub(crate) visible: i64,
    pub(crate) prev_story: i64,
    pub(crate) prev_artifact: i64,
    pub(crate) at: i64,
    /// Whether an idempotency key was stored with it.
    pub(crate) has_key: bool,
    /// Its chunks are numbered from 1.
    pub(crate) record: String,
    /// How long the record is where it was read.
    pub(crate) record_bytes: usize,
    pub(crate) pieces: Vec<PieceRow>,
}

impl CommitRow {
    /// What it counts of the limits of stored bytes, webhooks aside.
    pub(crate) fn content_bytes(&self) -> usize {
        self.record.len() + self.pieces.iter().map(|piece| piece.bytes.len()).sum::<usize>()
    }
}

/// A chunk of a content that is too large for its record.
#[derive(Debug, PartialEq)]
pub(crate) struct PieceRow {
    pub(crate) part: i64,
    pub(crate) start: i64,
    pub(crate) artifact_id: Option<String>,
    pub(crate) bytes: Vec<u8>,
}

/// A webhook with its secrets as they are stored, and how far it has come.
#[derive(Debug, PartialEq)]
pub(crate) struct WebhookRow {
    pub(crate) push_no: i64,
    pub(crate) task_no: i64,
    pub(crate) config_id: String,
    pub(crate) url: String,
    pub(crate) token: Option<String>,
    pub(crate) auth_scheme: Option<String>,
    pub(crate) auth_credentials: Option<String>,
    pub(crate) dialect: String,
    pub(crate) delivered_seq: i64,
    pub(crate) failures: i64,
    pub(crate) parked: bool,
    pub(crate) last_error: Option<String>,
    pub(crate) last_attempt_at: Option<i64>,
    pub(crate) created_at: i64,
    pub(crate) due_at: Option<i64>,
}

/// A message that was accepted.
#[derive(Debug, PartialEq)]
pub(crate) struct KeyRow {
    /// On which day it expires.
    pub(crate) day: i64,
    pub(crate) key: Vec<u8>,
    pub(crate) digest: Vec<u8>,
    pub(crate) task_no: i64,
    pub(crate) version: i64,
    pub(crate) turn: i64,
    pub(crate) after_seq: i64,
    pub(crate) expires: i64,
}

#[derive(Debug, PartialEq)]
pub(crate) struct ChainRow {
    pub(crate) chain_no: i64,
    pub(crate) id: String,
    pub(crate) anchor: ChainPosition,
    pub(crate) last_no: u64,
}

impl Row {
    /// Where to go on after this row.
    pub(crate) fn cursor(&self) -> Cursor {
        match self {
            Self::Scope(row) => Cursor::at(row.scope_no),
            Self::Task(row) => Cursor::at(row.task_no),
            Self::Commit(row) => Cursor::within(row.task_no, row.version),
            Self::Webhook(row) => Cursor::at(row.push_no),
            Self::Key(row) => {
                let key = row.key.iter().map(|byte| format!("{byte:02x}")).collect();
                Cursor { no: row.day, within: 0, key }
            }
            Self::Call { call_no, .. } => Cursor::at(*call_no),
            Self::Entry { chain_no, entry } => Cursor::within(*chain_no, i64::try_from(entry.no).unwrap_or(i64::MAX)),
            Self::Chain(row) => Cursor::at(row.chain_no),
        }
    }

    /// Which row it is, for people.
    pub(crate) fn place(&self) -> String {
        match self {
            Self::Scope(row) => format!("owner number {}", row.scope_no),
            Self::Task(row) => format!("task {}", row.head.id),
            Self::Commit(row) => format!("commit {} of task number {}", row.version, row.task_no),
            Self::Webhook(row) => format!("webhook {} of task number {}", row.config_id, row.task_no),
            Self::Key(row) => format!("an accepted message of task number {}", row.task_no),
            Self::Call { call, .. } => format!("call {}", call.id),
            Self::Entry { chain_no, entry } => format!("entry {} of audit chain number {chain_no}", entry.no),
            Self::Chain(row) => format!("audit chain {}", row.id),
        }
    }

    /// The row without what may differ between two stores that hold the same.
    pub(crate) fn comparable(mut self) -> Self {
        match &mut self {
            Self::Task(row) => row.bytes = 0,
            Self::Commit(row) => row.record_bytes = 0,
            _ => {}
        }
        self
    }
}
