//! The port and its connections: accepting, sockets and TLS.

pub(crate) mod listener;
pub(crate) mod tls;
pub(crate) mod unread;
