//! The port and its connections: accepting, TLS, sockets, and what a client still sends after it was answered.

pub(crate) mod listener;
pub(crate) mod socket;
pub(crate) mod tls;
pub(crate) mod unread_body;
