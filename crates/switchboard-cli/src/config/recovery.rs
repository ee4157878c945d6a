//! What an agent's settings say about runs that were interrupted.

use super::choices::Recovery;
use super::layer::AgentLayer;
use super::{ConfigError, Given, RecoveryConfig, values};

const ATTEMPTS_MAX: u64 = 1_000;
/// A day.
const PAUSE_S_MAX: u64 = 86_400;

impl AgentLayer {
    /// Takes these settings out of the layer.
    pub(super) fn settle_recovery(&mut self) -> Result<RecoveryConfig, ConfigError> {
        let (attempts_max, pause_s, pause_s_max) =
            (self.attempts_max.take(), self.retry_pause_s.take(), self.retry_pause_s_max.take());
        let reason = self.recovery_reason.take();
        match self.recovery.take().map(|given| given.value).unwrap_or_default() {
            Recovery::Retry => {
                refuse_stray(reason, "fail")?;
                let attempts_max = number(attempts_max, 1, ATTEMPTS_MAX, "attempts")?;
                let from = pause_s_max.as_ref().or(pause_s.as_ref()).map(|given| given.from.clone());
                let (pause_s, pause_s_max) =
                    (number(pause_s, 0, PAUSE_S_MAX, "seconds")?, number(pause_s_max, 0, PAUSE_S_MAX, "seconds")?);
                if let (Some(least), Some(most), Some(from)) = (pause_s, pause_s_max, from)
                    && most < least
                {
                    return Err(from.error(format_args!("expected at least retry_pause_s, {least}, got {most}")));
                }
                Ok(RecoveryConfig::Retry { attempts_max, pause_s, pause_s_max })
            }
            Recovery::Fail => {
                for stray in [attempts_max, pause_s, pause_s_max] {
                    refuse_stray(stray, "retry")?;
                }
                let reason = reason.map(|given| given.try_map(values::words)).transpose()?;
                Ok(RecoveryConfig::Fail { reason: reason.map(|given| given.value) })
            }
        }
    }
}

fn refuse_stray<T>(stray: Option<Given<T>>, recovery: &str) -> Result<(), ConfigError> {
    match stray {
        Some(given) => Err(given.from.error(format_args!("this goes with recovery = {recovery:?}"))),
        None => Ok(()),
    }
}

fn number(given: Option<Given<u64>>, low: u64, high: u64, unit: &str) -> Result<Option<u32>, ConfigError> {
    let Some(given) = given else { return Ok(None) };
    let checked = given.try_map(|number| values::within(number, low, high, unit))?;
    Ok(u32::try_from(checked.value).ok())
}
