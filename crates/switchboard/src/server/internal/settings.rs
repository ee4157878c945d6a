//! Settings of the requests that a server posts to itself: their secret, whether tasks are started by them, and where they go.

use std::sync::Arc;

use switchboard_engine::ports::Clock;

use super::dispatch::SelfPoster;
use super::token::InternalTokens;
use crate::outbound::Trust;
use crate::random;
use crate::server::ServerBuilder;
use crate::server::serve_error::ServeError;
use crate::server::transport::tls::Tls;

/// The settings of [`ServerBuilder`] that this file is about.
#[derive(Clone, Default)]
pub(crate) struct SelfFire {
    secret: Option<String>,
    is_on: bool,
    url: Option<String>,
}

impl ServerBuilder {
    /// The secret under which requests are signed that the server posts to itself (`A2A_SECRET`). Every process behind the same
    /// address needs the same one.
    #[must_use]
    pub fn internal_secret(mut self, secret: impl Into<String>) -> Self {
        self.self_fire.secret = Some(secret.into());
        self
    }

    /// Starts the tasks of asynchronous sends by requests that the server posts to itself, at
    /// `/_agent-native/a2a/_process-task`, for hosts that give each request its own time to work and may freeze a process that has
    /// none. Such a send only enqueues and waits at most 250 ms for its post; the run belongs to the request that arrives. If none
    /// does, the server posts again after 10 seconds and then at growing intervals, and a task that was not started in 3
    /// minutes (or [`Limits::queued_s_max`](crate::Limits)) fails. In [production](Self::production) it needs
    /// [`internal_secret`](Self::internal_secret).
    #[must_use]
    pub fn self_fire(mut self, on: bool) -> Self {
        self.self_fire.is_on = on;
        self
    }

    /// Where these posts go, if not to the port of this process: the address of a load balancer or of a platform.
    #[must_use]
    pub fn self_fire_url(mut self, url: impl Into<String>) -> Self {
        self.self_fire.url = Some(url.into());
        self
    }
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
