//! A remote agent: makes calls at the place that its card names, goes on to the next place where the agent is not there, and makes a
//! call again where that is safe.

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
use super::retry::{Verdict, leaves_open};
use super::stream::follow;
use crate::agent_client::{Answer, CallAgent, CallOptions, Spoken};
use crate::call_error::{CallError, CallErrorKind};
use crate::idempotent_sends::IDEMPOTENT_SENDS;
use crate::random;

/// How long an agent is called at another place than the one its card prefers before that one is tried again.
const PREFERRED_AGAIN: Duration = Duration::from_secs(300);

/// An agent elsewhere.
pub(super) struct RemoteAgent(Arc<Remote>);

/// What the calls and the streams of an agent share.
pub(super) struct Remote {
    pub(super) shared: Arc<Shared>,
    card: Arc<AgentCard>,
    /// Once it was asked for.
    extended: Mutex<Option<Arc<AgentCard>>>,
    targets: Vec<Target>,
    place: Mutex<Place>,
    /// Whether a message that is sent again is not taken for a new one.
    pub(super) recognises_repeats: bool,
    named: Named,
}

/// The place that answered last.
#[derive(Clone, Copy)]
struct Place {
    at: usize,
    since: Instant,
}

impl RemoteAgent {
    pub(super) fn new(shared: Arc<Shared>, found: &DiscoveredCard, targets: Vec<Target>, named: Named) -> Self {
        let (card, extended) = (found.card().clone(), Mutex::default());
        let place = Mutex::new(Place { at: 0, since: Instant::now() });
        let recognises_repeats = card.capabilities.extensions.iter().any(|own| own.uri == IDEMPOTENT_SENDS);
        Self(Arc::new(Remote { shared, card, extended, targets, place, recognises_repeats, named }))
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
        let target = self.0.targets.get(self.0.place.lock().unwrap_or_else(PoisonError::into_inner).at)?;
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
        let attempts_max = options.remote.attempts_max.unwrap_or(self.shared.retry.attempts_max);
        match self.answered_within(&request, &caller, &proof, limit, attempts_max).await? {
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
        self.answered_within(request, caller, proof, limit, self.shared.retry.attempts_max).await
    }

    async fn answered_within(
        &self,
        request: &Request,
        caller: &Caller,
        proof: &Proof,
        limit: Duration,
        attempts_max: u32,
    ) -> Result<Answered, CallError> {
        let until = Instant::now() + limit;
        let policy = &self.shared.retry;
        // Whether an attempt may have arrived; a later one may fail before it arrives.
        let (mut attempt, mut is_open) = (0, false);
        let given_up = |error: CallError, is_open: bool| if is_open { error.outcome_unknown() } else { error };
        loop {
            attempt += 1;
            let error = match self.attempt(request, caller, proof, until, limit).await {
                Ok(answered) => return Ok(answered),
                Err(error) => error,
            };
            is_open |= leaves_open(request, &error);
            let error = match policy.judge(request, error, self.recognises_repeats) {
                Verdict::Fail(error) => return Err(error),
                Verdict::Again(error) if attempt >= attempts_max => return Err(given_up(error, is_open)),
                Verdict::Again(error) => error,
            };
            let pause = policy.pause(attempt, error.retry_after(), random::number());
            if Instant::now() + pause >= until {
                return Err(given_up(error, is_open));
            }
            sleep(pause).await;
        }
    }

    /// Makes a call once, at the first place where the agent is: where it was last, then the others in order.
    async fn attempt(
        &self,
        request: &Request,
        caller: &Caller,
        proof: &Proof,
        until: Instant,
        limit: Duration,
    ) -> Result<Answered, CallError> {
        let mut refused = None;
        let first = self.first_place();
        for at in (first..self.targets.len()).chain(0..first) {
            let (shared, named, target) = (&*self.shared, &self.named, &self.targets[at]);
            let exchange = Exchange { shared, named, target, request, caller, proof, until, limit };
            match exchange.make().await {
                Ok(answered) => {
                    self.answered_at(at, first);
                    return Ok(answered);
                }
                Err(Failure::Failed(error)) => {
                    // A refusal came from the agent: it is there.
                    if error.protocol_error().is_some() && error.wire_text().is_some() {
                        self.answered_at(at, first);
                    } else if matches!(error.kind(), CallErrorKind::Broken | CallErrorKind::TimedOut) {
                        // The next call begins with the preferred place.
                        self.answered_at(0, first);
                    }
                    return Err(error);
                }
                Err(Failure::NotHere(error)) => drop(refused.get_or_insert(error)),
            }
        }
        Err(refused.unwrap_or_else(|| CallError::invalid_answer("the agent has no address")))
    }

    /// Where a call begins: at the place that answered last, or from time to time at the preferred one.
    fn first_place(&self) -> usize {
        let place = *self.place.lock().unwrap_or_else(PoisonError::into_inner);
        if place.at > 0 && place.since.elapsed() >= PREFERRED_AGAIN { 0 } else { place.at }
    }

    /// Remembers the place that answered a call which began at `first`.
    fn answered_at(&self, at: usize, first: usize) {
        if at != first || at == 0 {
            *self.place.lock().unwrap_or_else(PoisonError::into_inner) = Place { at, since: Instant::now() };
        }
    }
}
