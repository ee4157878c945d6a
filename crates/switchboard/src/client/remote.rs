//! The places of a remote agent: makes calls at the one that its card names, goes on to the next where the agent is not there, and makes a
//! call again where that is safe.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use switchboard_core::call::{Caller, Request};
use switchboard_core::dialect::Dialect;
use switchboard_core::model::{AgentCard, PartContent};
use tokio::time::{Instant, sleep, timeout_at};

use super::bindings::{Answered, Exchange, Failure};
use super::credentials::{Proof, Prover};
use super::discovered_card::{CardReference, DiscoveredCard};
use super::discovery::Shared;
use super::http::Named;
use super::negotiation::{Form, Target};
use super::retry::{Verdict, leaves_open};
use crate::call_error::{CallError, CallErrorKind};
use crate::idempotent_sends::IDEMPOTENT_SENDS;
use crate::random;

/// How many further proofs an agent is shown that refuses one.
const PROOFS_MAX: u32 = 3;
/// How long an agent is called at another place than the one its card prefers before that one is tried again.
const PREFERRED_AGAIN: Duration = Duration::from_secs(300);

/// What the calls and the streams of an agent share.
pub(super) struct Remote {
    pub(super) shared: Arc<Shared>,
    pub(super) card: Arc<AgentCard>,
    /// Once it was asked for, by this client.
    pub(super) extended: Mutex<Option<Arc<AgentCard>>>,
    pub(super) targets: Vec<Target>,
    pub(super) place: Mutex<Place>,
    /// Whether a message that is sent again is not taken for a new one.
    pub(super) recognises_repeats: bool,
    pub(super) named: Named,
    /// What its card is kept under.
    pub(super) key: Option<String>,
}

/// The place that answered last.
#[derive(Clone, Copy)]
pub(super) struct Place {
    pub(super) at: usize,
    since: Instant,
}

impl Remote {
    pub(super) fn new(
        shared: Arc<Shared>,
        found: &DiscoveredCard,
        targets: Vec<Target>,
        reference: &CardReference,
    ) -> Self {
        let (card, key) = (found.card().clone(), reference.key().map(str::to_owned));
        let extended = key.as_ref().and_then(|key| shared.cards.extended(key, &card.version));
        let place = Mutex::new(Place { at: 0, since: Instant::now() });
        let recognises_repeats = card.capabilities.extensions.iter().any(|own| own.uri == IDEMPOTENT_SENDS);
        let (extended, named) = (Mutex::new(extended), reference.named());
        Self { shared, card, extended, targets, place, recognises_repeats, named, key }
    }

    pub(super) fn usual_limit(&self, request: &Request) -> Duration {
        match request {
            Request::SendMessage(_) => self.shared.http.limits.send,
            _ => self.shared.http.limits.call,
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
        self.answered_within(request, caller, prover, limit, self.shared.retry.attempts_max).await
    }

    pub(super) async fn answered_within(
        &self,
        request: &Request,
        caller: &Caller,
        prover: &Prover,
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
            let error = match self.proven(request, caller, prover, until, limit).await {
                Ok(answered) => return Ok(answered),
                Err(error) => error,
            };
            is_open |= leaves_open(request, &error);
            let error = match policy.judge(request, error, self.recognises_repeat_of(request, prover)) {
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

    /// Whether the agent takes this message, if it is sent again, for the one it was. Agents of agent-native do so for messages that
    /// they work on later, from callers whose token they have verified.
    pub(super) fn recognises_repeat_of(&self, request: &Request, prover: &Prover) -> bool {
        let is_native = |target: &Target| target.form == Form::JsonRpc(Dialect::AgentNative);
        self.recognises_repeats
            || matches!(request, Request::SendMessage(send) if send.return_immediately)
                && prover.signs()
                && self.targets.iter().all(is_native)
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
        let mut proof = Proof::default();
        if !prover.is_empty() {
            let shown = timeout_at(until, Box::pin(prover.proof(&self.shared.http))).await.map_err(late)?;
            proof = shown.map_err(CallError::before_sending)?;
        }
        for _ in 0..PROOFS_MAX {
            let error = match self.attempt(request, caller, &proof, until, limit).await {
                Err(error) if error.is_unauthenticated() => error,
                Ok(answered) => {
                    prover.believed(&proof);
                    return Ok(answered);
                }
                Err(error) => return Err(error),
            };
            let next =
                timeout_at(until, Box::pin(prover.after_refusal(&self.shared.http, &proof))).await.map_err(late)?;
            match next.map_err(CallError::before_sending)? {
                Some(next) => proof = next,
                None => return Err(error),
            }
        }
        self.attempt(request, caller, &proof, until, limit).await
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
        let for_files = self.place_for_files(request);
        let first = for_files.unwrap_or_else(|| self.first_place());
        for at in (first..self.targets.len()).chain(0..first) {
            let (http, named, target) = (&self.shared.http, &self.named, &self.targets[at]);
            let exchange = Exchange { http, named, target, request, caller, proof, until, limit };
            match exchange.make().await {
                Ok(answered) => {
                    if for_files.is_none() {
                        self.answered_at(at, first);
                    }
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

    /// Where a message with a file goes if a call would go to 0.3 over HTTP+JSON or gRPC and there is 0.3 over JSON-RPC, too: of the
    /// file's bytes the Python SDK 0.3 expects base64 there, others the bytes themselves, and nothing tells which.
    fn place_for_files(&self, request: &Request) -> Option<usize> {
        let (Request::SendMessage(send) | Request::SendStreamingMessage(send)) = request else { return None };
        let has_file = send.message.parts.iter().any(|part| matches!(part.content, PartContent::Raw(_)));
        let is_proto = |form: Form| form.version() == Some("0.3") && form != Form::JsonRpc(Dialect::V0_3);
        if !has_file || !is_proto(self.targets.get(self.first_place())?.form) {
            return None;
        }
        self.targets.iter().position(|target| target.form == Form::JsonRpc(Dialect::V0_3))
    }

    /// Remembers the place that answered a call which began at `first`. How long it has been the place is asked for only of one
    /// that is not the preferred one.
    fn answered_at(&self, at: usize, first: usize) {
        let is_known = at == 0 && self.place.lock().unwrap_or_else(PoisonError::into_inner).at == 0;
        if !is_known && (at != first || at == 0) {
            *self.place.lock().unwrap_or_else(PoisonError::into_inner) = Place { at, since: Instant::now() };
        }
    }
}
