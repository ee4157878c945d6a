//! The eleven operations of the protocol, and downloads. No file imports another; code that they share is in the engine's
//! other modules.

pub(crate) mod cancel_task;
pub(crate) mod push_configs;
pub(crate) mod read_tasks;
pub(crate) mod send_message;
