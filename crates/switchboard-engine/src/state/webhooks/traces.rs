//! The trace that the webhooks of a task belong to: that of the message which opened the task. It is in the first commit of the log,
//! which a delivery that begins at the beginning reads anyway. For the deliveries after it, this process remembers the trace.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use switchboard_core::model::TraceContext;

use crate::id_hash::IdHash;
use crate::ports::store::TaskKey;

/// How many tasks are remembered. Of others the first commit is read again.
const TRACED_TASKS_MAX: usize = 8_192;

type Traces = HashMap<TaskKey, Option<Arc<TraceContext>>, IdHash>;

/// The newer half and the older half. When the newer one is full it takes the place of the older.
#[derive(Default)]
pub(crate) struct WebhookTraces(Mutex<(Traces, Traces)>);

impl WebhookTraces {
    pub(crate) fn get(&self, key: TaskKey) -> Option<Option<Arc<TraceContext>>> {
        let halves = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        halves.0.get(&key).or_else(|| halves.1.get(&key)).cloned()
    }

    pub(crate) fn put(&self, key: TaskKey, trace: Option<Arc<TraceContext>>) {
        let mut halves = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if halves.0.len() >= TRACED_TASKS_MAX / 2 {
            halves.1 = std::mem::take(&mut halves.0);
        }
        halves.0.insert(key, trace);
    }
}

#[cfg(test)]
mod tests {
    use super::{TRACED_TASKS_MAX, WebhookTraces};
    use crate::ports::store::TaskKey;

    #[test]
    fn no_more_tasks_are_remembered_than_may_be_and_the_newest_are() {
        let traces = WebhookTraces::default();
        for number in 0..3 * TRACED_TASKS_MAX {
            traces.put(TaskKey(number as i64), None);
        }
        let halves = traces.0.lock().unwrap();
        assert!(halves.0.len() + halves.1.len() <= TRACED_TASKS_MAX);
        drop(halves);
        assert_eq!(traces.get(TaskKey(0)), None);
        assert_eq!(traces.get(TaskKey((3 * TRACED_TASKS_MAX - 1) as i64)), Some(None));
    }
}
