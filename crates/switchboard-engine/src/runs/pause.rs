//! Fails tasks that have waited for an answer for longer than a task may take in all. Only dialects whose clients
//! cannot answer have such tasks (`limits_pauses`). A timer fails them when their time is over. If the process was
//! restarted meanwhile, the next caller that reads the task does.

use std::sync::Arc;
use std::time::Duration;

use switchboard_core::lifecycle::Command;
use switchboard_core::model::{Message, Part, Role, TIMED_OUT, Task, Timestamp};

use super::RunEnd;
use crate::commit::{Record, WriteError};
use crate::engine_state::{EngineState, Registered};
use crate::escaped::Escaped;
use crate::ports::store::{Scope, StoredHead, StoredTask};

impl EngineState {
    /// When a task must have ended, including its pauses; none if pauses are not limited.
    fn ends_at(&self, agent: &Registered, task: &Task) -> Option<Timestamp> {
        if !task.dialect.rules().limits_pauses || !task.state().is_interrupted() {
            return None;
        }
        let ms = self.run_max(agent, task.metadata.as_ref(), None).as_millis();
        Some(task.created_at.plus_ms(i64::try_from(ms).unwrap_or(i64::MAX / 2)))
    }

    /// Whether a task waits for an answer although its time is over.
    pub(crate) fn has_paused_too_long(&self, scope: &Scope, task: &Task) -> bool {
        // The dialects of most tasks do not limit pauses.
        task.dialect.rules().limits_pauses
            && self
                .agents
                .get(&scope.agent)
                .is_some_and(|agent| self.ends_at(agent, task).is_some_and(|ends_at| ends_at <= self.now()))
    }

    /// Fails a task that waits for an answer, unless it continues or ends meanwhile.
    pub(crate) async fn end_pause(&self, scope: &Scope, stored: &StoredTask) -> Result<(), WriteError> {
        let head = StoredHead { key: stored.key, scope: scope.clone(), head: stored.head.clone() };
        let record = Record::stored(head);
        let mut message = Message::new(Role::Agent, self.uuid(), vec![Part::text(TIMED_OUT)]);
        message.context_id = Some(record.context_id.clone());
        message.task_id = Some(record.id.clone());
        let command = Command::EndPause { turn: stored.head.turn, message: Arc::new(message) };
        // The run ended when the task was paused, so only the log line of the ended task gives this reason.
        record.fails_by(RunEnd::TimedOut.word());
        self.write(&record, command).await?;
        Ok(())
    }
}

/// Waits until the time of a paused task is over and fails it, unless it continues or ends meanwhile.
pub(super) async fn end_pause_in_time(engine: Arc<EngineState>, agent: Arc<Registered>, record: Arc<Record>) {
    let Ok(Some(stored)) = engine.stored_task(&record.scope, &record.id).await else { return };
    let Some(ends_at) = engine.ends_at(&agent, &stored.folded.task) else { return };
    let left_ms = ends_at.ms_since(engine.now());
    tokio::time::sleep(Duration::from_millis(u64::try_from(left_ms).unwrap_or_default())).await;
    if let Err(error) = engine.end_pause(&record.scope, &stored).await {
        tracing::warn!(task = %Escaped::new(record.id.as_str()), ?error, "a task that waited too long for an answer could not be ended");
    }
}
