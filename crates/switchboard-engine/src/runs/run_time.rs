//! The time of runs. How long a run may take: what its agent declares, or what the call asks for within the agent's
//! bounds, and never longer than what is left of its turn's lifetime.
//!
//! Some dialects have clients that cannot answer a question (`limits_pauses`). Their tasks fail if they have waited for
//! longer than a task may take in all: a timer fails them, or the next caller that reads the task if the process was
//! restarted meanwhile.

use std::sync::Arc;
use std::time::Duration;

use switchboard_core::error::ProtocolError;
use switchboard_core::lifecycle::Command;
use switchboard_core::model::{Json, Message, Part, Role, TIMED_OUT, Task, Timestamp};

use crate::commit::WriteError;
use crate::escaped::Escaped;
use crate::ports::store::{Scope, StoredHead, StoredTask};
use crate::state::EngineState;
use crate::state::record::Record;
use crate::state::runs::{RunEnd, Traits};

/// The key in a request's metadata by which a call asks for its own limit, in whole seconds.
pub(crate) const ASK_KEY: &str = "switchboard.runTimeoutSeconds";

/// The key in a request's metadata that says how many seconds the caller has left. The run is ended when they are over; a number beyond
/// what the agent allows is not refused.
pub(crate) const AT_MOST_KEY: &str = "switchboard.runSecondsMax";

/// The text for the client of a task that was not started in time.
pub(super) fn queued_too_long(max_s: u32) -> String {
    format!("{TIMED_OUT}: it was not started within {max_s} s")
}

impl EngineState {
    /// How long a run for a request with this metadata may take, beginning now.
    pub(crate) fn run_max(
        &self,
        traits: &Traits,
        metadata: Option<&Json>,
        turn_deadline: Option<Timestamp>,
    ) -> Duration {
        let bounds = self.run_bounds(traits);
        // The request was accepted under these bounds, or under others before a restart, so it is limited again.
        let seconds = |key: &str| asked(metadata, key).ok().flatten().map(Duration::from_secs);
        let run_max = seconds(ASK_KEY).map_or(bounds.own, |asked| asked.min(bounds.per_call));
        let run_max = seconds(AT_MOST_KEY).map_or(run_max, |at_most| at_most.min(run_max));
        let left = turn_deadline.map(|deadline| deadline.ms_since(self.now()));
        let left = left.map(|ms| Duration::from_millis(u64::try_from(ms).unwrap_or_default()));
        left.map_or(run_max, |left| run_max.min(left))
    }

    /// Refuses a request for a run time outside the agent's bounds.
    pub(crate) fn check_asked_run_time(&self, traits: &Traits, metadata: Option<&Json>) -> Result<(), ProtocolError> {
        let most = self.run_bounds(traits).per_call.as_secs();
        let refuse = |got: &str| {
            let description = format!("expected a whole number of seconds from 1 to {most}, got {got}");
            ProtocolError::invalid(format!("metadata[{ASK_KEY:?}]"), description)
        };
        match asked(metadata, ASK_KEY) {
            Ok(None) => Ok(()),
            Ok(Some(seconds)) if (1..=most).contains(&seconds) => Ok(()),
            Ok(Some(seconds)) => Err(refuse(&seconds.to_string())),
            Err(got) => Err(refuse(&got)),
        }
    }

    fn run_bounds(&self, traits: &Traits) -> Bounds {
        let own = traits.run_max.unwrap_or(Duration::from_secs(self.limits.run_s_max.into()));
        let own = own.max(Duration::from_secs(1));
        Bounds { own, per_call: traits.run_max_per_call.unwrap_or(own) }
    }
}

struct Bounds {
    own: Duration,
    per_call: Duration,
}

/// The seconds that a request says under a key; the value itself as an error if it is not such a number.
fn asked(metadata: Option<&Json>, key: &str) -> Result<Option<u64>, String> {
    // Most requests have no metadata, and most metadata does not contain this key, so it is parsed only if the key
    // occurs in it.
    let Some(metadata) = metadata.filter(|metadata| metadata.as_str().contains(key)) else { return Ok(None) };
    let Ok(parsed) = serde_json::from_str::<serde_json::Value>(metadata.as_str()) else { return Ok(None) };
    match parsed.get(key) {
        None => Ok(None),
        Some(value) => value.as_u64().map(Some).ok_or_else(|| value.to_string()),
    }
}

impl EngineState {
    /// When a task must have ended, including its pauses; none if pauses are not limited.
    fn ends_at(&self, traits: &Traits, task: &Task) -> Option<Timestamp> {
        if !task.dialect.rules().limits_pauses || !task.state().is_interrupted() {
            return None;
        }
        let ms = self.run_max(traits, task.metadata.as_ref(), None).as_millis();
        Some(task.created_at.plus_ms(i64::try_from(ms).unwrap_or(i64::MAX / 2)))
    }

    /// Whether a task waits for an answer although its time is over.
    pub(crate) fn has_paused_too_long(&self, scope: &Scope, task: &Task) -> bool {
        // The dialects of most tasks do not limit pauses.
        task.dialect.rules().limits_pauses
            && self
                .known_agents
                .get(&scope.agent)
                .is_some_and(|agent| self.ends_at(&agent.traits, task).is_some_and(|ends_at| ends_at <= self.now()))
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
pub(super) async fn end_pause_in_time(engine: Arc<EngineState>, traits: Traits, record: Arc<Record>) {
    let Ok(Some(stored)) = engine.stored_task(&record.scope, &record.id).await else { return };
    let Some(ends_at) = engine.ends_at(&traits, &stored.folded.task) else { return };
    let left_ms = ends_at.ms_since(engine.now());
    tokio::time::sleep(Duration::from_millis(u64::try_from(left_ms).unwrap_or_default())).await;
    if let Err(error) = engine.end_pause(&record.scope, &stored).await {
        tracing::warn!(task = %Escaped::new(record.id.as_str()), ?error, "a task that waited too long for an answer could not be ended");
    }
}

#[cfg(test)]
mod tests {
    use super::{ASK_KEY, Json, asked};

    fn ask(text: &str) -> Result<Option<u64>, String> {
        asked(Some(&Json::from_trusted(text)), ASK_KEY)
    }

    #[test]
    fn a_call_asks_by_a_number_of_seconds() {
        assert_eq!(asked(None, ASK_KEY), Ok(None));
        assert_eq!(ask("{}"), Ok(None));
        assert_eq!(ask(r#"{"x":"switchboard.runTimeoutSeconds"}"#), Ok(None));
        assert_eq!(ask(r#"{"x":1,"switchboard.runTimeoutSeconds":90}"#), Ok(Some(90)));
        for (wrong, got) in [("\"90\"", "\"90\""), ("1.5", "1.5"), ("-1", "-1"), ("null", "null")] {
            let text = format!(r#"{{"switchboard.runTimeoutSeconds":{wrong}}}"#);
            assert_eq!(ask(&text), Err(got.to_owned()));
        }
    }
}
