//! A remote agent, as [`AgentClient`](crate::AgentClient) calls it.

use std::sync::{Arc, PoisonError};

use switchboard_core::call::{BoxFuture, Caller, Reply, Request};
use switchboard_core::model::AgentCard;

use super::bindings::Answered;
use super::credentials::{Credentials, Prover};
use super::remote::Remote;
use super::stream::follow;
use crate::agent_client::AgentClient;
use crate::call_agent::{Answer, CallAgent, CallOptions, Spoken};
use crate::call_error::CallError;
use crate::random;

/// What a call to a remote agent has beside what calls to every agent have ([`CallOptions::extensions`]).
#[derive(Clone, Default)]
struct RemoteOptions {
    /// In place of the client's.
    credentials: Option<Credentials>,
    /// In place of the client's.
    attempts_max: Option<u32>,
}

impl AgentClient {
    /// The same agent, called with these credentials in place of the client's.
    #[must_use]
    pub fn with_credentials(self, credentials: Credentials) -> Self {
        self.with_extension(|options: &mut RemoteOptions| options.credentials = Some(credentials))
    }

    /// The same agent, whose calls are attempted so often in place of what the client's policy says.
    pub(crate) fn with_attempts(self, attempts_max: u32) -> Self {
        self.with_extension(|options: &mut RemoteOptions| options.attempts_max = Some(attempts_max))
    }
}

/// An agent elsewhere.
pub(super) struct RemoteAgent(Arc<Remote>);

impl RemoteAgent {
    pub(super) fn new(remote: Remote) -> Self {
        Self(Arc::new(remote))
    }
}

impl CallAgent for RemoteAgent {
    fn call<'a>(
        &'a self,
        caller: Caller,
        request: Request,
        options: &'a CallOptions,
    ) -> BoxFuture<'a, Result<Answer, CallError>> {
        Box::pin(call(&self.0, caller, request, options))
    }

    fn card(&self) -> Arc<AgentCard> {
        let extended = self.0.extended.lock().unwrap_or_else(PoisonError::into_inner);
        extended.as_ref().unwrap_or(&self.0.card).clone()
    }

    /// Without what is true only of the agent's own address: who signed the card, and what its own callers must present.
    fn public_card(&self) -> Arc<AgentCard> {
        Arc::new(AgentCard {
            signatures: Vec::new(),
            security_schemes: Vec::new(),
            security_requirements: Vec::new(),
            ..(*self.0.card).clone()
        })
    }

    fn spoken(&self) -> Option<Spoken> {
        let target = self.0.targets.get(self.0.place.lock().unwrap_or_else(PoisonError::into_inner).at)?;
        Some(Spoken { url: target.uri.to_string(), binding: target.form.binding(), version: target.form.version() })
    }
}

async fn call(
    remote: &Arc<Remote>,
    mut caller: Caller,
    mut request: Request,
    options: &CallOptions,
) -> Result<Answer, CallError> {
    if let Request::SendMessage(send) | Request::SendStreamingMessage(send) = &mut request {
        // The same key for every attempt, so that an agent which looks at it accepts the message once. A message id that was made
        // by others may be that of another message, so it is no key.
        if send.message.message_id.is_empty() {
            let id = random::uuid();
            caller.idempotency_key.get_or_insert_with(|| id.as_ref().to_owned());
            send.message.message_id = id.into();
        }
        caller.idempotency_key.get_or_insert_with(|| random::uuid().as_ref().to_owned());
    }
    let own: Option<&RemoteOptions> = options.extensions.get();
    let own_credentials = own.and_then(|own| own.credentials.as_ref());
    let credentials = own_credentials.unwrap_or(&remote.shared.credentials);
    let prover = Prover::new(credentials.clone(), remote.card.clone(), remote.named.clone());
    let limit = options.deadline.unwrap_or_else(|| remote.usual_limit(&request));
    let attempts_max = own.and_then(|own| own.attempts_max).unwrap_or(remote.shared.retry.attempts_max);
    match remote.answered_within(&request, &caller, &prover, limit, attempts_max).await? {
        Answered::Reply(Reply::Card(card)) => {
            // Boxed, so that the futures of all other calls stay small.
            Box::pin(remote.shared.signatures.check_extended(&remote.shared.http, &card)).await?;
            // What was shown to the credentials of one call is not kept for the calls of others.
            if let (Some(key), None) = (&remote.key, own_credentials) {
                remote.shared.cards.extend(key, &remote.card.version, card.clone());
            }
            *remote.extended.lock().unwrap_or_else(PoisonError::into_inner) = Some(card.clone());
            Ok(Answer::Reply(Reply::Card(card)))
        }
        answered => match request {
            Request::SendStreamingMessage(_) | Request::SubscribeToTask { .. } => {
                Ok(Answer::Stream(follow(remote.clone(), request, caller, prover, answered)?))
            }
            _ => match answered {
                Answered::Reply(reply) => Ok(Answer::Reply(reply)),
                Answered::Events(_) => Err(CallError::invalid_answer("a stream came in place of one answer")),
            },
        },
    }
}
