//! What went wrong on the way, in words for operators. Nothing in them comes from the other side: neither what it
//! answered nor the names in its certificate.

use std::error::Error;
use std::io;

use rustls::CertificateError;

/// Why no connection was made.
#[derive(Debug)]
pub(super) enum DialError {
    /// The policy says no, and will say so again.
    Refused(String),
    Failed(String),
}

impl std::fmt::Display for DialError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Refused(why) | Self::Failed(why) => f.write_str(why),
        }
    }
}

impl Error for DialError {}

impl DialError {
    /// Reads what the TLS layer returns: the dialler's own error, passed through, or that of a handshake.
    pub(super) fn from_handshake(error: Box<dyn Error + Send + Sync>) -> Self {
        match error.downcast::<Self>() {
            Ok(own) => *own,
            Err(other) => Self::Failed(handshake(&*other)),
        }
    }
}

/// What became of a call that was sent and not answered.
pub(super) fn broke(error: &hyper::Error) -> &'static str {
    if error.is_parse() || error.is_parse_too_large() {
        "the answer was not HTTP, or its head was too large"
    } else {
        "the connection broke before an answer came"
    }
}

fn handshake(error: &(dyn Error + 'static)) -> String {
    let Some(tls) = tls_error(error) else {
        return match error.downcast_ref::<io::Error>() {
            Some(io) => format!("TLS handshake broke: {}", io.kind()),
            None => "TLS is not possible with this host name".to_owned(),
        };
    };
    match tls {
        rustls::Error::InvalidCertificate(why) => format!("certificate is not valid: {}", certificate(why)),
        rustls::Error::AlertReceived(alert) => format!("the other side ended the TLS handshake: {alert:?}"),
        // The texts of the others may quote what the other side sent.
        _ => "TLS handshake failed".to_owned(),
    }
}

fn certificate(error: &CertificateError) -> &'static str {
    match error {
        CertificateError::UnknownIssuer => "no known authority issued it",
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => "it has expired",
        CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => "its time has not come",
        CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => "it names another host",
        CertificateError::Revoked => "it was revoked",
        _ => "it does not hold up",
    }
}

/// An `io::Error` hides what it wraps from `source`, so the wrappings are taken off by hand.
fn tls_error<'a>(error: &'a (dyn Error + 'static)) -> Option<&'a rustls::Error> {
    let mut next = Some(error);
    while let Some(error) = next {
        if let Some(tls) = error.downcast_ref() {
            return Some(tls);
        }
        next = error.downcast_ref::<io::Error>()?.get_ref().map(|inner| inner as &(dyn Error + 'static));
    }
    None
}
