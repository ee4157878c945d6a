//! Where a value came from, and what is wrong with it: one sentence for each mistake, all mistakes of a run together.

use std::collections::BTreeSet;
use std::fmt;
use std::ops::Deref;
use std::path::Path;
use std::sync::Arc;

use super::row::SettingId;

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
        let line = if let Self::File { line, .. } = self { *line } else { 0 };
        ConfigError { text: format!("{self}: {why}"), line }
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Flag(name) | Self::Variable(name) => f.write_str(name),
            Self::File { path, line, key } if key.is_empty() => write!(f, "{}:{line}", path.display()),
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

    /// Whether any layer said something about the setting.
    pub(crate) fn is_given(&self) -> bool {
        self.from != Origin::Default
    }

    /// Checks or changes the value; the error names the origin.
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

/// A value that no layer gave.
impl<T> From<T> for Given<T> {
    fn from(value: T) -> Self {
        Self { value, from: Origin::Default }
    }
}

impl<T> Deref for Given<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.value
    }
}

/// One mistake in the configuration, as a sentence that names the flag, the variable, or the file with line and key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ConfigError {
    text: String,
    /// The line of the file; 0 for what is not about the file.
    line: usize,
}

impl ConfigError {
    pub(crate) fn new(text: impl Into<String>) -> Self {
        Self { text: text.into(), line: 0 }
    }
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl std::error::Error for ConfigError {}

/// The mistakes found so far. The command reads on after a mistake, so that one run reports all of them.
#[derive(Debug, Default)]
pub(crate) struct Errors {
    found: Vec<ConfigError>,
    /// Settings with a mistake. A rule that compares such a setting with another one would only report a consequence.
    doubtful: BTreeSet<SettingId>,
}

impl Errors {
    pub(crate) fn add(&mut self, error: ConfigError) {
        self.found.push(error);
    }

    /// Adds a mistake in the value of a setting.
    pub(crate) fn add_about(&mut self, setting: SettingId, error: ConfigError) {
        self.doubtful.insert(setting);
        self.add(error);
    }

    /// The value, unless it is a mistake.
    pub(crate) fn keep<T>(&mut self, result: Result<T, ConfigError>) -> Option<T> {
        result.map_err(|error| self.add(error)).ok()
    }

    pub(crate) fn is_doubtful(&self, settings: &[SettingId]) -> bool {
        settings.iter().any(|setting| self.doubtful.contains(setting))
    }

    /// `value`, if nothing is wrong.
    pub(crate) fn or<T>(self, value: Option<T>) -> Result<T, ConfigErrors> {
        match value {
            Some(value) if self.found.is_empty() => Ok(value),
            _ => Err(self.into()),
        }
    }
}

/// All mistakes of a run: those of flags and variables first, then those of the file from its first line to its last.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ConfigErrors(Vec<ConfigError>);

impl From<Errors> for ConfigErrors {
    fn from(errors: Errors) -> Self {
        let mut found = errors.found;
        found.sort_by_key(|error| error.line);
        Self(found)
    }
}

impl From<ConfigError> for ConfigErrors {
    fn from(error: ConfigError) -> Self {
        Self(vec![error])
    }
}

impl fmt::Display for ConfigErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, error) in self.0.iter().enumerate() {
            let separator = if index == 0 { "" } else { "\n" };
            write!(f, "{separator}{error}")?;
        }
        Ok(())
    }
}

impl std::error::Error for ConfigErrors {}
