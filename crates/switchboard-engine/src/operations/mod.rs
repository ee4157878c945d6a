//! The eleven operations of the protocol, one file for each kind, and downloads. No operation imports another; code
//! that they share is in the engine's other modules.

pub(crate) mod cancel_task;
pub(crate) mod card;
pub(crate) mod download;
pub(crate) mod get_task;
pub(crate) mod list_tasks;
pub(crate) mod push_configs;
pub(crate) mod send_message;
pub(crate) mod subscribe;
