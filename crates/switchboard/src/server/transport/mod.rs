//! The port and its connections: accepting, sockets and TLS.

pub(crate) mod listener;
mod read_progress;
pub(crate) mod tls;
pub(crate) mod unread;
pub(crate) mod unread_service;
