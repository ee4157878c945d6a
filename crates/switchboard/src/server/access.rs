//! What callers may do and see once they are let in: rules, tasks that the callers of a tenant share, and cards that are not for
//! everybody.

use super::builder::ServerBuilder;
use super::edge::authorize::Rules;
use super::serve_error::ServeError;

/// The settings of [`ServerBuilder`] that this file is about.
#[derive(Clone, Default)]
pub(crate) struct Access {
    /// None if everybody who is let in may do everything.
    pub(crate) rules: Option<Rules>,
    /// Whether tasks belong to tenants, and not to principals within them.
    pub(crate) shared_tenant: bool,
    /// Whether the public cards are for callers that are known.
    pub(crate) protect_cards: bool,
}

impl ServerBuilder {
    /// What callers may do, by principal, tenant and scope ([`Rules`]). Without rules, everybody who is let in may do everything with
    /// tasks of their own. The extended card shows a caller the skills that it may ask for.
    #[must_use]
    pub fn rules(mut self, rules: Rules) -> Self {
        self.access.rules = Some(rules);
        self
    }

    /// Lets all callers of a tenant share their tasks, whoever they are, as some older systems do: tasks then belong to the tenant
    /// alone. Callers whose credential names no tenant are refused.
    #[must_use]
    pub fn shared_tenant(mut self, on: bool) -> Self {
        self.access.shared_tenant = on;
        self
    }

    /// Shows the public cards only to callers that are known. The specification has them readable by everybody, so clients that look
    /// for a card without a credential do not find the agent.
    #[must_use]
    pub fn protect_cards(mut self, on: bool) -> Self {
        self.access.protect_cards = on;
        self
    }
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
