//! Refuses sends that the compat dialects cannot express, where leaving something out would change what the send means.
//! The rest is among the losses of each dialect.

use crate::call::SendMessage;
use crate::error::ProtocolError;

/// Refuses a send with a webhook, which none of them has.
pub(super) fn without_webhook(send: &SendMessage, dialect: &str) -> Result<(), ProtocolError> {
    match send.push_config {
        Some(_) => Err(ProtocolError::invalid("pushNotificationConfig", format!("{dialect} has no webhooks"))),
        None => Ok(()),
    }
}

/// Refuses a send that is to go on with a task, in a dialect in which every message begins one.
pub(super) fn beginning_a_task(send: &SendMessage, dialect: &str) -> Result<(), ProtocolError> {
    match send.message.task_id {
        Some(_) => Err(ProtocolError::invalid("message.taskId", format!("every message begins a task in {dialect}"))),
        None => Ok(()),
    }
}
