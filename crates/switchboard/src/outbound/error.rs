//! Why a call has no answer, in words for operators. The texts name the host of the URL and nothing else of it, since a
//! path is often a credential, and nothing that the other side sent: neither its answer nor the names in its certificate.

use std::fmt;
use std::io;
use std::time::Duration;

use http::Uri;
use rustls::CertificateError;

/// Why a client could not be built, in one sentence for the person who configures it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BuildError(String);

impl BuildError {
    pub(super) fn new(text: String) -> Self {
        Self(text)
    }
}

impl fmt::Display for BuildError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for BuildError {}

/// Why a call has no answer, or why the rest of an answer did not come.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    kind: ErrorKind,
    text: String,
    may_have_arrived: bool,
}

/// What kind of thing went wrong, for programs that react differently.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The URL or a header cannot be sent.
    InvalidRequest,
    /// The [`AddressPolicy`](super::AddressPolicy) does not allow the address, or a redirect leads from https to http.
    Refused,
    /// The name has no address, or nothing listens there.
    Connect,
    /// A connection was made, and TLS on it was not.
    Tls(TlsFault),
    /// One of the [`RequestLimits`](super::RequestLimits) that are times was reached.
    TimedOut,
    /// The body is larger than [`body_bytes_max`](super::RequestLimits::body_bytes_max).
    BodyTooLarge,
    /// The connection ended before the answer was complete.
    Broken,
    /// The other side answered with something that is not HTTP, or with more headers than are read.
    NotHttp,
}

/// What is wrong with the TLS of the other side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TlsFault {
    /// No authority that is trusted has issued its certificate.
    UnknownIssuer,
    /// Its certificate is for another name.
    WrongName,
    /// Its certificate has expired, or is not valid yet.
    Expired,
    /// It has another certificate than the one that is trusted.
    NotPinned,
    /// It does not speak TLS.
    NotTls,
    /// The handshake failed in another way.
    Other,
}

impl Error {
    /// What kind it is.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// Whether the other side may have received the request. If not, it can be sent again without doing anything twice.
    #[must_use]
    pub fn may_have_arrived(&self) -> bool {
        self.may_have_arrived
    }

    /// An error from before a byte of the request was written.
    pub(super) fn unsent(kind: ErrorKind, text: impl Into<String>) -> Self {
        Self { kind, text: text.into(), may_have_arrived: false }
    }

    pub(super) fn sent(kind: ErrorKind, text: impl Into<String>) -> Self {
        Self { kind, text: text.into(), may_have_arrived: true }
    }

    pub(super) fn late(host: &str, limit: Duration) -> Self {
        Self::sent(ErrorKind::TimedOut, format!("no answer from {host} within {limit:?}"))
    }

    pub(super) fn not_sent(self) -> Self {
        Self { may_have_arrived: false, ..self }
    }

    /// What the HTTP library says of a request that has no answer.
    pub(super) fn unanswered(host: &str, error: &hyper::Error) -> Self {
        if error.is_parse() || error.is_parse_too_large() {
            return Self::sent(
                ErrorKind::NotHttp,
                format!("the answer of {host} was not HTTP, or its head was too large"),
            );
        }
        Self::sent(ErrorKind::Broken, format!("the connection to {host} broke before an answer came"))
    }

    /// What the TLS library says of a handshake.
    pub(super) fn handshake(host: &str, error: &io::Error) -> Self {
        let Some(tls) = error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>()) else {
            let text = format!("TLS handshake with {host} broke: {}", error.kind());
            return Self::unsent(ErrorKind::Tls(TlsFault::Other), text);
        };
        let (fault, text) = match tls {
            rustls::Error::InvalidCertificate(why) => {
                let (fault, why) = certificate(why);
                (fault, format!("the certificate of {host} is not valid: {why}"))
            }
            rustls::Error::InvalidMessage(_) => (TlsFault::NotTls, format!("{host} does not speak TLS")),
            rustls::Error::AlertReceived(alert) => {
                (TlsFault::Other, format!("{host} ended the TLS handshake: {alert:?}"))
            }
            // The texts of the others may quote what the other side sent.
            _ => (TlsFault::Other, format!("TLS handshake with {host} failed")),
        };
        Self::unsent(ErrorKind::Tls(fault), text)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl std::error::Error for Error {}

/// The host and port of a URL as it has them, which is all of it that an error may show.
pub(super) fn shown_host(uri: &Uri) -> String {
    shown_authority(uri.authority().map_or("", |authority| authority.as_str()))
}

pub(super) fn shown_authority(host: &str) -> String {
    // A user name or password stands before the last `@`.
    host.rsplit('@').next().unwrap_or_default().to_owned()
}

fn certificate(error: &CertificateError) -> (TlsFault, &'static str) {
    match error {
        CertificateError::UnknownIssuer => (TlsFault::UnknownIssuer, "no known authority issued it"),
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => (TlsFault::Expired, "it has expired"),
        CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
            (TlsFault::Expired, "it is not valid yet")
        }
        CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
            (TlsFault::WrongName, "it names another host")
        }
        CertificateError::ApplicationVerificationFailure => (TlsFault::NotPinned, "it is not the one that is trusted"),
        CertificateError::Revoked => (TlsFault::Other, "it was revoked"),
        _ => (TlsFault::Other, "it cannot be verified"),
    }
}
