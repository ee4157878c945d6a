//! Tests of the whole, in one binary:
//! - `scenarios`: engine and agents in this process, no socket, paused time;
//! - `edge`: HTTP requests through the service, no socket: bindings, versions, errors, bad input, ownership;
//! - `sim`: the engine on virtual time over faulty ports, seeded;
//! - `client`: the client library against our own server over sockets, and against servers that misbehave;
//! - `relay`: an agent elsewhere behind our own server, in this process;
//! - `crash`: the real binary, killed for real.
#![allow(
    clippy::disallowed_methods,
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "tests drive time, chance and processes themselves"
)]

mod client;
mod crash;
mod edge;
mod relay;
mod scenarios;
mod sim;
mod support;
