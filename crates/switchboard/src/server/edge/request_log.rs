//! What is recorded about a request while it is answered: the operation, the agent, the caller and the start time. When
//! the answer is ready, metrics and logs are made from this record, so that refusals at every stage are counted.
//!
//! Refused requests are logged up to a number of lines a second ([`LineBudget`]), so that a flood of refusals fills no disk and does
//! not slow the server down; those that were left out are summed up in one line.

use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicU8, AtomicU64, AtomicUsize};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use http::request::Parts;
use http::{HeaderMap, HeaderValue, Response};
use switchboard_core::dialect::{Dialect, codes};
use switchboard_core::error::ProtocolError;
use switchboard_core::model::{AgentName, Principal, Tenant, TraceContext};
use switchboard_engine::escaped::Escaped;
use switchboard_engine::ports::audit::{AuditEntry, AuditEvent, Decision};
use switchboard_engine::ports::{Clock, Tracer};
use switchboard_engine::supervisor::Kind;
use switchboard_engine::system::SystemClock;
use tokio::time::Instant;
use tracing::Level;

use crate::server::authentication::{Identity, OnRefusal};
use crate::server::edge::access_log::{AccessLine, Answered};
use crate::server::edge::admit::CommonHeaders;
use crate::server::edge::budgets::Holder;
use crate::server::edge::headers::X_REQUEST_ID;
use crate::server::edge::request_trace::{RequestTrace, SpanEnd};
use crate::server::edge::respond::ReplyBody;
use crate::server::edge::shared::{Mounted, Shared};
use crate::server::operator::Operations;
use crate::server::operator::metrics::{Operation, Outcome};
use crate::server::transport::unread::{ServiceReplies, UnreadReplies};

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
    /// Set once the tenant that the request names was granted.
    tenant: OnceLock<Tenant>,
    /// Only if a line is to be written for this request.
    line: Option<Box<AccessLine>>,
    /// Only if the request comes in a trace, or traces are recorded.
    trace: Option<Box<RequestTrace>>,
}

impl RequestRecord {
    /// The address of the other end of the connection, where it is known.
    pub(crate) fn peer(&self) -> Option<IpAddr> {
        self.peer.map(|peer| peer.ip())
    }

    pub(crate) fn new(peer: Option<SocketAddr>) -> Self {
        Self {
            began: Instant::now(),
            peer,
            operation: AtomicU8::new(Operation::Unknown as u8),
            binding: AtomicU8::new(BindingKind::Http as u8),
            agent: AtomicUsize::new(0),
            principal: OnceLock::new(),
            tenant: OnceLock::new(),
            line: None,
            trace: None,
        }
    }

    /// Keeps what the access log, or a log at debug level, says about the request itself.
    pub(crate) fn keep_line(&mut self, shared: &Shared, parts: &Parts, request_id: &HeaderValue) {
        if shared.access_log.is_some() || tracing::enabled!(Level::DEBUG) {
            self.line = Some(Box::new(AccessLine::of(parts, request_id, self.peer)));
        }
    }

    /// Notes the trace that the request belongs to.
    #[cold]
    pub(crate) fn begin_trace(&mut self, tracer: Option<&Arc<dyn Tracer>>, headers: &HeaderMap) {
        self.trace = RequestTrace::begin(tracer, headers);
    }

    /// The place in a trace that what a call in this dialect causes belongs to.
    pub(crate) fn trace(&self, dialect: Dialect) -> Option<Arc<TraceContext>> {
        self.trace.as_ref().map(|trace| trace.of_call(dialect))
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

    /// Notes for which tenant the call is made. The first one counts.
    pub(crate) fn tenant(&self, tenant: &Tenant) {
        if !tenant.as_str().is_empty() {
            let _ = self.tenant.set(tenant.clone());
        }
    }

    /// Where the request comes from, where that is known.
    pub(crate) fn address(&self) -> Option<IpAddr> {
        self.peer.map(|peer| peer.ip())
    }

    /// Who has to answer for what the request takes.
    pub(crate) fn holder(&self) -> Holder {
        match (self.principal.get(), self.address()) {
            (Some(principal), _) => Holder::Principal(principal.clone()),
            (None, Some(address)) => Holder::of_address(address),
            (None, None) => Holder::Unknown,
        }
    }

    /// What puts into the audit log that a stream was ended with a refusal; none on a server without such a log.
    pub(crate) fn stream_audit(&self, shared: &Shared, agent: &Mounted) -> Option<OnRefusal> {
        let audit = StreamAudit {
            operations: shared.operations.clone()?,
            operation: self.known_operation(),
            agent: agent.name.clone(),
            principal: self.principal.get().cloned(),
            tenant: self.tenant.get().cloned(),
            address: self.address(),
        };
        Some(Arc::new(move |error| audit.refused(error)))
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
    /// Whether it is about who asked or how much was asked, and so belongs into the audit log.
    pub(crate) audited: bool,
}

impl Refused {
    /// None for the failure of an agent, which is an answer and no refusal.
    fn of(error: &ProtocolError) -> Option<Self> {
        let codes = codes::of(error);
        let outcome = if codes.http >= 500 { Outcome::Failed } else { Outcome::Refused };
        let audited = is_audited(codes.http);
        let refused = Self { code: codes.jsonrpc, reason: codes.reason, outcome, audited };
        (!matches!(error, ProtocolError::AgentFailed { .. })).then_some(refused)
    }

    /// Marks the answer that refuses a request with this error.
    pub(crate) fn mark(response: &mut Response<ReplyBody>, error: &ProtocolError) {
        if let Some(refused) = Self::of(error) {
            response.extensions_mut().insert(refused);
        }
    }

    /// Has a marked refusal be in the audit log, whatever it is about.
    pub(crate) fn audit(response: &mut Response<ReplyBody>) {
        if let Some(refused) = response.extensions_mut().get_mut::<Self>() {
            refused.audited = true;
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
        let audited = is_audited(status.as_u16());
        let refused = Self { code: i32::from(status.as_u16()), reason: "HTTP", outcome, audited };
        (status.is_client_error() || status.is_server_error()).then_some(refused)
    }
}

/// Whom a stream is for, in case that it is ended with a refusal after its answer had begun: its credential ends, or its client does not
/// read. Over SSE the refusal is an event, over gRPC it is in the trailers.
struct StreamAudit {
    operations: Arc<dyn Operations>,
    operation: Operation,
    agent: AgentName,
    principal: Option<Principal>,
    tenant: Option<Tenant>,
    address: Option<IpAddr>,
}

impl StreamAudit {
    #[cold]
    fn refused(&self, error: &ProtocolError) {
        let Some(refused) = Refused::of(error).filter(|refused| refused.audited) else { return };
        self.operations.record_refusal(refused.reason, &mut || AuditEntry {
            tenant: self.tenant.as_ref().map_or("", Tenant::as_str).to_owned(),
            principal: self.principal.as_ref().map_or("", Principal::as_str).to_owned(),
            address: self.address,
            agent: Some(self.agent.clone()),
            reason: refused.reason.into(),
            ..AuditEntry::new(SystemClock.now(), AuditEvent::Refusal, Decision::Refused, self.operation.word())
        });
    }
}

/// Whether a refusal with this status is about who asked or how much was asked: not known, not allowed, a foreign Host or
/// Origin, too often.
fn is_audited(status: u16) -> bool {
    matches!(status, 401 | 403 | 421 | 429)
}

/// What sees that a client does not read its answer.
pub(crate) enum ReplyWatch {
    /// The socket, over HTTP/1.1.
    Socket,
    /// The streams of an HTTP/2 connection.
    Streams(Arc<UnreadReplies>),
    /// The answers of a service in an application.
    Service(Arc<ServiceReplies>),
}

/// A request that is being answered. If it is dropped before its answer is ready, the client went away, and that is
/// logged.
pub(crate) struct InFlight {
    pub(crate) shared: Arc<Shared>,
    pub(crate) note: RequestRecord,
    unread: ReplyWatch,
    is_answered: bool,
}

impl InFlight {
    pub(crate) fn new(shared: Arc<Shared>, note: RequestRecord, unread: ReplyWatch) -> Self {
        Self { shared, note, unread, is_answered: false }
    }

    /// Completes the head of the answer, now that it is ready, and counts and logs the request.
    pub(crate) fn answered(mut self, common: CommonHeaders, mut response: Response<ReplyBody>) -> Response<ReplyBody> {
        self.is_answered = true;
        let (shared, note) = (&self.shared, &self.note);
        common.add_to(shared, response.headers_mut());
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
            if refused.audited {
                self.audit_refusal(operation, refused);
            }
        }
        if self.note.trace.is_some() {
            self.end_span(operation, refused, response.status().as_u16());
        }
        let unread = std::mem::replace(&mut self.unread, ReplyWatch::Socket);
        let response = if self.note.line.is_some() { self.write_line(response, operation) } else { response };
        match unread {
            ReplyWatch::Socket => response,
            ReplyWatch::Streams(unread) => response.map(|body| unread.watch(body)),
            ReplyWatch::Service(unread) => response.map(|body| unread.watch(body)),
        }
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
            trace_id = self.note.trace.as_ref().map(|trace| trace.id()),
            "request refused"
        );
    }

    /// Ends the span of the request, if it has one.
    #[cold]
    fn end_span(&mut self, operation: Operation, refused: Option<Refused>, status: u16) {
        let agent = self.agent_name().to_owned();
        let binding = BindingKind::ALL.get(usize::from(self.note.binding.load(Relaxed))).map_or("", |kind| kind.word());
        if let Some(trace) = self.note.trace.take() {
            trace.end(SpanEnd { operation, agent, binding, refused, status });
        }
    }

    /// Adds an entry about what an operator did.
    pub(crate) fn audit_operator(&self, entry: AuditEntry) {
        if let Some(operations) = &self.shared.operations {
            let principal = self.note.principal.get().map_or("", Principal::as_str).to_owned();
            operations.record_audit(AuditEntry { principal, address: self.note.address(), ..entry });
        }
    }

    #[cold]
    fn audit_refusal(&self, operation: Operation, refused: Refused) {
        let Some(operations) = &self.shared.operations else { return };
        let note = &self.note;
        let agent = Some(self.agent_name()).filter(|name| !name.is_empty()).map(AgentName::from);
        operations.record_refusal(refused.reason, &mut || AuditEntry {
            tenant: note.tenant.get().map_or("", Tenant::as_str).to_owned(),
            principal: note.principal.get().map_or("", Principal::as_str).to_owned(),
            address: note.address(),
            agent: agent.clone(),
            reason: match refused.reason {
                // The protocol has no word for it.
                "HTTP" => format!("HTTP {}", refused.code).into(),
                reason => reason.into(),
            },
            ..AuditEntry::new(SystemClock.now(), AuditEvent::Refusal, Decision::Refused, operation.word())
        });
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
        if self.note.trace.is_some() {
            self.end_span(operation, None, CLIENT_GONE);
        }
        if let (Some(line), Some(log)) = (self.note.line.take(), &self.shared.access_log) {
            let principal = self.note.principal.get().cloned();
            let (operation, began) = (operation.word(), self.note.began);
            log.write(&line, &Answered { status: CLIENT_GONE, began, operation, agent, principal }, 0);
        }
    }
}

/// What other servers write into their access logs for a client that did not wait for its answer. Never sent.
const CLIENT_GONE: u16 = 499;

/// Refusals that are logged one by one in any second.
const LINES_PER_S_MAX: u32 = 20;

pub(crate) struct LineBudget {
    since: Instant,
    /// The current second since then, and in the lower half how many lines it has had.
    second_and_lines: AtomicU64,
    left_out: AtomicU64,
}

/// What to do about one more line.
#[derive(Debug, PartialEq, Eq)]
enum LineDecision {
    Write,
    /// It is the first in its second that is left out, so the sum is due when the second is over.
    LeaveOutAndSumUp,
    LeaveOut,
}

impl LineBudget {
    pub(crate) fn new() -> Self {
        Self { since: Instant::now(), second_and_lines: AtomicU64::new(0), left_out: AtomicU64::new(0) }
    }

    /// Whether one more line may be logged in this second.
    pub(crate) fn admits(self: &Arc<Self>, shared: &Shared) -> bool {
        match self.judge(self.since.elapsed().as_secs()) {
            LineDecision::Write => true,
            LineDecision::LeaveOut => false,
            LineDecision::LeaveOutAndSumUp => {
                let budget = self.clone();
                shared.supervisor.spawn(Kind::Sweep, async move {
                    tokio::time::sleep(Duration::from_secs(1)).await;
                    budget.sum_up();
                });
                false
            }
        }
    }

    fn judge(&self, second: u64) -> LineDecision {
        let next = |packed: u64| match packed >> 32 == second {
            true => packed.saturating_add(1),
            false => second << 32 | 1,
        };
        let packed = self.second_and_lines.fetch_update(Relaxed, Relaxed, |packed| Some(next(packed)));
        let lines = next(packed.unwrap_or_default()) as u32;
        if lines <= LINES_PER_S_MAX {
            return LineDecision::Write;
        }
        self.left_out.fetch_add(1, Relaxed);
        if lines == LINES_PER_S_MAX + 1 { LineDecision::LeaveOutAndSumUp } else { LineDecision::LeaveOut }
    }

    fn sum_up(&self) {
        let refusals = self.left_out.swap(0, Relaxed);
        if refusals > 0 {
            tracing::warn!(refusals, "more requests were refused than are logged one by one");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{LINES_PER_S_MAX, LineBudget, LineDecision, Relaxed};

    #[tokio::test(start_paused = true)]
    async fn a_flood_is_logged_up_to_a_bound_each_second() {
        let budget = LineBudget::new();
        for second in [0, 1, 7] {
            for _ in 0..LINES_PER_S_MAX {
                assert_eq!(budget.judge(second), LineDecision::Write);
            }
            assert_eq!(budget.judge(second), LineDecision::LeaveOutAndSumUp);
            assert_eq!(budget.judge(second), LineDecision::LeaveOut);
        }
        assert_eq!(budget.left_out.load(Relaxed), 6);
        budget.sum_up();
        assert_eq!(budget.left_out.load(Relaxed), 0);
    }
}
