//! A2A in JSON: one definition of each object, read and written by it. Version 1.0, version 0.3 over JSON-RPC and version 0.3
//! over HTTP have the same objects under other names; a [`Spelling`] says which names, and everything here takes one.
//!
//! The structs are what stands in the text. All their members are optional: null and absent are the same, each spelling has
//! some of them, and what is required is checked when the model is made of them, with a better message. Unknown members are
//! skipped; repeated ones are refused. `of` makes a struct of the model, `read` makes the model of a struct and reports what may
//! not be by field.
//! - `message`, `part`, `task`, `push`: messages, tasks with their artifacts, webhooks; `card`, `security`: agent
//!   cards.
//! - `call`: requests and replies; `http`: the paths of requests over HTTP+JSON; `error`: error bodies.

mod call;
mod card;
pub(in crate::dialect) mod data_part;
mod error;
mod http;
mod items;
mod message;
mod part;
mod push;
mod security;
mod spelling;
mod task;

pub(in crate::dialect) use call::{BareParams, ListTasksParams, PushParams, SendParams, TaskParams, write_outgoing};
pub use call::{
    read_push_config, read_reply, read_task, read_update, write_call, write_message, write_reply, write_send,
    write_task, write_update,
};
pub(in crate::dialect) use card::read_card_of;
#[cfg(feature = "protobuf")]
pub(in crate::dialect) use card::{is_of_0_3, list_interfaces_of_0_3};
pub use card::{read_card, write_card_0_3, write_card_1_0};
pub use error::{ReceivedError, read_error, write_http_error, write_rpc_error};
pub use http::write_http_call;
pub(in crate::dialect) use push::{PushConfig, TaskPushConfig};
pub use spelling::{Spelling, V0_3, V0_3_REST, V1_0};
pub use task::ends_stream;

#[cfg(test)]
pub(in crate::dialect) mod tests;
