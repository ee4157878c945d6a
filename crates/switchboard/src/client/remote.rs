//! A remote agent: makes calls at the place that its card names, goes on to the next place where the agent is not there, and makes a
//! call again where that is safe.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use switchboard_core::call::{BoxFuture, Caller, Reply, Request};
use switchboard_core::model::AgentCard;
use tokio::time::{Instant, sleep};

use super::Shared;
use super::bindings::{Answered, Exchange, Failure};
use super::credentials::{Credentials, Proof};
use super::discovery::DiscoveredCard;
use super::http::Named;
use super::negotiation::Target;
use super::retry::Verdict;
use super::stream::follow;
use crate::agent_client::{Answer, CallAgent, CallOptions, Spoken};
use crate::call_error::CallError;
use crate::random;

/// An agent elsewhere.
pub(super) struct RemoteAgent(Arc<Remote>);

/// What the calls and the streams of an agent share.
pub(super) struct Remote {
    pub(super) shared: Arc<Shared>,
    card: Arc<AgentCard>,
    /// Once it was asked for.
    extended: Mutex<Option<Arc<AgentCard>>>,
    targets: Vec<Target>,
    /// The place that answered last.
    current: AtomicUsize,
    named: Named,
}

impl RemoteAgent {
    pub(super) fn new(shared: Arc<Shared>, found: &DiscoveredCard, targets: Vec<Target>, named: Named) -> Self {
        let (card, extended, current) = (found.card().clone(), Mutex::default(), AtomicUsize::new(0));
        Self(Arc::new(Remote { shared, card, extended, targets, current, named }))
    }
}

impl CallAgent for RemoteAgent {
    fn call<'a>(
        &'a self,
        caller: Caller,
        request: Request,
        options: &'a CallOptions,
    ) -> BoxFuture<'a, Result<Answer, CallError>> {
        Box::pin(self.0.call(caller, request, options))
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
        let target = self.0.targets.get(self.0.current.load(Ordering::Relaxed))?;
        Some(Spoken { url: target.uri.to_string(), binding: target.form.binding(), version: target.form.version() })
    }
}

impl Remote {
    async fn call(
        self: &Arc<Self>,
        mut caller: Caller,
        mut request: Request,
        options: &CallOptions,
    ) -> Result<Answer, CallError> {
        if let Request::SendMessage(send) | Request::SendStreamingMessage(send) = &mut request {
            if send.message.message_id.is_empty() {
                send.message.message_id = random::uuid().into();
            }
            // The same for every attempt, so that an agent which looks at it accepts the message once.
            caller.idempotency_key.get_or_insert_with(|| random::uuid().as_ref().to_owned());
        }
        let proof = self.proof(options.remote.credentials.as_ref())?;
        let limit = options.deadline.unwrap_or_else(|| self.usual_limit(&request));
        match self.answered(&request, &caller, &proof, limit).await? {
            Answered::Reply(Reply::Card(card)) => {
                *self.extended.lock().unwrap_or_else(PoisonError::into_inner) = Some(card.clone());
                Ok(Answer::Reply(Reply::Card(card)))
            }
            answered => match request {
                Request::SendStreamingMessage(_) | Request::SubscribeToTask { .. } => {
                    Ok(Answer::Stream(follow(self.clone(), request, caller, proof, answered)?))
                }
                _ => match answered {
                    Answered::Reply(reply) => Ok(Answer::Reply(reply)),
                    Answered::Events(_) => Err(CallError::invalid_answer("a stream came in place of one answer")),
                },
            },
        }
    }

    fn proof(&self, own: Option<&Credentials>) -> Result<Proof, CallError> {
        own.unwrap_or(&self.shared.credentials).for_card(&self.card)
    }

    fn usual_limit(&self, request: &Request) -> Duration {
        match request {
            Request::SendMessage(_) => self.shared.limits.send,
            _ => self.shared.limits.call,
        }
    }

    /// Makes a call, again if that is safe, until this time is over.
    pub(super) async fn answered(
        &self,
        request: &Request,
        caller: &Caller,
        proof: &Proof,
        limit: Duration,
    ) -> Result<Answered, CallError> {
        let until = Instant::now() + limit;
        let policy = &self.shared.retry;
        let mut attempt = 0;
        loop {
            attempt += 1;
            let error = match self.attempt(request, caller, proof, until, limit).await {
                Ok(answered) => return Ok(answered),
                Err(error) => error,
            };
            let error = match policy.judge(request, error) {
                Verdict::Fail(error) => return Err(error),
                Verdict::Again(error) if attempt >= policy.attempts_max => return Err(error),
                Verdict::Again(error) => error,
            };
            let pause = policy.pause(attempt, error.retry_after(), random::number());
            if Instant::now() + pause >= until {
                return Err(error);
            }
            sleep(pause).await;
        }
    }

    /// Makes a call once, at the first place where the agent is.
    async fn attempt(
        &self,
        request: &Request,
        caller: &Caller,
        proof: &Proof,
        until: Instant,
        limit: Duration,
    ) -> Result<Answered, CallError> {
        let mut first = None;
        for (at, target) in self.targets.iter().enumerate().skip(self.current.load(Ordering::Relaxed)) {
            let (shared, named) = (&*self.shared, &self.named);
            let exchange = Exchange { shared, named, target, request, caller, proof, until, limit };
            match exchange.make().await {
                Ok(answered) => {
                    self.current.store(at, Ordering::Relaxed);
                    return Ok(answered);
                }
                Err(Failure::Failed(error)) => {
                    // A refusal came from the agent: it is there.
                    if error.protocol_error().is_some() && error.wire_text().is_some() {
                        self.current.store(at, Ordering::Relaxed);
                    }
                    return Err(error);
                }
                Err(Failure::NotHere(error)) => drop(first.get_or_insert(error)),
            }
        }
        Err(first.unwrap_or_else(|| CallError::invalid_answer("the agent has no address")))
    }
}
