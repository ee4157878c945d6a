//! Why a server did not come up.

use std::error::Error;
use std::fmt;

use crate::server::transport::tls::TlsError;

/// Why a server could not be put together or started, in one sentence for the person who configures it. `Debug` prints the
/// sentence, too, so that a `main` that returns it shows something readable.
pub struct ServeError {
    kind: ServeErrorKind,
    text: String,
    source: Option<Box<dyn Error + Send + Sync>>,
}

/// What a [`ServeError`] is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ServeErrorKind {
    /// A setting is missing or wrong: change the program or its configuration.
    Configuration,
    /// The store cannot be opened: it is locked by another process, damaged, cannot be reached or cannot be written.
    Store,
    /// The address cannot be listened on: it is taken, or not of this machine.
    Address,
    /// The certificate or its key cannot be used.
    Tls,
    /// The operating system refused something else that a server needs.
    System,
}

impl ServeError {
    pub(crate) fn new(text: impl Into<String>) -> Self {
        Self { kind: ServeErrorKind::Configuration, text: text.into(), source: None }
    }

    /// `text` says it all, the cause included; `source` is for programs that look at the cause.
    pub(crate) fn caused(
        kind: ServeErrorKind,
        text: impl Into<String>,
        source: impl Into<Box<dyn Error + Send + Sync>>,
    ) -> Self {
        Self { kind, text: text.into(), source: Some(source.into()) }
    }

    #[cfg(any(feature = "sqlite", feature = "postgres"))]
    pub(crate) fn store(error: impl Error + Send + Sync + 'static) -> Self {
        Self::caused(ServeErrorKind::Store, error.to_string(), error)
    }

    /// What it is about, for programs that react differently.
    #[must_use]
    pub fn kind(&self) -> ServeErrorKind {
        self.kind
    }
}

impl fmt::Display for ServeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl fmt::Debug for ServeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl Error for ServeError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.source.as_ref().map(|source| &**source as &(dyn Error + 'static))
    }
}

impl From<TlsError> for ServeError {
    fn from(error: TlsError) -> Self {
        Self::caused(ServeErrorKind::Tls, error.to_string(), error)
    }
}
