//! What is counted and logged of a request when its answer is ready: from the record of it, so that refusals at every stage are counted.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use http::Response;
use switchboard_core::model::{AgentName, Principal, Tenant};
use switchboard_engine::escaped::Escaped;
use switchboard_engine::ports::Clock;
use switchboard_engine::ports::audit::{AuditEntry, AuditEvent, Decision};
use switchboard_engine::system::SystemClock;
use tracing::Level;

use crate::server::edge::admit::CommonHeaders;
use crate::server::exchange::access_log::Answered;
use crate::server::exchange::headers::X_REQUEST_ID;
use crate::server::exchange::refused::Refused;
use crate::server::exchange::request_record::RequestRecord;
use crate::server::exchange::request_trace::SpanEnd;
use crate::server::exchange::respond::ReplyBody;
use crate::server::metrics::{BindingKind, Operation, Outcome};
use crate::server::shared::Shared;
use crate::server::transport::unread::{ServiceReplies, UnreadReplies};

/// What sees that a client does not read its answer.
pub(crate) enum ReplyWatch {
    /// The socket, over HTTP/1.1.
    Socket,
    /// The streams of an HTTP/2 connection.
    Streams(Arc<UnreadReplies>),
    /// The answers of a service in an application.
    Service(Arc<ServiceReplies<ReplyBody>>),
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
            ReplyWatch::Streams(unread) => response.map(|body| body.watched_by(&unread)),
            ReplyWatch::Service(unread) => response.map(|body| body.held_for(&unread)),
        }
    }

    fn agent_name(&self) -> &str {
        let place = self.note.agent.load(Relaxed).checked_sub(1);
        place.and_then(|place| self.shared.own_site.agents.get(place)).map_or("", |agent| agent.name.as_str())
    }

    /// Logs one line per refusal, until the limit of lines per second is reached.
    fn log_refusal(&self, operation: Operation, refused: Refused, response: &Response<ReplyBody>) {
        if !tracing::enabled!(Level::INFO) || !self.shared.refusal_lines.admits(&self.shared.supervisor) {
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
        Response::from_parts(parts, ReplyBody::Followed(Box::new(log.follow(*line, answered, body))))
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
