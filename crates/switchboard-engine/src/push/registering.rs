//! How many webhooks a task may have, whichever way they are registered.

use switchboard_core::model::PushConfig;

use crate::ports::store::PushChange;

/// The changes that put a config beside the ones a task has; one of the same id is replaced. Refused with a sentence if
/// there are too many.
pub(crate) fn put_config(configs: &[PushConfig], put: PushChange, max: u32) -> Result<Vec<PushChange>, String> {
    let replaced = match &put {
        PushChange::Put { config, .. } => configs.iter().find(|known| known.id == config.id),
        PushChange::Delete { .. } => None,
    };
    if let Some(known) = replaced {
        return Ok(vec![PushChange::Delete { id: known.id.clone() }, put]);
    }
    if configs.len() >= max as usize {
        return Err(format!("task has {} push configs, the most it keeps; delete one first", configs.len()));
    }
    Ok(vec![put])
}
