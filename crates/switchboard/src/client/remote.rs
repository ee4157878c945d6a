//! A remote agent: makes calls at the place that its card names, goes on to the next place where the agent is not there, and makes a
//! call again where that is safe.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use switchboard_core::call::{BoxFuture, Caller, Reply, Request};
use switchboard_core::model::AgentCard;
use tokio::time::{Instant, sleep, timeout_at};

use super::Shared;
use super::bindings::{Answered, Exchange, Failure};
use super::credentials::{Proof, Prover};
use super::discovery::{DiscoveredCard, CardReference};
use super::http::Named;
use super::negotiation::Target;
use super::retry::Verdict;
use super::stream::follow;
use crate::agent_client::{Answer, CallAgent, CallOptions, Spoken};
use crate::call_error::CallError;
use crate::random;

/// How many further proofs an agent is shown that refuses one.
const PROOFS_MAX: u32 = 3;

/// An agent elsewhere.
pub(super) struct RemoteAgent(Arc<Remote>);

/// What the calls and the streams of an agent share.
pub(super) struct Remote {
    pub(super) shared: Arc<Shared>,
    card: Arc<AgentCard>,
    /// Once it was asked for, by this client.
    extended: Mutex<Option<Arc<AgentCard>>>,
    targets: Vec<Target>,
    /// The place that answered last.
    current: AtomicUsize,
    named: Named,
    /// What its card is kept under.
    key: Option<String>,
}

impl RemoteAgent {
    pub(super) fn new(
        shared: Arc<Shared>,
        found: &DiscoveredCard,
        targets: Vec<Target>,
        reference: &CardReference,
    ) -> Self {
        let (card, key) = (found.card().clone(), reference.key().map(str::to_owned));
        let extended = key.as_ref().and_then(|key| shared.cards.extended(key, &card.version));
        let (extended, current, named) = (Mutex::new(extended), AtomicUsize::new(0), reference.named());
        Self(Arc::new(Remote { shared, card, extended, targets, current, named, key }))
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
        let credentials = options.remote.credentials.as_ref().unwrap_or(&self.shared.credentials);
        let prover = Prover::new(credentials.clone(), self.card.clone(), self.named.clone());
        let limit = options.deadline.unwrap_or_else(|| self.usual_limit(&request));
        match self.answered(&request, &caller, &prover, limit).await? {
            Answered::Reply(Reply::Card(card)) => {
                // What was shown to the credentials of one call is not kept for the calls of others.
                if let (Some(key), None) = (&self.key, &options.remote.credentials) {
                    self.shared.cards.extend(key, &self.card.version, card.clone());
                }
                *self.extended.lock().unwrap_or_else(PoisonError::into_inner) = Some(card.clone());
                Ok(Answer::Reply(Reply::Card(card)))
            }
            answered => match request {
                Request::SendStreamingMessage(_) | Request::SubscribeToTask { .. } => {
                    Ok(Answer::Stream(follow(self.clone(), request, caller, prover, answered)?))
                }
                _ => match answered {
                    Answered::Reply(reply) => Ok(Answer::Reply(reply)),
                    Answered::Events(_) => Err(CallError::invalid_answer("a stream came in place of one answer")),
                },
            },
        }
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
        prover: &Prover,
        limit: Duration,
    ) -> Result<Answered, CallError> {
        let until = Instant::now() + limit;
        let policy = &self.shared.retry;
        let mut attempt = 0;
        loop {
            attempt += 1;
            let error = match self.proven(request, caller, prover, until, limit).await {
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

    /// Makes a call once, and again if the agent refuses what it was shown and there is something else to show. It did nothing then.
    async fn proven(
        &self,
        request: &Request,
        caller: &Caller,
        prover: &Prover,
        until: Instant,
        limit: Duration,
    ) -> Result<Answered, CallError> {
        let late = |_| CallError::timed_out(limit).before_sending();
        let proof = timeout_at(until, prover.proof(&self.shared)).await.map_err(late)?;
        let mut proof = proof.map_err(CallError::before_sending)?;
        for _ in 0..PROOFS_MAX {
            let error = match self.attempt(request, caller, &proof, until, limit).await {
                Err(error) if error.is_unauthenticated() => error,
                Ok(answered) => {
                    prover.believed(&proof);
                    return Ok(answered);
                }
                Err(error) => return Err(error),
            };
            let next = timeout_at(until, prover.after_refusal(&self.shared, &proof)).await.map_err(late)?;
            match next.map_err(CallError::before_sending)? {
                Some(next) => proof = next,
                None => return Err(error),
            }
        }
        self.attempt(request, caller, &proof, until, limit).await
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
