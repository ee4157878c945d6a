//! How long a run may take: what its agent declares, or what the call asks for within the agent's bounds, and never
//! longer than what is left of its turn's lifetime.

use std::time::Duration;

use switchboard_core::error::ProtocolError;
use switchboard_core::model::{Json, Timestamp};

use super::Traits;
use crate::engine_state::{EngineState, Registered};

/// The key in a request's metadata by which a call asks for its own limit, in whole seconds.
pub(crate) const ASK_KEY: &str = "switchboard.runTimeoutSeconds";

impl EngineState {
    /// How long a run for a request with this metadata may take, beginning now.
    pub(crate) fn run_max(
        &self,
        agent: &Registered,
        metadata: Option<&Json>,
        turn_deadline: Option<Timestamp>,
    ) -> Duration {
        let bounds = self.run_bounds(agent.source.traits());
        // The request was accepted under these bounds, or under others before a restart, so it is limited again.
        let asked = asked(metadata).ok().flatten().map(Duration::from_secs);
        let run_max = asked.map_or(bounds.own, |asked| asked.min(bounds.per_call));
        let left = turn_deadline.map(|deadline| deadline.ms_since(self.now()));
        let left = left.map(|ms| Duration::from_millis(u64::try_from(ms).unwrap_or_default()));
        left.map_or(run_max, |left| run_max.min(left))
    }

    /// Refuses a request for a run time outside the agent's bounds.
    pub(crate) fn check_asked_run_time(
        &self,
        agent: &Registered,
        metadata: Option<&Json>,
    ) -> Result<(), ProtocolError> {
        let most = self.run_bounds(agent.source.traits()).per_call.as_secs();
        let refuse = |got: &str| {
            let description = format!("expected a whole number of seconds from 1 to {most}, got {got}");
            ProtocolError::invalid(format!("metadata[{ASK_KEY:?}]"), description)
        };
        match asked(metadata) {
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

/// The seconds that a request asks for; the value itself as an error if it is not such a number.
fn asked(metadata: Option<&Json>) -> Result<Option<u64>, String> {
    // Most requests have no metadata, and most metadata does not contain this key, so it is parsed only if the key
    // occurs in it.
    let Some(metadata) = metadata.filter(|metadata| metadata.as_str().contains(ASK_KEY)) else { return Ok(None) };
    let Ok(parsed) = serde_json::from_str::<serde_json::Value>(metadata.as_str()) else { return Ok(None) };
    match parsed.get(ASK_KEY) {
        None => Ok(None),
        Some(value) => value.as_u64().map(Some).ok_or_else(|| value.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::{Json, asked};

    fn ask(text: &str) -> Result<Option<u64>, String> {
        asked(Some(&Json::from_trusted(text)))
    }

    #[test]
    fn a_call_asks_by_a_number_of_seconds() {
        assert_eq!(asked(None), Ok(None));
        assert_eq!(ask("{}"), Ok(None));
        assert_eq!(ask(r#"{"x":"switchboard.runTimeoutSeconds"}"#), Ok(None));
        assert_eq!(ask(r#"{"x":1,"switchboard.runTimeoutSeconds":90}"#), Ok(Some(90)));
        for (wrong, got) in [("\"90\"", "\"90\""), ("1.5", "1.5"), ("-1", "-1"), ("null", "null")] {
            let text = format!(r#"{{"switchboard.runTimeoutSeconds":{wrong}}}"#);
            assert_eq!(ask(&text), Err(got.to_owned()));
        }
    }
}
