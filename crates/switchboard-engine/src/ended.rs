//! Logs one line for each task that has ended, whether its run, a caller or the sweeper ended it.

use switchboard_core::lifecycle::{Head, Phase};
use switchboard_core::model::{TaskState, Timestamp};

use crate::commit::Record;
use crate::engine_state::EngineState;
use crate::escaped::Escaped;

impl EngineState {
    /// Logs the end of a task that a commit has just closed. The line contains no text of messages or artifacts.
    pub(crate) fn log_ended(&self, record: &Record, head: &Head) {
        let (state, reason) = match (head.phase, head.state) {
            (Phase::Replied, _) => ("replied", "replied"),
            (_, TaskState::Failed) => ("failed", record.failed_by()),
            (_, state) => (state.word(), state.word()),
        };
        let is_completed = head.phase == Phase::Replied || head.state == TaskState::Completed;
        if (is_completed && !self.logs_completed) || !tracing::enabled!(tracing::Level::INFO) {
            return;
        }
        let opened_at = minted_at(record.id.as_str()).unwrap_or(record.seen_at());
        let duration_ms = self.now().ms_since(opened_at).max(0);
        tracing::info!(
            task = %Escaped::new(record.id.as_str()), agent = record.scope.agent.as_str(), state, duration_ms,
            attempts = head.attempt, reason, "task ended"
        );
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
