//! The variables of the process that matter here, as values: a test brings its own.

use std::collections::BTreeMap;
use std::ffi::OsString;

use super::origin::{ConfigError, Origin};

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

    /// The same without the settings of a server, which are for `serve`.
    pub(crate) fn without_settings(mut self) -> Self {
        let is_setting = |name: &OsString| {
            let name = name.to_string_lossy();
            name.starts_with("SWITCHBOARD_") || name == "BIND_HOST" || name == "PORT"
        };
        self.variables.retain(|name, _| !is_setting(name));
        self
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

    /// Whether a variable has a value other than blanks.
    pub(crate) fn is_set(&self, name: &str) -> bool {
        self.text(name).is_some_and(|value| !value.trim().is_empty())
    }

    fn text(&self, name: &str) -> Option<String> {
        self.raw(name).map(|value| value.to_string_lossy().into_owned())
    }

    /// The variable by which a platform says that this is no place for trials, if there is one.
    pub(crate) fn production_variable(&self) -> Option<&'static str> {
        let is = |name, value| self.text(name).is_some_and(|given| given == value);
        let is_netlify_on_this_machine = is("NETLIFY_LOCAL", "true");
        let signs = [
            ("NODE_ENV", is("NODE_ENV", "production")),
            ("NETLIFY", is("NETLIFY", "true") && !is_netlify_on_this_machine),
            ("AWS_LAMBDA_FUNCTION_NAME", self.is_set("AWS_LAMBDA_FUNCTION_NAME") && !is_netlify_on_this_machine),
            ("CF_PAGES", is("CF_PAGES", "1")),
            ("VERCEL", self.is_set("VERCEL")),
            ("VERCEL_ENV", self.is_set("VERCEL_ENV")),
            ("RENDER", self.is_set("RENDER")),
            ("FLY_APP_NAME", self.is_set("FLY_APP_NAME")),
            ("K_SERVICE", self.is_set("K_SERVICE")),
        ];
        signs.into_iter().find(|(_, found)| *found).map(|(name, _)| name)
    }

    /// The variables whose names begin with `prefix`, with their values as far as both are text.
    pub(crate) fn with_prefix<'a>(&'a self, prefix: &'a str) -> impl Iterator<Item = (&'a str, &'a str)> {
        let variables = self.variables.iter().filter_map(|(name, value)| Some((name.to_str()?, value.to_str()?)));
        variables.filter(move |(name, _)| name.starts_with(prefix))
    }
}
