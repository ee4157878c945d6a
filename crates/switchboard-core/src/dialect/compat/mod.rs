//! Compat dialects: what four older systems speak instead of A2A 1.0 or 0.3, each in a folder of its own. [`agent_native`],
//! [`selectools`] and [`nexus`] travel over JSON-RPC, [`corvid`] over plain HTTP. Each speaks both ways: it reads requests
//! and writes replies, refusals and cards for a server, and it writes requests and reads replies, refusals and cards for a
//! client.
//!
//! The folders do not import each other. What several of them use stands beside them:
//! - `kinds`: parts that name what they hold in a member `kind` or `type`;
//! - `refusal`: a refusal that is a text, as it is read;
//! - `retold`: a stream of updates told as whole tasks;
//! - `sendable`: what a send may ask that none of them can say;
//! - `shape`: which of the dialects a message is spelled in, where its path does not tell.

pub mod agent_native;
pub mod corvid;
mod kinds;
pub mod nexus;
mod refusal;
mod retold;
pub mod selectools;
mod sendable;
pub(super) mod shape;

pub use retold::Told;
