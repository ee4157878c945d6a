//! What an agent's settings say about runs that were interrupted.

use super::choices::Recovery;
use super::table::AgentSettings;
use super::{ConfigError, Given, RecoveryConfig};

/// Brings the settings about recovery together, and refuses those that have no effect.
pub(super) fn recovery(settings: &AgentSettings) -> Result<RecoveryConfig, ConfigError> {
    let AgentSettings { attempts_max, retry_pause_s, retry_pause_s_max, recovery_reason, .. } = settings;
    match *settings.recovery {
        Recovery::Retry => {
            refuse_stray(recovery_reason, "fail")?;
            if let (Some(least), Some(most)) = (retry_pause_s.value, retry_pause_s_max.value)
                && most < least
            {
                let from = &retry_pause_s_max.from;
                return Err(from.error(format_args!("expected at least retry_pause_s, {least}, got {most}")));
            }
            Ok(RecoveryConfig::Retry {
                attempts_max: attempts_max.value,
                pause_s: retry_pause_s.value,
                pause_s_max: retry_pause_s_max.value,
            })
        }
        Recovery::Fail => {
            for stray in [attempts_max, retry_pause_s, retry_pause_s_max] {
                refuse_stray(stray, "retry")?;
            }
            Ok(RecoveryConfig::Fail { reason: recovery_reason.value.clone() })
        }
    }
}

fn refuse_stray<T>(setting: &Given<Option<T>>, recovery: &str) -> Result<(), ConfigError> {
    match setting.value {
        Some(_) => Err(setting.from.error(format_args!("this goes with recovery = {recovery:?}"))),
        None => Ok(()),
    }
}
