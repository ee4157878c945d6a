//! Compat dialects: what four older systems speak instead of A2A 1.0 or 0.3, each in a folder of its own. [`agent_native`],
//! [`selectools`] and [`nexus`] travel over JSON-RPC, [`corvid`] over plain HTTP. Each speaks both ways: it reads requests
//! and writes replies, refusals and cards for a server, and it writes requests and reads replies, refusals and cards for a
//! client.
//!
//! The folders do not import each other. What several of them use stands beside them:
//! - `kinds`: parts that name what they hold in a member `kind` or `type`;
//! - `refusal`: a refusal that is a text, as it is read;
//! - `streamed_task`: a stream of updates told as whole tasks;
//! - `shape`: which of the dialects a message is spelled in, where its path does not tell;
//! - two functions here refuse sends that the dialects cannot express, where leaving something out would change what the
//!   send means. The rest is among the losses of each dialect.

pub mod agent_native;
pub mod corvid;
mod kinds;
pub mod nexus;
mod refusal;
pub mod selectools;
pub(super) mod shape;
mod streamed_task;

use crate::call::SendMessage;
use crate::error::ProtocolError;

pub use streamed_task::StreamEvent;

/// Refuses a send with a webhook, which none of them has.
fn without_webhook(send: &SendMessage, dialect: &str) -> Result<(), ProtocolError> {
    match send.push_config {
        Some(_) => Err(ProtocolError::invalid("pushNotificationConfig", format!("{dialect} has no webhooks"))),
        None => Ok(()),
    }
}

/// Refuses a send that is to go on with a task, in a dialect in which every message begins one.
fn beginning_a_task(send: &SendMessage, dialect: &str) -> Result<(), ProtocolError> {
    match send.message.task_id {
        Some(_) => Err(ProtocolError::invalid("message.taskId", format!("every message begins a task in {dialect}"))),
        None => Ok(()),
    }
}
