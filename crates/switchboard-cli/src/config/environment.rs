//! The variables of the process that matter here, as values: a test brings its own.

use std::collections::BTreeMap;
use std::ffi::OsString;

use super::{ConfigError, Origin};

#[derive(Clone, Debug, Default)]
pub(crate) struct Environment {
    variables: BTreeMap<OsString, OsString>,
}

impl Environment {
    pub(crate) fn of_process() -> Self {
        Self { variables: std::env::vars_os().collect() }
    }

    #[cfg(test)]
    pub(crate) fn of(variables: &[(&str, &str)]) -> Self {
        let own = |text: &str| OsString::from(text);
        Self { variables: variables.iter().map(|(name, value)| (own(name), own(value))).collect() }
    }

    pub(crate) fn raw(&self, name: &str) -> Option<OsString> {
        self.variables.get(std::ffi::OsStr::new(name)).cloned()
    }

    /// The value of a variable. An empty one counts as not set: that is how they are often unset.
    pub(crate) fn get(&self, name: &'static str) -> Result<Option<String>, ConfigError> {
        match self.raw(name).map(OsString::into_string) {
            None => Ok(None),
            Some(Ok(value)) => Ok(Some(value).filter(|value| !value.is_empty())),
            Some(Err(_)) => Err(Origin::Variable(name).error("is not text")),
        }
    }

    /// The variables whose names begin with `prefix`, with their values as far as both are text.
    pub(crate) fn with_prefix<'a>(&'a self, prefix: &'a str) -> impl Iterator<Item = (&'a str, &'a str)> {
        let variables = self.variables.iter().filter_map(|(name, value)| Some((name.to_str()?, value.to_str()?)));
        variables.filter(move |(name, _)| name.starts_with(prefix))
    }
}
