//! Measures Switchboard against a limit server: the least that any A2A server in Rust must do.
//!
//! In reading order:
//! - [`limit`]: the limit server, which parses, answers and keeps nothing;
//! - [`load`]: the load generator, our own so that it costs little CPU and checks every reply;
//! - [`process`]: what the kernel knows of a process: CPU time, memory, cores;
//! - [`compare`]: starts servers, drives them in interleaved rounds and prints the table;
//! - [`restart`]: kills a server with many tasks at work and measures how soon the next one serves;
//! - [`webhooks`]: tasks with webhooks at a steady rate, and a receiver that counts what arrives;
//! - [`tokens`]: many streams at once, each of many chunks;
//! - [`calls`]: what a call costs the client;
//! - [`credentials`]: what it costs to know who calls;
//! - [`instructions`]: how many instructions a send costs, by callgrind;
//! - [`replicas`]: servers that share a database in PostgreSQL;
//! - [`relayed`]: what a relay costs;
//! - [`capacity`]: what all this means for large installations, calculated.
//!
//! Nothing here is a test: timings on a shared machine prove nothing by themselves, ratios taken in one run do.

// A benchmark is a program of its own: it may read the clock, draw random numbers and print.
#![allow(clippy::disallowed_methods, clippy::print_stdout, clippy::print_stderr)]

pub mod limit;
pub mod load;
pub mod process;

pub mod calls;
pub mod capacity;
pub mod compare;
pub mod credentials;
mod figures;
pub mod instructions;
pub mod relayed;
pub mod replicas;
pub mod restart;
pub mod server;
pub mod tokens;
pub mod webhooks;
