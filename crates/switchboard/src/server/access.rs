//! What callers may do and see once they are let in: rules, tasks that the callers of a tenant share, and cards that are not for
//! everybody.

use super::edge::authorize::Rules;
use super::serve_error::ServeError;

/// The settings of [`ServerBuilder`](crate::ServerBuilder) that this file is about.
#[derive(Clone, Default)]
pub(crate) struct Access {
    /// None if everybody who is let in may do everything.
    pub(crate) rules: Option<Rules>,
    /// Whether tasks belong to tenants, and not to principals within them.
    pub(crate) shared_tenant: bool,
    /// Whether the public cards are for callers that are known.
    pub(crate) protect_cards: bool,
}

impl Access {
    /// Checks the settings of a server, which is open if it knows no callers.
    pub(super) fn check(&self, is_open: bool) -> Result<(), ServeError> {
        match is_open && self.protect_cards {
            false => Ok(()),
            true => Err(ServeError::new(
                "the cards are to be shown to known callers only, and this server knows no callers; give out tokens \
                 (ServerBuilder::tokens)",
            )),
        }
    }
}
