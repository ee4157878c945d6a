//! The one door by which calls leave the house: every address is checked, and what was checked is what is dialled.
//!
//! A client may name any URL for its webhook, so each call out is an offer to reach, from inside, what it cannot reach
//! from outside. `target` judges the text of a URL, `policy` judges an address, `connector` resolves, asks the policy
//! and dials, `pool` keeps connections for the next call, `signature` signs, `client` posts, and `retry_after` reads when
//! to come back.
//! Whatever else fetches something on behalf of others goes through here too.

mod client;
mod connector;
mod policy;
mod pool;
mod ranges;
mod retry_after;
mod signature;
pub(crate) mod target;
#[cfg(test)]
mod tests;
mod trouble;

pub(crate) use client::GuardedClient;
pub(crate) use policy::OutboundPolicy;
pub use signature::{SigningSecrets, SigningSecretsError};
