//! Taking a message in: is it one this agent can read, was it sent before, and which task does it open or continue.
//! The commit that accepts it may already hold the answer.

mod check;
mod enter;
mod identity;

pub(crate) use check::check;
pub(crate) use enter::{Entered, Entry, enter};
pub(crate) use identity::{Identity, identify};
