//! Whole stories in this process: engine, agents and callers, no socket, paused time. One file for each thing that must
//! hold.

mod canceling;
mod crowds;
mod declared_effects;
mod direct_replies;
mod failing;
mod history;
mod idempotency;
mod in_process;
mod inbox;
mod listing;
mod multi_turn;
mod negotiation;
mod ownership;
mod push_configs;
mod push_delivery;
mod recovery;
mod references;
mod resuming;
mod resuming_sends;
mod sending;
mod shutdown;
mod slow_readers;
mod stream_ends;
mod streaming;
mod time_limits;
