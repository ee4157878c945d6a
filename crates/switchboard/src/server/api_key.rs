//! The one key that all callers of a server may share, in place of or beside tokens.

use crate::server::serve_error::ServeError;

/// Where the key that all callers share comes from.
pub(crate) enum ApiKey {
    Given(String),
    /// The variable that holds it.
    Named(String),
}

impl ApiKey {
    /// The key. What is wrong with it is said without it.
    pub(crate) fn read(self) -> Result<String, ServeError> {
        let (key, name) = match self {
            Self::Given(key) => (key, None),
            Self::Named(name) => {
                let missing =
                    || ServeError::new(format!("the variable {name}, which is to hold the API key, is not set"));
                (std::env::var(&name).map_err(|_| missing())?, Some(name))
            }
        };
        // Files that variables are read from end with a line break.
        let key = key.trim();
        if key.is_empty() {
            let place = name.map_or("it".to_owned(), |name| format!("the variable {name}"));
            return Err(ServeError::new(format!("the API key is empty; set {place} to a long random text")));
        }
        Ok(key.to_owned())
    }
}

/// The refusal of a key that can be guessed, where others could.
pub(crate) fn short_key(why: &str) -> ServeError {
    ServeError::new(format!("the API key is shorter than 16 characters and {why}; use a longer one"))
}
