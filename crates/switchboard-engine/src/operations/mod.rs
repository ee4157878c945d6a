//! The eleven operations, one file for each kind, and downloads. They do not know each other; what they share is the
//! engine.

pub(crate) mod cancel_task;
pub(crate) mod card;
pub(crate) mod download;
pub(crate) mod get_task;
pub(crate) mod list_tasks;
pub(crate) mod push_configs;
pub(crate) mod send_message;
pub(crate) mod subscribe;
