//! Where a value came from, and the one sentence about what is wrong with it.

use std::fmt;
use std::path::Path;
use std::sync::Arc;

/// Where a value came from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    Flag(&'static str),
    Variable(&'static str),
    File { path: Arc<Path>, line: usize, key: String },
    Default,
}

impl Origin {
    pub(crate) fn error(&self, why: impl fmt::Display) -> ConfigError {
        ConfigError(format!("{self}: {why}"))
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Flag(name) | Self::Variable(name) => f.write_str(name),
            Self::File { path, line, key } => write!(f, "{}:{line}: {key}", path.display()),
            Self::Default => f.write_str("default"),
        }
    }
}

/// A value and where it came from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Given<T> {
    pub(crate) value: T,
    pub(crate) from: Origin,
}

impl<T> Given<T> {
    pub(crate) fn new(value: T, from: Origin) -> Self {
        Self { value, from }
    }

    /// Checks or changes the value; what goes wrong is said with its origin.
    pub(crate) fn try_map<U, E: fmt::Display>(
        self,
        change: impl FnOnce(T) -> Result<U, E>,
    ) -> Result<Given<U>, ConfigError> {
        match change(self.value) {
            Ok(value) => Ok(Given { value, from: self.from }),
            Err(why) => Err(self.from.error(why)),
        }
    }
}

/// What is wrong with the configuration, for whoever wrote it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ConfigError(pub(crate) String);

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for ConfigError {}
