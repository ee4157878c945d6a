//! A record as a process knows it while it has to do with it: where the store has it, its newest head, and who waits for its next
//! state.

use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};

use switchboard_core::lifecycle::Head;
use switchboard_core::model::{ContextId, TaskId, Timestamp};
use tokio::sync::futures::Notified;
use tokio::sync::{Notify, SetOnce};

use super::tail::Tail;
use crate::ports::store::{Scope, StoredHead, TaskKey};
use crate::spans::RecordTrace;

/// One record as this process last saw it. The head may be out of date; every commit checks its version.
pub(crate) struct Record {
    pub(crate) scope: Scope,
    pub(crate) id: TaskId,
    pub(crate) context_id: ContextId,
    key: SetOnce<TaskKey>,
    head: Mutex<Arc<Head>>,
    /// When the record was opened. A stored record whose id a client chose does not say so; it has the time of its newest status.
    opened_at: Timestamp,
    /// Why its run failed, as one word for the log.
    failed_by: OnceLock<&'static str>,
    /// The tail of those who follow it, if one of them is the stream that polls its run: so that a commit of the run need not look for it.
    tail: OnceLock<Weak<Tail>>,
    /// Notified when a commit of this process has settled the record.
    settled: Notify,
    /// Where in a trace the newest work on the record belongs.
    pub(crate) trace: RecordTrace,
}

impl Record {
    pub(crate) fn unopened(scope: Scope, id: TaskId, context_id: ContextId, opened_at: Timestamp) -> Self {
        let head = Head::unopened(id.clone(), context_id.clone(), scope.agent.clone());
        let head = Mutex::new(Arc::new(head));
        Self {
            scope,
            id,
            context_id,
            key: SetOnce::new(),
            head,
            opened_at,
            failed_by: OnceLock::new(),
            tail: OnceLock::new(),
            settled: Notify::new(),
            trace: RecordTrace::default(),
        }
    }

    pub(crate) fn stored(stored: StoredHead) -> Self {
        let StoredHead { key, scope, head } = stored;
        let (id, context_id) = (head.id.clone(), head.context_id.clone());
        let opened_at = minted_at(id.as_str()).unwrap_or(head.status_at);
        let (key, head) = (SetOnce::new_with(Some(key)), Mutex::new(head));
        let (failed_by, tail) = (OnceLock::new(), OnceLock::new());
        let (settled, trace) = (Notify::new(), RecordTrace::default());
        Self { scope, id, context_id, key, head, opened_at, failed_by, tail, settled, trace }
    }

    /// Notes why the run is about to fail the task, as one word for the log.
    pub(crate) fn fails_by(&self, reason: &'static str) {
        let _ = self.failed_by.set(reason);
    }

    /// Why the task failed. No reason is noted if the agent itself set the failed status.
    pub(crate) fn failed_by(&self) -> &'static str {
        self.failed_by.get().copied().unwrap_or("failed")
    }

    /// Notes the tail that the stream of its run follows.
    pub(crate) fn is_followed_at(&self, tail: &Arc<Tail>) {
        let _ = self.tail.set(Arc::downgrade(tail));
    }

    /// That tail, as long as it is there. A task has one tail at a time.
    pub(crate) fn tail(&self) -> Option<Arc<Tail>> {
        self.tail.get()?.upgrade()
    }

    pub(crate) fn head(&self) -> Arc<Head> {
        self.head.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn with_head<T>(&self, read: impl FnOnce(&Head) -> T) -> T {
        read(&self.head.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// When it was opened, as far as that is known.
    pub(crate) fn opened_at(&self) -> Timestamp {
        self.opened_at
    }

    /// Notes where the store has it. It stays there.
    pub(crate) fn is_stored_as(&self, key: TaskKey) {
        let _ = self.key.set(key);
    }

    /// None until the first commit.
    pub(crate) fn key(&self) -> Option<TaskKey> {
        self.key.get().copied()
    }

    /// Waits for the first commit.
    pub(crate) async fn committed(&self) {
        self.key.wait().await;
    }

    /// Keeps the newer of two heads, because the answers to two commits may arrive in either order.
    pub(crate) fn saw(&self, head: Arc<Head>) {
        let is_settled = head.is_settled();
        let mut known = self.head.lock().unwrap_or_else(PoisonError::into_inner);
        if head.version > known.version {
            *known = head;
        }
        drop(known);
        if is_settled {
            self.settled.notify_waiters();
        }
    }

    /// Resolves when the next commit of this process settles the record. Commits before the first poll are not noticed.
    pub(crate) fn settles(&self) -> Notified<'_> {
        self.settled.notified()
    }
}

/// The time in an id that this server made: a version 7 UUID, which some dialects write without dashes. An id that a
/// client chose has no time.
fn minted_at(id: &str) -> Option<Timestamp> {
    let bytes = id.as_bytes();
    let (rest, version_at) = match bytes.len() {
        36 if bytes[8] == b'-' && bytes[13] == b'-' => (&bytes[9..13], 14),
        32 => (&bytes[8..12], 12),
        _ => return None,
    };
    if bytes[version_at] != b'7' {
        return None;
    }
    let digit = |byte: &u8| char::from(*byte).to_digit(16).map(i64::from);
    let ms = bytes[..8].iter().chain(rest).try_fold(0, |ms, byte| Some(ms << 4 | digit(byte)?))?;
    Some(Timestamp::from_ms(ms))
}

#[cfg(test)]
mod tests {
    use super::{Timestamp, minted_at};
    use crate::ports::Ids;
    use crate::system::RandomIds;

    #[test]
    fn an_id_of_ours_says_when_it_was_made() {
        let now = Timestamp::from_ms(1_791_234_567_890);
        let id = RandomIds.uuid(now);
        assert_eq!(minted_at(&id), Some(now));
        assert_eq!(minted_at(&id.replace('-', "")), Some(now));
    }

    #[test]
    fn a_name_that_a_client_chose_says_nothing() {
        for id in ["", "task-1", "0190e3a8-1234-4aaa-8aaa-aaaaaaaaaaaa", "zzzzzzzz-zzzz-7aaa-8aaa-aaaaaaaaaaaa", "ü"] {
            assert_eq!(minted_at(id), None, "{id}");
        }
        assert_eq!(minted_at(&"ü".repeat(18)), None);
    }
}
