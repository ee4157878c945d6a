//! What connections are made of: TLS, and the answers that clients do not read.

pub(crate) mod tls;
pub(crate) mod unread;
