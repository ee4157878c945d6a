//! What is recorded about a request while it is answered: the operation, the agent, the caller and the start time. When
//! the answer is ready, metrics and logs are made from this record, so that refusals at every stage are counted.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicU8, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};

use http::request::Parts;
use http::{HeaderValue, Response};
use switchboard_core::dialect::codes;
use switchboard_core::error::ProtocolError;
use switchboard_core::model::Principal;
use switchboard_engine::escaped::Escaped;
use tokio::time::Instant;
use tracing::Level;

use crate::server::edge::access_log::{AccessLine, Answered};
use crate::server::edge::authenticate::Identity;
use crate::server::edge::header_names::X_REQUEST_ID;
use crate::server::edge::respond::ReplyBody;
use crate::server::edge::shared::{Mounted, Shared};
use crate::server::operator::metrics::{Operation, Outcome};

/// The way a request came in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum BindingKind {
    JsonRpc,
    HttpJson,
    Grpc,
    /// Cards, downloads, and what is for operators.
    Http,
}

impl BindingKind {
    pub(crate) const ALL: [Self; 4] = [Self::JsonRpc, Self::HttpJson, Self::Grpc, Self::Http];

    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::JsonRpc => "jsonrpc",
            Self::HttpJson => "http_json",
            Self::Grpc => "grpc",
            Self::Http => "http",
        }
    }
}

/// Written through a shared reference, because the head of a request is handed on by reference.
pub(crate) struct RequestRecord {
    began: Instant,
    peer: Option<SocketAddr>,
    operation: AtomicU8,
    binding: AtomicU8,
    /// One more than the place of the agent in the server's list; zero while no agent is known.
    agent: AtomicUsize,
    principal: OnceLock<Principal>,
    /// Only if a line is to be written for this request.
    line: Option<Box<AccessLine>>,
}

impl RequestRecord {
    pub(crate) fn new(peer: Option<SocketAddr>) -> Self {
        Self {
            began: Instant::now(),
            peer,
            operation: AtomicU8::new(Operation::Unknown as u8),
            binding: AtomicU8::new(BindingKind::Http as u8),
            agent: AtomicUsize::new(0),
            principal: OnceLock::new(),
            line: None,
        }
    }

    /// Keeps what the access log, or a log at debug level, says about the request itself.
    pub(crate) fn keep_line(&mut self, shared: &Shared, parts: &Parts, request_id: &HeaderValue) {
        if shared.access_log.is_some() || tracing::enabled!(Level::DEBUG) {
            self.line = Some(Box::new(AccessLine::of(parts, request_id, self.peer)));
        }
    }

    pub(crate) fn operation(&self, operation: Operation) {
        self.operation.store(operation as u8, Relaxed);
    }

    pub(crate) fn binding(&self, binding: BindingKind) {
        self.binding.store(binding as u8, Relaxed);
    }

    pub(crate) fn agent(&self, agent: &Mounted) {
        self.agent.store(agent.place + 1, Relaxed);
    }

    /// Notes who calls. The first one counts.
    pub(crate) fn principal(&self, identity: &Identity) {
        // The anonymous one is shown as such without being noted.
        if identity.authenticated {
            let _ = self.principal.set(identity.principal.clone());
        }
    }

    fn known_operation(&self) -> Operation {
        Operation::ALL[usize::from(self.operation.load(Relaxed))]
    }
}

/// A refusal, as the answer that carries it is marked with it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Refused {
    /// The JSON-RPC code; for refusals outside the protocol the HTTP status or gRPC code.
    pub(crate) code: i32,
    pub(crate) reason: &'static str,
    pub(crate) outcome: Outcome,
}

impl Refused {
    /// None for the failure of an agent, which is an answer and no refusal.
    fn of(error: &ProtocolError) -> Option<Self> {
        let codes = codes::of(error);
        let outcome = if codes.http >= 500 { Outcome::Failed } else { Outcome::Refused };
        let refused = Self { code: codes.jsonrpc, reason: codes.reason, outcome };
        (!matches!(error, ProtocolError::AgentFailed { .. })).then_some(refused)
    }

    /// Marks the answer that refuses a request with this error.
    pub(crate) fn mark(response: &mut Response<ReplyBody>, error: &ProtocolError) {
        if let Some(refused) = Self::of(error) {
            response.extensions_mut().insert(refused);
        }
    }

    /// Takes the mark off an answer. An answer without one is judged by its status.
    fn taken_from(response: &mut Response<ReplyBody>) -> Option<Self> {
        if !response.extensions().is_empty()
            && let Some(refused) = response.extensions_mut().remove::<Self>()
        {
            return Some(refused);
        }
        let status = response.status();
        let outcome = if status.is_server_error() { Outcome::Failed } else { Outcome::Refused };
        let refused = Self { code: i32::from(status.as_u16()), reason: "HTTP", outcome };
        (status.is_client_error() || status.is_server_error()).then_some(refused)
    }
}

/// A request that is being answered. If it is dropped before its answer is ready, the client went away, and that is
/// logged.
pub(crate) struct InFlight {
    pub(crate) shared: Arc<Shared>,
    pub(crate) note: RequestRecord,
    is_answered: bool,
}

impl InFlight {
    pub(crate) fn new(shared: Arc<Shared>, note: RequestRecord) -> Self {
        Self { shared, note, is_answered: false }
    }

    /// Counts and logs the request, now that its answer is ready.
    pub(crate) fn answered(mut self, mut response: Response<ReplyBody>) -> Response<ReplyBody> {
        self.is_answered = true;
        let (shared, note) = (&self.shared, &self.note);
        let operation = note.known_operation();
        // A probe that says "not ready" has been answered.
        let refused = Refused::taken_from(&mut response).filter(|_| operation != Operation::Probe);
        let took = note.began.elapsed();
        let binding = note.binding.load(Relaxed);
        let place = note.agent.load(Relaxed);
        let metrics = &shared.metrics;
        metrics.request(place, operation, refused.map_or(Outcome::Ok, |refused| refused.outcome));
        metrics.answered_in(operation, binding, took);
        if let Some(refused) = refused {
            metrics.refused(refused.reason);
            self.log_refusal(operation, refused, &response);
        }
        if self.note.line.is_some() { self.write_line(response, operation) } else { response }
    }

    fn agent_name(&self) -> &str {
        let place = self.note.agent.load(Relaxed).checked_sub(1);
        place.and_then(|place| self.shared.own_site.agents.get(place)).map_or("", |agent| agent.name.as_str())
    }

    /// Logs one line per refusal, until the limit of lines per second is reached.
    fn log_refusal(&self, operation: Operation, refused: Refused, response: &Response<ReplyBody>) {
        if !tracing::enabled!(Level::INFO) || !self.shared.refusal_lines.admits(&self.shared) {
            return;
        }
        let principal = self.note.principal.get().map_or("", Principal::as_str);
        let request_id = response.headers().get(X_REQUEST_ID).and_then(|id| id.to_str().ok());
        tracing::info!(
            operation = operation.word(),
            agent = self.agent_name(),
            code = refused.code,
            reason = refused.reason,
            principal = %Escaped::at_most(principal, PRINCIPAL_BYTES_MAX),
            peer = self.note.peer.map(tracing::field::display),
            request_id,
            "request refused"
        );
    }

    #[cold]
    fn write_line(mut self, response: Response<ReplyBody>, operation: Operation) -> Response<ReplyBody> {
        let Some(line) = self.note.line.take() else { return response };
        let took = self.note.began.elapsed();
        let principal = self.note.principal.get().cloned();
        tracing::debug!(
            method = line.method.as_str(),
            path = %Escaped::new(&line.path),
            status = response.status().as_u16(),
            duration_us = u64::try_from(took.as_micros()).unwrap_or(u64::MAX),
            operation = operation.word(),
            agent = self.agent_name(),
            principal = %Escaped::at_most(principal.as_ref().map_or("", Principal::as_str), PRINCIPAL_BYTES_MAX),
            "request answered"
        );
        let Some(log) = self.shared.access_log.clone() else { return response };
        let answered = Answered {
            status: response.status().as_u16(),
            began: self.note.began,
            operation: operation.word(),
            agent: self.agent_name().to_owned(),
            principal,
        };
        let (parts, body) = response.into_parts();
        Response::from_parts(parts, log.follow(*line, answered, body))
    }
}

/// A principal comes from the operator's own list, but may be long.
const PRINCIPAL_BYTES_MAX: usize = 200;

impl Drop for InFlight {
    fn drop(&mut self) {
        if self.is_answered {
            return;
        }
        let (operation, agent) = (self.note.known_operation(), self.agent_name().to_owned());
        if let (Some(line), Some(log)) = (self.note.line.take(), &self.shared.access_log) {
            let principal = self.note.principal.get().cloned();
            let (operation, began) = (operation.word(), self.note.began);
            log.write(&line, &Answered { status: CLIENT_GONE, began, operation, agent, principal }, 0);
        }
    }
}

/// What other servers write into their access logs for a client that did not wait for its answer. Never sent.
const CLIENT_GONE: u16 = 499;
