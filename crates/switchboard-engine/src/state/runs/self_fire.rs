//! Posts of the server to itself that start runs and look at continuations, for hosts that give each request its own time to work
//! ([`Dispatch`]). `runs/self_fired.rs` starts the run of a post that has arrived, and ends tasks that no post has started.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use switchboard_core::model::{TaskId, Timestamp};

use crate::ports::Dispatch;
use crate::ports::store::{DueRun, Scope};
use crate::state::record::Record;
use crate::supervisor::{Kind, Supervisor};

/// How long a send waits for its post to be answered.
const POST_WAIT_MAX: Duration = Duration::from_millis(250);
/// How long a task is left alone before the sweeper posts again; each later pause is twice as long.
const POST_AGAIN_MS_MIN: i64 = 10_000;
/// The longest pause between two posts.
const POST_AGAIN_MS_MAX: i64 = 60_000;
/// How many enqueued tasks are remembered; others are found in the store.
const REMEMBERED_MAX: usize = 10_000;

/// What the engine needs to start runs by posts.
pub(crate) struct SelfFire {
    dispatch: Arc<dyn Dispatch>,
    queued: Mutex<HashMap<TaskId, Queued>>,
}

/// A task that waits for its post.
struct Queued {
    scope: Scope,
    /// Whether this process has enqueued the task, so that no other can have begun with it.
    is_fresh: bool,
    /// When the sweeper posts again.
    again_at_ms: i64,
    pause_ms: i64,
}

impl SelfFire {
    pub(crate) fn new(dispatch: Arc<dyn Dispatch>) -> Self {
        Self { dispatch, queued: Mutex::default() }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<TaskId, Queued>> {
        self.queued.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn remember(&self, id: TaskId, queued: Queued) {
        let mut known = self.lock();
        if known.len() < REMEMBERED_MAX {
            known.insert(id, queued);
        }
    }

    /// Posts for a task that was just enqueued, and waits a moment for the answer. The post goes on after that.
    pub(crate) async fn fire(&self, supervisor: &Supervisor, record: &Record, now: Timestamp) {
        let again_at_ms = now.as_ms() + POST_AGAIN_MS_MIN;
        let queued = Queued { scope: record.scope.clone(), is_fresh: true, again_at_ms, pause_ms: POST_AGAIN_MS_MIN };
        self.remember(record.id.clone(), queued);
        let (answered, answer) = tokio::sync::oneshot::channel();
        let post = self.dispatch.post(&record.id);
        supervisor.spawn(Kind::Delivery, async move {
            post.await;
            let _ = answered.send(());
        });
        let _ = tokio::time::timeout(POST_WAIT_MAX, answer).await;
    }

    /// Posts for a call that nobody waits for.
    pub(crate) fn fire_call(&self, supervisor: &Supervisor, call: &str) {
        supervisor.spawn(Kind::Delivery, self.dispatch.post_call(call));
    }

    /// Whether the pause after the last post for a run is over; then the next one begins.
    pub(crate) fn is_time_to_post(&self, run: &DueRun, now_ms: i64) -> bool {
        let head = &run.stored.head;
        let mut known = self.lock();
        if known.len() >= REMEMBERED_MAX {
            known.retain(|_, queued| queued.is_fresh || queued.again_at_ms > now_ms - POST_AGAIN_MS_MAX);
        }
        let queued = known.entry(head.id.clone()).or_insert_with(|| Queued {
            scope: run.stored.scope.clone(),
            is_fresh: false,
            again_at_ms: head.status_at.as_ms() + POST_AGAIN_MS_MIN,
            pause_ms: POST_AGAIN_MS_MIN,
        });
        let is_time = queued.again_at_ms <= now_ms;
        if is_time {
            queued.pause_ms = (queued.pause_ms * 2).min(POST_AGAIN_MS_MAX);
            queued.again_at_ms = now_ms + queued.pause_ms;
        }
        is_time
    }

    /// Posts again for a task that was not started.
    pub(crate) fn fire_again(&self, supervisor: &Supervisor, id: &TaskId) {
        supervisor.spawn(Kind::Delivery, self.dispatch.post(id));
    }

    /// The owner and agent of a task that this process remembers, and whether no process can have begun with it.
    pub(crate) fn remembered(&self, id: &TaskId) -> Option<(Scope, bool)> {
        self.lock().get(id).map(|queued| (queued.scope.clone(), queued.is_fresh))
    }

    pub(crate) fn forget(&self, id: &TaskId) {
        self.lock().remove(id);
    }
}
