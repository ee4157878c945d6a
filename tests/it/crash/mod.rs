//! The real binary on a real file, killed for real. What a client was told is written down in this process, outside the
//! one that dies.

mod http;
mod interrupted;
mod killed;
mod outbox;
mod process;
mod receiver;
