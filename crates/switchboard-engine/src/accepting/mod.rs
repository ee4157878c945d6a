//! Taking a message in: is it one this agent can read, was it sent before, and which task does it open or continue.
//! The commit that accepts it may already hold the answer.

mod accept;
mod check;
mod identity;

pub(crate) use accept::{Acceptance, AcceptedMessage, accept};
pub(crate) use check::check;
pub(crate) use identity::{Identity, identify};
