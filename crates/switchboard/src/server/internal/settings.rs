//! Settings of the requests that a server posts to itself: their secret, whether tasks are started by them, and where they go.

use std::sync::Arc;

use switchboard_engine::ports::Clock;

use super::dispatch::SelfPoster;
use super::token::InternalTokens;
use crate::outbound::Trust;
use crate::random;
use crate::server::serve_error::ServeError;
use crate::server::transport::tls::Tls;

/// The settings of [`ServerBuilder`] that this file is about.
#[derive(Clone, Default)]
pub(crate) struct SelfFire {
    pub(in crate::server) secret: Option<String>,
    pub(in crate::server) is_on: bool,
    pub(in crate::server) url: Option<String>,
}

impl SelfFire {
    /// The tokens of these requests, which are none without a secret, and what posts them.
    pub(crate) fn build(
        &self,
        in_production: bool,
        tls: Option<&Tls>,
        clock: &Arc<dyn Clock>,
    ) -> Result<(Option<InternalTokens>, Option<Arc<SelfPoster>>), ServeError> {
        let secret = self.secret.as_deref().map(str::trim).filter(|secret| !secret.is_empty());
        let tokens = match secret {
            Some(secret) => Some(InternalTokens::new(secret)),
            None if self.is_on && in_production => {
                return Err(ServeError::new(
                    "in production, tasks are started by posts of the server to itself only if they can be signed; set A2A_SECRET, or \
                     call ServerBuilder::internal_secret",
                ));
            }
            // Posts come back to this process, so a secret that nobody else knows will do.
            None if self.is_on => Some(InternalTokens::new(&random::secret())),
            None => None,
        };
        let Some(tokens) = tokens.filter(|_| self.is_on) else {
            return Ok((secret.map(InternalTokens::new), None));
        };
        let trust = match (&self.url, tls.and_then(Tls::certificate_file)) {
            (None, Some(file)) => Trust::Certificate(file.to_path_buf()),
            (Some(_), _) | (None, None) => Trust::PublicAuthorities,
        };
        let poster = SelfPoster::new(tokens.clone(), clock.clone(), self.url.clone(), trust)?;
        Ok((Some(tokens), Some(Arc::new(poster))))
    }
}
