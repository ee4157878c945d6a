//! The port and its connections: accepting, TLS, sockets, and request bodies that were answered before their end.

pub(crate) mod listener;
pub(crate) mod socket;
pub(crate) mod tls;
pub(crate) mod unread_body;
