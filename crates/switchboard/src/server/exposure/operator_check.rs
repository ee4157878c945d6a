//! Who is an operator: a caller whose identity says so or, on a server without authentication, one who shows the operator key.
//!
//! A server without authentication cannot tell its owner from others by the connection: a proxy on the same machine connects from
//! loopback, whoever its client is, and a page of any local server may come from a loopback origin. So such a server has
//! operators only if it was given a key. The key travels in `Authorization`, which no page can send to another origin unless
//! a preflight request allows it.

use std::fmt;

use http::HeaderMap;
use switchboard_core::error::ProtocolError;
use switchboard_engine::sha256::sha256;

use crate::server::authentication::{Authentication, Identity};
use crate::server::exchange::headers::bearer;

/// The key of operators, as its hash.
#[derive(Clone)]
pub(crate) struct OperatorKey([u8; 32]);

impl OperatorKey {
    pub(crate) fn new(key: &str) -> Self {
        Self(sha256(key))
    }

    /// Hashes are compared, so the time tells nothing about the key itself.
    fn is_shown_by(&self, headers: &HeaderMap) -> bool {
        bearer(headers).is_some_and(|shown| sha256(shown) == self.0)
    }
}

impl fmt::Debug for OperatorKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("OperatorKey(..)")
    }
}

/// Whether a caller is an operator.
pub(crate) fn check_operator(
    authentication: &Authentication,
    operator_key: Option<&OperatorKey>,
    identity: &Identity,
    headers: &HeaderMap,
) -> Result<(), ProtocolError> {
    let denied = |reason: &str| Err(ProtocolError::PermissionDenied { reason: reason.to_owned() });
    match (authentication, operator_key) {
        _ if identity.operator => Ok(()),
        (Authentication::Open(_), Some(key)) if key.is_shown_by(headers) => Ok(()),
        (Authentication::Open(_), Some(_)) => denied(
            "without tokens, operators send the operator key as Authorization: Bearer KEY; it is in the data folder of the server",
        ),
        (Authentication::Open(_), None) => {
            denied("without tokens and without an operator key, this server has no operators")
        }
        (Authentication::Configured(_), _) => {
            denied("the token is not an operator's; its line must end with +operator")
        }
        (Authentication::Custom(_), _) => denied("you are not an operator of this server"),
    }
}
