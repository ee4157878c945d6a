//! The client commands as processes, against a real server and against agents that follow a script. Which requirement of the a2a-cli
//! specification each test shows is said in docs/cli-compliance.md.

#![allow(clippy::unwrap_used, reason = "a test may say plainly what it knows")]
#![allow(clippy::disallowed_methods, reason = "the threads of a scripted agent end with the test")]

mod cards;
mod chatting;
mod compliance;
mod credentials;
mod errors;
mod logins;
mod output;
mod receiving;
mod sending;
mod support;
mod tasks;
mod tls;
mod versions;
