//! How stored commits become a task, whatever store they are in. A store reads the commits that a reader must fold, newest first; what of each
//! is needed, and what they come to, is decided here.

use std::sync::Arc;

use switchboard_core::lifecycle::{Event, Folded, Head};
use switchboard_core::model::{TaskState, TaskStatus, Timestamp};
use switchboard_engine::ports::store::{
    Accepted, AcceptedTask, ListQuery, StoreError, StoredTask, TaskKey, newest_status,
};

use super::codec::{Contents, ParsedCommit};

/// The heads of the chains of commits that a reader must fold, newest first. Each log row points to the next commit of its
/// chain.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Chains {
    pub(crate) story: i64,
    pub(crate) artifact: i64,
    pub(crate) status: i64,
}

/// Which chains a commit is added to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct OnChains {
    pub(crate) story: bool,
    pub(crate) artifact: bool,
    pub(crate) status: bool,
}

impl OnChains {
    pub(crate) fn of(events: &[Event], folds: bool) -> Self {
        let writes_artifact = |event: &Event| matches!(event, Event::ArtifactWritten { .. });
        let sets_status = |event: &Event| matches!(event, Event::Opened { .. } | Event::StatusChanged { .. });
        Self {
            story: folds && !events.iter().all(writes_artifact),
            artifact: events.iter().any(writes_artifact),
            status: events.iter().any(sets_status),
        }
    }
}

impl Chains {
    /// The heads of the chains after one more commit.
    #[cfg(feature = "sqlite")]
    pub(crate) fn after(self, version: i64, events: &[Event], folds: bool) -> Self {
        let on = OnChains::of(events, folds);
        let newer = |is_on: bool, before: i64| if is_on { version } else { before };
        Self {
            story: newer(on.story, self.story),
            artifact: newer(on.artifact, self.artifact),
            status: newer(on.status, self.status),
        }
    }
}

/// Integers of databases end at 2^63, which no count here reaches.
pub(crate) fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

pub(crate) fn unsigned(number: i64) -> u64 {
    u64::try_from(number).unwrap_or(0)
}

/// The error for a commit that ought to be there.
pub(crate) fn missing(task_no: i64, version: i64) -> StoreError {
    StoreError::Corrupt(format!("commit {version} of task number {task_no} is missing"))
}

/// How much of the history a reader wants: the newest messages.
#[derive(Clone, Copy)]
pub(crate) struct HistoryBounds {
    pub(crate) bytes_max: u64,
    pub(crate) messages_max: u32,
    /// Whether the reader may start the current turn, whose message is then whole.
    pub(crate) may_run: bool,
}

impl HistoryBounds {
    pub(crate) fn bytes(bytes_max: u64) -> Self {
        Self { bytes_max, messages_max: u32::MAX, may_run: true }
    }

    /// For a reader that may want only so many messages, and then shows the task without starting its turn.
    pub(crate) fn within(bytes_max: u64, messages_max: Option<u32>) -> Self {
        let shown = |messages_max| Self { bytes_max, messages_max, may_run: false };
        messages_max.map_or(Self::bytes(bytes_max), shown)
    }

    pub(crate) fn of_list(query: &ListQuery) -> Self {
        let messages_max = query.history_max.unwrap_or(u32::MAX);
        Self { bytes_max: query.bytes_max, messages_max, may_run: false }
    }
}

/// A task that is being folded. Of messages beyond the bounds the contents are not wanted.
pub(crate) struct Folding {
    bytes_left: u64,
    messages_left: u32,
    /// The turn whose message is wanted whole in any case.
    turn: Option<u32>,
    /// The commit that set the present status.
    status: i64,
    seen: usize,
    /// Of how many of the commits, the newest first, all messages are whole.
    whole: Option<usize>,
}

impl Folding {
    pub(crate) fn of(head: &Head, status: i64, bounds: HistoryBounds) -> Self {
        let HistoryBounds { bytes_max: bytes_left, messages_max: messages_left, may_run } = bounds;
        let turn = (may_run && head.running).then_some(head.turn);
        Self { bytes_left, messages_left, turn, status, seen: 0, whole: None }
    }

    /// What is wanted of the next commit; they come newest first.
    pub(crate) fn wants(&mut self, version: i64, commit: &ParsedCommit<'_>) -> Contents {
        let (messages, bytes) = commit.messages();
        if self.whole.is_none() && bytes > 0 && (self.messages_left == 0 || bytes > self.bytes_left) {
            self.whole = Some(self.seen);
        }
        self.seen += 1;
        self.bytes_left = self.bytes_left.saturating_sub(bytes);
        self.messages_left = self.messages_left.saturating_sub(messages);
        match self.whole {
            Some(_) => Contents::Only { turn: self.turn, status: version == self.status },
            None => Contents::All,
        }
    }

    /// Folds the commits, which are still newest first.
    pub(crate) fn finish(self, key: TaskKey, head: Head, commits: &[(i64, Vec<Event>)]) -> StoredTask {
        let shortened = self.whole.map_or(0, |whole| commits.len() - whole);
        let mut folded = Folded::empty(head.id.clone(), head.context_id.clone());
        let mut hollow = 0;
        for (number, (version, events)) in commits.iter().rev().enumerate() {
            folded.apply_all(events);
            if number + 1 == shortened {
                hollow = folded.task.history.len();
            }
            // A status message without contents must not get into the history when the next status comes.
            if number < shortened && *version != self.status && newest_status(events).is_some() {
                Arc::make_mut(&mut folded.task).status.message = None;
            }
        }
        if shortened > 0 {
            Arc::make_mut(&mut folded.task).history.drain(..hollow);
            folded.is_shortened = true;
        }
        StoredTask { key, head: head.into(), folded: folded.into(), outlined: Vec::new() }
    }
}

/// The commit that accepted a message, from which the task of that moment is folded. Every commit has the heads of the chains before it,
/// so the commits to fold are found as for the present task, and later ones are not read.
pub(crate) struct Accepting {
    pub(crate) version: i64,
    pub(crate) prev_artifact: i64,
    pub(crate) seq: u64,
    pub(crate) at: Timestamp,
    pub(crate) waited: bool,
}

impl Accepting {
    /// The chains of that moment. `status` is the commit that had set the status, if it was found.
    pub(crate) fn chains(&self, status: Option<i64>) -> Chains {
        Chains { story: self.version, artifact: self.prev_artifact, status: status.unwrap_or_default() }
    }

    /// The task of that moment, as it was folded from these chains.
    pub(crate) fn finish(self, stored: StoredTask, status: Option<i64>) -> AcceptedTask {
        let StoredTask { folded, outlined, .. } = stored;
        let mut task = folded.task.clone();
        if status.is_none() {
            // The status is too far back because the agent has only written artifacts since, so the task is working.
            let status = TaskStatus { state: TaskState::Working, message: None, timestamp: self.at };
            Arc::make_mut(&mut task).status = status;
        }
        AcceptedTask { task, outlined, seq: self.seq, waited: self.waited }
    }

    /// The error if no commit is found.
    pub(crate) fn missing(task_no: i64, accepted: &Accepted) -> StoreError {
        let turn = accepted.turn;
        StoreError::Corrupt(format!("no commit of task number {task_no} accepted the message of turn {turn}"))
    }
}
