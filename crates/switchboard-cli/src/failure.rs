//! Why a command failed, and its exit code.

use std::fmt;
use std::process::ExitCode;

use crate::config::{ConfigError, ConfigErrors};

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Failure {
    /// The command line or the configuration is wrong.
    Usage(String),
    /// The system, the network or the store failed.
    Runtime(String),
}

impl Failure {
    pub(crate) fn exit_code(&self) -> ExitCode {
        match self {
            Self::Usage(_) => ExitCode::from(2),
            Self::Runtime(_) => ExitCode::from(1),
        }
    }

    pub(crate) fn runtime(error: impl fmt::Display) -> Self {
        Self::Runtime(error.to_string())
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Usage(text) | Self::Runtime(text) => f.write_str(text),
        }
    }
}

impl From<ConfigError> for Failure {
    fn from(error: ConfigError) -> Self {
        Self::Usage(error.to_string())
    }
}

impl From<ConfigErrors> for Failure {
    fn from(errors: ConfigErrors) -> Self {
        Self::Usage(errors.to_string())
    }
}
