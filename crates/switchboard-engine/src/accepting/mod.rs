//! Accepts messages: whether the agent can read the message, whether it was sent before, and which task it opens or
//! continues. The commit that accepts a message may already hold the agent's answer.

mod accept;
mod check;
mod identity;

pub(crate) use accept::{Acceptance, AcceptedMessage, accept};
pub(crate) use check::check;
pub(crate) use identity::{Identity, identify};
